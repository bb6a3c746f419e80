"""What a model's answers have beyond those that it gives under a control, such as to the text alone: the same items, in pairs.

Conventions
    A difference is the value with everything given minus the one under the control, over the items that have a score in both; its
    interval and p are those of `stats.paired`. They are of one comparison each, and not adjusted for how many there are.
    An item counts as right where a metric of 0 and 1 gives it 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from codec_bench.stats.bounds import declared_bounds
from codec_bench.stats.intervals import is_share
from codec_bench.stats.paired import compare_items, in_common, parts_table
from codec_bench.stats.recorded import items_of
from codec_bench.stats.sets import SETS, item_fold
from codec_bench.stats.told import UNTOLD, Told
from codec_bench.store.controls import Control
from codec_bench.store.record import Run


@dataclass(frozen=True, slots=True)
class Controlled(Told):
    """One metric with everything given and under one control.

    Args:
        control: what was given instead, such as `text alone`. sound, question: the same as the options `--sound` and `--question` name it.
        metric, unit, higher_is_better: of the values.
        given, value: over the `n` items with a score in both, with everything given and under the control; None if there are none.
            `dropped` items have a score in one of them at most.
        difference, ci95, p, units, note, detectable: of the two, as in `PairedTest`.
        right, right_in_both: how many of the items are answered right under the control, and how many of these with everything given.
        chance: what a guess among the options reaches.
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
    right: int = UNTOLD
    right_in_both: int = UNTOLD
    chance: float = UNTOLD

    @property
    def beyond(self) -> float | None:
        """The difference, so that more is better; None without one, or for a metric without a direction."""
        if self.difference is None or self.higher_is_better is None:
            return None
        return self.difference if self.higher_is_better else -self.difference

    @property
    def shows(self) -> bool | None:
        """Whether the interval of the difference leaves out 0; None where there is no interval, unless the two are equal in every unit."""
        if self.ci95 is None:
            return False if self.difference == 0 and self.p == 1 else None
        return not self.ci95[0] <= 0 <= self.ci95[1]


def beside_control(given: Run, under: Run, control: Control, why: str | None) -> Iterator[Controlled]:
    """A run beside one of its controls, metric by metric, the benchmark's primary one first.

    Args:
        given: with everything given. under: under the control. control: what was given there.
        why: why the two cannot be compared; None if they can.
    """
    told: dict[str, Any] = {"control": control.words, "sound": control.sound, "question": control.question}
    primary = (given.meta.get("benchmark") or {}).get("primary")
    facts, others = given.metrics, under.metrics
    for metric in sorted((name for name in facts if name in others), key=lambda name: name != primary):
        if facts[metric].get("aggregate") in SETS:
            continue
        other = (
            "the two were scored by different protocols"
            if facts[metric]["protocol"] != others[metric]["protocol"]
            else None
        )
        if (note := why or other) is not None:
            yield Controlled(**told, metric=metric, note=note)
        else:
            yield Controlled(**told, metric=metric, **_compared(given, under, metric, facts[metric]))


def _compared(given: Run, under: Run, metric: str, facts: dict[str, Any]) -> dict[str, Any]:
    (system,), (same,) = given.systems, under.systems
    sides = [list(items_of(run, name, metric)) for run, name in ((given, system), (under, same))]
    found = compare_items(
        *sides, metric=metric, unit=facts.get("unit", ""), higher_is_better=facts.get("higher_is_better"),
        seed=(given.meta.get("config") or {}).get("seed", 0), fold=item_fold(metric, facts.get("aggregate", "")),
        bounds=declared_bounds(facts),
    )  # fmt: skip
    test = found.test
    chances = [s.detail["chance"] for s in under.scores(same, metric) if s.value is not None and "chance" in s.detail]
    return {
        "unit": found.unit, "higher_is_better": found.higher_is_better, "given": found.value_a, "value": found.value_b,
        "n": found.pairs, "dropped": found.dropped, "difference": test.difference,
        "ci95": None if test.low is None or test.high is None else (test.low, test.high), "p": test.p, "units": test.units,
        "note": test.note, "detectable": test.detectable, **_right(sides),
        **({"chance": fmean(chances)} if chances else {}),
    }  # fmt: skip


def _right(sides: list[list[Any]]) -> dict[str, int]:
    a, b, _ = in_common(*sides)
    tables = [parts_table(side) for side in (a, b)]
    if not a or any(table.shape[1] != 2 or not is_share(table) for table in tables):
        return {}
    given, under = (table[:, 0] == 1 for table in tables)
    return {"right": int(under.sum()), "right_in_both": int((given & under).sum())}


def marks_of(under: Run, metric: str, ids: Collection[str]) -> dict[str, str]:
    """By item id whether it is answered `right` or `wrong` under a control, or `failed`; nothing for a metric of other values.

    Args:
        under: the run under the control. metric: by which. ids: of the items of the run with everything given.
    """
    (same,) = under.systems
    if metric not in under.metrics:
        return {}
    values = {score.id: score.value for score in under.scores(same, metric)}
    if not values or not {value for value in values.values() if value is not None} <= {0.0, 1.0}:
        return {}
    words = {None: "failed", 0.0: "wrong", 1.0: "right"}
    return {id: words[values[id]] for id in ids if id in values}
