"""Statistics of a system's sessions: shares with an interval, else median and higher quantiles.

The sessions are the independent units: several turns of one session are not. Missing values and sessions without any
are counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.apps.conversation.measures import MEASURES, VOICE, Value
from codec_bench.apps.conversation.quantiles import quantile
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.voice import trimmed_mean
from codec_bench.stats.intervals import interval

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
MEANS = ("share", "count", "1/s", "1/turn", "points", "words/min", "Hz", "dB", "")
"""Units of measures with a mean; the others have quantiles."""


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
    measure, of_measure = MEASURES[name], [value for value in values if value.measure == name]
    there = [value for value in of_measure if value.value is not None]
    numbers, clusters = [float(v.value or 0.0) for v in there], [v.session for v in there]
    over = Counter(v.session for v in values if v.measure == measure.per)
    if measure.per and not over:
        there = []  # what it is counted over did not happen
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
    """Summarise how late frames were sent, in milliseconds, over all sessions."""
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
