"""A worker process: build stages, run batches, send results over its pipe.

Started as `python -P -m codec_bench.engine.worker HANDLE DEVICE PROCESSES`, or with `package.module:function` for
DEVICE to run another program. The caller's main module is not run again, and no folder of the caller is on the import
path. Libraries may print to standard output. It ends with its parent, also within a batch.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # until all modules are there: none is garbage

import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from threading import Thread
from time import monotonic, perf_counter, process_time
from typing import Any

from codec_bench.config.registry import load_attribute
from codec_bench.engine.arena import Segments
from codec_bench.engine.double_buffer import ComputeDevice, Gpu, Ready, Seen, receive_messages, watch_nothing
from codec_bench.engine.main_pipe import MainPipe
from codec_bench.engine.pool import DEVICE_UNUSABLE, device_owners
from codec_bench.engine.reading import ReadStage
from codec_bench.engine.stage import CheckStage, CodecStage, Fault, FeatureStage, MetricStage, StageSpec, StepStage
from codec_bench.machine.memory import give_back, is_device_error, out_of_memory, placed
from codec_bench.messages import of_error
from codec_bench.messages.errors import DeviceUnusable, UserError, describe

STAGES = {"read": ReadStage, "codec": CodecStage, "feature": FeatureStage, "metrics": MetricStage}
"""Classes by kind; a check uses its codec's stage, and `StepStage` announces progress."""
_ALIVE_S = 0.5  # seconds between two signs of life, at least: a stream calls its codec many times a second


class Stages:
    """The stages of a worker; `announce` restarts the time limit of the batch."""

    def __init__(self, device: ComputeDevice, announce: Callable[[], None] = lambda: None) -> None:
        self._device, self._announce = device, announce
        self.specs: dict[str, StageSpec] = {}
        self._built: dict[str, Any] = {}
        self._broken: dict[str, UserError] = {}

    def load(self, key: str) -> Any:
        """Return a stage, built on first use, or raise UserError."""
        if key in self._broken:  # so that unusable weights are not read again for every batch
            raise self._broken[key]
        if key not in self._built:
            spec = self.specs[key]
            try:
                if spec.kind == "check":  # it shares the codec that this process has anyway
                    self._built[key] = CheckStage(self.load(spec.names[0]))
                elif self._built:
                    self._built[key] = self._build(spec)
                else:
                    self._built[key] = placed(
                        f"'{', '.join(spec.names)}'", self._device.device, partial(self._build_first, spec)
                    )
            except DeviceUnusable:  # another program may leave the device
                raise
            except UserError as error:
                self._broken[key] = error
                raise
        return self._built[key]

    def _build_first(self, spec: StageSpec) -> Any:
        """Acquire the device, then build its first stage; DeviceUnusable if that fails."""
        try:
            self._device.acquire(len(device_owners(self.specs)))  # before the first network takes memory
        except Exception as error:  # a driver that is too old, a torch without CUDA
            if out_of_memory(error) or is_device_error(describe(error)):  # these are handled elsewhere
                raise
            reason = describe(error)
            hint = "codec-bench doctor checks the driver and the libraries; --device cpu goes without the device"
            raise DeviceUnusable("device_unusable", device=self._device.device, cause=reason, hint=hint) from error
        return self._build(spec)

    def _build(self, spec: StageSpec) -> Any:
        if spec.kind == "steps":
            return StepStage(spec, self._announce)
        with _paused_garbage_collector():
            return STAGES[spec.kind](spec, self._device.device)

    def ahead(self, message: Any, segments: Segments) -> Any:
        """Prepare a batch in the second thread; None if the stage has no preparation."""
        kind, *rest = message
        stage = self._built.get(rest[1]) if kind == "run" else None
        if stage is None or not hasattr(stage, "prepare"):
            return None
        try:
            return self._device.ahead(partial(stage.prepare, rest[2], segments))
        except Exception:  # lane one meets the same error, where it counts for this batch
            return None


def serve(pipe: MainPipe, device: ComputeDevice) -> None:
    """Answer requests until the pipe closes."""
    stages, segments = Stages(device, Alive(partial(pipe.send, ("began", None)))), Segments()
    started: set[str] = set()
    preloaded_s: dict[str, float] = {}
    prepare = partial(stages.ahead, segments=segments) if device.lanes > 1 else None
    for (kind, *rest), ready in receive_messages(pipe, prepare):
        if kind == "specs":
            stages.specs.update(rest[0])
        elif kind == "forget":
            segments.detach(rest[0])
        elif kind == "facts":
            pipe.send(("facts", rest[0], _stage_facts(stages, rest[0])))
        elif kind == "preload":
            if device.device != "cpu":  # that of a GPU's run computes no networks
                preloaded_s.update(_preload(stages, rest[0], device.device))
        else:
            number, key, works = rest
            began = partial(pipe.send, ("began", number))
            turn = BatchHooks(began, ready, device.watch)
            # With the first batch, libraries import and load compiled code.
            with nullcontext() if key in started else _paused_garbage_collector():
                outcome, *rest = run_batch(partial(stages.load, key), works, segments, device.device, turn)
            started.add(key)
            if loaded_s := preloaded_s.pop(key, 0.0):  # as if the first batch had loaded it
                busy_s, cpu_s, steps, *others = rest
                rest = [busy_s + loaded_s, cpu_s, {**steps, "load": steps.get("load", 0.0) + loaded_s}, *others]
            if isinstance(outcome, Fault) and device.is_unusable(outcome.reason, alone=len(works) == 1):
                sys.stderr.write(f"'{device.device}' cannot be used any more: {outcome.reason}\n")
                sys.stderr.flush()
                os._exit(DEVICE_UNUSABLE)  # without the device, nothing can be tidied up
            pipe.send(("done", number, outcome, *rest))


def _preload(stages: Stages, keys: Iterable[str], device: str) -> dict[str, float]:
    """Load stages before their first batches, where a fault shows; seconds by key."""
    seconds = {}
    for key in keys:
        start = perf_counter()
        try:
            with _paused_garbage_collector():
                stages.load(key)
            seconds[key] = perf_counter() - start
        except Exception as error:
            if out_of_memory(error):
                give_back(device)
    return seconds


@contextmanager
def _paused_garbage_collector() -> Iterator[None]:
    """Pause the garbage collector, which costs a sixth of the loading time."""
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searched:
            gc.enable()


class Alive:
    """Limits signs of life to one per `_ALIVE_S`."""

    def __init__(self, send: Callable[[], None]) -> None:
        self._send, self._last = send, monotonic()

    def __call__(self) -> None:
        """Send a sign of life unless one was just sent."""
        now = monotonic()
        if now - self._last >= _ALIVE_S:
            self._last = now
            self._send()


def _stage_facts(stages: Stages, key: str) -> dict[str, Any] | UserError:
    """Load a stage for its facts; returns the error if it cannot be loaded."""
    try:
        return stages.load(key).facts
    except UserError as error:
        return error
    except Exception as error:  # own code may raise anything while it loads
        return UserError("not_loadable", name=key, cause=describe(error))


@dataclass(frozen=True, slots=True)
class BatchHooks:
    """Hooks around a batch in a worker.

    Args:
        began: called when the stage is loaded; starts the time limit.
        ready: waits for the output of lane two, or None.
    """

    began: Callable[[], None] = lambda: None
    ready: Ready = lambda: None
    watch: Callable[[], Seen] = watch_nothing


ONE_LANE = BatchHooks()


def run_batch(
    load: Callable[[], Any], works: list[Any], segments: Any, device: str, turn: BatchHooks = ONE_LANE
) -> tuple[Any, float, float, dict[str, float], tuple[int, int] | None]:
    """Run a batch; returns the fields of `Done` after its batch."""
    start, start_cpu = perf_counter(), process_time()
    steps: dict[str, float] = {}
    outcome: Any
    memory = None
    try:
        runner = load()
        loaded = perf_counter() - start
        turn.began()
        ahead = turn.ready()  # held until the batch is computed, because it holds what the device reads
        watched = turn.watch()
        if ahead is None:
            outcome, steps = runner.run(works, segments)
        else:
            outcome, steps = runner.run(works, segments, ahead.wait())
        steps, memory = {"load": loaded, **steps}, watched()
    except DeviceUnusable as error:  # it says nothing of the items
        outcome = error
    except (Exception, SystemExit) as error:  # the batch has failed; its items are sent again one by one
        outcome = "oom" if out_of_memory(error) else Fault(of_error(error))
    if outcome == "oom":
        give_back(device)
    return outcome, perf_counter() - start, process_time() - start_cpu, steps, memory


def main() -> None:
    """Entry point of the process."""
    gc.freeze()
    gc.enable()
    pipe, device = MainPipe(Connection(int(sys.argv[1]))), sys.argv[2]
    Thread(target=_end_with_parent, args=(pipe.fileno(),), daemon=True).start()
    if ":" in device and not device.startswith("cuda:"):  # another program of ours than the stages of a run
        load_attribute(device)(pipe)
        return
    serve(pipe, ComputeDevice() if device == "cpu" else Gpu(device, int(sys.argv[3])))


def _end_with_parent(pipe: int) -> None:
    """Wait until a pipe's other end closes; then kill this process and its programs."""
    closed = select.poll()
    closed.register(pipe, 0)  # 0: do not wait for messages of the pipe
    closed.poll()
    with suppress(OSError):  # it leads its group if the pool has started it
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
