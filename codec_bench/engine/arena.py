"""Memory that the main process and its workers share: audio is written once.

Only the main process allocates and frees. On Linux a segment is an anonymous memory file: no mount limits its size
(containers often give /dev/shm 64 MB), and it disappears with the process. Elsewhere it is a temporary file.
"""

from __future__ import annotations

import itertools
import math
import mmap
import os
import tempfile
import threading
from bisect import bisect
from typing import NamedTuple

import numpy as np

SEGMENT_BYTES = 64 << 20
_ALIGN = 64
_serials = itertools.count()


class Region(NamedTuple):
    """A float32 array in shared memory: segment (`serial:path`), offset in bytes."""

    segment: str
    offset: int
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return 4 * math.prod(self.shape)


class Segments:
    """The segments that a process has mapped into its memory, by name."""

    def __init__(self) -> None:
        self._maps: dict[str, mmap.mmap] = {}

    def view(self, region: Region) -> np.ndarray:
        """The float32 array of a region, shared with every process."""
        if region.nbytes == 0:
            return np.zeros(region.shape, np.float32)
        memory = self._maps.get(region.segment)
        if memory is None:
            handle = os.open(region.segment.partition(":")[2], os.O_RDWR)
            try:
                memory = self._maps[region.segment] = mmap.mmap(handle, 0)
            finally:
                os.close(handle)
        count = math.prod(region.shape)
        return np.frombuffer(memory, np.float32, count, region.offset).reshape(region.shape)

    def detach(self, names: list[str]) -> None:
        """Drop segments that the owner closed; each is unmapped after its last view."""
        for name in names:
            self._maps.pop(name, None)


class _Segment:
    def __init__(self, size: int) -> None:
        self.size = size
        serial = next(_serials)  # a path may be used again after its segment is closed; a name never is
        if hasattr(os, "memfd_create"):
            self.handle = os.memfd_create("codec-bench", os.MFD_CLOEXEC)
            path, self._file = f"/proc/{os.getpid()}/fd/{self.handle}", None
        else:
            self.handle, path = tempfile.mkstemp(prefix="codec-bench-", suffix=".shared")
            self._file = path
        self.name = f"{serial}:{path}"
        os.ftruncate(self.handle, size)
        self.free = [(0, size)]  # (offset, bytes), sorted, never adjacent
        self._most = size  # no free room is larger

    def allocate(self, nbytes: int) -> int | None:
        """Allocate bytes; returns their offset, or None if no free range is that long."""
        if nbytes > self._most:
            return None
        for index, (offset, room) in enumerate(self.free):
            if room >= nbytes:
                if room == nbytes:
                    del self.free[index]
                else:
                    self.free[index] = (offset + nbytes, room - nbytes)
                return offset
        self._most = nbytes - 1
        return None

    def release(self, offset: int, nbytes: int) -> None:
        """Return a byte range to the free list, merged with free neighbours."""
        index = bisect(self.free, (offset, nbytes))
        if index < len(self.free) and offset + nbytes == self.free[index][0]:
            nbytes += self.free.pop(index)[1]
        if index and sum(self.free[index - 1]) == offset:
            index -= 1
            offset, before = self.free.pop(index)
            nbytes += before
        self.free.insert(index, (offset, nbytes))
        self._most = max(self._most, nbytes)

    def close(self) -> None:
        os.close(self.handle)
        if self._file is not None:
            os.unlink(self._file)


class Arena:
    """Allocates regions of shared memory; adds segments when it is full. Thread-safe."""

    def __init__(self, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._segment_bytes = segment_bytes
        self._segments: dict[str, _Segment] = {}
        self._mapped = Segments()
        self._lock = threading.Lock()

    def allocate(self, shape: tuple[int, ...]) -> Region:
        """Allocate a float32 region of shared memory; its content is undefined."""
        nbytes = round_up(4 * math.prod(shape))
        if nbytes == 0:
            return Region("", 0, shape)
        with self._lock:
            for name, segment in self._segments.items():
                offset = segment.allocate(nbytes)
                if offset is not None:
                    return Region(name, offset, shape)
            segment = _Segment(max(self._segment_bytes, nbytes))
            self._segments[segment.name] = segment
            offset = segment.allocate(nbytes)
            assert offset is not None  # a new segment has room for its first request
            return Region(segment.name, offset, shape)

    def allocate_bytes(self, nbytes: int) -> Region:
        """A new region of at least so many bytes."""
        return self.allocate((-(-nbytes // 4),))

    def shrink(self, region: Region, used: int) -> None:
        """Free a region except its first `used` bytes."""
        used_bytes, allocated = round_up(used), round_up(region.nbytes)
        if used_bytes < allocated:
            with self._lock:
                self._segments[region.segment].release(region.offset + used_bytes, allocated - used_bytes)

    def view(self, region: Region) -> np.ndarray:
        """The array of a region."""
        with self._lock:
            return self._mapped.view(region)

    def free(self, region: Region) -> None:
        """Return a region for reuse; arrays that view it become invalid."""
        if not region.nbytes:
            return
        with self._lock:
            self._segments[region.segment].release(region.offset, round_up(region.nbytes))

    def trim(self) -> list[str]:
        """Close empty oversized segments, and return their names for the workers."""
        with self._lock:
            empty = [n for n, s in self._segments.items() if s.size > self._segment_bytes and s.free == [(0, s.size)]]
            self._mapped.detach(empty)
            for name in empty:
                self._segments.pop(name).close()
        return empty

    def close(self) -> list[str]:
        """Close all segments, and return their names for workers that stay."""
        with self._lock:
            names = list(self._segments)
            self._mapped.detach(names)
            for segment in self._segments.values():
                segment.close()
            self._segments.clear()
        return names


def round_up(nbytes: int) -> int:
    """Round a region's bytes up to the alignment of its segment."""
    return -(-nbytes // _ALIGN) * _ALIGN
