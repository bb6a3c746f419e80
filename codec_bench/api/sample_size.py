"""Plan how many speakers and utterances a difference needs, from a pilot run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from codec_bench.config.option import names
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report.open_run import open_run
from codec_bench.stats.intervals import unit_codes
from codec_bench.stats.paired import POWER, item_differences, parts_table, split_common
from codec_bench.stats.power import PilotSpread, StudyPlan, plans_for, spread_of
from codec_bench.stats.recorded import items_of
from codec_bench.stats.sets import item_fold
from codec_bench.store.record import Run


@dataclass(frozen=True, slots=True)
class SampleSize:
    """Study size that shows the difference `wanted` with this power."""

    a: str
    b: str
    metric: str
    unit: str
    wanted: float
    power: float
    pilot: PilotSpread
    plans: Sequence[StudyPlan]

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        plans = [{**asdict(plan), "utterances": plan.utterances} for plan in self.plans]
        return {**asdict(self), "plans": plans}


def sample_size(
    *,
    run: Run | str | os.PathLike[str],
    metric: str,
    difference: float,
    systems: str | Sequence[str] | None = None,
    power: float = POWER,
) -> SampleSize:
    """Compute how many speakers and utterances show a difference between two systems.

    Args:
        run: a pilot run, or its folder, in which both systems were scored on the same samples.
        metric: the metric of the difference.
        difference: the smallest difference that matters, in the metric's unit.
        systems: the two systems; None if the run has only two.
        power: the probability to show a difference of that size at a level of 95 %.

    Raises:
        UserError: a system or the metric does not exist, the pilot has fewer than three speakers, or the difference or
            the power is invalid.

    Examples:
        >>> from codec_bench import sample_size
        >>> found = sample_size(run="runs/small", metric="stoi", difference=0.02)  # the run of evaluate's example
        >>> found.pilot.units, found.plans[0].utterances > 0
        (4, True)
    """
    opened = run if isinstance(run, Run) else open_run(run)
    chosen = names(systems) if systems is not None else list(opened.systems)
    if len(opened.systems) == 1:
        raise UserError(
            "one_system",
            folder=opened.folder,
            systems=", ".join(opened.systems),
            hint="name a run of two systems over the same data",
        )
    if len(chosen) != 2:
        raise UserError("two_systems_expected", count=len(chosen), systems=", ".join(chosen), hint="give --systems A,B")
    if not 0.5 <= power < 1:
        raise UserError("power_value", power=power)
    for name in chosen:
        if name not in opened.systems:
            raise UnknownName("system", name, opened.systems, within=opened.folder)
    facts = opened.metrics
    if metric not in facts:
        raise UnknownName("metric", metric, facts, within=opened.folder)
    a, b, _ = split_common(*(items_of(opened, name, metric) for name in chosen))
    if len(a) < 2:
        both = " and ".join(chosen)
        raise UserError("pilot_too_small", samples=len(a), metric=metric, systems=both)
    fold = item_fold(metric, facts[metric].get("aggregate", ""))
    differences = item_differences(fold, parts_table(a), parts_table(b))
    if not np.isfinite(differences).all():
        raise UserError("one_sample_decides", metric=metric)
    pilot = spread_of(differences, unit_codes([item.speaker for item in a], len(a)))
    plans = plans_for(pilot, difference, power=power)
    unit = facts[metric].get("unit", "")
    return SampleSize(chosen[0], chosen[1], metric, unit, difference, power, pilot, plans)
