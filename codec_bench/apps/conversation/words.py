"""The summary of conversations as a table, with notes below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codec_bench.apps.conversation.distributions import QUANTILES, cost_words
from codec_bench.apps.conversation.measures import MEASURES, shown

ARROWS = {True: " ↑", False: " ↓", None: ""}


def rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Build the rows: measure, unit, and each system's values with counts."""
    out = []
    for name, measure in MEASURES.items():
        summaries = [one["measures"][name] for one in summary["systems"].values()]
        if any(entry["n"] or entry["undefined"] for entry in summaries):
            out.append([f"{shown(name)}{ARROWS[measure.higher_is_better]}", measure.unit, *map(cell, summaries)])
    return out


def cell(entry: Mapping[str, Any]) -> str:
    """Format a value with its interval, or quantiles, with the number of values."""
    if not entry["n"]:
        return "–"
    if "value" in entry:
        text = _with_ends(entry, 2)
    else:
        text = " / ".join(_with_ends(entry[label], 3) for label in QUANTILES)
        text += f", mean {entry['mean']:.3f}" if "mean" in entry else ""
    return f"{text} (n={entry['n']})"


def _with_ends(one: Mapping[str, Any], places: int) -> str:
    ends = one["ci95"]
    return f"{one['value']:.{places}f}" + (f" [{ends[0]:.{places}f}, {ends[1]:.{places}f}]" if ends else "")


def sentences(summary: Mapping[str, Any]) -> list[str]:
    """List the notes on the table."""
    out = [
        "Latencies are counted in seconds from the last frame with speech; a cell with three numbers holds the median, "
        "the 90th and the 99th percentile, with 95 % intervals over sessions where there are values enough."
    ]
    for name, system in summary["systems"].items():
        count = ", ".join(f"{number} {status}" for status, number in sorted(system["sessions"].items()))
        late = system["lateness"]
        delay_text = (
            f"; frames were sent late by {late['p99_ms']:.1f} ms at the 99th percentile" if late["frames"] else ""
        )
        out.append(f"{name}: sessions: {count or 'none'}{delay_text}")
        if words := cost_words(system):
            out.append(f"{name}: {words}")
        out += [f"{name}: {number} × {reason}" for reason, number in system["reasons"].items()]
    if spent := summary.get("judge"):
        cost = f", {spent['cost_usd']:.3g} USD" if "cost_usd" in spent else ""
        out.append(f"judge: {spent['calls']:.0f} verdicts{cost}")
    return out
