"""CUDA graphs: a pass of a network is captured once for each size of batch and then replayed, as one launch.

A pass of a speech encoder makes about 1,700 launches, which Python needs about as long for as a GPU in half precision
needs to compute them. A replay needs one. It computes on the same memory every time, so:

    buckets     A batch is filled up to its shape on the ladder (`networks/ladder.py`), captured or not; the last item is repeated.
                A network has at most 16 buckets at a time; the one that was not used for longest is dropped.
    lengths     The pass is given `Bounded` lengths: shapes follow from the bucket, masks from the lengths on the device.
    capture     When a size comes for the second time, the pass runs once on a stream of its own, which fills what the
                modules keep and what the libraries allocate, and is then captured there.
    trials      The first batches of a bucket also run plainly. A replay whose numbers differ is not used. With `auto`,
                nor is one that is not faster, padding included, measured with CUDA's events.
    memory      All captures of a device share one pool, because only one runs at a time. When anything in the process
                finds the memory full (`memory.give_back`), all captures are dropped.

A pass that cannot be captured (it waits for the device, or sends something there) runs plainly from then on, with a warning.
On a CPU every pass runs plainly.

This module imports torch: import it inside functions.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from codec_bench.memory import give_back, on_full, out_of_memory
from codec_bench.networks.ladder import rows_of, rung_steps
from codec_bench.networks.ragged import Bounded, inside, on_device
from codec_bench.types import GraphMode

BUCKETS = 16
"""Sizes of batches that a network has captures of, at most."""
TRIALS = 3
"""Batches that run both ways before the faster one is chosen."""
APART = 0.02
"""By how much of the largest number a replay may differ from the plain pass: rounding in half precision stays far below,
memory that another pass has overwritten does not."""
_AGAIN = 2  # how often a size must come before it is captured; four times as often after each time it was dropped

Result = Tensor | tuple[Tensor, ...]
Forward = Callable[..., Any]


@dataclass(eq=False)
class _Capture:
    """A captured pass: what it reads, what it writes, and how it is replayed."""

    graph: Any
    given: list[Tensor]
    result: Result

    def replay(self, given: Sequence[Tensor]) -> Result:
        """The result for these tensors; it lies in the capture's memory, which the next replay writes to."""
        torch._foreach_copy_(self.given, list(given))
        self.graph.replay()
        return self.result


@dataclass(eq=False)
class _Bucket:
    """What is known of one size of batch."""

    seen: int = 0
    again: int = _AGAIN
    plain: bool = False
    capture: _Capture | None = None
    trials: list[tuple[float, float]] = field(default_factory=list)  # milliseconds: plainly, replayed

    def fastest(self) -> tuple[float, float]:
        """The shortest trial of each way, in milliseconds."""
        plain_ms, replay_ms = zip(*self.trials, strict=True)
        return min(plain_ms), min(replay_ms)

    def drop(self) -> None:
        """Gives up the capture; the size must come more often before it is captured again."""
        if self.capture is not None:
            self.capture.graph.reset()
            self.capture = None
            self.seen, self.again = 0, 4 * self.again
            self.trials.clear()


class _Pool:
    """What the captures of one device share."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.lock = threading.RLock()  # a thread at a time: they would write into one another's memory
        self.stream = torch.cuda.Stream(device)
        self.done = torch.cuda.Event()
        self.networks: weakref.WeakSet[Graphs] = weakref.WeakSet()
        self._handle: Any = None

    def capture(self, forward: Forward, given: Sequence[Tensor]) -> _Capture:
        """Runs a pass once on the pool's stream and captures it there."""
        if self._handle is None or not any(network.captured() for network in self.networks):
            self._handle = torch.cuda.graph_pool_handle()  # a pool that was given back cannot be used again
        before = torch.cuda.current_stream(self.device)
        with torch.inference_mode(False), torch.no_grad():
            static = [tensor.clone() for tensor in given]
        graph = torch.cuda.CUDAGraph()
        self.stream.wait_stream(before)
        cached = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)  # weights in half precision would be freed when autocast ends
        torch.clear_autocast_cache()
        try:
            with torch.cuda.stream(self.stream):
                forward(*static)
            # Other threads may allocate meanwhile; only what this thread does is captured.
            with torch.cuda.graph(graph, pool=self._handle, stream=self.stream, capture_error_mode="thread_local"):
                result = forward(*static)
        finally:
            torch.set_autocast_cache_enabled(cached)
            torch.cuda.set_stream(before)  # a capture that failed leaves its own stream behind
            before.wait_stream(self.stream)  # also then: the first pass may still read what is freed now
        return _Capture(graph, static, result)

    def release(self) -> None:
        """Drops all captures."""
        with self.lock:
            for network in list(self.networks):
                network.drop()


_pools: dict[torch.device, _Pool] = {}


def _pool_of(device: torch.device) -> _Pool:
    if device not in _pools:
        _pools[device] = _Pool(device)
    return _pools[device]


@on_full
def _release() -> None:
    for pool in _pools.values():
        pool.release()


@dataclass(frozen=True, eq=False)
class _Batch:
    """One batch, and both ways to compute it.

    Args:
        key: of its bucket. plainly: computes it launch by launch.
        forward: the pass that is captured, a function of the tensors that `given` makes in the size of the bucket.
        lengths: steps of each item, where the batch was padded; None where it was not.
    """

    key: Any
    plainly: Callable[[], Result]
    forward: Forward
    given: Callable[[], Sequence[Tensor]]
    lengths: Sequence[int] | None = None

    def cut(self, result: Result) -> Result:
        """The result without the items that were repeated."""
        if self.lengths is None or not isinstance(result, Tensor):
            return result
        return result[: len(self.lengths)]


class Graphs:
    """The captured passes of one network.

    Args:
        name: of the network, for messages.
        steps_per_s: steps of a second of sound, such as samples or frames.
        unit: steps of which a length of a bucket is a multiple, such as the samples of a frame.
    """

    def __init__(self, name: str, steps_per_s: float = 1.0, unit: int = 1) -> None:
        self._name, self._steps_per_s, self._unit = name, steps_per_s, unit
        self._buckets: OrderedDict[Any, _Bucket] = OrderedDict()
        self._fault: str | None = None

    def run(
        self,
        mode: GraphMode,
        forward: Forward,
        moving: Sequence[Tensor],
        lengths: Sequence[int],
        still: Sequence[Tensor] = (),
    ) -> Any:
        """The result of `forward(*moving, *still, lengths)`: on a GPU of the filled-up batch, replayed where that is possible and pays.

        Args:
            mode: `off`, `on` or `auto`.
            forward: a pass over a padded batch whose result does not depend on the padding. The first axis of the result
                is the items; if it has more than two, the last is one of time.
            moving: tensors whose first axis is the items, and whose last axis grows with the longest length; beyond it
                they are filled up with zeros.
            lengths: steps of each item, on the host.
            still: tensors whose first axis is the items, and that have no axis of time.

        Returns:
            The result. An axis of time may be longer than that of the plain pass.
        """
        device = (*moving, *still)[0].device
        if device.type != "cuda":
            return forward(*moving, *still, lengths)
        rows, steps = rows_of(len(lengths)), rung_steps(max(lengths), self._steps_per_s, self._unit)
        tensors, own = to_bucket(moving, lengths, still, rows, steps)
        if self._plain(mode, device):
            return forward(*tensors, own)[: len(lengths)]

        kinds = tuple((tuple(tensor.shape[1:-1]), tensor.dtype) for tensor in moving)
        others = tuple((tuple(tensor.shape[1:]), tensor.dtype) for tensor in still)
        batch = _Batch(
            (rows, steps, kinds, others),
            lambda: forward(*tensors, own)[: len(lengths)],
            lambda *tensors: forward(*tensors[:-1], Bounded([steps] * rows, tensors[-1])),
            lambda: [*tensors, own.there],
            list(lengths),
        )
        return self._pass(mode, _pool_of(device), batch)

    def exactly(self, mode: GraphMode, forward: Forward, given: Sequence[Tensor]) -> Any:
        """The result of `forward(*given)`, a tensor or a tuple of them, replayed where that is possible and pays.

        Nothing is padded: tensors of other shapes are another bucket.
        """
        device = given[0].device
        if self._plain(mode, device):
            return forward(*given)
        shapes = tuple((tuple(tensor.shape), tensor.dtype) for tensor in given)
        return self._pass(mode, _pool_of(device), _Batch(shapes, lambda: forward(*given), forward, lambda: given))

    def sized(
        self,
        mode: GraphMode,
        forward: Forward,
        given: Sequence[Tensor],
        padded: Callable[[], Sequence[Tensor]],
        rows: int,
    ) -> Any:
        """As `exactly`, for a pass whose caller pads its input to a size of its own.

        Args:
            padded: gives the tensors in that size. rows: how many of the first rows of the result are meant.
        """
        device = given[0].device
        if device.type != "cuda":
            return forward(*given)
        tensors = padded()
        if self._plain(mode, device):
            return forward(*tensors)[:rows]
        shapes = tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors)
        batch = _Batch(shapes, lambda: forward(*tensors)[:rows], forward, lambda: tensors, [1] * rows)
        return self._pass(mode, _pool_of(device), batch)

    def captured(self) -> int:
        """How many buckets have a capture now."""
        return sum(bucket.capture is not None for bucket in self._buckets.values())

    def drop(self) -> None:
        """Drops all captures; they are made again when their sizes come again."""
        for bucket in self._buckets.values():
            bucket.drop()

    def findings(self) -> list[str]:
        """What became of every size of batch that was tried, one line each, and why the network cannot be captured."""
        if self._fault is not None:
            return [f"{self._name}: not captured: {self._fault}"]
        lines = []
        for key, bucket in self._buckets.items():
            if bucket.trials:
                plain_ms, replay_ms = bucket.fastest()
                kept = "plain" if bucket.plain else "replayed"
                lines.append(f"{self._name} {key[:2]}: plain {plain_ms:.3g} ms, replayed {replay_ms:.3g} ms: {kept}")
        return lines

    def _plain(self, mode: GraphMode, device: torch.device) -> bool:
        return mode == "off" or device.type != "cuda" or self._fault is not None

    def _pass(self, mode: GraphMode, pool: _Pool, batch: _Batch) -> Result:
        with pool.lock, torch.cuda.device(pool.device):
            bucket = self._buckets.setdefault(batch.key, _Bucket())
            self._buckets.move_to_end(batch.key)
            bucket.seen += 1
            if bucket.plain or (bucket.capture is None and bucket.seen < bucket.again):
                return batch.plainly()
            stream = torch.cuda.current_stream(pool.device)
            stream.wait_event(pool.done)  # another stream may still use the memory that captures share
            capture = bucket.capture or self._capture(pool, bucket, batch)
            if capture is None:
                return batch.plainly()
            if len(bucket.trials) < (TRIALS if mode == "auto" else 1):
                result = self._tried(mode, bucket, capture, batch)
            else:
                result = _kept(batch.cut(capture.replay(batch.given())))
            pool.done.record(stream)
            return result

    def _capture(self, pool: _Pool, bucket: _Bucket, batch: _Batch) -> _Capture | None:
        """Captures a pass. If there are too many, the bucket that was not used for longest gives up its capture."""
        held = [other for other in self._buckets.values() if other.capture is not None]
        if len(held) >= BUCKETS:
            held[0].drop()
        pool.networks.add(self)
        full = False
        try:
            bucket.capture = pool.capture(batch.forward, batch.given())
        except Exception as error:  # a library that cannot be captured raises anything
            bucket.plain, full = True, out_of_memory(error)
            if not full:
                first: BaseException = error
                while first.__context__ is not None:  # the end of a capture that has failed raises an error of its own
                    first = first.__context__
                self._fault = f"{type(first).__name__}: {' '.join(str(first).split())[:300]}"
        if full:
            give_back(str(pool.device))
        elif self._fault is not None:
            self._give_up(f"{self._name} cannot be captured as a CUDA graph, so it is launched kernel by kernel")
        return bucket.capture

    def _tried(self, mode: GraphMode, bucket: _Bucket, capture: _Capture, batch: _Batch) -> Result:
        """Runs a batch both ways; gives the plain result, and decides about the bucket after the last trial."""
        begun, between, ended = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        begun.record()
        expected = batch.plainly()
        between.record()
        found = batch.cut(capture.replay(batch.given()))
        ended.record()
        apart = difference(expected, found, batch.lengths)  # waits for the device
        bucket.trials.append((begun.elapsed_time(between), between.elapsed_time(ended)))
        if not apart <= APART:
            self._fault = f"a replay differs from the plain pass by {apart:.2g} of the largest number"
            self._give_up(f"CUDA graphs of {self._name} are not used")
        elif mode == "auto" and len(bucket.trials) == TRIALS:
            plain_ms, replay_ms = bucket.fastest()
            if replay_ms >= plain_ms:
                trials = list(bucket.trials)
                bucket.drop()
                bucket.plain, bucket.trials = True, trials
        return expected

    def _give_up(self, what: str) -> None:
        self.drop()
        warnings.warn(f"{what}: {self._fault}", stacklevel=2)


def to_bucket(
    moving: Sequence[Tensor], lengths: Sequence[int], still: Sequence[Tensor], rows: int, steps: int
) -> tuple[list[Tensor], Bounded]:
    """A batch in the size of its bucket: zeros beyond each tensor's end, and the last item again for items that it lacks.

    Args:
        moving, lengths, still: as `Graphs.run` takes them. rows, steps: the size.

    Returns:
        The tensors in their order, and the lengths.
    """
    longest, more = max(lengths), rows - len(lengths)
    tensors = []
    for tensor in moving:
        time = tensor.shape[-1] * steps // longest
        padded = tensor.new_zeros(rows, *tensor.shape[1:-1], time)
        padded[: len(lengths), ..., : tensor.shape[-1]] = tensor
        if more:
            padded[len(lengths) :, ..., : tensor.shape[-1]] = tensor[-1:]
        tensors.append(padded)
    for tensor in still:
        tensors.append(torch.cat([tensor, tensor[-1:].expand(more, *tensor.shape[1:])]) if more else tensor)
    own = on_device([*lengths, *[lengths[-1]] * more], tensors[0].device)
    return tensors, Bounded([steps] * rows, own)


def _kept(result: Result) -> Result:
    """The result in memory of its own."""
    return result.clone() if isinstance(result, Tensor) else tuple(tensor.clone() for tensor in result)


def difference(expected: Result, found: Result, lengths: Sequence[int] | None) -> float:
    """The largest distance of two results over each item's own part, as a share of the largest number.

    It is not a number if one of the results is none there.

    Args:
        expected: of the plain pass. found: of the same items, with an axis of time that may be longer.
        lengths: steps of each item, if a last axis after two others is one of time; None compares everything.
    """
    if not (isinstance(expected, Tensor) and isinstance(found, Tensor)):
        return max(difference(one, other, None) for one, other in zip(expected, found, strict=True))
    found = found[..., : expected.shape[-1]]
    if lengths is not None and expected.dim() > 2:
        time, longest = expected.shape[-1], max(lengths)
        own = inside([length * time // longest for length in lengths], time, expected.device)
        own = own.view(len(lengths), *[1] * (expected.dim() - 2), time)
        expected, found = expected.masked_fill(~own, 0.0), found.masked_fill(~own, 0.0)
    apart = (found.double() - expected.double()).abs().max()
    return float(apart / expected.double().abs().max().clamp(min=1e-12))
