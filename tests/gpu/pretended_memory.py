"""Streams, events and memory of the pretended device.

The host runs ahead of a device, and streams run beside one another. So it is noted which step of a stream comes surely
after which step of another: a stream that waits for an event has seen what came before it, and so has the host, which
waits.

Memory is that of torch's caching allocator. A piece (`Block`) belongs to the stream on which it was taken. When its
last tensor is gone, that stream may take it again at once, also while another stream still reads it. This is safe only
if the owner or the host has waited for an event after the other stream's last use, or if `record_stream` was called;
else it is noted in `early`. What is freed is poisoned, so what still reads it computes with NaN.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import torch
from torch.multiprocessing.reductions import StorageWeakRef

TOTAL = 80 << 30
PAGE = 512
"""Bytes of which every piece of memory is a multiple."""


class Stream:
    """A stream of the pretended device: how many steps it has taken, and which steps of others it has waited for.

    Copies to the host that nobody has waited for are in `copies`. The host is one, too, which takes no steps.
    """

    def __init__(self, device: Any = None) -> None:
        self.steps = 0
        self.after: dict[Stream, int] = {}
        self.copies: list[Callable[[], Any]] = []

    def step(self) -> tuple[Stream, int]:
        self.steps += 1
        return self, self.steps

    def sees(self, built: tuple[Stream, int]) -> bool:
        return built[0] is self or self.after.get(built[0], 0) >= built[1]

    def wait_stream(self, other: Stream) -> None:
        self.wait_for({**other.after, other: other.steps})

    def wait_event(self, event: Any) -> None:
        self.wait_for(event.after)

    def wait_for(self, after: dict[Stream, int]) -> None:
        for stream, steps in after.items():
            self.after[stream] = max(steps, self.after.get(stream, 0))


class Block:
    """A piece of memory, as long as a tensor on the device lies in it.

    Attributes
        owner: the stream on which it was taken. uses: the last step of each stream that used it, and the line that did.
        recorded: streams that were named to the allocator by `record_stream`.
    """

    def __init__(self, memory: Memory, storage: torch.UntypedStorage, owner: Stream) -> None:
        self._memory, self._storage, self.owner = memory, storage, owner
        self.uses: dict[Stream, tuple[int, str]] = {}
        self.recorded: set[Stream] = set()
        self.size = -(-storage.nbytes() // PAGE) * PAGE
        memory.take(self)

    def __del__(self) -> None:
        self._memory.free(self)
        ctypes.memset(self._storage.data_ptr(), 0xFF, self._storage.nbytes())


class Memory:
    """The memory of the pretended device.

    Attributes
        host: what the host has waited for. early: lines that used memory which its owner could take again meanwhile.
    """

    def __init__(self) -> None:
        self.host, self.early = Stream(), Counter[str]()
        self.streams: WeakSet[Stream] = WeakSet()
        self._blocks: WeakValueDictionary[int, Block] = WeakValueDictionary()
        self._parameters: Counter[Stream] = Counter()
        self._retained: Counter[Stream] = Counter()
        self._peak = 0
        self._pinned: dict[int, StorageWeakRef] = {}

    def block(self, tensor: torch.Tensor, stream: Stream) -> Block:
        """The piece that holds this tensor of the CPU's memory; a new one if none does."""
        self.streams.add(stream)
        storage = tensor.untyped_storage()
        block = self._blocks.get(storage._cdata)
        if block is None:
            block = self._blocks[storage._cdata] = Block(self, storage, stream)
        return block

    def wait(self) -> None:
        """The host waits for all streams."""
        for stream in self.streams:
            self.host.wait_stream(stream)

    def take(self, block: Block) -> None:
        """Counts a piece as taken: from what its stream has freed, if that suffices."""
        owner = block.owner
        self._parameters[owner] += block.size
        self._retained[owner] = max(self._retained[owner], self._parameters[owner])
        self._peak = max(self._peak, self._parameters.total())

    def free(self, block: Block) -> None:
        """Counts a piece as free, and notes who may still use it."""
        self._parameters[block.owner] -= block.size
        for stream, (step, line) in block.uses.items():
            if stream not in block.recorded:
                if not block.owner.sees((stream, step)) and not self.host.sees((stream, step)):
                    self.early[line] += 1

    def pin(self, tensor: torch.Tensor) -> torch.Tensor:
        """Notes that a tensor of the host lies in pinned memory."""
        storage = tensor.untyped_storage()
        self._pinned = {key: known for key, known in self._pinned.items() if not known.expired()}
        self._pinned[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Whether it does: only then may the device copy while the host goes on."""
        known = self._pinned.get(tensor.untyped_storage()._cdata)
        return known is not None and not known.expired()

    def empty_cache(self, *_: Any) -> None:
        """Gives back what nothing lies in."""
        for stream in self._retained:
            self._retained[stream] = self._parameters[stream]

    def answers(self) -> dict[str, Callable[..., Any]]:
        """What `torch.cuda` says of the memory, by the name of its function."""

        def begin_peak(*_: Any) -> None:
            self._peak = self._parameters.total()

        return {
            "memory_allocated": lambda *_: self._parameters.total(),
            "memory_reserved": lambda *_: self._retained.total(),
            "max_memory_allocated": lambda *_: self._peak,
            "reset_peak_memory_stats": begin_peak,
            "mem_get_info": lambda *_: (TOTAL - self._retained.total(), TOTAL),
            "empty_cache": self.empty_cache,
            "set_per_process_memory_fraction": lambda *_: None,
        }


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that nothing was written to yet: not a number, or minus one."""
    storage = tensor.untyped_storage()
    ctypes.memset(storage.data_ptr(), 0xFF, storage.nbytes())
    return tensor


def fill_of(tensor: torch.Tensor) -> float:
    """What stands in a tensor of the host that a copy is still on its way to."""
    return math.nan if tensor.is_floating_point() else -1
