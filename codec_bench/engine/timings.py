"""Timings of a run for the record and the report; its phase for the progress line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from codec_bench.engine.batch import StageState
from codec_bench.engine.cache import FeatureCache, FeatureMemory
from codec_bench.engine.checks import check_key
from codec_bench.engine.plan import Plan
from codec_bench.engine.reading import READING
from codec_bench.messages.errors import first_of

_KNOWN_S = 0.1


@dataclass(slots=True, eq=False)
class Spent:
    """Work of the main process so far; `first_item_at` is by `perf_counter`."""

    items: int = 0
    audio_s: float = 0.0
    write_s: float = 0.0
    first_item_at: float | None = None


class Timeline:
    """The phases of a run in seconds, from `start` (`perf_counter`) to the last mark."""

    def __init__(self, start: float | None = None) -> None:
        self.phases: dict[str, float] = {}
        self._last = perf_counter()
        if start is not None:
            self.phases["start"] = self._last - start

    def mark(self, phase: str, at: float | None = None) -> None:
        """End a phase, now or at a moment of `perf_counter`."""
        now = perf_counter() if at is None else at
        self.phases[phase] = now - self._last
        self._last = now


def estimate_left_s(stages: Mapping[str, StageState], items: int, systems: int) -> float:
    """Estimate the workers' seconds of work that is left, by each stage's mean.

    A stage counts after `_KNOWN_S` of work, because its first batch may import libraries. A sample is read once for all
    systems.
    """
    left_s = 0.0
    for key, stage in stages.items():
        if stage.cost * stage.audio_s > _KNOWN_S:
            expected = items / systems if key == READING else items
            left_s += stage.cost * stage.audio_s * max(0.0, expected / stage.items - 1)
    return left_s


def sum_timings(
    wall_s: float, main_cpu_s: float, workers: int, spent: Spent, plan: Plan, stages: Mapping[str, StageState],
    cache: FeatureCache | FeatureMemory,
) -> dict[str, Any]:  # fmt: skip
    """Sum the timings of a run as JSON values.

    `share` is a stage's busy time divided by the time of all workers.

    Args:
        wall_s: duration of the run.
        main_cpu_s: CPU seconds of the main process.
    """
    here = any(stage.here is not None for stage in stages.values())
    capacity_s = max(wall_s * (workers + here), 1e-9)  # this process is one more worker if it runs codecs
    rows: list[dict[str, Any]] = [
        {
            "stage": s.name, "items": s.items, "busy_s": s.busy_s, "cpu_s": s.cpu_s, "share": s.busy_s / capacity_s,
            "steps": s.steps, **({} if s.first else {"audio_s": s.audio_s}),
        }
        for s in stages.values()
        if s.spec.kind != "check" or s.items
    ]  # fmt: skip
    rows.append({"stage": "writing the record", "items": spent.items, "busy_s": spent.write_s, "share": None})
    return {
        "wall_s": wall_s,
        "items": spent.items,
        "audio_s": spent.audio_s,
        "workers": workers,
        "worker_use": sum(s.busy_s for s in stages.values()) / capacity_s,
        "main_cpu_s": main_cpu_s,
        "cache": {"hits": cache.hits, "misses": cache.misses},
        "stages": rows,
        "systems": _codec_speeds(plan, stages),
    }


def _codec_speeds(plan: Plan, stages: Mapping[str, StageState]) -> dict[str, dict[str, float]]:
    """Return encoding, decoding and audio seconds, and speed, by codec."""
    systems = {}
    for stage in (stages[s.stage.key] for s in plan.systems if s.stage is not None):
        steps, audio_s = stage.steps, stage.audio_s
        codec_s = steps.get("encode", 0.0) + steps.get("decode", 0.0)
        if codec_s:
            systems[stage.name] = {
                "encode_s": steps["encode"], "decode_s": steps["decode"], "audio_s": audio_s,
                "times_real_time": audio_s / codec_s,
            }  # fmt: skip
    return systems


RUNNING = "running"
_NAMED = 3


def describe_phase(plan: Plan, loading: Sequence[str], waiting: bool, finished: int, failed: int) -> str:
    """Describe what the run does now: loading, reading, first batch or running.

    Failed items do not count as progress, because a missing file fails at once.
    """
    if finished > failed:
        return RUNNING
    kinds: dict[str, list[str]] = {}
    for key in dict.fromkeys(loading):
        kind, name = _kind_and_name(plan, key)
        kinds.setdefault(kind, []).append(name)
    models = [name_models(kind, names) for kind, names in kinds.items() if kind]
    if models:
        return f"loading {', '.join(models)}"
    if finished:
        return RUNNING
    return "first batch" if waiting else "reading the first samples"


def name_models(kind: str, names: Sequence[str]) -> str:
    """`the codec opus-12k`, `the codecs opus-12k, g722`, `the codecs a, b and 2 more`."""
    return f"the {kind}{'s' if len(names) > 1 else ''} {first_of(names, _NAMED)}"


def _kind_and_name(plan: Plan, key: str) -> tuple[str, str]:
    """(kind, name) of a stage for the progress line; kind is "" if it loads fast."""
    if key in plan.features:
        return plan.features[key].kind, key
    codecs = {system.stage.key: system.name for system in plan.systems if system.stage is not None}
    codecs |= {check_key(stage): name for stage, name in codecs.items()}
    return ("codec", codecs[key]) if key in codecs else ("", key)
