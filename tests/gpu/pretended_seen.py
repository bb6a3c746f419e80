"""What happened on the pretended device, and which line of the project caused it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from pretended_launches import Launches

_ROOT = Path(__file__).resolve().parents[2]
_KNOWN: set[Any] = set()


@dataclass
class Seen:
    """What happened on the device.

    Attributes
        waits, uploads: how often each line of the project made the host wait, or sent numbers to the device. An upload
            from memory that is not pinned, or that is not told to go on, is a wait as well.
        checks: how the launches of Triton kernels are checked. early: lines that used memory which another stream could
        take again meanwhile.
        launches: how many operations ran there. kernels: how often each Triton kernel was launched.
        rough: lines that multiplied where TensorFloat-32 was allowed.
        shapes: how often attention, a convolution or a product was given tensors of these shapes and strides. For each
            of them, the libraries of a real device choose an algorithm or make a plan.
    """

    waits: Counter[str] = field(default_factory=Counter)
    uploads: Counter[str] = field(default_factory=Counter)
    launches: int = 0
    kernels: Counter[str] = field(default_factory=Counter)
    rough: Counter[str] = field(default_factory=Counter)
    early: Counter[str] = field(default_factory=Counter)
    shapes: Counter[Any] = field(default_factory=Counter)
    checks: Launches = field(default_factory=lambda: Launches(known=_KNOWN))

    def multiplied(self, *, by_cudnn: bool) -> None:
        """Notes a product, with the precision that is allowed now."""
        operation = torch.backends.cudnn.conv if by_cudnn else torch.backends.cuda.matmul
        if operation.fp32_precision == "tf32":
            self.rough[line()] += 1

    def computes(self, name: str, tensors: Iterable[torch.Tensor]) -> None:
        """Notes the shapes and strides that an operation is given."""
        self.shapes[name, *((tuple(tensor.shape), tensor.stride()) for tensor in tensors)] += 1

    def reset(self) -> None:
        """Begins to count again."""
        for counts in (self.waits, self.uploads, self.kernels, self.rough, self.shapes):
            counts.clear()
        self.launches = 0


@cache
def _in_project(name: str) -> Path | None:
    """Where in the project a file is; None for those of libraries and of the pretended device."""
    file = Path(name)
    actual = file.is_relative_to(_ROOT) and not file.name.startswith("pretended") and "site-packages" not in file.parts
    return file.relative_to(_ROOT) if actual else None


def line() -> str:
    """The innermost line of the project that led here."""
    frame = sys._getframe(1)
    while frame is not None:
        if (file := _in_project(frame.f_code.co_filename)) is not None:
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return "outside the project"
