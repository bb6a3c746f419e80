"""The precision of a network: float32 by default, or a faster one. Each precision has a protocol of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal, get_args

from codec_bench.errors import UserError

Precision = Literal["float32", "tf32", "bfloat16"]


def parse_precision(feature: str, point: str | None) -> Precision:
    """The precision that a name such as `utmos@bfloat16` asks for.

    Raises:
        UserError: there is no such precision.
    """
    if point is None:
        return "float32"
    if point not in get_args(Precision) or point == "float32":
        raise UserError(f"{feature} has no '@{point}'", hint=f"use {feature}, {feature}@tf32 or {feature}@bfloat16")
    return point  # type: ignore[return-value]


def suffix(precision: Precision) -> str:
    """What a precision adds to a protocol id."""
    return "" if precision == "float32" else f"/{precision}"


@contextmanager
def computing(device: str, precision: Precision) -> Iterator[None]:
    """Inference at a precision: `float32` without TensorFloat-32, `tf32` with it, `bfloat16` by autocast."""
    import torch

    cuda = str(device).startswith("cuda")
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if cuda:
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=precision == "tf32"))
            stack.callback(setattr, torch.backends.cuda.matmul, "allow_tf32", torch.backends.cuda.matmul.allow_tf32)
            torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        if precision == "bfloat16":
            stack.enter_context(torch.autocast(str(device).split(":")[0], dtype=torch.bfloat16))
        yield
