"""Statistics of a system's sessions: shares, or median and higher quantiles.

The sessions are the independent units: several turns of one session are not. Missing values and sessions without any
are counted by reason.

Quantiles with Woodruff's intervals: that of the share below, inverted at the order statistics.
Over clusters the share has an effective number of values. `sparse_tail` notes that an end is cut at a last value.
Reference: Woodruff 1952, "Confidence intervals for medians and other position measures".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codec_bench.apps.conversation.measures import MEASURES, VOICE, Value, display_name
from codec_bench.apps.conversation.session import Partner, Session
from codec_bench.apps.conversation.voice import trimmed_mean
from codec_bench.stats.cluster_variance import jackknife_error, t_quantile
from codec_bench.stats.intervals import (
    FEW_UNITS,
    FEWEST_UNITS,
    LEVEL,
    Interval,
    effective_items,
    interval,
    item_table,
    ratios,
    unit_codes,
    unit_sums,
)
from codec_bench.stats.notes import Note, too_few

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
MEANS = ("share", "count", "1/s", "1/turn", "points", "words/min", "Hz", "dB", "")
"""Units of measures with a mean; the others have quantiles."""
ARROWS = {True: " ↑", False: " ↓", None: ""}


def summarise(sessions: Sequence[Session], values: Sequence[Value]) -> dict[str, Any]:
    """Summarise one system as JSON values: statuses, lateness, all measures."""
    return {
        "sessions": dict(Counter(session.status for session in sessions)),
        "reasons": dict(Counter(f"{one.status}: {one.reason}" for one in sessions if one.reason)),
        "models": sorted({session.model for session in sessions if session.model}),
        "usage": _usage(sessions),
        "priced": sum("cost_usd" in session.usage for session in sessions),
        "lateness": _lateness(sessions),
        "measures": {name: _measure(name, values) for name in MEASURES},
    }


def _measure(name: str, values: Sequence[Value]) -> dict[str, Any]:
    """Summarise one measure over sessions: mean or quantiles with intervals, counts."""
    measure, of_measure = MEASURES[name], [value for value in values if value.measure == name]
    there = [value for value in of_measure if value.value is not None]
    numbers, clusters = [float(v.value or 0.0) for v in there], [v.session for v in there]
    over = Counter(v.session for v in values if v.measure == measure.per)
    if measure.per and not over:
        there = []  # its denominator is 0
    out: dict[str, Any] = {
        "unit": measure.unit,
        "higher_is_better": measure.higher_is_better,
        "n": len(there),
        "undefined": len(of_measure) - len(there),
        "reasons": dict(Counter(value.reason for value in of_measure if value.reason)),
    }
    if not there:
        return out
    if measure.unit in MEANS:
        below = [float(over[session]) for session in clusters] if measure.per else None
        bounds = {"share": (0.0, 1.0), "points": (0.0, 5.0), "dB": (None, None)}.get(measure.unit, (0.0, None))
        estimate = interval(numbers, denominators=below, clusters=clusters, bounds=bounds)
        official = {"trimmed": trimmed_mean(numbers)} if name.rpartition("/")[2] in VOICE else {}
        return {
            **out,
            "value": sum(numbers) / (sum(below) if below else len(numbers)),
            "ci95": estimate.ends,
            "note": estimate.note,
            **official,
        }
    # Published figures of others are means.
    mean = {"mean": float(np.mean(numbers))} if name.startswith("official/") else {}
    quantiles = {label: quantile(numbers, share, clusters=clusters) for label, share in QUANTILES.items()}
    return {**out, **mean, **{label: one.as_dict() for label, one in quantiles.items() if one is not None}}


def _lateness(sessions: Sequence[Session]) -> dict[str, Any]:
    """Return p50, p99 and maximum of the delays of sent frames in ms, of all sessions."""
    late = [session.late_s for session in sessions if session.sent_s]
    if not late:
        return {"frames": 0}
    together = 1000 * np.concatenate(late)
    p50, p99 = np.quantile(together, [0.5, 0.99])
    return {"frames": together.size, "p50_ms": float(p50), "p99_ms": float(p99), "most_ms": float(together.max())}


def _usage(sessions: Sequence[Session]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for session in sessions:
        total.update(session.usage)
    return {name: float(count) for name, count in total.items()}


@dataclass(frozen=True, slots=True)
class Quantile:
    """The smallest `value` that at least this `share` of the values does not exceed."""

    share: float
    value: float
    interval: Interval

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {"value": self.value, "ci95": self.interval.ends, "note": self.interval.note}


def quantile(
    values: Sequence[float], share: float, *, clusters: Sequence[Hashable | None] | None = None
) -> Quantile | None:
    """Compute a quantile with its confidence interval; None without values.

    Args:
        share: of the values at or below the quantile, 0 to 1.
        clusters: the independent unit of each value; None if every value is one.
    """
    if not len(values):
        return None
    table, codes = item_table(values), unit_codes(clusters, len(values))
    ordered = np.sort(table[:, 0])
    value = _at(ordered, share)
    table[:, 0] = table[:, 0] <= value
    units = unit_sums(table, codes)
    if len(units) < FEWEST_UNITS:
        small_sample = too_few(len(units), FEWEST_UNITS, "interval")
        return Quantile(share, value, Interval(None, None, len(units), "", small_sample, LEVEL))
    below = float(table[:, 0].mean())  # more than `share` where several values are equal to the quantile
    error = jackknife_error(ratios(units.sum(axis=0) - units), below, units[:, 1]) or 0.0
    items = effective_items(below, error, ordered.size, units[:, 1], LEVEL)
    reach = t_quantile(LEVEL, math.inf) * math.sqrt(share * (1 - share) / items)
    ends = _at(ordered, share - reach), _at(ordered, share + reach + 1 / items)
    note: Note | None = Note("sparse_tail") if share - reach <= 0 or share + reach >= 1 else None
    if note is None and len(units) < FEW_UNITS:
        note = Note("few_units", units=len(units))
    return Quantile(share, value, Interval(*ends, len(units), "woodruff", note, LEVEL))


def _at(ordered: np.ndarray, share: float) -> float:
    """Return the smallest ordered value that at least this share does not exceed."""
    return float(ordered[min(max(0, math.ceil(share * ordered.size - 1e-9) - 1), ordered.size - 1)])


def price_before(name: str, model: Partner, seconds: Sequence[float]) -> str:
    """Describe the least cost of sessions; empty for a model without prices.

    Args:
        name: the system's.
        seconds: least length of each session.
    """
    if model.prices is None or not model.prices.has_prices or not seconds:
        return ""
    sound_s = sum(seconds)
    least, _, unknown = model.prices.bounds(sound_s=sound_s, text_bytes=0, characters=0, most_tokens=None, speaks=True)
    missing = ", ".join(dict.fromkeys([*unknown, "how long answers are"]))
    day = model.prices.date or "an unknown day"
    return (
        f"{name}: {len(seconds)} sessions with at least {sound_s:.0f} s of sent sound will cost at least {least:.2g} "
        f"USD by the prices of {day}; not known: {missing}"
    )


def priced(model: Partner, session: Session) -> dict[str, float]:
    """Return a session's usage, with its cost if the model has prices."""
    if model.prices is None or not session.sent_s:
        return session.usage
    sent = {"sent_audio_s": session.duration_s} if model.prices.has_price("audio_minute") else {}
    return model.prices.priced({**session.usage, **sent}, sent=True, came=bool(session.packets))


def cost_words(system: Mapping[str, Any]) -> str:
    """Describe the cost of a summarised system's sessions; empty if none has a cost."""
    if not system["priced"]:
        return ""
    usage, count = system["usage"], sum(system["sessions"].values())
    unsure = usage.get("cost_unsure_usd", 0.0)
    low = f"{usage['cost_usd'] - unsure:.3g} to " if unsure else ""
    return (
        f"{system['priced']} of {count} sessions cost {low}{usage['cost_usd']:.3g} USD by what was counted and the "
        "prices of its config"
    )


def rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Build the table's rows: measure, unit, and a text for each system."""
    out = []
    for name, measure in MEASURES.items():
        summaries = [one["measures"][name] for one in summary["systems"].values()]
        if any(entry["n"] or entry["undefined"] for entry in summaries):
            out.append([f"{display_name(name)}{ARROWS[measure.higher_is_better]}", measure.unit, *map(cell, summaries)])
    return out


def cell(entry: Mapping[str, Any]) -> str:
    """Format a measure's summary: value or quantiles, with interval and count."""
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
    """List the notes on the table: quantiles, sessions, delays, costs and failures."""
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
