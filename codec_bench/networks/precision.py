"""The precision of a network: float32 by default, or a faster one. Each precision has a protocol of its own.

The project's own networks keep the weights of their large products in half precision (`half_precision.py`). Networks of
other packages keep float32 weights, and torch casts each operation by itself (autocast). The two give different
numbers, so they are different precisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

Precision = Literal["float32", "tf32", "bfloat16", "float16-weights", "bfloat16-weights"]
"""`bfloat16` is that of autocast."""


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
