"""Worker code of VERSA: a metric class, by the name of its configuration."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np


def load(configuration: str, options: dict[str, Any]) -> Any:
    """The metric of a configuration, with the options of its entry in VERSA's YAML."""
    from versa.scorer_shared import VersaScorer

    registered = VersaScorer().registry.get_metric(configuration)
    if registered is None:
        raise RuntimeError(f"VERSA did not register {configuration}: a package that it needs is not in the environment")
    return registered(options)


def _measure(metric: Any, item: dict[str, Any]) -> dict[str, Any]:
    sounds = [item[role] for role in ("estimate", "reference") if role in item]
    signals = [np.asarray(sound["samples"][0], np.float64) for sound in sounds]
    try:
        scores = metric.compute(*signals, metadata={"sample_rate": int(sounds[0]["sample_rate_hz"])})
    except Exception as error:
        return {"error": {"type": type(error).__name__, "message": str(error)}}
    return {"scores": {name: float(value) for name, value in scores.items() if _is_finite(value)}}


def _is_finite(value: Any) -> bool:
    """Whether a value of VERSA's reply is a number; texts and lists are not."""
    return isinstance(value, (Real, np.generic)) and not isinstance(value, bool) and math.isfinite(float(value))


def answer(state: Any, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The numbers of VERSA's reply for each item, one after the other."""
    return [_measure(state, item) for item in batch]
