"""The page of a build: funnel, histograms, and borderline items to listen to.

Equal builds give equal bytes.
"""

from __future__ import annotations

import base64
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.building.item import BuildItem, Funnel, ItemMaker, reason_of
from codec_bench.apps.building.recipe import Recipe
from codec_bench.apps.building.review import Reviewed
from codec_bench.messages.errors import beginning
from codec_bench.report.page.markup import SHARED, PageFiles, render
from codec_bench.store.files import write_text

MOST_SHOWN = 10
_BARS = 30
_MOST_GROUPS = 40
_LONGEST = 2_000
_UNITS = {"s": "s", "db": "dB", "hz": "Hz", "lufs": "LUFS"}


PAGE = "build.html"
_LAYOUT = PageFiles(
    (__package__, "build.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "build.css")),
    ((SHARED, "elements.js"), (SHARED, "frames.js"), (__package__, "build.js")),
)
_SOUND_BYTES = 12_000_000
"""Limit of embedded audio in base64; items beyond it have no player."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A histogram with texts of its range; bars as (percent of the highest, label)."""

    title: str
    count: int
    low: str
    middle: str
    high: str
    bars: tuple[tuple[float, str], ...]


def write_build_page(
    out: Path, recipe: Recipe, maker: ItemMaker, funnel: Funnel, numbers: Mapping[str, Sequence[float]],
    record: Reviewed, keys: Sequence[str], sources: Sequence[Mapping[str, Any]],
) -> None:  # fmt: skip
    """Write `build.html`, the page on a finished data set, into `out`.

    Args:
        numbers: the values of the numeric columns.
        record: holds the items.
        keys: of all items.
    """
    before, after = list[float](), list[float]()
    for item in record.outcomes(keys):
        rates = _rates(item, maker)
        before += rates[:1]
        after += rates[-1:]
    tried = (before, after) if any(one != other for one, other in zip(before, after)) else ()
    counts = funnel.as_dict()
    shown = {
        "title": recipe.full_title, "summary": recipe.summary, "seed": recipe.seed,
        "licence": recipe.licence or "none chosen",
        "items": funnel.items, "usable": funnel.usable, "tries": funnel.tries, "sources": sources,
        "steps": [
            (step, left, reason, count, _percent(left, funnel.items)) for step, left, reason, count in funnel.rows()
        ],
        "failed": [
            (step, reason, count, _percent(count, funnel.tries))
            for step, reason, count in funnel.counts(funnel.failed)
        ],
        "pictures": [picture(name, values) for name, values in numbers.items() if values], "rate": maker.rate,
        "tried": [
            picture(name, values, before + after)
            for name, values in zip(("of the first tries", "of the last tries"), tried)
        ],
        "groups": [_group(name, held) for name, held in counts["groups"].items()],
        "worst": list(_shown(maker, record, _worst(maker, record.outcomes(keys)))),
        "best": list(_shown(maker, record, _best(maker, record.outcomes(keys)))),
    }  # fmt: skip
    write_text(out / PAGE, render(_LAYOUT, shown, {}, ()))


def picture(title: str, values: Sequence[float], over: Sequence[float] = ()) -> Picture:
    """Build a histogram of at least one value.

    Args:
        over: values whose minimum and maximum bound the bars; empty for those of `values`.
    """
    low, high = float(min(over or values)), float(max(over or values))
    if high == low:
        bars: tuple[tuple[float, str], ...] = ((0.0, ""), (100.0, f"{_text(low)}: {len(values):,}"), (0.0, ""))
        return Picture(_heading(title), len(values), _text(low), _text(low), _text(high), bars)
    counts, edges = np.histogram(values, _BARS, (low, high))
    ends = [(_text(a), _text(b)) for a, b in pairwise(edges)]
    labels = [f"{a} to {b}: {count:,}" for (a, b), count in zip(ends, counts)]
    heights = 100 * counts / counts.max()
    bars = tuple((round(float(height), 2), text) for height, text in zip(heights, labels))
    return Picture(_heading(title), len(values), _text(low), _text(float(np.median(values))), _text(high), bars)


def _rates(item: BuildItem, maker: ItemMaker) -> list[float]:
    """Return the read-back error rates of an item's tries, without tries without one."""
    rates = [failure.value for failure in item.failures if failure.value is not None]
    last = None if item.row is None or maker.rate is None else item.row.get(maker.rate)
    return [*rates, float(last)] if last is not None else rates


def _worst(maker: ItemMaker, items: Iterable[BuildItem]) -> list[tuple[str, str]]:
    """List (key, reason) of the usable items closest to being dropped."""
    scored = ((maker.nearness(item.row), len(item.failures), item.key) for item in items if item.row is not None)
    ranked = heapq.nlargest(MOST_SHOWN, scored, key=lambda one: (one[0] or 0.0, one[1]))
    return [
        (
            key,
            ("" if near is None else f"{100 * near:.0f} % of the way to the limit; ") + f"usable at try {failures + 1}",
        )
        for near, failures, key in ranked
    ]


def _best(maker: ItemMaker, items: Iterable[BuildItem]) -> list[tuple[str, str]]:
    """List (key, reason) of the dropped items closest to the limit."""

    def rank_dropped() -> Iterator[tuple[int, float, str, str]]:
        for item in items:
            if not item.is_usable:
                last = reason_of(item, maker.steps)
                value = float("inf") if last.value is None else last.value
                reason = f"{last.step}: {last.reason}" + (f" ({beginning(last.detail, 200)})" if last.detail else "")
                yield maker.steps.index(last.step), -value, item.key, reason

    ranked = heapq.nlargest(MOST_SHOWN, rank_dropped(), key=lambda one: one[:2])
    return [(key, last_reason) for _, _, key, last_reason in ranked]


def _shown(maker: ItemMaker, record: Reviewed, chosen: Sequence[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Yield items with audio where it fits; `spoken` is their text or question."""
    room = _SOUND_BYTES // 2  # half for usable items, half for dropped ones
    for item, (key, why) in zip(record.outcomes([key for key, _ in chosen], sounds=True), chosen, strict=True):
        flac = item.sound or item.material
        sound = None if flac is None else base64.b64encode(flac).decode("ascii")
        if sound is not None and len(sound) > room:
            sound = None
        room -= len(sound or "")
        if item.row:
            texts = [
                (_heading(name), _spoken_text(item.row.get(name))) for name in maker.columns if name != "provenance"
            ]
        else:
            texts = [("groups", ", ".join(f"{name}: {value}" for name, value in item.groups.items()))]
        tries = [f"{one.step}: {one.reason}" + (f" ({one.detail})" if one.detail else "") for one in item.failures]
        texts += [("tries that failed", "\n".join(tries))] if tries else []
        spoken = _spoken_text((item.row or {}).get("said") or (item.row or {}).get("question"))
        texts = [(name, beginning(text, _LONGEST)) for name, text in texts if text]
        yield {"id": key, "why": why, "spoken": beginning(spoken, _LONGEST), "texts": texts, "sound": sound}


def _heading(name: str) -> str:
    """Format a column name in words, with its unit after a comma."""
    quantity, _, unit = name.rpartition("_")
    return f"{quantity}, {_UNITS[unit]}".replace("_", " ") if unit in _UNITS else name.replace("_", " ")


def _spoken_text(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def _group(name: str, held: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Build the table of a group, such as the voices: its values with most tries.

    Args:
        held: counts by value.
    """
    largest = sorted(held.items(), key=lambda one: (-one[1]["tries"], one[0]))
    rows = [(value, *one.values(), _percent(one["kept"], one["items"])) for value, one in largest[:_MOST_GROUPS]]
    return {"name": name, "rows": rows, "more": len(largest) - len(rows)}


def _percent(count: int, total: int) -> float:
    return round(100 * count / total, 2) if total else 0.0


def _text(value: float) -> str:
    text = f"{float(value):.3g}"
    return f"{float(value):,.0f}" if "e+" in text else text.replace("-", "−")
