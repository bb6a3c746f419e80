"""Raters in runs: judges' verdicts, metric values, and options read from answers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import open_run
from codec_bench.store.controls import result_folders
from codec_bench.store.record import Run

Scale = tuple[float, float]
READ = "read by the run"
"""The rater that is the run's own reading of its answers."""
_HASH = re.compile(r"-[0-9a-f]{8}$")


class RatedItem(NamedTuple):
    """A rated answer or audio of a system, or of two (`other`) for a preference."""

    benchmark: str
    system: str
    id: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class RatingColumn:
    """The ratings of one rater in a run.

    Args:
        scale: the lowest and the highest rating; None if unknown.
        sign: -1 if lower ratings are better, else 1.
    """

    rater: str
    metric: str
    scale: Scale | None
    is_judge: bool
    sign: float = 1.0


def open_runs(runs: Run | str | os.PathLike[str] | Sequence[Run | str | os.PathLike[str]]) -> list[Run]:
    """Open runs; a folder of several runs gives all but runs of controls."""
    several = [runs] if isinstance(runs, Run | str | os.PathLike) else list(runs)
    return [
        run for one in several for run in ([one] if isinstance(one, Run) else map(open_run, result_folders(Path(one))))
    ]


def name_of(run: Run) -> str:
    """Return the name of a run's benchmark, or else of its data."""
    meta = run.meta
    return str((meta.get("benchmark") or {}).get("name") or (meta.get("data") or {}).get("name") or run.folder.name)


def columns_of(run: Run, judges: Sequence[str], metrics: Sequence[str]) -> list[RatingColumn]:
    """List the columns of ratings in a run.

    Args:
        judges: only these judges; empty for all.
        metrics: `rating[RUBRIC]` selects the verdicts of all judges by this rubric. Empty for the rubric of the
            primary metric, or the only one. Absent metrics are ignored.

    Raises:
        UserError: the run has several rubrics, and none was named.
    """
    judged = judges_by_metric(run)
    chosen: list[str] = []
    for metric in metrics or _only_rubric(run, judged):
        same = [name for name, (rubric, _) in judged.items() if name == metric or f"rating[{rubric}]" == metric]
        chosen += same or [metric]
    columns = []
    for name in dict.fromkeys(chosen):
        if name not in run.metrics:
            continue
        low, high = run.metrics[name].get("range") or (None, None)
        scale = None if low is None or high is None else (float(low), float(high))
        sign = -1.0 if run.metrics[name].get("higher_is_better") is False else 1.0
        if name not in judged:
            columns.append(RatingColumn(name, name, scale, False, sign))
        elif not judges or any(is_called(judged[name][1], one) for one in judges):
            columns.append(RatingColumn(judged[name][1], name, scale, True, sign))
    return columns


def judges_by_metric(run: Run) -> dict[str, tuple[str, str]]:
    """Map the name of each metric that a judge scores to (rubric, judge)."""
    return {
        name: (str(facts["rubric"]), str(facts["judge"]))
        for name, facts in run.metrics.items()
        if facts.keys() >= {"rubric", "judge"}
    }


def is_called(judge: str, name: str) -> bool:
    """Whether `name` means this judge; a judge's file needs no content hash."""
    return judge == name or _HASH.sub("", judge) == name


def _only_rubric(run: Run, judged: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return `rating[RUBRIC]` of the primary metric, or the only one; else UserError."""
    primary = str((run.meta.get("benchmark") or {}).get("primary"))
    rubrics = list(dict.fromkeys(rubric for rubric, _ in judged.values()))
    if primary in judged:
        return [f"rating[{judged[primary][0]}]"]
    if len(rubrics) > 1:
        raise UserError(
            "several_rubrics",
            folder=run.folder,
            rubrics=", ".join(rubrics),
            hint=f"name one with --metric rating[{rubrics[0]}]",
        )
    return [f"rating[{rubric}]" for rubric in rubrics]


def ratings_in(run: Run, system: str, metric: str) -> Iterator[tuple[str, float | None, str]]:
    """Yield each finished item's id, metric value or None, and status."""
    for score in run.scores(system, metric):
        yield score.id, score.value if score.status == "ok" else None, score.status


def letters_in(run: Run, system: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield judge, id and letter or None of options read by an aligning rubric."""
    for metric, (_, judge) in judges_by_metric(run).items():
        for score in run.scores(system, metric):
            if "stage" in score.detail:
                yield judge, score.id, score.detail.get("letter")
