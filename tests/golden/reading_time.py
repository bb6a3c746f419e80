"""How the time of a reader grows: `assert is_proportional(lambda length: read(("[" * length)))`."""

from __future__ import annotations

import time
from collections.abc import Callable

LENGTH = 10_000
"""Characters of a hostile text."""
QUICK_S = 0.02
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

    complete = measure(LENGTH)
    if complete <= QUICK_S:
        return True
    tenth, fixed = (min(measure(length) for _ in range(3)) for length in (LENGTH // 10, LENGTH // 100))
    longest = fixed + 30 * (tenth - fixed)
    return complete <= longest or any(measure(LENGTH) <= longest for _ in range(3))
