"""Batches for workers: similar lengths, budgets, and recovery from failures.

A batch's size is its padded seconds: its longest item times the number of items. On a GPU a batch has a shape of the
ladder (`networks/batch_shapes.py`), doubled or halved by its memory and time. On the CPU it is sized to a fixed time.
A failed batch is sent again item by item, each alone on its worker; an item that kills or blocks two workers fails.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

from codec_bench.audio.budget import Budget
from codec_bench.engine.arena import Arena
from codec_bench.engine.pool import Died, Done, Pool, WorkerBatch
from codec_bench.engine.stage import CheckStage, CodecStage, Fault, StageSpec
from codec_bench.engine.stage_queue import QueuedItem, WaitingItems
from codec_bench.engine.worker import run_batch
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import DeviceUnusable, Note, UserError
from codec_bench.networks.batch_shapes import rows_of, rung_s

CPU_BATCH_S = 0.25  # long next to the time of sending a batch, short enough that all workers finish at about one time
GPU_BATCH_S = 0.04
"""On a GPU, a full batch that takes less is doubled: launches take too large a part of its time."""
GROWS_FROM_S = 2.0
"""Foreign code gets another process when more seconds of work wait than a process takes to start."""
TIME_LIMIT_S = 600.0  # for a batch; a long one has more, so that slow code that works is not ended
TIME_LIMIT_PER_S = 60.0
_TRIES = 2
_HUNG_AT_FIRST = 3
_KILLED_AT_FIRST = 3
"""A foreign stage without any result ends after so many items whose process died."""
_FAILED_AT_FIRST = 3
"""A stage without any result ends after so many items that failed alone on a GPU for one reason."""
_MAX_IDLE_DEATHS = 6
_STARTED_S = 20.0
"""A worker that lived so long has started; how it ended does not predict the next one."""
_MAX_DEVICE_FAILURES = 4  # one item that fails its device every time ends two workers by itself


@dataclass(slots=True, eq=False)
class StageState(Budget):
    """A stage: its waiting items, the limit of its batches, and its cost so far.

    Args:
        budget_s: padded seconds of a batch, at most.
        growing: whether a larger one is tried.
        pads: whether every item of a batch costs as much as the longest.
        on_ladder: batch shapes of a GPU.
        items, audio_s, busy_s, cpu_s, steps: work done, and its seconds.
        excluded_pid: number of a process that must not run its batches, or None.
        limit_s: seconds per batch, at most.
        tries: how often an item is sent alone before it fails.
        hung, killed: items that exceeded the time limit, and items whose process died.
        gave: items with a result.
        failed: reason of the last failure on a GPU, and how many in a row had it.
        refusal: why no further item is sent, or None.
        here: runs its batches in this process; None for the workers.
        first: whether its items go before those of other stages.
        name: for messages; a codec's is its row's.
        initial_s: the first budget.
        worth_s: on a GPU, the size beyond which a batch saves nothing.
    """

    spec: StageSpec
    where: str
    budget_s: float
    pads: bool
    growing: bool
    items: int = 0
    audio_s: float = 0.0
    busy_s: float = 0.0
    cpu_s: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)
    excluded_pid: int | None = None
    limit_s: float = math.inf
    tries: int = _TRIES
    hung: int = 0
    killed: int = 0
    gave: int = 0
    failed: tuple[Diagnostic | None, int] = (None, 0)
    refusal: Diagnostic | None = None
    here: CodecStage | CheckStage | None = None
    first: bool = False
    on_ladder: InitVar[bool] = False
    waiting: WaitingItems = field(init=False)
    name: str = field(init=False)
    initial_s: float = field(init=False)
    worth_s: float = field(init=False)

    def __post_init__(self, on_ladder: bool) -> None:
        self.name, self.initial_s, self.worth_s = self.spec.key, self.budget_s, self.budget_s
        self.waiting = WaitingItems(on_ladder)
        if on_ladder:
            self.growth = 2.0  # the sizes of the ladder's batches

    @property
    def cost(self) -> float:
        """Seconds of work per second of audio so far, without loading; 0 while unknown."""
        return (self.busy_s - self.steps.get("load", 0.0)) / self.audio_s if self.audio_s else 0.0

    def is_full(self, room_s: float) -> bool:
        """Whether the waiting items fill a batch of `room_s`, or one must be sent alone."""
        if self.waiting.on_ladder:
            return self.waiting.alone > 0 or self.waiting.full_rung(self._level_s(room_s)) is not None
        return bool(self.waiting) and (self.waiting.total_s >= room_s or self.waiting.alone > 0)

    def next_order(self, room_s: float) -> int:
        """The number, in order of arrival, of the first item of the next batch."""
        full = (
            self.waiting.full_rung(self._level_s(room_s)) if self.waiting.on_ladder and not self.waiting.alone else None
        )
        return (full[0] if full else self.waiting.first).order

    def take(self, room_s: float) -> list[QueuedItem]:
        """Remove and return the items of the next batch."""
        first = self.waiting.first
        if first.alone:
            chosen = [self._pick_after_failure() or first]
        elif self.waiting.on_ladder:
            chosen = self.waiting.next_gpu_batch(self._level_s(room_s))
        else:
            chosen = self.waiting.next_cpu_batch(room_s, self.initial_s, self.pads)
        self.waiting.remove(chosen)
        return chosen

    def _pick_after_failure(self) -> QueuedItem | None:
        """Pick the longest lone item after one failed item, the shortest after two."""
        if self.gave or not self.failed[1]:
            return None
        return (max if self.failed[1] == 1 else min)((w for w in self.waiting if w.alone), key=lambda w: w.length_s)

    def size_s(self, works: list[QueuedItem]) -> float:
        """Size of a batch, as the budget counts."""
        if self.waiting.on_ladder:
            return max(rung_s(w.length_s) for w in works) * rows_of(len(works))
        return _padded_s(works) if self.pads else sum(w.length_s for w in works)

    def record_duration(self, size_s: float, seconds: float) -> None:
        """Record how long a batch of this size took on a GPU, without loading."""
        if size_s > self.worth_s / 2 and seconds < GPU_BATCH_S:
            self.worth_s = 2 * self._level_s(size_s, math.ceil)

    def halve_budget(self, size_s: float) -> None:
        """Halve the budget, unless the batch was composed before the last halving."""
        if self.waiting.on_ladder:
            size_s = self._level_s(size_s, math.ceil)
        if size_s <= self.budget_s or not self.rest:
            self.did_not_fit(size_s)

    def _level_s(self, room_s: float, rounded: Callable[[float], int] = math.floor) -> float:
        """`room_s` in padded seconds, rounded to `initial_s` times a power of two."""
        return self.initial_s * 2.0 ** rounded(math.log2(room_s / self.initial_s))

    def count(self, event: Done) -> None:
        """Add a finished batch's seconds: busy, CPU, and of each step."""
        self.busy_s += event.busy_s
        self.cpu_s += event.cpu_s
        for step, seconds in event.steps.items():
            self.steps[step] = self.steps.get(step, 0.0) + seconds


class Dispatcher:
    """Keeps the workers busy.

    Args:
        batch_s: padded seconds per batch; None for each stage's own budget.
        time_limit_s: seconds per batch without loading; None for 600, or 60 per padded second if that is more.
        impatient: whether a few slow items end a stage although others had results.
    """

    def __init__(
        self,
        pool: Pool,
        batch_s: float | None,
        time_limit_s: float | None,
        log: str,
        memory: Arena,
        impatient: bool = False,
    ) -> None:
        self._pool, self._batch_s, self._time_limit_s, self._log = pool, batch_s, time_limit_s, log
        self._memory, self._impatient = memory, impatient
        self.stages: dict[str, StageState] = {}
        self._order = 0
        self._idle_deaths = 0
        self._device_failures: Counter[str] = Counter()  # how often in a row each device failed

    def add(
        self,
        spec: StageSpec,
        where: str,
        budget_s: float,
        pads: bool,
        here: CodecStage | CheckStage | None = None,
        *,
        first: bool = False,
    ) -> None:
        """Add a stage to the dispatcher.

        Args:
            where: kind of worker: `cpu`, or `device` for GPUs if there are any.
            budget_s: padded seconds of audio per batch.
            pads: whether every item of a batch costs as much as the longest.
            here: runs the batches in this process; None for the workers.
            first: whether its items precede those of other stages.
        """
        fixed_s = None if first else self._batch_s
        on_ladder = pads and self._pool.device(where) != "cpu"
        self.stages[spec.key] = StageState(
            spec, where, fixed_s or budget_s, pads, fixed_s is None, here=here, first=first, on_ladder=on_ladder
        )

    def put(self, key: str, payload: Any, length_s: float, done: Callable[[Any], None], *, alone: bool = False) -> None:
        """Add an item to the stage `key`; `done` gets its result or a `Fault`.

        Args:
            length_s: seconds of audio, for the batch size.
            alone: whether the item must be the only one of its batch.
        """
        self._order += 1
        self.stages[key].waiting.put(QueuedItem(payload, length_s, done, self._order, alone))

    def fill(self) -> None:
        """Submit a full batch, or else the oldest items, to each worker with room."""
        for stage in self.stages.values():
            while stage.refusal is not None and stage.waiting:
                for work in stage.take(stage.initial_s):
                    work.done(Fault(stage.refusal))
        for stage in self.stages.values():
            if stage.spec.owner and stage.waiting and stage.here is None:
                self._pool.staff(stage.where, stage.spec.owner)
                if stage.waiting.total_s * stage.cost > GROWS_FROM_S:
                    self._pool.grow(stage.where, stage.spec.owner)
        for worker in sorted(self._pool.workers, key=lambda w: len(w.batches)):
            while worker.room:
                waiting = [s for s in self.stages.values() if s.waiting and s.here is None]
                allowed = [s for s in waiting if s.excluded_pid != worker.process.pid]
                fitting = [s for s in allowed if self._pool.fits(worker, s.where, s.spec.owner)]
                if not fitting:
                    break
                full = [s for s in fitting if s.is_full(self._room_s(s, worker.device))]
                # Prepared items may belong to several rungs.
                if not full and worker.batches and worker.device != "cpu":
                    full = [s for s in fitting if s.waiting.total_s >= self._room_s(s, worker.device)]
                if not full and worker.batches:
                    break  # this worker is busy, and waiting lets the next batch fill up
                first = [s for s in fitting if s.first]
                stage = min(first or full or fitting, key=lambda s: s.next_order(self._room_s(s, worker.device)))
                if worker.batches and worker.device != "cpu" and (stage.waiting.first.alone or worker.has_lone_item):
                    break
                batch = self._batch(stage, worker.device)
                self._pool.submit(worker, batch, [w.payload for w in batch.works])

    def run_here(self) -> bool:
        """Run one batch of a stage of this process; returns whether another waits."""
        waiting = [s for s in self.stages.values() if s.here is not None and s.waiting]
        if not waiting:
            return False
        stage = min(waiting, key=lambda s: s.waiting.first.order)
        batch = self._batch(stage, self._pool.device(stage.where))
        works = [w.payload for w in batch.works]
        try:
            done = Done(batch, *run_batch(lambda: stage.here, works, self._memory, batch.device))
        except SystemExit as error:  # of the codec; an interrupt is of the caller
            done = Done(batch, Fault(of_error(error)), 0.0, 0.0, {})
        self._on_done(done)
        return any(s.here is not None and s.waiting for s in self.stages.values())

    def _batch(self, stage: StageState, device: str) -> WorkerBatch:
        works = stage.take(self._room_s(stage, device))
        limit_s = min(self._limit_s(works), stage.limit_s)
        return WorkerBatch(stage.spec.key, works, sum(w.length_s for w in works), device, limit_s)

    def _limit_s(self, works: list[QueuedItem]) -> float:
        default_s = max(TIME_LIMIT_S, TIME_LIMIT_PER_S * _padded_s(works))
        return default_s if self._time_limit_s is None else self._time_limit_s

    def _room_s(self, stage: StageState, device: str) -> float:
        """Return the most seconds of audio in one batch of a stage on a device."""
        if self._batch_s is not None and not stage.first:
            return stage.budget_s
        if device != "cpu":
            return min(stage.budget_s, stage.worth_s)
        return min(stage.budget_s, CPU_BATCH_S / stage.cost) if stage.cost else 0.0

    def handle(self, event: Done | Died) -> None:
        """Handle a worker's event: deliver results, requeue items, or raise UserError."""
        if isinstance(event, Died):
            self._on_death(event)
        else:
            self._idle_deaths = 0
            self._on_done(event)

    def _on_done(self, event: Done) -> None:
        """Handle a batch's results; requeue its items after an error or lack of memory."""
        batch, stage = event.batch, self.stages[event.batch.key]
        size_s = stage.size_s(batch.works)
        if isinstance(event.outcome, DeviceUnusable):
            stage.waiting.requeue(batch.works)
            self._drop_device(batch.device, event.outcome.message, event.outcome.hint or "")
            return
        stage.count(event)
        if not isinstance(event.outcome, list) and len(batch.works) > 1:
            if event.outcome == "oom":
                stage.halve_budget(size_s)
            else:
                for work in batch.works:
                    work.alone = True
            stage.waiting.requeue(batch.works)
            return
        stage.items += len(batch.works)
        stage.audio_s += batch.audio_s
        if isinstance(event.outcome, list):
            self._device_failures.pop(batch.device, None)
            stage.gave += len(batch.works)
            if event.memory is not None:
                stage.measured(size_s, *event.memory)
            if batch.device != "cpu":
                stage.fitted(size_s)
                stage.record_duration(size_s, event.busy_s - event.steps.get("load", 0.0))
            for work, result in zip(batch.works, event.outcome):
                work.done(result)
        else:
            oom = Fault(Diagnostic("out_of_memory"))
            batch.works[0].done(oom if event.outcome == "oom" else event.outcome)
            if event.outcome != "oom" and batch.device != "cpu":
                self._count_failed(stage, event.outcome.reason, batch.device)

    def _count_failed(self, stage: StageState, reason: Diagnostic, device: str) -> None:
        """End a stage whose first items all fail on a GPU that itself works."""
        stage.failed = (reason, stage.failed[1] + 1 if stage.failed[0] == reason else 1)
        if not stage.gave and stage.failed[1] >= _FAILED_AT_FIRST and stage.refusal is None:
            stage.refusal = Diagnostic(
                "failed_on_device", stage=stage.name, items=stage.failed[1], device=device, cause=reason
            )

    def _on_death(self, event: Died) -> None:
        """Requeue the items of a dead worker; fail those that ended it too often."""
        for batch in reversed(event.waiting):
            self.stages[batch.key].waiting.requeue(batch.works)
        if event.running is None:
            self._idle_deaths = 0 if event.lived_s > _STARTED_S else self._idle_deaths + 1
            if self._idle_deaths >= _MAX_IDLE_DEATHS:
                raise UserError(
                    "workers_end_at_start", reason=event.reason, hint=f"their output in {self._log} may say why"
                )
            return
        batch = event.running
        # On a GPU, the waiting items were being prepared, and may have ended the worker.
        again, alone = [], len(batch.works) == 1 and (batch.device == "cpu" or not event.waiting)
        for work in batch.works:
            work.alone = True
            work.late += event.late
            work.kills += alone and not event.late
            if alone and max(work.kills, work.late) >= self.stages[batch.key].tries:
                self._give_up(work, batch, event)
            else:
                again.append(work)
        self.stages[batch.key].waiting.requeue(again)
        if event.is_device_unusable:
            self._count_device_failure(batch.device)

    def _count_device_failure(self, device: str) -> None:
        """Retire a device that failed several times in a row without a result in between."""
        self._device_failures[device] += 1
        if self._device_failures[device] < _MAX_DEVICE_FAILURES:
            return
        self._drop_device(
            device,
            Diagnostic("device_fails", device=device, times=_MAX_DEVICE_FAILURES),
            f"run the same command again when the device works, or with --device cpu; {self._log} has its errors",
        )

    def _drop_device(self, device: str, problem: str, hint: str) -> None:
        """Continue without a device; a UserError if there is no other."""
        held = [batch for worker in self._pool.workers if worker.device == device for batch in worker.batches.values()]
        for batch in held:
            self.stages[batch.key].waiting.requeue(batch.works)
        if not self._pool.retire(device):
            raise UserError("no_device_left", cause=problem, hint=hint)
        warnings.warn(Note("goes_on_without_device", cause=problem), stacklevel=2)

    def _give_up(self, work: QueuedItem, batch: WorkerBatch, event: Died) -> None:
        """Fail an item that hung or killed its worker too often.

        After three items that hung, the stage is refused (no further item is sent) if none came back or the run is
        impatient; after three that killed their worker, if it is foreign code without any result.
        """
        stage = self.stages[batch.key]
        if not event.late:
            died = Diagnostic("worker_died", stage=stage.name, cause=event.reason, times=stage.tries)
            work.done(Fault(died))
            stage.killed += 1
            if stage.refusal is None and stage.killed >= _KILLED_AT_FIRST and not stage.gave and stage.spec.owner:
                stage.refusal = Diagnostic("stage_given_up", stage=stage.name, items=stage.killed, cause=event.reason)
            return
        late = Diagnostic("time_limit", stage=stage.name, limit_s=batch.limit_s, times=stage.tries)
        work.done(Fault(late))
        stage.hung += 1
        if stage.refusal is None and stage.hung >= _HUNG_AT_FIRST and (self._impatient or not stage.items):
            # If no item has ever come back, waiting for the time limit of every further item would be in vain.
            code = "hung" if stage.items else "hung_at_first"
            stage.refusal = Diagnostic(code, stage=stage.name, items=stage.hung, limit_s=batch.limit_s)


def _padded_s(works: list[QueuedItem]) -> float:
    return max(w.length_s for w in works) * len(works)
