"""The precision of a network: float32 by default, or a faster one. Each precision has a protocol of its own.

The project's own networks keep the weights of their large products in half precision (`half.py`). Networks of other
packages keep float32 weights, and torch casts each operation by itself (autocast). The two give different numbers, so they
are different precisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

from codec_bench.errors import UserError

Precision = Literal["float32", "tf32", "bfloat16", "float16-weights", "bfloat16-weights"]
"""`bfloat16` is that of autocast."""
BY_AUTOCAST: dict[str, Precision] = {"bfloat16": "bfloat16", "tf32": "tf32"}
"""What networks of other packages can compute in beside float32, by what stands after the `@`."""
BY_WEIGHTS: dict[str, Precision] = {"float16": "float16-weights", "bfloat16": "bfloat16-weights", "tf32": "tf32"}
"""What the project's own networks can compute in beside float32."""


def parse_precision(feature: str, point: str | None, known: dict[str, Precision] = BY_AUTOCAST) -> Precision:
    """The precision that a name such as `utmos@float16` asks for.

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


@contextmanager
def computing(device: str, precision: Precision) -> Iterator[None]:
    """Inference at a precision: without TensorFloat-32, except in `tf32`; by autocast in `bfloat16`.

    Sums of products in half precision are themselves in float32, however a GPU cuts them into parts.
    """
    import torch

    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if str(device).startswith("cuda"):
            matmul = torch.backends.cuda.matmul
            cudnn: Any = torch.backends.cudnn
            precise = "tf32" if precision == "tf32" else "ieee"
            settings: list[tuple[Any, str, Any]] = [
                # Of each operation by itself: the flags of old do not overrule what other code set for all of torch.
                *((operation, "fp32_precision", precise) for operation in (matmul, cudnn.conv, cudnn.rnn)),
                (matmul, "allow_fp16_reduced_precision_reduction", False),
                (matmul, "allow_bf16_reduced_precision_reduction", False),
                (cudnn, "benchmark", False),
            ]
            for holder, setting, value in settings:
                stack.callback(setattr, holder, setting, getattr(holder, setting))
                setattr(holder, setting, value)
        if precision == "bfloat16":
            stack.enter_context(torch.autocast(str(device).split(":")[0], dtype=torch.bfloat16))
        yield
