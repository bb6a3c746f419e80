"""How the precision of a network is named, as in `utmos@float16`, and what it adds to a protocol id (see
`networks.precision`).
"""

from __future__ import annotations

from codec_bench.errors import UserError
from codec_bench.networks.precision import Precision

BY_AUTOCAST: dict[str, Precision] = {"bfloat16": "bfloat16", "tf32": "tf32"}
"""What networks of other packages can compute in next to float32, by what stands after the `@`."""
BY_WEIGHTS: dict[str, Precision] = {"float16": "float16-weights", "bfloat16": "bfloat16-weights", "tf32": "tf32"}
"""What the project's own networks can compute in next to float32."""


def parse_precision(feature: str, point: str | None, known: dict[str, Precision] = BY_AUTOCAST) -> Precision:
    """The precision that a name such as `utmos@float16` requests.

    Args:
        feature: what stands before the `@`. point: what stands after it, or None.
        known: the precisions of the network, `BY_AUTOCAST` or `BY_WEIGHTS`.

    Raises:
        UserError: there is no such precision.
    """
    if point is None:
        return "float32"
    if point not in known:
        others = ", ".join(f"{feature}@{name}" for name in known)
        raise UserError(f"{feature} has no '@{point}'", hint=f"use {feature} for float32, or one of {others}")
    return known[point]


def suffix(precision: Precision) -> str:
    """What a precision adds to a protocol id."""
    return "" if precision == "float32" else f"/{precision}"
