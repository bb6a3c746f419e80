"""The worker processes: starting them, sending them batches, watching them, and replacing those that die.

One worker owns each GPU, or several share it, and as many workers as asked for share the CPU. All take the same
messages, so that a machine without a GPU runs the same plan on CPU workers alone.
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
from codec_bench.environment import cpu_count
from codec_bench.errors import UserError
from codec_bench.messages import Diagnostic

AHEAD = (
    2  # batches that a worker may hold: one runs, and one waits (on a GPU it is made ready), so that there is no pause
)
NICENESS_WITH_GPU = 10
"""The priority (`nice`) of the CPU's workers where there is a GPU, whose launches must not wait for them."""
DEVICE_UNUSABLE = 77
"""The exit code of a worker whose GPU cannot be used any more, and what is said of it."""
LOADED_AT_MOST = 2
"""How often a stage is loaded whose worker ends while it loads; a process may be killed for lack of memory by chance.
"""
_LOOK_EVERY_S = 1.0
_ENDS_WITHIN_S = 2.0  # a process whose pipe is closed has ended by then
PROGRAM = [sys.executable, "-P", "-m", "codec_bench.engine.worker"]
"""The command of a worker; it is given its end of the pipe, what it is for, and how many workers have this device."""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(slots=True)
class Batch:
    """Items given to one worker for one stage, and the seconds that it may take for them, loading not counted."""

    key: str
    works: list[Any]
    audio_s: float
    device: str
    limit_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """A batch that a worker finished.

    Args:
        outcome: a list with one entry per item, or one `Fault`, `oom` or `DeviceUnusable` for all.
        busy_s, cpu_s, steps: the seconds that it took, in all, of a processor, and by step.
        memory: bytes of the device's memory that it took, and of how many; None where that is not known.
    """

    batch: Batch
    outcome: Any
    busy_s: float
    cpu_s: float
    steps: Mapping[str, float]
    memory: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Died:
    """A worker that ended, with the batch it was running and those it had not begun.

    `late` says that we ended it because the running batch took longer than its limit, `lost` that its device failed,
    `lived_s` how long it lived.
    """

    reason: str
    running: Batch | None
    waiting: list[Batch]
    late: bool = False
    is_device_unusable: bool = False
    lived_s: float = 0.0


class NotLoaded(UserError):
    """A worker ended while it loaded a stage, and so did the worker in its place; `key` is of the stage."""

    key: str


@dataclass(slots=True, eq=False)
class Worker:
    """One process, the batches that it holds in order, and when it began the first of them.

    `began` is None while it runs nothing or still loads the stage. `requested_at` is when its turn came to load or to
    run what was requested, or None while it has nothing to do. `loading_s` is how long it may load a stage. `owner` is
    as for `StageSpec`.
    """

    device: str
    process: subprocess.Popen[bytes]
    pipe: Connection
    batches: dict[int, Batch] = field(default_factory=dict)
    began: float | None = None
    requested_at: float | None = None
    loading_s: float = math.inf
    owner: str = ""
    started: float = field(default_factory=monotonic)

    @property
    def room(self) -> int:
        """How many more batches it can be given."""
        return AHEAD - len(self.batches)

    @property
    def has_lone_item(self) -> bool:
        """Whether it holds an item that was sent by itself because something went wrong with it."""
        return any(work.alone for batch in self.batches.values() for work in batch.works)

    @property
    def time_left_s(self) -> float:
        """Seconds that are left for the batch that it runs, or for the stage that it loads; infinite while it does
        neither.
        """
        if self.began is not None:
            return self.began + next(iter(self.batches.values())).limit_s - monotonic()
        return math.inf if self.requested_at is None else self.requested_at + self.loading_s - monotonic()

    def kill(self) -> None:
        """Ends the process and the programs that it has started."""
        end_process(self.process)


class Pool:
    """The workers of one run.

    Args:
        devices: `cpu`, or one entry for each worker of a GPU.
        cpu_workers: processes for work that runs on the CPU.
        log: where the workers' output goes.
        cores: how many cores the workers of the CPU share; None for all that this process may run on.
        loading_s: seconds that loading a stage may take; infinite for as many as it needs.
    """

    def __init__(
        self,
        devices: Sequence[str],
        cpu_workers: int,
        log: IO[bytes] | int,
        cores: int | None = None,
        loading_s: float = math.inf,
    ) -> None:
        self._loading_s = loading_s
        self._log = log
        self._numbers = itertools.count()
        self._specs: dict[str, StageSpec] = {}
        self._gpus = [d for d in devices if d != "cpu"]
        self._threads = max(1, (cores or cpu_count()) // max(1, cpu_workers))
        self.workers = [self._start(d) for d in [*self._gpus, *["cpu"] * cpu_workers]]

    def _start(self, device: str, owner: str = "") -> Worker:
        arguments = [device, str(max(1, self._gpus.count(device)))]
        process, ours = start_process(arguments, {**os.environ, **self.environment()}, self._log, self.program(device))
        if device == "cpu" and self._gpus:
            with suppress(OSError, AttributeError):  # it may have ended; and not every system has priorities
                os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS_WITH_GPU)
        worker = Worker(device, process, ours, loading_s=self._loading_s, owner=owner)
        _send(worker, ("specs", self._specs))
        return worker

    def program(self, device: str) -> list[str]:
        """The command of a worker; it is given its end of the pipe, its device, and how many workers have this device."""
        return PROGRAM

    def environment(self) -> dict[str, str]:
        """The environment variables of a worker that this process need not have."""
        return {**thread_variables(self._threads), "TOKENIZERS_PARALLELISM": "false"}

    def define(self, specs: Mapping[str, StageSpec]) -> None:
        """Tells every worker what the stages are; workers that are started later are told too."""
        self._specs.update(specs)
        self._broadcast(("specs", dict(specs)))

    def detach(self, segments: list[str]) -> None:
        """Tells every worker that memory segments are closed."""
        if segments:
            self._broadcast(("forget", segments))

    def preload(self, keys: Sequence[str]) -> None:
        """Has the workers of GPUs load these stages while they have no batch."""
        if keys and self._gpus:
            self._broadcast(("preload", list(keys)))

    def _broadcast(self, message: tuple[Any, ...]) -> None:
        for worker in self.workers:
            _send(worker, message)

    def facts(self, keys: Iterable[tuple[str, str]]) -> dict[str, Any]:
        """Builds stages, given as (key, where), in workers of the right kind.

        Returns:
            By key the facts of the stage, or the `UserError` that says why it cannot be built.

        Raises:
            NotLoaded: a worker ended while it built a stage, and so did the worker in its place.
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
                answer = self._answer(self.workers[number])
                if isinstance(answer, str):
                    ended[left[0]] += 1
                    if ended[left[0]] == LOADED_AT_MOST:
                        error = NotLoaded(Diagnostic("not_loaded", stage=left[0], cause=answer))
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

    def _answer(self, worker: Worker) -> tuple[Any, ...] | str:
        """What a worker says of the stage that it loads, or why it ended; then another has taken its place."""
        while not wait([worker.pipe], max(0.0, min(_LOOK_EVERY_S, worker.time_left_s))):
            if worker.time_left_s <= 0:
                worker.kill()
                self._replace(worker)
                return f"it did not answer for {self._loading_s:g} s"
        answer = _received(worker)
        if answer is None:
            return self._replace(worker).reason
        worker.requested_at = monotonic()
        return answer

    def fitting(self, where: str, owner: str = "") -> list[Worker]:
        """The workers that run stages of this kind: `device` is the GPUs if there are any, otherwise the CPU."""
        return [w for w in self.workers if self.fits(w, where, owner)]

    def fits(self, worker: Worker, where: str, owner: str = "") -> bool:
        """Whether a worker runs stages of this kind and owner."""
        return worker.owner == owner and (worker.device != "cpu") == (where == "device" and bool(self._gpus))

    def staff(self, where: str, owner: str) -> list[Worker]:
        """The workers for stages of an owner; the first is started when it is needed."""
        return self.fitting(where, owner) or [self._add(self.device(where), owner)]

    def grow(self, where: str, owner: str) -> None:
        """Starts another worker for an owner all of whose workers are busy, if one of ours has nothing to do.

        An owner has at most as many workers as we have for the same work, and one on each GPU.
        """
        ours, theirs = self.fitting(where), self.fitting(where, owner)
        if not all(w.batches for w in theirs) or all(w.batches for w in ours):
            return
        if where == "device" and self._gpus:
            free = [gpu for gpu in dict.fromkeys(self._gpus) if all(w.device != gpu for w in theirs)]
            if free:
                self._add(free[0], owner)
        elif len(theirs) < len(ours):
            self._add("cpu", owner)

    def _add(self, device: str, owner: str) -> Worker:
        worker = self._start(device, owner)
        self.workers.append(worker)
        return worker

    def dismiss(self, where: str | None, owner: str) -> None:
        """Ends the workers of an owner that do not fit its stages; all of them if `where` is None."""
        for worker in [
            w for w in self.workers if w.owner == owner and (where is None or not self.fits(w, where, owner))
        ]:
            self._end(worker)

    def device(self, where: str) -> str:
        """The device of a stage of this kind: the first GPU for `device` if there is one, otherwise the CPU."""
        return self._gpus[0] if where == "device" and self._gpus else "cpu"

    def memory_bytes(self) -> int:
        """The memory of a GPU that each worker of one has, at least; 0 where there is none, or nothing is known."""
        others = len(device_owners(self._specs))
        return min((memory_bytes(gpu) // (self._gpus.count(gpu) + others) for gpu in self._gpus), default=0)

    def submit(self, worker: Worker, batch: Batch, payload: list[Any]) -> None:
        """Gives a worker a batch."""
        number = next(self._numbers)
        if not worker.batches:
            worker.requested_at = monotonic()
        worker.batches[number] = batch
        _send(worker, ("run", number, batch.key, payload))

    @property
    def busy(self) -> bool:
        """Whether any worker holds a batch."""
        return any(w.batches for w in self.workers)

    @property
    def loading(self) -> list[str]:
        """The keys of the stages that workers are loading, before they run their first batch of it."""
        return [next(iter(w.batches.values())).key for w in self.workers if w.batches and w.began is None]

    def events(self, timeout_s: float) -> list[Done | Died]:
        """Waits until a worker sends something.

        Workers whose batch has then exceeded its time limit are ended and replaced.
        """
        events: list[Done | Died] = []
        by_pipe: dict[Any, Worker] = {w.pipe: w for w in self.workers}
        timeout_s = max(0.0, min(timeout_s, *(w.time_left_s for w in self.workers)))
        for ready in wait(list(by_pipe), timeout_s):
            worker = by_pipe[ready]
            message = _received(worker)
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

    def _replace(self, worker: Worker, *, late: bool = False) -> Died:
        reason = exit_words(worker.process)
        worker.pipe.close()
        held = list(worker.batches.values())
        self.workers[self.workers.index(worker)] = self._start(worker.device, worker.owner)
        is_unusable = worker.process.wait() == DEVICE_UNUSABLE
        return Died(reason, held[0] if held else None, held[1:], late, is_unusable, monotonic() - worker.started)

    def retire(self, device: str) -> bool:
        """Ends the workers of a GPU, which cannot be used any more. Whether there is another."""
        for worker in [w for w in self.workers if w.device == device]:
            self._end(worker)
        self._gpus = [other for other in self._gpus if other != device]
        return bool(self._gpus)

    def _end(self, worker: Worker) -> None:
        worker.kill()
        worker.pipe.close()
        worker.process.wait()
        self.workers.remove(worker)

    def renew(self, worker: Worker) -> None:
        """Starts a worker anew that holds no batch, so that nothing of what it has computed is left."""
        worker.kill()
        self._replace(worker)

    def close(self) -> None:
        """Ends every worker."""
        for worker in self.workers:
            worker.pipe.close()
            worker.kill()
        for worker in self.workers:
            worker.process.wait()


def _send(worker: Worker, message: tuple[Any, ...]) -> None:
    """Sends a message. If the worker died, whoever reads its pipe next replaces it; the new one gets all specs."""
    with suppress(OSError):
        worker.pipe.send(message)


def start_process(
    arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes] | int, program: Sequence[str] = PROGRAM
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Starts a worker; returns the process and our end of the pipe to it.

    Args:
        arguments: those that follow its end of the pipe. environment: its variables. log: takes its output.
        program: the command, without arguments.
    """
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
    """Ends a worker and the programs that it has started, which are in its process group."""
    if process.poll() is None:
        with suppress(OSError):  # it may have just ended by itself
            os.killpg(process.pid, signal.SIGKILL)


def exit_words(process: subprocess.Popen[bytes]) -> str:
    """How a worker ended whose pipe is closed. One that lives on without its pipe is ended."""
    until = monotonic() + _ENDS_WITHIN_S
    while lives := process.poll() is None:
        if monotonic() > until:
            break
        sleep(0.005)
    end_process(process)
    code = process.wait()
    if code == DEVICE_UNUSABLE:
        return "its device failed"
    if lives or code == PIPE_CLOSED:
        return "the code that it ran closed or replaced its pipe to the main process"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def thread_variables(threads: int) -> dict[str, str]:
    """The environment variables that tell libraries how many threads to use."""
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


def device_owners(specs: Mapping[str, StageSpec]) -> set[str]:
    """The owners of stages that may take memory of a GPU."""
    return {spec.owner for spec in specs.values() if spec.owner and spec.kind != "metrics"}


def _received(worker: Worker) -> tuple[Any, ...] | None:
    """The next message of a worker; None if its pipe is closed, or holds something else than our messages."""
    try:
        message = worker.pipe.recv()
    except Exception:  # somebody else's code may have written to the pipe
        return None
    return message if isinstance(message, tuple) and len(message) > 1 else None
