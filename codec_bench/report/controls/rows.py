"""A model's answers beyond its answers under controls: table rows and notes.

"Beyond" is the difference of the two values, signed so that more is better, also for error rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codec_bench.report.numbers import decimals, number, plain, shown_unit
from codec_bench.stats.controls import Controlled
from codec_bench.stats.summary_types import Estimate, Summary
from codec_bench.store.controls import NONE
from codec_bench.store.draws import AS_WRITTEN

HEADS = (
    "control",
    "metric",
    "value",
    "under the control",
    "beyond",
    "95 %",
    "items",
    "right under the control",
    "of these right",
)
"""The heads of the columns of `control_rows`."""


class ControlRow(NamedTuple):
    """One control and metric, as texts in the order of `HEADS`.

    `shows` says whether the audio or question makes a difference.
    """

    control: str
    metric: str
    uncontrolled: str
    value: str
    beyond: str
    interval: str
    items: str
    right: str
    right_in_both: str
    shows: bool


def control_rows(controls: Sequence[Controlled]) -> list[ControlRow]:
    """Return the rows of a table of controls; incomparable ones have only a note."""
    rows = []
    for one in controls:
        if one.given is None and one.value is None:
            continue
        factor, unit = shown_unit(one.unit)
        places = _places(one)
        ends = "" if one.ci95 is None else " to ".join(number(end, places, factor) for end in _ends(one))
        right, both = (f"{count:,}" if isinstance(count, int) else "" for count in (one.right, one.right_in_both))
        rows.append(ControlRow(
            one.control, " ".join(filter(None, (one.metric, unit))), number(one.given, places, factor),
            number(one.value, places, factor) + (f" (chance {number(one.chance, 2)})" if one.chance else ""),
            number(_signed(one), places, factor, sign=True), ends, f"{one.n:,}", right, both, bool(one.is_significant),
        ))  # fmt: skip
    return rows


def control_mark(summary: Summary) -> list[str]:
    """Return a sentence if a run is a control."""
    if not summary.control:
        return []
    return [f"this is a control and no result: the model got other input than the data's ({summary.control})"]


def control_notes(summary: Summary) -> list[str]:
    """Return the notes of a control, or of a run with controls."""
    return [*control_mark(summary), *beyond_notes(summary.controls or ())]


def beyond_notes(controls: Sequence[Controlled]) -> list[str]:
    """Return one sentence per control and metric."""
    return [plain(_sentence(one)) for one in controls]


def _sentence(one: Controlled) -> str:
    """The gain of a run over its control on one metric, as a sentence with interval."""
    against = f"beyond {_against(one)}"
    if one.difference is None:
        return f"{one.metric}: what there is {against} is not known: {one.note or 'no item has a value in both'}"
    places = _places(one)
    size = f"{number(_signed(one), places, sign=True)}"
    dropped = f"; {one.dropped:,} items lack a value in one of the two" if one.dropped else ""
    if one.is_significant is False and one.ci95 is None:
        return f"{one.metric}: nothing {against} was found: the two are equal over {one.n:,} items{dropped}"
    if one.is_significant is None:
        return f"{one.metric}: {size} {against}, without an interval: {one.note}{dropped}"
    ends = " to ".join(number(end, places) for end in _ends(one))
    if one.is_significant:
        return f"{one.metric}: {size} {against} (95 % {ends}, {one.n:,} items){dropped}"
    least = f"; data like these show a difference of {number(one.detectable, places)}" if one.detectable else ""
    difference = f"the difference is {size} (95 % {ends}, {one.n:,} items)"
    return f"{one.metric}: nothing {against} was found: {difference}{least}{dropped}"


def _against(one: Controlled) -> str:
    if one.sound == NONE:
        return "the text" if one.question == AS_WRITTEN else "the options"
    return one.control


def _places(one: Controlled) -> int:
    factor, _ = shown_unit(one.unit)
    return max(2, decimals([Estimate(one.difference or one.given, one.ci95)], factor))


def _signed(one: Controlled) -> float | None:
    return one.difference if one.improvement is None else one.improvement


def _ends(one: Controlled) -> tuple[float, float]:
    assert one.ci95 is not None
    low, high = one.ci95
    return (low, high) if one.higher_is_better is not False else (-high, -low)
