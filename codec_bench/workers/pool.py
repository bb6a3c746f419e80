"""Distributes batches over worker processes, and replaces dead ones.

Every item has two attempts. If a process dies during a batch, a new one gets each item alone, so only the fatal item is
lost. A worker that dies `DEATHS_IN_A_ROW` times without an answer is not restarted.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.workers import wire
from codec_bench.workers.host import WorkerEnded, WorkerHost, WorkerSettings

DEATHS_IN_A_ROW = 4


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The answer to one item, or None and the reason; and the number of attempts."""

    answer: Any
    reason: Diagnostic | None
    attempts: int


class _Seat:
    """One worker: a process and its replacements."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.host = WorkerHost(settings)
        self.failure: Diagnostic | None = None
        self._deaths = 0

    async def ask(self, batch: Sequence[wire.Packed]) -> list[WorkerReply]:
        try:
            return [WorkerReply(answer, None, 1) for answer in await self._ask_once(batch)]
        except WorkerEnded:
            replies = []
        for item in batch:
            try:
                replies.append(WorkerReply((await self._ask_once([item]))[0], None, 2))
            except WorkerEnded as error:
                replies.append(WorkerReply(None, error.reason, 2))
        return replies

    async def _ask_once(self, batch: Sequence[wire.Packed]) -> list[Any]:
        """Send a batch once; repeated deaths become the pool's failure."""
        if self.failure is not None:
            raise WorkerEnded(self.failure)
        try:
            if not self.host.running:
                await self.host.start()
            answers = await self.host.ask(batch)
        except WorkerEnded as error:
            self._deaths += 1
            if self._deaths >= DEATHS_IN_A_ROW:
                self.failure = Diagnostic("worker_ends_repeatedly", times=self._deaths, cause=error.reason)
            raise
        self._deaths = 0
        return answers


class WorkerPool:
    """The workers of one model."""

    def __init__(self, settings: WorkerSettings, variables: Sequence[Mapping[str, str]]) -> None:
        self._seats = [_Seat(replace(settings, variables={**settings.variables, **extra})) for extra in variables]
        self._idle: asyncio.Queue[_Seat] = asyncio.Queue()
        self._working = len(self._seats)

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of Python and of every package in the environment."""
        return self._seats[0].host.versions

    async def start(self) -> None:
        """Start every worker and wait until all have loaded their model.

        Raises:
            WorkerEnded: a worker cannot be started. The others are ended.
        """
        outcomes = await asyncio.gather(*(seat.host.start() for seat in self._seats), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                await self.close()
                raise outcome
        for seat in self._seats:
            self._idle.put_nowait(seat)

    async def ask(self, batch: Sequence[wire.Packed]) -> list[WorkerReply]:
        """Return one reply per item, in order, from the next free worker."""
        seat = await self._idle.get()
        try:
            return await seat.ask(batch)
        finally:
            if seat.failure is None:
                self._idle.put_nowait(seat)
            else:
                self._working -= 1
                if self._working == 0:  # the last worker stays and answers with the reason
                    self._working = 1
                    self._idle.put_nowait(seat)

    async def close(self) -> None:
        """End every worker."""
        await asyncio.gather(*(seat.host.close() for seat in self._seats))


class LoopThread:
    """An event loop in a thread, for synchronous callers."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of a coroutine that runs in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self, pool: WorkerPool) -> None:
        """End a pool's workers, then the thread."""
        self.run(pool.close())
        self._loop.call_soon_threadsafe(self._loop.stop)


def device_variables(workers: int, devices: Sequence[str | int] | None) -> list[dict[str, str]]:
    """Return the environment variables of each worker: its GPU and its share of cores.

    Args:
        devices: `cpu`, or GPUs as `cuda:1` or `1`, indices into CUDA_VISIBLE_DEVICES, assigned in turn. None gives
            every worker all GPUs of this process.
    """
    names = [str(device).removeprefix("cuda:") for device in devices or ()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    known = None if visible is None else [entry.strip() for entry in visible.split(",") if entry.strip()]
    cards = []
    for name in names:
        if name != "cpu" and (not name.isdigit() or (known is not None and int(name) >= len(known))):
            raise UserError(
                "no_device",
                device=name,
                hint="expected cpu, cuda:0, cuda:1, ... among those that CUDA_VISIBLE_DEVICES names",
            )
        cards.append("" if name == "cpu" else name if known is None else known[int(name)])
    threads = {}
    if workers > 1 and "OMP_NUM_THREADS" not in os.environ:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = {"OMP_NUM_THREADS": str(max(1, cores // workers))}
    return [
        {**threads, **({"CUDA_VISIBLE_DEVICES": cards[index % len(cards)]} if cards else {})}
        for index in range(workers)
    ]
