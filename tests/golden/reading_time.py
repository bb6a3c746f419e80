"""How the time of a reader grows: `assert is_proportional(lambda length: read(("[" * length)))`."""

from __future__ import annotations

import time
from collections.abc import Callable

LENGTH = 20_000
"""Characters of a hostile text."""
QUICK_S = 0.05
"""Processor time that shows that nothing grows with the square of `LENGTH`."""


def fill(segment: str, length: int) -> str:
    """A text of a length that repeats a piece."""
    return (segment * (length // len(segment) + 1))[:length]


def is_proportional(read: Callable[[int], object]) -> bool:
    """Whether reading `LENGTH` characters takes no more than its share of the time.

    A slow one is timed again with a tenth of the length: a square takes a hundred times as long.
    """

    def measure(length: int) -> float:
        began = time.process_time()
        read(length)
        return time.process_time() - began

    if measure(LENGTH) <= QUICK_S:
        return True
    lengths = (LENGTH, LENGTH // 10, LENGTH // 100)
    complete, tenth, fixed = (min(measure(length) for _ in range(3)) for length in lengths)
    return complete - fixed <= 30 * (tenth - fixed)
