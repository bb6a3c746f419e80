"""How much of an arena is in use, which only tests ask."""

from __future__ import annotations

from codec_bench.engine.arena import Arena


def used_bytes(arena: Arena) -> int:
    """Bytes allocated and not yet freed."""
    return sum(one.size - sum(room for _, room in one.free) for one in arena._segments.values())
