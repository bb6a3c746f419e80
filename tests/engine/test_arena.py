"""Shared memory: regions never overlap, freed memory is used again, and another process sees the same numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from arena_use import used_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.engine.arena import Arena, Region, Segments


@pytest.fixture
def arena():
    built = Arena(segment_bytes=1 << 16)
    yield built
    built.close()


def put(arena: Arena, samples: np.ndarray) -> Region:
    """A new region that holds these samples."""
    region = arena.allocate(samples.shape)
    arena.view(region)[...] = samples
    return region


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6000), st.booleans()), max_size=60))
def test_regions_keep_their_numbers_whatever_is_freed_around_them(steps):
    arena = Arena(segment_bytes=1 << 14)
    live: list[tuple[Region, float]] = []
    try:
        for mark, (size, drop) in enumerate(steps):
            if drop and live:
                region, _ = live.pop(size % len(live))
                arena.free(region)
            else:
                live.append((put(arena, np.full(size, mark, np.float32)), mark))
            for region, expected in live:
                assert (arena.view(region) == expected).all()
        for region, _ in live:
            arena.free(region)
        assert used_bytes(arena) == 0
    finally:
        arena.close()


def test_freed_memory_is_used_again(arena):
    for _ in range(100):
        region = put(arena, np.zeros(10_000, np.float32))
        arena.free(region)
    assert len({region.segment}) == 1
    assert arena.allocate((10_000,)).segment == region.segment


def test_an_oversized_segment_is_returned_and_its_name_never_comes_again(arena):
    big = put(arena, np.ones(50_000, np.float32))
    arena.free(big)
    assert arena.trim() == [big.segment]
    again = put(arena, np.zeros(50_000, np.float32))
    assert again.segment != big.segment


def test_another_process_reads_and_writes_the_same_memory(arena):
    region = put(arena, np.arange(12, dtype=np.float32).reshape(3, 4))
    code = (
        "from codec_bench.engine.arena import Region, Segments\n"
        f"view = Segments().view({region!r})\nassert view[2, 3] == 11\nview[0, 0] = 42\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
    assert arena.view(region)[0, 0] == 42


def test_an_empty_region_takes_no_memory(arena):
    region = put(arena, np.zeros((2, 0), np.float32))
    assert arena.view(region).shape == (2, 0)
    assert Segments().view(region).shape == (2, 0)
    arena.free(region)
    assert used_bytes(arena) == 0


def test_what_is_left_of_a_region_is_free_again(arena):
    room = arena.allocate_bytes(40_001)
    assert room.nbytes >= 40_001
    parts = [Region(room.segment, room.offset, (100,)), Region(room.segment, room.offset + 448, (100,))]
    arena.shrink(room, 448 + 400)
    behind = put(arena, np.full(8_000, 3, np.float32))
    assert behind.segment == room.segment and behind.offset < room.offset + 40_000
    for number, item in enumerate(parts):
        arena.view(item)[...] = number
    assert (arena.view(behind) == 3).all() and [arena.view(p)[99] for p in parts] == [0, 1]
    for region in (*parts, behind):
        arena.free(region)
    assert used_bytes(arena) == 0
    arena.shrink(arena.allocate_bytes(1000), 0)
    assert used_bytes(arena) == 0, "nothing was used of it"
