"""The worker processes: start, feed, watch and replace them.

Each GPU has one worker or more, and the CPU has several. All take the same messages, so a plan also runs without a GPU.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from time import monotonic, sleep
from typing import IO, Any

from codec_bench.engine.device import memory_bytes
from codec_bench.engine.main_pipe import PIPE_CLOSED
from codec_bench.engine.stage import StageSpec
from codec_bench.machine.environment import cpu_count
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

AHEAD = (
    2  # batches that a worker may hold: one runs, and one waits (on a GPU it is made ready), so that there is no pause
)
NICENESS_WITH_GPU = 10
"""Priority (`nice`) of CPU workers next to a GPU, whose launches must not wait for them."""
DEVICE_UNUSABLE = 77
"""Exit code of a worker whose GPU cannot be used any more."""
LOADED_AT_MOST = 2
"""How often a stage is loaded whose worker ends meanwhile; memory may run out by chance."""
_LOOK_EVERY_S = 1.0
_ENDS_WITHIN_S = 2.0  # a process whose pipe is closed has ended by then
PROGRAM = [sys.executable, "-P", "-m", "codec_bench.engine.worker"]
"""Command of a worker. Its arguments are its end of the pipe, its device, and how many workers share the device."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(slots=True)
class WorkerBatch:
    """Items for one worker and one stage; `limit_s` does not count loading."""

    key: str
    works: list[Any]
    audio_s: float
    device: str
    limit_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """A finished batch.

    Args:
        outcome: a list with one entry per item, or one `Fault`, `oom` or `DeviceUnusable` for all.
        busy_s, cpu_s, steps: seconds in all, of a processor, and by step.
        memory: (bytes of the device's memory used, bytes in all), or None.
    """

    batch: WorkerBatch
    outcome: Any
    busy_s: float
    cpu_s: float
    steps: Mapping[str, float]
    memory: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Died:
    """A worker that ended, with its `running` batch and the `waiting` ones.

    `late`: it exceeded its time limit and was killed. `is_device_unusable`: its device failed.
    """

    reason: str
    running: WorkerBatch | None
    waiting: list[WorkerBatch]
    late: bool = False
    is_device_unusable: bool = False
    lived_s: float = 0.0


class NotLoaded(UserError):
    """A worker and its replacement both ended while loading the stage `key`."""

    key: str


@dataclass(slots=True, eq=False)
class PoolWorker:
    """One process and its batches in order.

    `began` is when the first batch started, None while idle or loading. `requested_at` is when loading or running was
    due, None while idle. `loading_s` limits the loading of a stage. `owner` is as for `StageSpec`.
    """

    device: str
    process: subprocess.Popen[bytes]
    pipe: Connection
    batches: dict[int, WorkerBatch] = field(default_factory=dict)
    began: float | None = None
    requested_at: float | None = None
    loading_s: float = math.inf
    owner: str = ""
    started: float = field(default_factory=monotonic)

    @property
    def room(self) -> int:
        """Number of further batches that can be queued for the worker."""
        return AHEAD - len(self.batches)

    @property
    def has_lone_item(self) -> bool:
        """Whether a batch is a single item that is repeated after a fault."""
        return any(work.alone for batch in self.batches.values() for work in batch.works)

    @property
    def time_left_s(self) -> float:
        """Seconds left for its batch or for loading its stage; infinite while idle."""
        if self.began is not None:
            return self.began + next(iter(self.batches.values())).limit_s - monotonic()
        return math.inf if self.requested_at is None else self.requested_at + self.loading_s - monotonic()

    def kill(self) -> None:
        """End the process and the programs it has started."""
        end_process(self.process)


class Pool:
    """The workers of one run.

    Args:
        devices: `cpu`, or one entry per worker of a GPU.
        cores: for the CPU workers together; None for all.
        loading_s: limit for loading a stage.
        spare: CPU workers, of `cpu_workers`, that `start_spare` starts.
    """

    def __init__(
        self,
        devices: Sequence[str],
        cpu_workers: int,
        log: IO[bytes] | int,
        cores: int | None = None,
        loading_s: float = math.inf,
        spare: int = 0,
    ) -> None:
        self._loading_s = loading_s
        self.spare = spare
        self._log = log
        self._numbers = itertools.count()
        self._specs: dict[str, StageSpec] = {}
        self._gpus = [d for d in devices if d != "cpu"]
        self._threads = max(1, (cores or cpu_count()) // max(1, cpu_workers))
        self.workers = [self._start(d) for d in [*self._gpus, *["cpu"] * (cpu_workers - spare)]]

    def start_spare(self, count: int) -> None:
        """Start some of the CPU workers that were not started at first."""
        self.spare -= count
        self.workers += [self._start("cpu") for _ in range(count)]

    def _start(self, device: str, owner: str = "") -> PoolWorker:
        """Start a worker process on a device and send it the stage specs."""
        arguments = [device, str(max(1, self._gpus.count(device)))]
        process, ours = start_process(arguments, {**os.environ, **self.environment()}, self._log, self.program(device))
        if device == "cpu" and self._gpus:
            with suppress(OSError, AttributeError):  # it may have ended; and not every system has priorities
                os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS_WITH_GPU)
        worker = PoolWorker(device, process, ours, loading_s=self._loading_s, owner=owner)
        _send(worker, ("specs", self._specs))
        return worker

    def program(self, device: str) -> list[str]:
        """Command of a worker on a device, without its arguments."""
        return PROGRAM

    def environment(self) -> dict[str, str]:
        """Environment variables of a worker."""
        return {**thread_variables(self._threads), "TOKENIZERS_PARALLELISM": "false"}

    def define(self, specs: Mapping[str, StageSpec]) -> None:
        """Send stages to every worker, now and to those started later."""
        self._specs.update(specs)
        self._broadcast(("specs", dict(specs)))

    def detach(self, segments: list[str]) -> None:
        """Send every worker the names of closed memory segments."""
        if segments:
            self._broadcast(("forget", segments))

    def preload(self, keys: Sequence[str]) -> None:
        """Make idle workers of GPUs load these stages."""
        if keys and self._gpus:
            self._broadcast(("preload", list(keys)))

    def _broadcast(self, message: tuple[Any, ...]) -> None:
        for worker in self.workers:
            _send(worker, message)

    def build_stages(self, keys: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Build stages `(key, where)` in workers; return facts or errors by key.

        Raises:
            NotLoaded: workers ended `LOADED_AT_MOST` times while they loaded a stage.
        """
        keys_of_worker: dict[int, list[str]] = {}  # by the place of the worker, since another may take it
        for index, (key, where) in enumerate(keys):
            mine = self.staff(where, self._specs[key].owner)
            keys_of_worker.setdefault(self.workers.index(mine[index % len(mine)]), []).append(key)
        for number, left in keys_of_worker.items():
            self._ask_facts(number, left)
        facts: dict[str, Any] = {}
        ended: Counter[str] = Counter()
        for number, left in keys_of_worker.items():
            while left:
                answer = self._receive_facts(self.workers[number])
                if isinstance(answer, str):
                    ended[left[0]] += 1
                    if ended[left[0]] == LOADED_AT_MOST:
                        error = NotLoaded("not_loaded", stage=left[0], cause=answer)
                        error.key = left[0]
                        raise error
                    self._ask_facts(number, left)
                elif answer[0] == "facts" and answer[1] in left:
                    _, name, value = answer
                    facts[name] = value
                    left.remove(name)
            self.workers[number].requested_at = None
        return facts

    def _ask_facts(self, position: int, keys: Iterable[str]) -> None:
        worker = self.workers[position]
        worker.requested_at = monotonic()
        for key in keys:
            _send(worker, ("facts", key))

    def _receive_facts(self, worker: PoolWorker) -> tuple[Any, ...] | Diagnostic | str:
        """A worker's reply about the stage it loads, or why it ended and was replaced."""
        while not wait([worker.pipe], max(0.0, min(_LOOK_EVERY_S, worker.time_left_s))):
            if worker.time_left_s <= 0:
                worker.kill()
                self._replace(worker)
                return Diagnostic("loading_timed_out", limit_s=self._loading_s)
        answer = _receive(worker)
        if answer is None:
            return self._replace(worker).reason
        worker.requested_at = monotonic()
        return answer

    def workers_for(self, where: str, owner: str = "") -> list[PoolWorker]:
        """The workers on `cpu` or `device` (GPUs if any, else the CPU) for an owner."""
        return [w for w in self.workers if self.fits(w, where, owner)]

    def fits(self, worker: PoolWorker, where: str, owner: str = "") -> bool:
        """Whether a worker runs stages of this kind and owner."""
        return worker.owner == owner and (worker.device != "cpu") == (where == "device" and bool(self._gpus))

    def staff(self, where: str, owner: str) -> list[PoolWorker]:
        """The workers for stages of an owner; the first is started on demand."""
        return self.workers_for(where, owner) or [self._add(self.device(where), owner)]

    def grow(self, where: str, owner: str) -> None:
        """Start another worker for busy user code (`owner`) if a shared worker idles.

        An owner has at most as many workers as we have for the same work, and one on each GPU.
        """
        ours, theirs = self.workers_for(where), self.workers_for(where, owner)
        if not all(w.batches for w in theirs) or all(w.batches for w in ours):
            return
        if where == "device" and self._gpus:
            free = [gpu for gpu in dict.fromkeys(self._gpus) if all(w.device != gpu for w in theirs)]
            if free:
                self._add(free[0], owner)
        elif len(theirs) < len(ours):
            self._add("cpu", owner)

    def _add(self, device: str, owner: str) -> PoolWorker:
        worker = self._start(device, owner)
        self.workers.append(worker)
        return worker

    def dismiss(self, where: str | None, owner: str) -> None:
        """End the workers of an owner that do not fit its stages; all if `where` is None."""
        for worker in [
            w for w in self.workers if w.owner == owner and (where is None or not self.fits(w, where, owner))
        ]:
            self._end(worker)

    def device(self, where: str) -> str:
        """The device of a stage of this kind: the first GPU for `device`, else the CPU."""
        return self._gpus[0] if where == "device" and self._gpus else "cpu"

    def memory_bytes(self) -> int:
        """GPU memory that each GPU worker has at least; 0 if unknown."""
        others = len(device_owners(self._specs))
        return min((memory_bytes(gpu) // (self._gpus.count(gpu) + others) for gpu in self._gpus), default=0)

    def submit(self, worker: PoolWorker, batch: WorkerBatch, payload: list[Any]) -> None:
        """Send a batch to a worker."""
        number = next(self._numbers)
        if not worker.batches:
            worker.requested_at = monotonic()
        worker.batches[number] = batch
        _send(worker, ("run", number, batch.key, payload))

    @property
    def busy(self) -> bool:
        """Whether any worker has a batch in progress."""
        return any(w.batches for w in self.workers)

    @property
    def longest_batch_s(self) -> float:
        """Seconds since the oldest batch in progress began, without loading; 0 if none."""
        return max((monotonic() - w.began for w in self.workers if w.began is not None), default=0.0)

    @property
    def loading(self) -> list[str]:
        """Keys of the stages that workers are loading before their first batch."""
        return [next(iter(w.batches.values())).key for w in self.workers if w.batches and w.began is None]

    def events(self, timeout_s: float) -> list[Done | Died]:
        """Wait for a worker's message; replace workers that exceed their time limit."""
        events: list[Done | Died] = []
        by_pipe: dict[Any, PoolWorker] = {w.pipe: w for w in self.workers}
        timeout_s = max(0.0, min(timeout_s, *(w.time_left_s for w in self.workers)))
        for ready in wait(list(by_pipe), timeout_s):
            worker = by_pipe[ready]
            message = _receive(worker)
            if message is None:
                events.append(self._replace(worker))
                continue
            kind, number, *result = message
            if kind == "began":
                worker.began = monotonic() if worker.batches else None
            elif kind == "done" and number in worker.batches:  # else it is of no batch of ours
                events.append(Done(worker.batches.pop(number), *result))
                worker.began, worker.requested_at = None, monotonic() if worker.batches else None
        # A worker whose result is already in its pipe is not late: we have just not read it yet.
        for worker in [w for w in self.workers if w.time_left_s <= 0 and not w.pipe.poll()]:
            worker.kill()
            events.append(self._replace(worker, late=True))
        return events

    def _replace(self, worker: PoolWorker, *, late: bool = False) -> Died:
        """Start a new worker for one that ended; return why, and the batches it had."""
        reason = describe_exit(worker.process)
        worker.pipe.close()
        held = list(worker.batches.values())
        self.workers[self.workers.index(worker)] = self._start(worker.device, worker.owner)
        is_unusable = worker.process.wait() == DEVICE_UNUSABLE
        return Died(reason, held[0] if held else None, held[1:], late, is_unusable, monotonic() - worker.started)

    def retire(self, device: str) -> bool:
        """End the workers of a broken GPU; returns whether another GPU is left."""
        for worker in [w for w in self.workers if w.device == device]:
            self._end(worker)
        self._gpus = [other for other in self._gpus if other != device]
        return bool(self._gpus)

    def _end(self, worker: PoolWorker) -> None:
        """Kill a worker and forget it; its batches are lost."""
        worker.kill()
        worker.pipe.close()
        worker.process.wait()
        self.workers.remove(worker)

    def restart(self, worker: PoolWorker) -> None:
        """Replace an idle worker by a new process without its state."""
        worker.kill()
        self._replace(worker)

    def close(self) -> None:
        """End every worker."""
        for worker in self.workers:
            worker.pipe.close()
            worker.kill()
        for worker in self.workers:
            worker.process.wait()


def _send(worker: PoolWorker, message: tuple[Any, ...]) -> None:
    """Send a message. If the worker died, its replacement gets all specs."""
    with suppress(OSError):
        worker.pipe.send(message)


def start_process(
    arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes] | int, program: Sequence[str] = PROGRAM
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a worker process; return it and the main process's end of its pipe."""
    ours, theirs = Pipe()
    process = subprocess.Popen(
        [*program, str(theirs.fileno()), *arguments],
        pass_fds=[theirs.fileno()],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # an interrupt goes to the main process only, which then ends its workers
    )
    theirs.close()
    return process, ours


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a worker and the programs in its process group."""
    if process.poll() is None:
        with suppress(OSError):  # it may have just ended by itself
            os.killpg(process.pid, signal.SIGKILL)


def describe_exit(process: subprocess.Popen[bytes]) -> Diagnostic:
    """How a worker with a closed pipe ended. One that still runs is killed."""
    until = monotonic() + _ENDS_WITHIN_S
    while lives := process.poll() is None:
        if monotonic() > until:
            break
        sleep(0.005)
    end_process(process)
    code = process.wait()
    if code == DEVICE_UNUSABLE:
        return Diagnostic("process_device_failed")
    if lives or code == PIPE_CLOSED:
        return Diagnostic("process_pipe_closed")
    return Diagnostic("process_killed", signal=-code) if code < 0 else Diagnostic("process_exited", exit_code=code)


def thread_variables(threads: int) -> dict[str, str]:
    """Environment variables that set how many threads libraries use."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def device_owners(specs: Mapping[str, StageSpec]) -> set[str]:
    """Owners of stages that may use memory of a GPU."""
    return {spec.owner for spec in specs.values() if spec.owner and spec.kind != "metrics"}


def _receive(worker: PoolWorker) -> tuple[Any, ...] | None:
    """The next message of a worker; None if its pipe is closed or data are invalid."""
    try:
        message = worker.pipe.recv()
    except Exception:  # somebody else's code may have written to the pipe
        return None
    return message if isinstance(message, tuple) and len(message) > 1 else None
