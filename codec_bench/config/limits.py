"""Limits of one codec's process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one codec's process. They do not change a number's meaning.

    Args:
        time_limit_s: the time limit of one call of a codec.
        memory_gib: the memory limit; None for nine tenths of the free memory.
        threads: the most threads; None leaves it to the libraries.
    """

    time_limit_s: float = 300.0
    memory_gib: float | None = None
    threads: int | None = None
