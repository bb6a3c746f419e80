"""CUDA graphs of the pretended device: operations are recorded between begin and end of a capture, and run again by a replay.

A replay computes on the same memory as the capture. As on a real device, a capture refuses what makes the host wait or sends
something to the device, nothing that it computes is there before the first replay (it is poisoned), and a replay runs
without the host: what Python decided during the capture stays decided. A tensor whose shape has changed since is noticed.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from pretended_memory import Stream
from torch.utils._pytree import tree_leaves

REFUSED = "CUDA error: operation not permitted when stream is capturing"


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


@dataclass(eq=False)
class _Step:
    """One recorded operation on tensors of the CPU, and the tensors that hold its results."""

    call: Callable[..., Any]
    args: Any
    kwargs: dict[str, Any]
    made: list[torch.Tensor]
    shapes: list[tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.shapes = [tuple(tensor.shape) for tensor in _tensors((self.args, self.kwargs))]

    def run(self) -> None:
        """Computes it again into the same tensors."""
        now = [tuple(tensor.shape) for tensor in _tensors((self.args, self.kwargs))]
        assert now == self.shapes, f"{self.call} was captured with shapes {self.shapes} and is replayed with {now}"
        for held, new in zip(self.made, _tensors(self.call(*self.args, **self.kwargs)), strict=True):
            if held is not new and _memory(held) != _memory(new):
                assert held.shape == new.shape, f"{self.call} gave {tuple(held.shape)} and now gives {tuple(new.shape)}"
                held.copy_(new)


class Graph:
    """In place of torch.cuda.CUDAGraph."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.steps: list[_Step] | None = None
        self.pool: Any = None
        self._memory: Any = None
        self._given: list[weakref.ref[Any]] = []

    def begin(self, memory: Any, pool: tuple[int, int]) -> None:
        """Begins a capture, whose memory is taken from a pool and belongs to it until no graph is left that holds it."""
        self.steps, self.pool, self._memory = [], pool, memory
        memory.graphs(pool, 1)

    def gave(self, tensor: Any) -> None:
        """Notes a tensor of the device that was made during the capture: every replay makes it anew."""
        self._given.append(weakref.ref(tensor))

    def note(self, call: Callable[..., Any], args: Any, kwargs: dict[str, Any], made: Any) -> None:
        """Records an operation, unless it gives another view of memory that is there."""
        assert self.steps is not None
        results = _tensors(made)
        given = {_memory(tensor) for tensor in _tensors((args, kwargs))}
        schema = getattr(call, "_schema", None)
        if results and all(_memory(tensor) in given for tensor in results) and not (schema and schema.is_mutable):
            return
        self.steps.append(_Step(call, args, kwargs, results))

    def poison(self) -> None:
        """Makes everything unusable that was computed during the capture: on a device it was not computed."""
        for step in self.steps or ():
            given = {_memory(tensor) for tensor in _tensors((step.args, step.kwargs))}
            for tensor in step.made:
                if _memory(tensor) not in given:
                    tensor.fill_(float("nan") if tensor.is_floating_point() or tensor.is_complex() else 1)

    def run(self, stream: Any) -> None:
        """Runs what was recorded, on a stream."""
        assert self.steps, "a graph that is empty or was reset is replayed"
        for step in self.steps:
            step.run()
        for known in self._given:
            if (tensor := known()) is not None:
                tensor.made = stream.step()

    def reset(self) -> None:
        """Forgets what was recorded."""
        if self.steps is not None:
            self._memory.graphs(self.pool, -1)
        self.steps = None

    __del__ = reset


def patches(device: Callable[[], Any], on: Callable[[Any], Any]) -> list[tuple[Any, str, Any]]:
    """What stands in for torch's functions: (where, name, instead).

    Args:
        device: gives the pretended device, which has `capture`, the graph that is being captured, and `seen`.
        on: makes a stream the current one.
    """

    class Counted(Graph):
        def replay(self) -> None:
            device().seen.launches += 1
            device().seen.replays += 1
            self.run(device().stream)

    @contextmanager
    def capturing(
        graph: Graph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> Iterator[None]:
        memory = device().memory
        memory.empty_cache()  # as torch does when a capture begins, after it has waited for everything
        memory.wait()
        graph.begin(memory, memory.new_pool() if pool is None else pool)
        device().capture, device().seen.captures = graph, device().seen.captures + 1
        try:
            with on(stream or Stream()):
                yield
        except RuntimeError as error:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture") from error
        finally:
            device().capture = None
            graph.poison()

    return [
        (torch.cuda, "CUDAGraph", Counted),
        (torch.cuda, "graph", capturing),
        (torch.cuda, "graph_pool_handle", lambda: device().memory.new_pool()),
        (torch.cuda, "device", lambda _: nullcontext()),
        (torch.cuda, "set_stream", lambda _: None),
        (torch.cuda, "is_current_stream_capturing", lambda: device().capture is not None),
    ]
