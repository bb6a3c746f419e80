"""A network's precision: float32, or a faster one with its protocol.

This project's networks keep the weights of large products in half precision (`half_precision.py`). Other packages' keep
float32 weights, and torch's autocast casts each operation. The numbers differ, so these are different precisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

Precision = Literal["float32", "tf32", "bfloat16", "float16-weights", "bfloat16-weights"]
"""`bfloat16` is that of autocast."""


@contextmanager
def computing(device: str, precision: Precision) -> Iterator[None]:
    """Infer at a precision: TensorFloat-32 in `tf32` only; autocast in `bfloat16`.

    Sums of products in half precision are in float32, however a GPU splits them.
    """
    import torch

    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode())
        if str(device).startswith("cuda"):
            matmul = torch.backends.cuda.matmul
            cudnn: Any = torch.backends.cudnn
            precise = "tf32" if precision == "tf32" else "ieee"
            settings: list[tuple[Any, str, Any]] = [
                # Per operation: the older flags do not override what other code set for all of torch.
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
