"""Scores in the feature cache: an added system does not cost the others again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from codec_bench.audio.resample import SIGNALS
from codec_bench.engine.plan import SIGNAL_METRICS, Plan
from codec_bench.machine.environment import package_version
from codec_bench.metrics.costs import cost_of
from codec_bench.types import Score

LEAST_S = 2.0
"""CPU seconds for an hour of audio from which an entry costs less than the scores: 4 ms for 7 s."""
_CODE = ("audio", "metrics", "kernels")
_PACKAGES = ("numpy", "scipy", "numba", "pesq")


def name_scores(plan: Plan) -> str | None:
    """The id of a plan's signal metrics; None where a cache saves nothing."""
    names = next((spec.names for spec in plan.signal_stages if spec.key == SIGNAL_METRICS), ())
    if sum(cost_of(name) or 0.0 for name in names) < LEAST_S:
        return None
    protocols = [(name, plan.metrics[name].protocol) for name in names]
    return repr((SIGNALS, protocols, _code_hash(), [package_version(name) for name in _PACKAGES]))


def key_of(scores_id: str, estimate: str, reference: str | None, known: Mapping[str, Any]) -> str:
    """Return the key of an item's scores.

    Args:
        estimate, reference: content hashes.
        known: other inputs of the metrics; the item's id is ignored.
    """
    facts = {name: value for name, value in known.items() if name != "id"}
    text = json.dumps([scores_id, estimate, reference, facts], sort_keys=True, default=repr)
    return f"scores|{hashlib.blake2b(text.encode(), digest_size=20).hexdigest()}"


def pack_scores(scores: Mapping[str, Score]) -> dict[str, Any] | None:
    """Scores as JSON values; None unless JSON restores all exactly."""
    packed = {
        name: [score.value, score.protocol, score.numerator, score.denominator, dict(score.detail)]
        for name, score in scores.items()
        if score.status == "ok"
    }
    try:
        exact = len(packed) == len(scores) and json.loads(json.dumps(packed)) == packed
    except (TypeError, ValueError):
        return None
    return packed if exact else None


def unpack_scores(packed: Mapping[str, Any]) -> dict[str, Score]:
    """Return the scores of `pack_scores`."""
    return {
        name: Score(value, "ok", None, protocol, numerator, denominator, detail)
        for name, (value, protocol, numerator, denominator, detail) in packed.items()
    }


@cache
def _code_hash() -> str:
    """Hash the source files that scores depend on, for the keys of cached scores."""
    digest, package = hashlib.blake2b(digest_size=20), Path(__file__).parents[1]
    for folder in _CODE:
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
