"""What a run is doing, in words: for the progress line, while no item is finished."""

from __future__ import annotations

from collections.abc import Sequence

from codec_bench.engine.checks import check_key
from codec_bench.engine.plan import Plan

RUNNING = "running"
_NAMED = 3


def phase_of(plan: Plan, loading: Sequence[str], waiting: bool, finished: int, failed: int) -> str:
    """What is happening.

    Args:
        plan: of the run.
        loading: the keys of the stages that workers are loading.
        waiting: whether workers hold batches.
        finished, failed: how many items are finished by now, and how many of these failed. A file that is missing fails at
            once, and says nothing of how far the run is.
    """
    if finished > failed:
        return RUNNING
    kinds: dict[str, list[str]] = {}
    for key in dict.fromkeys(loading):
        kind, name = _what(plan, key)
        kinds.setdefault(kind, []).append(name)
    models = [listed(kind, names) for kind, names in kinds.items() if kind]
    if models:
        return f"loading {', '.join(models)}"
    if finished:
        return RUNNING
    return "first batch" if waiting else "reading the first samples"


def listed(kind: str, names: Sequence[str]) -> str:
    """`the codec opus-12k`, `the codecs opus-12k, g722`, or `the codecs a, b, c and 2 more`."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"the {kind}{'s' if len(names) > 1 else ''} {', '.join(names[:_NAMED])}{more}"


def _what(plan: Plan, key: str) -> tuple[str, str]:
    """What a stage loads and its name; the first is empty if that takes no time worth a word."""
    if key in plan.features:
        return plan.features[key].kind, key
    codecs = {system.stage.key: system.name for system in plan.systems if system.stage is not None}
    codecs |= {check_key(stage): name for stage, name in codecs.items()}
    return ("codec", codecs[key]) if key in codecs else ("", key)
