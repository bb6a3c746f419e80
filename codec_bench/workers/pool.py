"""Several workers that share batches, each replaced when it dies.

An item has two attempts: when a process dies over a batch, another is started and each item is asked alone, so that only
the item that kills is lost. A worker that dies again and again with no answer in between is not started any more.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from codec_bench.errors import UserError
from codec_bench.workers import wire
from codec_bench.workers.host import WorkerEnded, WorkerHost, WorkerSettings

DEATHS_IN_A_ROW = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one item: what the worker code answered, or None and the reason; and how often it was asked."""

    answer: Any
    reason: str | None
    attempts: int


class _Seat:
    """A place for one worker, and the processes that take it one after another."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.host = WorkerHost(settings)
        self.given_up: str | None = None
        self._deaths = 0

    async def ask(self, batch: Sequence[wire.Packed]) -> list[Reply]:
        try:
            return [Reply(answer, None, 1) for answer in await self._once(batch)]
        except WorkerEnded:
            replies = []
        for item in batch:
            try:
                replies.append(Reply((await self._once([item]))[0], None, 2))
            except WorkerEnded as error:
                replies.append(Reply(None, str(error), 2))
        return replies

    async def _once(self, batch: Sequence[wire.Packed]) -> list[Any]:
        if self.given_up is not None:
            raise WorkerEnded(self.given_up)
        try:
            if not self.host.running:
                await self.host.start()
            answers = await self.host.ask(batch)
        except WorkerEnded as error:
            self._deaths += 1
            if self._deaths >= DEATHS_IN_A_ROW:
                self.given_up = f"after {self._deaths} ends in a row it was not started again: {error}"
            raise
        self._deaths = 0
        return answers


class WorkerPool:
    """The workers of one model.

    Args:
        settings: what all workers share.
        variables: one mapping of environment variables per worker, such as `device_variables` gives.
    """

    def __init__(self, settings: WorkerSettings, variables: Sequence[Mapping[str, str]]) -> None:
        self._seats = [_Seat(replace(settings, variables={**settings.variables, **own})) for own in variables]
        self._idle: asyncio.Queue[_Seat] = asyncio.Queue()
        self._working = len(self._seats)

    @property
    def versions(self) -> Mapping[str, str]:
        """Of Python and of every package in the environment."""
        return self._seats[0].host.versions

    async def start(self) -> None:
        """Starts every worker and waits until all are loaded.

        Raises:
            WorkerEnded: one cannot be started; none is left running.
        """
        begun = await asyncio.gather(*(seat.host.start() for seat in self._seats), return_exceptions=True)
        for outcome in begun:
            if isinstance(outcome, BaseException):
                await self.close()
                raise outcome
        for seat in self._seats:
            self._idle.put_nowait(seat)

    async def ask(self, batch: Sequence[wire.Packed]) -> list[Reply]:
        """One reply per item, in order, from the next worker that is free. Nothing is raised for what a worker does."""
        seat = await self._idle.get()
        try:
            return await seat.ask(batch)
        finally:
            if seat.given_up is None:
                self._idle.put_nowait(seat)
            else:
                self._working -= 1
                if self._working == 0:  # nobody else will answer: this one says why, at once
                    self._working = 1
                    self._idle.put_nowait(seat)

    async def close(self) -> None:
        """Ends every worker."""
        await asyncio.gather(*(seat.host.close() for seat in self._seats))


def device_variables(workers: int, devices: Sequence[str | int] | None) -> list[dict[str, str]]:
    """Environment variables for each of some workers: which GPU is its own, and its share of the cores.

    Args:
        devices: GPUs as `cuda:1` or `1`, counted among those that CUDA_VISIBLE_DEVICES names, or `cpu`; workers take them in
            turn. None leaves every worker what this process has.

    Raises:
        UserError: no such device.
    """
    names = [str(device).removeprefix("cuda:") for device in devices or ()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    known = None if visible is None else [part.strip() for part in visible.split(",") if part.strip()]
    cards = []
    for name in names:
        if name != "cpu" and (not name.isdigit() or (known is not None and int(name) >= len(known))):
            raise UserError(
                f"there is no device '{name}' for a worker",
                hint="devices are cpu, cuda:0, cuda:1, ... among those that CUDA_VISIBLE_DEVICES names",
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
