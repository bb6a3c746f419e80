"""From waiting works to batches for workers: length buckets, budgets, and what to do when a batch goes wrong.

Conventions
    A budget is padded seconds: the longest item's length times the number of items. On the CPU a batch aims at a fixed
    amount of work instead, from what the stage has cost so far; on a GPU the budget is found by trial.
    Neither changes a number: results do not depend on the batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from codec_bench.engine.pool import Batch, Died, Done, Pool, Worker
from codec_bench.engine.stage import Fault, StageSpec
from codec_bench.errors import UserError

CPU_BATCH_S = 0.25  # long enough to hide the pipe, short enough for the workers to end together
GPU_BATCH_GROWTH = 1.25
TIME_LIMIT_S = 600.0  # of a batch, or more for a long one: what is slow but works is never ended
TIME_LIMIT_PER_S = 60.0
_WINDOW = 2048  # works among which a batch of similar lengths is sought
_MAX_KILLS = 2
_MAX_LATE = 2
_HUNG_AT_FIRST = 3
_MAX_IDLE_DEATHS = 6


@dataclass(slots=True, eq=False)
class Work:
    """One item waiting for one stage; `done` is called with its result or a `Fault`.

    `alone` works are sent by themselves, since a batch with them failed; `kills` counts the workers that died over it,
    `late` the batches with it that took longer than they may.
    """

    payload: Any
    length_s: float
    done: Callable[[Any], None]
    order: int
    alone: bool = False
    kills: int = 0
    late: int = 0


@dataclass(slots=True, eq=False)
class Stage:
    """A stage's waiting works, its budget in padded seconds, and what it has cost.

    `pads` says whether an item costs as much as the longest of its batch; `growing` whether the budget is still sought;
    `hung` counts the items that were given up for time; `refusal` is why no further item is sent.
    """

    spec: StageSpec
    where: str
    budget_s: float
    pads: bool
    growing: bool
    waiting: deque[Work] = field(default_factory=deque)
    items: int = 0
    audio_s: float = 0.0
    busy_s: float = 0.0
    cpu_s: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)
    hung: int = 0
    refusal: str | None = None

    @property
    def cost(self) -> float:
        """Seconds of work per second of audio so far, loading left out; 0 while unknown."""
        return (self.busy_s - self.steps.get("load", 0.0)) / self.audio_s if self.audio_s else 0.0

    def is_full(self, room_s: float) -> bool:
        """Whether the waiting works fill a batch of `room_s`, or one of them must be sent alone."""
        total = 0.0
        for work in self.waiting:
            total += work.length_s
            if work.alone or total >= room_s:
                return True
        return False

    def take(self, room_s: float) -> list[Work]:
        """The oldest work and, of those that waited with it, the nearest in length, as many as fit."""
        oldest = self.waiting[0]
        if oldest.alone:
            return [self.waiting.popleft()]
        window = [w for _, w in zip(range(_WINDOW), self.waiting) if not w.alone]
        if self.pads:
            window.sort(key=lambda w: (abs(w.length_s - oldest.length_s), w.order))
        chosen: list[Work] = []
        longest = total = 0.0
        for work in window:
            longest = max(longest, work.length_s)
            total += work.length_s
            if chosen and (longest * (len(chosen) + 1) if self.pads else total) > room_s:
                break
            chosen.append(work)
        taken = set(map(id, chosen))
        self.waiting = deque(w for w in self.waiting if id(w) not in taken)
        return chosen

    def give_back(self, works: list[Work]) -> None:
        """Puts works that were not done in front of the waiting ones."""
        self.waiting.extendleft(reversed(works))

    def count(self, event: Done) -> None:
        """Adds what a batch cost."""
        self.busy_s += event.busy_s
        self.cpu_s += event.cpu_s
        for step, seconds in event.steps.items():
            self.steps[step] = self.steps.get(step, 0.0) + seconds

    def fitted(self, padded_s: float) -> None:
        """A batch of this size fitted a GPU: where it filled the budget, the next may be larger."""
        if self.growing and padded_s > 0.7 * self.budget_s:
            self.budget_s *= GPU_BATCH_GROWTH

    def did_not_fit(self, padded_s: float) -> None:
        """A batch of this size was too large for memory: halve, and seek no further."""
        self.budget_s, self.growing = min(self.budget_s, padded_s) / 2, False


class Dispatcher:
    """Keeps the workers fed.

    Args:
        pool: the workers.
        batch_s: padded seconds per batch in place of each stage's own budget, or None.
        time_limit_s: seconds that a batch may take, loading left out; None for 600, or 60 for every padded second of it
            where that is more.
        log: what to point to when workers cannot be kept alive.
    """

    def __init__(self, pool: Pool, batch_s: float | None, time_limit_s: float | None, log: str) -> None:
        self._pool, self._batch_s, self._time_limit_s, self._log = pool, batch_s, time_limit_s, log
        self.stages: dict[str, Stage] = {}
        self._order = 0
        self._idle_deaths = 0

    def add(self, spec: StageSpec, where: str, budget_s: float, pads: bool) -> None:
        """Adds a stage."""
        self.stages[spec.key] = Stage(spec, where, self._batch_s or budget_s, pads, growing=self._batch_s is None)

    def put(self, key: str, payload: Any, length_s: float, done: Callable[[Any], None]) -> None:
        """Lets one item wait for a stage."""
        self._order += 1
        self.stages[key].waiting.append(Work(payload, length_s, done, self._order))

    def fill(self) -> None:
        """Gives every worker with room a batch: a full one where there is one, else the one that has waited longest."""
        for stage in self.stages.values():
            while stage.refusal is not None and stage.waiting:
                stage.waiting.popleft().done(Fault(stage.refusal))
        for worker in sorted(self._pool.workers, key=lambda w: len(w.batches)):
            while worker.room:
                fitting = [s for s in self.stages.values() if s.waiting and worker in self._pool.fitting(s.where)]
                if not fitting:
                    break
                full = [s for s in fitting if s.is_full(self._room_s(s, worker))]
                if not full and worker.batches:
                    break  # it has work; waiting lets batches fill up
                stage = min(full or fitting, key=lambda s: s.waiting[0].order)
                works = stage.take(self._room_s(stage, worker))
                audio_s = sum(w.length_s for w in works)
                batch = Batch(stage.spec.key, works, audio_s, worker.device, self._limit_s(works))
                self._pool.submit(worker, batch, [w.payload for w in works])

    def _room_s(self, stage: Stage, worker: Worker) -> float:
        if self._batch_s is not None or worker.device != "cpu":
            return stage.budget_s
        return min(stage.budget_s, CPU_BATCH_S / stage.cost) if stage.cost else 0.0

    def _limit_s(self, works: list[Work]) -> float:
        if self._time_limit_s is not None:
            return self._time_limit_s
        return max(TIME_LIMIT_S, TIME_LIMIT_PER_S * _padded_s(works))

    def follow(self, event: Done | Died) -> None:
        """Hands results to the items that wait for them, or puts works back after a fault.

        Raises:
            UserError: workers end as soon as they start.
        """
        if isinstance(event, Died):
            self._on_death(event)
        else:
            self._idle_deaths = 0
            self._on_done(event)

    def _on_done(self, event: Done) -> None:
        batch, stage = event.batch, self.stages[event.batch.key]
        padded_s = _padded_s(batch.works)
        stage.count(event)
        if not isinstance(event.outcome, list) and len(batch.works) > 1:
            if event.outcome == "oom":
                stage.did_not_fit(padded_s)
            else:
                for work in batch.works:
                    work.alone = True
            stage.give_back(batch.works)
            return
        stage.items += len(batch.works)
        stage.audio_s += batch.audio_s
        if isinstance(event.outcome, list):
            if batch.device != "cpu":
                stage.fitted(padded_s)
            for work, result in zip(batch.works, event.outcome):
                work.done(result)
        else:
            oom = Fault("out of memory with a batch of one")
            batch.works[0].done(oom if event.outcome == "oom" else event.outcome)

    def _on_death(self, event: Died) -> None:
        for batch in reversed(event.waiting):
            self.stages[batch.key].give_back(batch.works)
        if event.running is None:
            self._idle_deaths += 1
            if self._idle_deaths >= _MAX_IDLE_DEATHS:
                raise UserError(f"worker processes end as soon as they start ({event.reason})", hint=f"see {self._log}")
            return
        again, alone = [], len(event.running.works) == 1
        for work in event.running.works:
            work.alone = True
            work.late += event.late
            work.kills += alone and not event.late
            if alone and (work.kills >= _MAX_KILLS or work.late >= _MAX_LATE):
                self._give_up(work, event)
            else:
                again.append(work)
        self.stages[event.running.key].give_back(again)

    def _give_up(self, work: Work, event: Died) -> None:
        batch, stage = event.running, self.stages[event.running.key]
        if not event.late:
            reason = f"the worker process died {_MAX_KILLS} times ({event.reason}) while computing {batch.key}"
            work.done(Fault(reason))
            return
        work.done(Fault(f"{batch.key} took longer than its limit of {batch.limit_s:g} s, twice"))
        stage.hung += 1
        if stage.refusal is None and stage.hung >= _HUNG_AT_FIRST and not stage.items:
            # Nothing has ever come back from it: the time limit of every item left would be waited for in vain.
            stage.refusal = (
                f"{batch.key} was given up: none of the first {stage.hung} items came back within its limit of "
                f"{batch.limit_s:g} s"
            )


def _padded_s(works: list[Work]) -> float:
    return max(w.length_s for w in works) * len(works)
