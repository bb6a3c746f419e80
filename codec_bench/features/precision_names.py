"""Precisions in names such as `utmos@float16`, and in protocol ids."""

from __future__ import annotations

from codec_bench.messages.errors import UserError
from codec_bench.networks.precision import Precision

BY_AUTOCAST: dict[str, Precision] = {"bfloat16": "bfloat16", "tf32": "tf32"}
"""Precisions of other packages' networks besides float32, by the text after the `@`."""
BY_WEIGHTS: dict[str, Precision] = {"float16": "float16-weights", "bfloat16": "bfloat16-weights", "tf32": "tf32"}
"""Precisions of this project's networks besides float32."""


def parse_precision(feature: str, point: str | None, known: dict[str, Precision] = BY_AUTOCAST) -> Precision:
    """Parse the precision of a name such as `utmos@float16`.

    Args:
        feature, point: the text before the `@`, and after it or None.
        known: the network's precisions, `BY_AUTOCAST` or `BY_WEIGHTS`.

    Raises:
        UserError: no such precision.
    """
    if point is None:
        return "float32"
    if point not in known:
        others = ", ".join(f"{feature}@{name}" for name in known)
        raise UserError(
            "no_point_of_metric", name=feature, point=point, hint=f"use {feature} for float32, or one of {others}"
        )
    return known[point]


def suffix(precision: Precision) -> str:
    """Return a precision's part of a protocol id."""
    return "" if precision == "float32" else f"/{precision}"
