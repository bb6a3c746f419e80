"""Leave-one-out changes of values by unit (speakers, or items of unknown speaker)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from codec_bench.apps.leaderboards.ranking import UnitEffects
from codec_bench.stats.breakdown import MetricParts, SetParts, parts_of
from codec_bench.stats.intervals import unit_codes, unit_sums
from codec_bench.stats.recorded import RecordedRun
from codec_bench.store.record import Run

Changes = dict[str, float]
"""By unit, how a number changes without it."""


def changes_of(run: Run, system: str, metric: str) -> Changes:
    """Return a metric's change without each unit; empty if undefined."""
    if metric not in run.metrics or system not in run.systems:
        return {}
    parts = parts_of(RecordedRun(run), system, metric)
    if isinstance(parts, SetParts) or parts.value is None:
        return {}
    names, sums = _units(run, parts)
    with np.errstate(all="ignore"):
        without = parts.fold(sums.sum(axis=0) - sums) - parts.value
    if not np.isfinite(without).all():
        return {}
    return dict(zip(names, without.tolist(), strict=True))


def sizes_of(run: Run, system: str, metric: str) -> dict[str, float]:
    """Return each unit's size: its items, or for an error rate its words."""
    if metric not in run.metrics or system not in run.systems:
        return {}
    names, sums = _units(run, parts_of(RecordedRun(run), system, metric))
    return dict(zip(names, sums[:, 1].tolist(), strict=True))


def together(rows: Mapping[int, Changes]) -> UnitEffects:
    """Combine rows' changes in one table; units that a row lacks change nothing."""
    units = {
        unit: line for line, unit in enumerate(dict.fromkeys(unit for changes in rows.values() for unit in changes))
    }
    added = np.zeros((len(units), len(rows)))
    for column, changes in enumerate(rows.values()):
        added[[units[unit] for unit in changes], column] = list(changes.values())
    return UnitEffects(list(rows), added)


def _units(run: Run, parts: MetricParts) -> tuple[list[str], np.ndarray]:
    """Return unit names, equal in all runs of the same data, and their sums."""
    ids = dict(run.query("SELECT number, id FROM samples"))
    names = [unit or f"item {ids[number]}" for number, unit in zip(parts.numbers, parts.units, strict=True)]
    codes = unit_codes(names, len(names))
    return list(dict.fromkeys(names)), unit_sums(parts.sums, codes)
