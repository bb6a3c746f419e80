"""What the process of one codec may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What the process of a codec may take. These limits do not change what a number means.

    Args:
        time_limit_s: how long one call of a codec may take before it counts as hanging.
        memory_gib: how much memory the codec's process may take before it is ended; None for nine tenths of what is
            free.
        threads: how many threads the codec's process may use; None for as many as its libraries take.
    """

    time_limit_s: float = 300.0
    memory_gib: float | None = None
    threads: int | None = None
