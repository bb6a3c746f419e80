"""The protocol of host and worker: frames by socket, audio by shared memory.

A frame is four bytes (big-endian length of the rest), one byte for the kind, and UTF-8 JSON. Each direction has one
memory file, owned and enlarged by the writer; the frame has the offsets of its audio, from the file's start, as a
worker handles one request at a time. This file runs in Python 3.8 with the standard library only. Samples are bytes,
because the two sides may have different versions of NumPy.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

PROTOCOL = 1
START = struct.Struct("!IB")
ITEM_BYTES = 16 << 20  # the most for one request or answer, without its sound
BATCH_ITEMS = 63
FRAME_BYTES = (BATCH_ITEMS + 1) * ITEM_BYTES  # a longer frame is an error
CACHED_BYTES = 16 << 20  # a longer memory file is cut back to this when less is needed
_ALIGN = 64
_SOUND = {"samples", "sample_rate_hz"}

# Kinds of frames: first those from the host, then those from the worker.
LOAD, ASK = 1, 2
HELLO, READY, BEAT, REPLY, BROKEN = 17, 18, 19, 20, 21


class Packed(NamedTuple):
    """An item that is ready to be sent.

    Args:
        text: the item as JSON, without its audio.
        places: `[path, channels, samples, rate]` of each clip. buffers: the samples of each clip.
    """

    text: str
    places: list[list[Any]]
    buffers: list[Any]


class WireError(Exception):
    """A message cannot be sent, or a received message does not follow the protocol."""


def frame(kind: int, body: bytes) -> bytes:
    """Return the bytes of one frame; a frame over the limit raises WireError."""
    if len(body) >= FRAME_BYTES:
        raise WireError(f"a message has {len(body)} bytes; the most are {FRAME_BYTES}")
    return START.pack(len(body) + 1, kind) + body


def length(start: bytes) -> tuple[int, int]:
    """Parse the first five bytes of a frame: its kind, and how many bytes follow."""
    size, kind = START.unpack(start)
    if not 1 <= size <= FRAME_BYTES:
        raise WireError(f"a message claims to have {size} bytes; expected 1 to {FRAME_BYTES}")
    return kind, size - 1


def read_body(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a frame, or raise WireError."""
    try:
        message = json.loads(body.decode("utf-8")) if body else {}
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise WireError(f"a message holds {type(message).__name__}; expected a JSON object")
    return message


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):  # a NumPy scalar or a tensor with one element
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent")


def pack(item: dict[str, Any]) -> Packed:
    """Convert an item to JSON, with its audio extracted.

    Audio is a dictionary with `samples` (an object with the buffer protocol, float32, C-contiguous, `(channels,
    samples)`) and `sample_rate_hz`.

    Raises:
        WireError: the item holds a value that JSON cannot hold, or is too long.
    """
    places: list[list[Any]] = []
    buffers: list[Any] = []

    def without_sound(value: Any, path: list[Any]) -> Any:
        if isinstance(value, dict):
            if set(value) == _SOUND:
                view = memoryview(value["samples"])
                if view.shape is None or view.ndim != 2 or view.format != "f" or not view.c_contiguous:
                    raise ValueError("the samples of a sound are not contiguous float32 of (channels, samples)")
                places.append([path, view.shape[0], view.shape[1], int(value["sample_rate_hz"])])
                buffers.append(view)
                return None
            return {str(key): without_sound(inner, [*path, str(key)]) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [without_sound(inner, [*path, at]) for at, inner in enumerate(value)]
        return value

    try:
        text = json.dumps(without_sound(item, []), default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(str(error)) from error
    if len(text) > ITEM_BYTES:
        raise WireError(f"it has {len(text)} characters; the most are {ITEM_BYTES}")
    return Packed(text, places, buffers)


def unpack(items: list[Any], sounds: list[list[Any]], memory: Memory) -> list[Any]:
    """Put copies of their audio back into the items of a frame, which are changed.

    Args:
        sounds: `[item, path, channels, samples, rate, offset]` of each clip.

    Raises:
        WireError: the item or path of a clip does not exist.
    """
    for at, path, channels, samples, rate, offset in sounds:
        if not all(isinstance(number, int) for number in (channels, samples, rate, offset)):
            raise WireError(f"a sound declares {channels!r} channels, {samples!r} samples and {rate!r} Hz"[:200])
        sound = {
            "samples": memory.read(offset, 4 * channels * samples),
            "channels": channels,
            "sample_rate_hz": rate,
        }
        try:
            if path:
                inner = items[at]
                for key in path[:-1]:
                    inner = inner[key]
                inner[path[-1]] = sound
            else:
                items[at] = sound
        except (LookupError, TypeError) as error:
            raise WireError(f"there is no place {path!r} in item {at!r}") from error
    return items


def batch_body(number: int, packed: Sequence[Packed], memory: Memory) -> bytes:
    """Write the audio of packed items to a memory file; return their frame's body."""
    offsets = memory.write([buffer for item in packed for buffer in item.buffers])
    at = iter(offsets)
    sounds = [[index, *location, next(at)] for index, item in enumerate(packed) for location in item.places]
    items = ",".join(item.text for item in packed)
    return f'{{"id":{number},"items":[{items}],"sounds":{json.dumps(sounds)}}}'.encode()


def new_memory_file() -> int:
    """Create an unnamed file, freed when its last process closes it."""
    if hasattr(os, "memfd_create"):  # not limited by the size of a file system
        return os.memfd_create("codec-bench-worker", os.MFD_CLOEXEC)
    handle, path = tempfile.mkstemp(prefix="codec-bench-")
    os.unlink(path)
    return handle


class Memory:
    """A memory file. One side only writes to it, the other only reads it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._map: mmap.mmap | None = None

    def _mapped(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            self._unmap()
            self._map = mmap.mmap(self.handle, size)
        return self._map

    def write(self, buffers: list[Any]) -> list[int]:
        """Copy buffers into the file, one after another; return their offsets in bytes."""
        offsets, end = [], 0
        for buffer in buffers:
            offsets.append(end)
            end += -(-memoryview(buffer).nbytes // _ALIGN) * _ALIGN
        size = os.fstat(self.handle).st_size
        if size > CACHED_BYTES >= end:
            self._unmap()
            os.ftruncate(self.handle, CACHED_BYTES)
            size = CACHED_BYTES
        if end > size:
            size = end if end > CACHED_BYTES else min(CACHED_BYTES, 2 * end)
            os.ftruncate(self.handle, size)
        for offset, buffer in zip(offsets, buffers):
            view = memoryview(buffer)
            if view.nbytes:
                self._mapped(size)[offset : offset + view.nbytes] = view.cast("B")
        return offsets

    def read(self, offset: int, nbytes: int) -> bytearray:
        """Return a copy of some bytes of the file; WireError if it is shorter."""
        size = os.fstat(self.handle).st_size
        if offset < 0 or nbytes < 0 or offset + nbytes > size:
            raise WireError(f"a sound declares byte {offset} with {nbytes} bytes, and the file has {size}")
        if not nbytes:
            return bytearray()
        with memoryview(self._mapped(size)) as view, view[offset : offset + nbytes] as window:
            return bytearray(window)

    def close(self) -> None:
        """Close the file."""
        self._unmap()
        os.close(self.handle)

    def _unmap(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
