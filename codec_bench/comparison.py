"""Are two systems different? Paired bootstrap and sign test over the samples that both have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from codec_bench.api import names
from codec_bench.errors import UnknownName, UserError
from codec_bench.stats.bootstrap import ratios
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.paired import Comparison, ScoreRow, compare_scores
from codec_bench.store.record import Run, open_run


@dataclass(frozen=True, slots=True)
class Pair:
    """System A against system B, one comparison per metric that both were scored with."""

    a: str
    b: str
    comparisons: list[Comparison]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def compare(
    *,
    runs: Sequence[Run | str | os.PathLike[str]],
    systems: str | Sequence[str] | None = None,
    metrics: str | Sequence[str] | None = None,
    seed: int = 0,
) -> list[Pair]:
    """Compares two systems of one run, or the systems of two runs.

    Args:
        runs: one or two runs, or their folders.
        systems: with one run, the two to compare (not needed where it has just two); with two runs, one name that both
            have, or the name in the first and the name in the second; None compares every name that both have.
        metrics: only these; None is every metric that both have.
        seed: of the bootstrap.

    Returns:
        One `Pair` per pair of systems. Differences are A minus B.

    Raises:
        UserError: no such run, system or metric, or a metric that was measured by different protocols.
    """
    opened = [r if isinstance(r, Run) else open_run(r) for r in runs]
    wanted = names(systems) if systems is not None else []
    return [
        Pair(label_a, label_b, list(_metrics(run_a, a, run_b, b, metrics, seed)))
        for (run_a, a, label_a), (run_b, b, label_b) in _pairs(opened, wanted)
    ]


_Side = tuple[Run, str, str]


def _pairs(runs: Sequence[Run], wanted: Sequence[str]) -> list[tuple[_Side, _Side]]:
    if len(runs) == 1:
        (run,) = runs
        wanted = wanted or list(run.systems)
        if len(wanted) != 2:
            raise UserError(
                f"{len(wanted)} systems to compare: {', '.join(wanted)}", hint="name two with --systems A,B"
            )
        for name in wanted:
            _known(run, name)
        return [((run, wanted[0], wanted[0]), (run, wanted[1], wanted[1]))]
    if len(runs) != 2:
        raise UserError(f"{len(runs)} runs to compare; expected one or two")
    first, second = runs
    if len(wanted) == 2:
        pairs = [(wanted[0], wanted[1])]
    elif wanted:
        pairs = [(name, name) for name in wanted]
    else:
        pairs = [(name, name) for name in first.systems if name in second.systems]
        if not pairs and len(first.systems) == len(second.systems) == 1:
            pairs = [(next(iter(first.systems)), next(iter(second.systems)))]
    if not pairs:
        raise UserError(
            f"the runs share no system: {', '.join(first.systems)} and {', '.join(second.systems)}",
            hint="name one of each with --systems A,B",
        )
    asked = [(run.meta.get("benchmark") or {}).get("name") for run in (first, second)]
    if asked[0] != asked[1]:
        raise UserError(
            f"the runs asked different questions: those of {asked[0] or 'no benchmark'} and of {asked[1] or 'no benchmark'}",
            hint="compare runs of one benchmark",
        )
    label = _labels(first.folder, second.folder)
    for a, b in pairs:
        _known(first, a)
        _known(second, b)
    return [((first, a, label(first, a)), (second, b, label(second, b))) for a, b in pairs]


def _labels(first: Path, second: Path) -> Callable[[Run, str], str]:
    """What a system is called: with as much of its run's folder as tells the two runs apart."""
    a, b = first.resolve().parts, second.resolve().parts
    depth = next((k for k in range(1, max(len(a), len(b))) if a[-k:] != b[-k:]), 1)
    return lambda run, name: "/".join((*run.folder.resolve().parts[-depth:], name))


def _known(run: Run, name: str) -> None:
    if name not in run.systems:
        raise UnknownName(f"system in '{run.folder}'", name, run.systems)


def _metrics(
    run_a: Run, a: str, run_b: Run, b: str, metrics: str | Sequence[str] | None, seed: int
) -> Iterator[Comparison]:
    facts_a, facts_b = run_a.metrics, run_b.metrics
    chosen = names(metrics) if metrics is not None else [m for m in facts_a if m in facts_b]
    if not chosen:
        raise UserError(f"the runs share no metric: {', '.join(facts_a)} and {', '.join(facts_b)}")
    for name in chosen:
        for run, facts in ((run_a, facts_a), (run_b, facts_b)):
            if name not in facts:
                raise UnknownName(f"metric in '{run.folder}'", name, facts)
        if facts_a[name]["protocol"] != facts_b[name]["protocol"]:
            raise UserError(
                f"'{name}' is not the same measurement in both runs: {facts_a[name]['protocol']} and {facts_b[name]['protocol']}"
            )
        yield compare_scores(
            _rows(run_a, a, name),
            _rows(run_b, b, name),
            metric=name,
            higher_is_better=facts_a[name]["higher_is_better"],
            seed=seed,
            fold=FOLDS.get(facts_a[name].get("aggregate"), ratios),
        )


def _rows(run: Run, system: str, metric: str) -> Iterator[ScoreRow]:
    speakers = {s.id: s.speaker for s in run.samples()}
    for s in run.scores(system, metric):
        yield ScoreRow(s.id, s.value, s.numerator, s.denominator, speakers[s.id], s.detail.get("counts"))
