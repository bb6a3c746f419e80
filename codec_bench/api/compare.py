"""Compare systems pair by pair: an interval of the difference and a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from codec_bench.config.option import names
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report.numbers import doubts_in
from codec_bench.report.open_run import open_run
from codec_bench.stats.paired import Comparison, holm
from codec_bench.stats.recorded import RecordedRun, items_of
from codec_bench.stats.sets import SETS, compare_metric
from codec_bench.stats.verdict import SUSPECT, speechless
from codec_bench.store.identity import identity_of
from codec_bench.store.record import Run


@dataclass(frozen=True, slots=True)
class SystemPair:
    """System A compared with system B: one comparison per common metric.

    `differences`: differences of the two benchmarks, such as `other prompt`. `suspect`: findings on A or B; neither is
    then the better one, and `barred` of a comparison is set. `judges`: judge and its test by metric. `other_sounds`:
    number of ids with another sound in the run of B, and of compared ids.
    """

    a: str
    b: str
    comparisons: list[Comparison]
    differences: tuple[str, ...] = ()
    suspect: Mapping[str, str] = field(default_factory=dict)
    judges: Mapping[str, str] = field(default_factory=dict)
    other_sounds: tuple[int, int] = (0, 0)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, with the fields of the test among those of a comparison.

        `wins`, `losses` and `ties` are None if a system is suspect (`barred` has the reason).
        """
        compared = [asdict(comparison) for comparison in self.comparisons]
        uncounted = dict.fromkeys(("wins", "losses", "ties"))
        comparisons = [{**one, **one.pop("test"), **(uncounted if one["barred"] else {})} for one in compared]
        notes = {"unlike": list(self.differences), "suspect": dict(self.suspect), "judges": dict(self.judges)}
        return {"a": self.a, "b": self.b, "comparisons": comparisons, **notes, "other_sounds": list(self.other_sounds)}


def compare(
    *,
    runs: Sequence[Run | str | os.PathLike[str]],
    systems: str | Sequence[str] | None = None,
    metrics: str | Sequence[str] | None = None,
    seed: int = 0,
) -> list[SystemPair]:
    """Compare systems of one run pair by pair, or the systems of two runs.

    All pairs and metrics of one call are one family: `p_holm` is each p adjusted for their number.

    Args:
        runs: one or two runs, or their folders.
        systems: with one run, two or more names to compare pairwise; None for all. With two runs, one common name, or a
            name in each run; None for all common names.
        metrics: None for every common metric except values of whole sets (`fad`, `kad`).
        seed: of the bootstrap, for corpus values such as BLEU.

    Returns:
        One `SystemPair` per pair of systems. Differences are A minus B.

    Raises:
        UserError: a run, system or metric does not exist, two runs hold other questions under the same ids, a metric
            was measured by different protocols, or it is a value of a whole set.

    Examples:
        >>> from codec_bench import compare
        >>> (pair,) = compare(runs=["runs/small"], metrics="snr")  # the run of evaluate's example
        >>> pair.a, pair.b, round(pair.comparisons[0].test.difference, 1), pair.comparisons[0].pairs
        ('g711-ulaw', 'g722', -4.0, 8)
    """
    opened = [r if isinstance(r, Run) else open_run(r) for r in runs]
    records = {run.folder: RecordedRun(run) for run in opened}
    requested = names(systems) if systems is not None else []
    sides = _pair_systems(opened, requested)
    differences: tuple[str, ...] = ()
    if len(opened) == 2:
        differences = tuple(identity_of(opened[0]).differences(identity_of(opened[1]), rows=False))
    pairs = []
    for a, b in sides:
        suspect = {label: doubts for run, name, label in (a, b) if (doubts := doubts_in(run, name))}
        compared = [_mark_suspects(one, records, a, b) for one in _compare_metrics(*a[:2], *b[:2], metrics, seed)]
        pairs.append(SystemPair(a[2], b[2], compared, differences, suspect))
    every = [comparison for pair in pairs for comparison in pair.comparisons]
    judges = {
        name: judge for name in sorted({c.metric for c in every}) if (judge := _describe_judge_tests(opened, name))
    }
    other_sounds = opened[0].other_sounds(opened[-1])
    adjusted = iter(holm([comparison.test.p for comparison in every]))
    for index, pair in enumerate(pairs):
        tested = [replace(one, p_holm=next(adjusted)) for one in pair.comparisons]
        pairs[index] = replace(pair, comparisons=tested, judges=judges, other_sounds=other_sounds)
    return pairs


def _describe_judge_tests(runs: Sequence[Run], metric: str) -> str:
    """The judge of a metric in words, or "" without one; of A and B if they differ."""
    first, last = runs[0].judge(metric), runs[-1].judge(metric)
    return first if first == last else f"A {first}; B {last}, so the difference may be that of the judges"


_LabelledSystem = tuple[Run, str, str]


def _mark_suspects(compared: Comparison, records: Mapping[Path, RecordedRun], *sides: _LabelledSystem) -> Comparison:
    """Set a comparison's field `barred` to why its systems are suspect, if they are.

    Args:
        records: the runs' records by folder.
        sides: (run, system, label) of both systems.
    """
    reasons = []
    for run, system, label in sides:
        recorded = records[run.folder]
        scores = recorded.scores(system, compared.metric)
        without = speechless(scores.speechless, len(scores.numbers))
        if reason := SUSPECT if system in recorded.suspects else without:
            reasons.append(f"{label}: {reason}")
    return replace(compared, barred="; ".join(reasons) or None)


def _pair_systems(runs: Sequence[Run], requested: Sequence[str]) -> list[tuple[_LabelledSystem, _LabelledSystem]]:
    """Pair the systems to compare, within one run or across two."""
    if len(runs) == 1:
        return _pair_within(runs[0], requested or list(runs[0].systems))
    if len(runs) != 2:
        raise UserError("runs_to_compare", runs=len(runs))
    return _pair_across(runs[0], runs[1], requested)


def _pair_within(run: Run, requested: Sequence[str]) -> list[tuple[_LabelledSystem, _LabelledSystem]]:
    """Pair each two of the requested systems of a run."""
    for name in requested:
        _check_system(run, name)
    if len(run.systems) == 1:
        raise UserError(
            "one_system", folder=run.folder, systems=requested[0], hint="name a second run over the same data"
        )
    if len(set(requested)) < 2 or len(set(requested)) < len(requested):
        raise UserError("different_systems_expected", systems=", ".join(requested), hint="use --systems A,B")
    return [((run, a, a), (run, b, b)) for a, b in combinations(requested, 2)]


def _pair_across(first: Run, second: Run, requested: Sequence[str]) -> list[tuple[_LabelledSystem, _LabelledSystem]]:
    """Pair systems of two runs: two requested names, or the shared ones."""
    if len(requested) == 2:
        pairs = [(requested[0], requested[1])]
    elif requested:
        pairs = [(name, name) for name in requested]
    else:
        pairs = [(name, name) for name in first.systems if name in second.systems]
        if not pairs and len(first.systems) == len(second.systems) == 1:
            pairs = [(next(iter(first.systems)), next(iter(second.systems)))]
    if not pairs:
        raise UserError(
            "no_system_shared",
            one=", ".join(first.systems),
            other=", ".join(second.systems),
            hint="name one of each with --systems A,B",
        )
    _check_same_questions(first, second)
    label = _make_labels(first.folder, second.folder)
    for a, b in pairs:
        _check_system(first, a)
        _check_system(second, b)
    return [((first, a, label(first, a)), (second, b, label(second, b))) for a, b in pairs]


def _check_same_questions(first: Run, second: Run) -> None:
    """Raise UserError unless two runs have the same questions and speech recognisers."""
    benchmarks = [(run.meta.get("benchmark") or {}).get("name") for run in (first, second)]
    if benchmarks[0] != benchmarks[1]:
        raise UserError(
            "runs_of_two_benchmarks",
            one=benchmarks[0] or "none",
            other=benchmarks[1] or "none",
            hint="compare runs of one benchmark",
        )
    if other := _other_questions(first, second):
        raise UserError(
            "questions_differ", question=other[0], questions=len(other), hint="compare runs over the same data"
        )
    recognisers = [_recogniser_protocols(run) for run in (first, second)]
    if recognisers[0] != recognisers[1]:
        raise UserError(
            "recognisers_differ",
            protocols=", ".join(map(" and ".join, recognisers)),
            hint="score one of them again on the device of the other: run --phase scores --rescore",
        )


def _other_questions(first: Run, second: Run) -> list[str]:
    """Ids of questions that differ; [] if options or controls differ by request."""
    one, other = identity_of(first), identity_of(second)
    same_texts = (one.choices, one.control) == (other.choices, other.control)
    if not (first.has_questions and second.has_questions and same_texts):
        return []
    query = "SELECT p.id, q.fields, q.expected FROM questions q JOIN samples p ON p.number = q.number"
    contents = {id: content for id, *content in first.query(query)}
    return [id for id, *content in second.query(query) if id in contents and contents[id] != content]


def _recogniser_protocols(run: Run) -> list[str]:
    scored = (run.meta.get("fingerprint") or {}).get("scored") or {}
    return sorted(p for name, p in (scored.get("metrics") or {}).items() if name.startswith("transcript["))


def _make_labels(first: Path, second: Path) -> Callable[[Run, str], str]:
    """Return a function that labels a system by name and its run's differing folder."""
    a, b = first.resolve().parts, second.resolve().parts
    depth = next((k for k in range(1, max(len(a), len(b))) if a[-k:] != b[-k:]), 1)
    return lambda run, name: "/".join((*run.folder.resolve().parts[-depth:], name))


def _check_system(run: Run, name: str) -> None:
    if name not in run.systems:
        raise UnknownName("system", name, run.systems, within=run.folder)


def _compare_metrics(
    run_a: Run, a: str, run_b: Run, b: str, metrics: str | Sequence[str] | None, seed: int
) -> Iterator[Comparison]:
    """Yield the comparison of two systems by each metric of both runs.

    Args:
        metrics: None for every common metric, without values of whole sets if there are others.
    """
    facts_a, facts_b = run_a.metrics, run_b.metrics
    shared = [m for m in facts_a if m in facts_b]
    by_item = [m for m in shared if facts_a[m].get("aggregate") not in SETS]
    chosen = names(metrics) if metrics is not None else by_item or shared
    if not chosen:
        raise UserError("no_metric_shared", one=", ".join(facts_a), other=", ".join(facts_b))
    for name in chosen:
        for run, facts in ((run_a, facts_a), (run_b, facts_b)):
            if name not in facts:
                raise UnknownName("metric", name, facts, within=run.folder)
        if facts_a[name]["protocol"] != facts_b[name]["protocol"]:
            raise UserError(
                "protocols_differ",
                metric=name,
                one=facts_a[name]["protocol"],
                other=facts_b[name]["protocol"],
                hint="compare runs of one protocol, or leave this metric out with --metrics",
            )
        yield compare_metric(items_of(run_a, a, name), items_of(run_b, b, name), name, facts_a[name], seed)
