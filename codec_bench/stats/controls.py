"""Comparison of a model's answers with those under a control (`store.controls`).

The same items are compared in pairs (`stats.paired`), without the control minus under it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from codec_bench.messages import Diagnostic
from codec_bench.stats.intervals import is_share
from codec_bench.stats.notes import Note
from codec_bench.stats.paired import parts_table, split_common
from codec_bench.stats.recorded import items_of
from codec_bench.stats.sets import SETS, compare_metric
from codec_bench.stats.summary_json import UNSET, SummaryPart
from codec_bench.store.controls import Control
from codec_bench.store.record import Run


@dataclass(frozen=True, slots=True)
class Controlled(SummaryPart):
    """One metric without and under one control.

    Args:
        control: in words, such as `text alone`; `sound`, `question` are its options.
        given, value: without and under it, over `n` items with both scores; `dropped` items lack one.
        difference, ci95, p, units, note, detectable: as in `PairedTest`.
        right, right_in_both: items right under the control, and of these without it.
        chance: of a guess.
    """

    control: str
    sound: str
    question: str
    metric: str
    unit: str = ""
    higher_is_better: bool | None = True
    given: float | None = None
    value: float | None = None
    n: int = 0
    dropped: int = 0
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    p: float | None = None
    units: int = 0
    note: str | None = None
    detectable: float | None = None
    right: int = UNSET
    right_in_both: int = UNSET
    chance: float = UNSET

    @property
    def improvement(self) -> float | None:
        """The difference, positive if better than under the control; or None."""
        if self.difference is None or self.higher_is_better is None:
            return None
        return self.difference if self.higher_is_better else -self.difference

    @property
    def is_significant(self) -> bool | None:
        """Whether `ci95` of the difference to the control excludes 0; None if unknown."""
        if self.ci95 is None:
            return False if self.difference == 0 and self.p == 1 else None
        return not self.ci95[0] <= 0 <= self.ci95[1]


def compare_controls(
    uncontrolled: Run, under: Run, control: Control, reason: Diagnostic | None
) -> Iterator[Controlled]:
    """Compare a run with its control run, metric by metric, the primary one first.

    Args:
        uncontrolled: the run without the control.
        under: the run under the control.
        reason: why the runs cannot be compared, as each metric's note; None if they can.
    """
    facts_of_control: dict[str, Any] = {"control": control.words, "sound": control.sound, "question": control.question}
    primary = (uncontrolled.meta.get("benchmark") or {}).get("primary")
    facts, others = uncontrolled.metrics, under.metrics
    for metric in sorted((name for name in facts if name in others), key=lambda name: name != primary):
        if facts[metric].get("aggregate") in SETS:
            continue
        other = Note("other_protocols") if facts[metric]["protocol"] != others[metric]["protocol"] else None
        if (note := reason or other) is not None:
            yield Controlled(**facts_of_control, metric=metric, note=note)
        else:
            yield Controlled(
                **facts_of_control, metric=metric, **_compare_metric(uncontrolled, under, metric, facts[metric])
            )


def _compare_metric(uncontrolled: Run, under: Run, metric: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Compare a metric with and without the control, item by item."""
    (system,), (same,) = uncontrolled.systems, under.systems
    sides = [list(items_of(run, name, metric)) for run, name in ((uncontrolled, system), (under, same))]
    seed = (uncontrolled.meta.get("config") or {}).get("seed", 0)
    comparison = compare_metric(sides[0], sides[1], metric, facts, seed)
    test = comparison.test
    chances = [s.detail["chance"] for s in under.scores(same, metric) if s.value is not None and "chance" in s.detail]
    return {
        "unit": comparison.unit, "higher_is_better": comparison.higher_is_better,
        "given": comparison.value_a, "value": comparison.value_b, "n": comparison.pairs, "dropped": comparison.dropped,
        "difference": test.difference,
        "ci95": None if test.low is None or test.high is None else (test.low, test.high), "p": test.p,
        "units": test.units, "note": test.note, "detectable": test.detectable, **_count_right(sides),
        **({"chance": fmean(chances)} if chances else {}),
    }  # fmt: skip


def _count_right(sides: list[list[Any]]) -> dict[str, int]:
    """Count the answers right under the control, and right in both runs."""
    a, b, _ = split_common(*sides)
    tables = [parts_table(items) for items in (a, b)]
    if not a or any(table.shape[1] != 2 or not is_share(table) for table in tables):
        return {}
    uncontrolled, under = (table[:, 0] == 1 for table in tables)
    return {"right": int(under.sum()), "right_in_both": int((uncontrolled & under).sum())}


def outcomes_of(under: Run, metric: str, ids: Collection[str]) -> dict[str, str]:
    """Return `right`, `wrong` or `failed` by item id; empty unless scores are 0 or 1."""
    (same,) = under.systems
    if metric not in under.metrics:
        return {}
    values = {score.id: score.value for score in under.scores(same, metric)}
    if not values or not {value for value in values.values() if value is not None} <= {0.0, 1.0}:
        return {}
    words = {None: "failed", 0.0: "wrong", 1.0: "right"}
    return {id: words[values[id]] for id in ids if id in values}
