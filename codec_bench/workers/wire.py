"""What a host and its worker say to each other: frames over a private socket, sound in shared memory.

A frame is four bytes of length (of what follows, big-endian), one byte of kind, and JSON in UTF-8. Sound never enters a
frame: each direction has one memory file that its writer owns and grows, and the frame says where in it a sound lies.
A worker has one request under way, so a memory file holds one frame's sounds, from its start.

This file runs in environments of any Python from 3.8 on and imports the standard library alone. What crosses the border
between two versions of NumPy is bytes.
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
ITEM_BYTES = 16 << 20  # of one request or answer, sound aside
BATCH_ITEMS = 63
FRAME_BYTES = (BATCH_ITEMS + 1) * ITEM_BYTES  # a longer one is a mistake, not a message
KEPT_BYTES = 16 << 20  # a memory file that grew beyond this is cut back when less is needed
_ALIGN = 64
_SOUND = {"samples", "sample_rate_hz"}

# Kinds: from the host, and from the worker.
LOAD, ASK = 1, 2
HELLO, READY, BEAT, REPLY, BROKEN = 17, 18, 19, 20, 21


class Packed(NamedTuple):
    """An item on its way.

    Args:
        text: its JSON, without its sounds.
        places: `[path, channels, samples, rate]` of each sound. buffers: their samples.
    """

    text: str
    places: list[list[Any]]
    buffers: list[Any]


class WireError(Exception):
    """What was to be sent does not fit, or what came is not of this protocol."""


def frame(kind: int, body: bytes) -> bytes:
    """One frame.

    Raises:
        WireError: it is too long.
    """
    if len(body) >= FRAME_BYTES:
        raise WireError(f"a message of {len(body)} bytes is longer than the {FRAME_BYTES} that are taken")
    return START.pack(len(body) + 1, kind) + body


def length(start: bytes) -> tuple[int, int]:
    """(kind, bytes still to come) of a frame's first five bytes.

    Raises:
        WireError: these are no such bytes.
    """
    size, kind = START.unpack(start)
    if not 1 <= size <= FRAME_BYTES:
        raise WireError(f"a message claims {size} bytes")
    return kind, size - 1


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a frame.

    Raises:
        WireError: it is none.
    """
    try:
        found = json.loads(body.decode("utf-8")) if body else {}
    except ValueError as error:
        raise WireError(f"a message is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise WireError(f"a message holds {type(found).__name__}, not an object")
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):  # a number of NumPy's or of a tensor
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent")


def pack(item: dict[str, Any]) -> Packed:
    """An item as JSON with its sounds taken out. A sound is a dictionary with `samples` (an object with the buffer
    protocol, float32, C-contiguous, `(channels, samples)`) and `sample_rate_hz`.

    Raises:
        WireError: it holds what JSON does not know, or is too long.
    """
    places: list[list[Any]] = []
    buffers: list[Any] = []

    def without_sound(value: Any, path: list[Any]) -> Any:
        if isinstance(value, dict):
            if set(value) == _SOUND:
                view = memoryview(value["samples"])
                if view.ndim != 2 or view.format != "f" or not view.c_contiguous:
                    raise ValueError("a sound's samples are not float32 of (channels, samples)")
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
        raise WireError(f"{len(text)} characters are more than the {ITEM_BYTES} that are taken")
    return Packed(text, places, buffers)


def unpack(items: list[Any], sounds: list[list[Any]], memory: Memory) -> list[Any]:
    """The items of a frame with their sounds put back, as copies.

    Args:
        sounds: `[item, path, channels, samples, rate, offset]` for each.

    Raises:
        WireError: a place is not there.
    """
    for at, path, channels, samples, rate, offset in sounds:
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
    """The body of a frame with packed items, their sounds written into the memory file.

    Raises:
        OSError: the memory file cannot grow.
    """
    offsets = memory.write([buffer for item in packed for buffer in item.buffers])
    at = iter(offsets)
    sounds = [[index, *place, next(at)] for index, item in enumerate(packed) for place in item.places]
    items = ",".join(item.text for item in packed)
    return f'{{"id":{number},"items":[{items}],"sounds":{json.dumps(sounds)}}}'.encode()


def new_memory_file() -> int:
    """A file without a name, whose memory is freed when nobody holds it, however they end.

    Returns:
        Its file descriptor.
    """
    if hasattr(os, "memfd_create"):  # not limited by the size of a mount
        return os.memfd_create("codec-bench-worker", os.MFD_CLOEXEC)
    handle, path = tempfile.mkstemp(prefix="codec-bench-")
    os.unlink(path)
    return handle


class Memory:
    """A memory file as one side sees it: one side writes, the other reads.

    Args:
        handle: its file descriptor, which now belongs to this object.
    """

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._map: mmap.mmap | None = None

    def _mapped(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            if self._map is not None:
                self._map.close()
                self._map = None
            self._map = mmap.mmap(self.handle, size)
        return self._map

    def write(self, buffers: list[Any]) -> list[int]:
        """Copies buffers in, one after another from the start.

        Returns:
            Their offsets in bytes.
        """
        offsets, end = [], 0
        for buffer in buffers:
            offsets.append(end)
            end += -(-memoryview(buffer).nbytes // _ALIGN) * _ALIGN
        size = os.fstat(self.handle).st_size
        if size > KEPT_BYTES >= end:
            if self._map is not None:
                self._map.close()
                self._map = None
            os.ftruncate(self.handle, KEPT_BYTES)
            size = KEPT_BYTES
        if end > size:
            size = end if end > KEPT_BYTES else min(KEPT_BYTES, 2 * end)
            os.ftruncate(self.handle, size)
        for offset, buffer in zip(offsets, buffers):
            view = memoryview(buffer)
            if view.nbytes:
                self._mapped(size)[offset : offset + view.nbytes] = view.cast("B")
        return offsets

    def read(self, offset: int, nbytes: int) -> bytearray:
        """A copy of bytes.

        Raises:
            WireError: they are not there.
        """
        size = os.fstat(self.handle).st_size
        if offset < 0 or nbytes < 0 or offset + nbytes > size:
            raise WireError("sound is said to lie where there is none")
        if not nbytes:
            return bytearray()
        with memoryview(self._mapped(size)) as view, view[offset : offset + nbytes] as part:
            return bytearray(part)

    def close(self) -> None:
        """Gives it back."""
        if self._map is not None:
            self._map.close()
            self._map = None
        os.close(self.handle)
