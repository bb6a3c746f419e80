"""Load the stages of a plan in workers or here, and with them the codecs' names."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from codec_bench.audio.budget import FILLED
from codec_bench.engine.batch import Dispatcher
from codec_bench.engine.checks import LIMIT_S, check_key
from codec_bench.engine.plan import FeaturePlan, Plan
from codec_bench.engine.pool import Pool
from codec_bench.engine.reading import READ_AT_ONCE, READING
from codec_bench.engine.stage import CheckStage, CodecStage, StageSpec
from codec_bench.engine.systems import System, name_systems
from codec_bench.features.base import Feature
from codec_bench.messages.errors import UserError, describe

FIRST_S = 600.0
"""Padded seconds of a first batch on a large GPU, at most: launches then take little of its time."""
CPU_BUDGET_S = 600.0
"""Seconds of a CPU batch, at most; its cost usually limits it first."""


def load_stages(plan: Plan, pool: Pool, dispatcher: Dispatcher) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """Load every codec; return the plan with final names, and codecs' facts by system.

    A class that a worker cannot import runs in this process, like objects; its system then has no `codec`.
    """
    by_workers = [s.stage for s in plan.systems if s.stage is not None and s.codec is not None]
    metrics = [*plan.signal_stages, *plan.feature_stages]
    features = [f.stage for f in plan.features.values()]
    rates = {"reference": plan.reference_rates, "estimate": plan.estimate_rates, "with_audio": plan.needs_codec_audio}
    reading = StageSpec(READING, "read", (), rates)
    checks = [_check_spec(spec) for spec in by_workers]
    pool.define({spec.key: spec for spec in [reading, *by_workers, *features, *metrics, *checks]})
    dispatcher.add(reading, "cpu", READ_AT_ONCE, False, first=True)
    device_facts = pool.build_stages((spec.key, "device") for spec in by_workers)
    facts: dict[str, dict[str, Any]] = {}
    systems: list[System] = []
    for system in plan.systems:
        stage, here = system.stage, None
        if stage is not None:
            loaded = device_facts.get(stage.key)
            if system.live is not None and (loaded is None or isinstance(loaded, UserError)):
                here = _load_here(system, stage, pool)
                loaded, system = here.facts, replace(system, codec=None)
            elif isinstance(loaded, UserError):
                raise loaded
            assert loaded is not None  # a codec of a worker has facts, or an error that was raised
            facts[stage.key] = loaded
            if stage.owner:
                pool.dismiss(loaded["where"] if here is None else None, stage.owner)
            dispatcher.add(stage, loaded["where"], loaded["batch_s"], loaded["where"] == "device", here)
            spec = _check_spec(stage)
            dispatcher.add(spec, loaded["where"], 0.0, False, None if here is None else CheckStage(here))
            dispatcher.stages[spec.key].limit_s, dispatcher.stages[spec.key].tries = LIMIT_S, 1
        systems.append(system)
    # Networks are loaded while the CPU's workers read the first samples.
    pool.preload([f.stage.key for f in plan.features.values() if f.where == "device" and not f.stage.owner])
    for feature in plan.features.values():
        first_s = first_batch_s(feature, pool.memory_bytes())
        dispatcher.add(feature.stage, feature.where, first_s, feature.where == "device")
    for spec in metrics:
        dispatcher.add(spec, "cpu", CPU_BUDGET_S, False)
    plan = replace(plan, systems=name_systems(systems, facts))
    by_system: dict[str, dict[str, Any]] = {}
    for system in plan.systems:
        if system.stage is not None:
            dispatcher.stages[system.stage.key].name = system.name
            dispatcher.stages[check_key(system.stage.key)].name = check_key(system.name)
            by_system[system.name] = facts[system.stage.key]
    return plan, by_system


def first_batch_s(feature: FeaturePlan | type[Feature], memory: int) -> float:
    """Padded seconds of a feature's first batch, by a GPU's bytes per worker, or 0."""
    if not memory or not feature.mib_per_s or feature.where != "device":
        return feature.batch_s
    fits_s = FILLED * memory / (feature.mib_per_s * 2**20)
    return feature.batch_s * 2.0 ** math.floor(math.log2(min(FIRST_S, fits_s) / feature.batch_s))


def _check_spec(stage: StageSpec) -> StageSpec:
    return StageSpec(check_key(stage.key), "check", (stage.key,), owner=stage.owner)


def _load_here(system: System, stage: StageSpec, pool: Pool) -> CodecStage:
    """Build a codec's stage in this process; raises UserError if it cannot."""
    try:
        return CodecStage(stage, pool.device(getattr(system.live, "where", "device")), system.live)
    except UserError:
        raise
    except Exception as error:  # own code may raise anything while it is built
        raise UserError("not_loadable", name=system.name, cause=describe(error)) from error
