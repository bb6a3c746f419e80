"""How numbers and names are written, the same in the terminal and on the page.

Conventions
    A number is written with as many decimals as its interval deserves (up to the first digit of the half width that is
    not zero, one more where that is a 1), at least with three digits, since tables are copied into papers, and at most
    with four decimals. One column has one number of decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

UNPROCESSED = "unprocessed"
ARROWS = {True: "↑", False: "↓", None: ""}
_OPERATING_POINT = re.compile(r"(?:@.*|[-_]\d+(?:\.\d+)?\s*(?:k|kbps|bps|kbit|cb)?)$")
_METRIC = re.compile(r"^(?P<name>[\w-]+)(\[(?P<argument>[^\[\]]*)\])?(?P<point>@[^\[\]]+)?$")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def split_name(metric: str) -> tuple[str, str]:
    """The metric's name and what follows it: `wer[pocketsphinx]` is `("wer", "pocketsphinx")`, `sim@tf32` `("sim", "@tf32")`."""
    match = _METRIC.match(metric)
    if match is None:  # code of one's own, or a name of somebody else's making
        return metric, ""
    return match["name"], " ".join(filter(None, (match["argument"], match["point"])))


def family(system: str) -> str:
    """The codec without its operating point: `opus-12k` is `opus`, `encodec-24khz@6` is `encodec-24khz`."""
    return _OPERATING_POINT.sub("", system) or system


def shown_unit(unit: str) -> tuple[float, str]:
    """Factor and unit in which values of this unit are shown: bits per second as kbps."""
    return (1e-3, "kbps") if unit in ("bps", "bit/s") else (1.0, unit)


def entries(summary: Mapping[str, Any], metric: str) -> list[dict[str, Any]]:
    """One metric's entries of all systems that have it."""
    found = (system["metrics"].get(metric) for system in summary["systems"].values())
    return [entry for entry in found if entry]


def without_estimate(system: Mapping[str, Any]) -> int:
    """How many of a system's items gave nothing to score: they are missing from every metric."""
    counts = [entry["missing"].get("no_estimate", 0) for entry in system["metrics"].values()]
    return min(counts, default=0)


def grouped_reasons(reasons: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The summary's reasons with those of several systems as one: `systems` in their place, counts added."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in reasons:
        key = (row["metric"], row["status"], row["reason"])
        group = groups.setdefault(key, {**row, "systems": [], "count": 0})
        group["systems"].append(row["system"])
        group["count"] += row["count"]
    return list(groups.values())


def decimals(column: Iterable[Mapping[str, Any]], factor: float = 1.0) -> int:
    """Decimals for a column of summary entries: what the median interval deserves, and at least three digits."""
    column = [entry for entry in column if entry["value"] is not None]
    halves = sorted(factor * (e["ci95"][1] - e["ci95"][0]) / 2 for e in column if e["ci95"])
    halves = [half for half in halves if half > 0]
    least = three_digits([e["value"] for e in column], factor)
    if not halves:
        return least
    # Typical, not narrowest: a system at the metric's ceiling would give all others decimals that say nothing.
    return max(least, _clamp(-math.floor(math.log10(halves[len(halves) // 2] / 2))))


def three_digits(values: Iterable[float | None], factor: float = 1.0) -> int:
    """Decimals that show three digits of a typical (the median) value."""
    sizes = sorted(abs(factor * value) for value in values if value)
    return _clamp(2 - math.floor(math.log10(sizes[len(sizes) // 2]))) if sizes else 3


def _clamp(count: int) -> int:
    return max(0, min(4, count))


def number(value: float | None, places: int, *, sign: bool = False) -> str:
    """The number with a true minus sign, and a plus sign where asked; `–` where there is none."""
    if value is None:
        return "–"
    text = f"{value:{'+' if sign else ''}.{places}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def half_width(entry: Mapping[str, Any], places: int, factor: float = 1.0) -> str:
    """`±0.02`: half the interval, or nothing where there is none."""
    if not entry["ci95"]:
        return ""
    return f"±{factor * (entry['ci95'][1] - entry['ci95'][0]) / 2:.{places}f}"


def best(values: Mapping[Any, float | None], higher_is_better: bool | None) -> set[Any]:
    """The keys with the best value; none where fewer than two have one, or where no direction is better."""
    known = {key: value for key, value in values.items() if value is not None}
    if len(known) < 2 or higher_is_better is None:
        return set()
    top = (max if higher_is_better else min)(known.values())
    return {key for key, value in known.items() if value == top}


def duration(seconds: float | None) -> str:
    """`1.4 s`, `2 min 05 s`, `3 h 20 min`; `–` where it is not known."""
    if seconds is None:
        return "–"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60:,} h {minutes % 60:02d} min"


def plain(text: str) -> str:
    """Text from data, safe to print: what steers a terminal or turns the direction of writing is replaced by `�`."""
    return _CONTROLS.sub("�", text)
