"""An engine that stays: samples arrive while it runs, and results leave at once.

It batches across samples with the stages, budgets and workers of an ordinary run, so a score does not depend on other
samples. Audio comes as bytes in anonymous memory files; nothing is written to disk.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from time import monotonic
from typing import Any

from codec_bench.engine.feed import Feed
from codec_bench.engine.loading import load_stages
from codec_bench.engine.pool import Died
from codec_bench.engine.reading import FileRequest
from codec_bench.engine.run import Engine
from codec_bench.messages import Diagnostic
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Sample

BATCH_ITEMS = 64
"""Samples that are passed to the engine at once without waiting for more."""
_LOOK_EVERY_S = 1.0


class MemoryFile:
    """Bytes that other processes of this user can open by a path until it is closed."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._handle = os.memfd_create(name[:200])
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]
        self.path = f"/proc/{os.getpid()}/fd/{self._handle}"

    def close(self) -> None:
        """Free the bytes."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


@dataclass(slots=True, eq=False)
class LiveSample:
    """A sample in progress; `names` are those of its paths in messages.

    Args:
        most_s: longer audio is refused.
        done: called with the record.
        fail: called with a reason if the engine ends.
    """

    sample: Sample
    names: dict[str, str]
    most_s: float
    done: Callable[[ItemRecord], None]
    fail: Callable[[str], None]
    arrived: float = field(default_factory=monotonic)
    is_cancelled: Callable[[], bool] = lambda: False


class Inbox:
    """The samples that wait for the engine, at most `max_wait_s` to fill a batch."""

    def __init__(self, max_wait_s: float) -> None:
        self._max_wait_s = max_wait_s
        self._waiting: deque[LiveSample] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self.wake, self._bell = Pipe(duplex=False)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, one: LiveSample) -> None:
        """Add a sample; RuntimeError if the engine has ended."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the scorer is closed")
            first = not self._waiting
            self._waiting.append(one)
        if first or len(self._waiting) == BATCH_ITEMS:
            self._ring()

    def close(self) -> None:
        """Let the engine end after its last sample."""
        with self._lock:
            self._closed = True
        self._ring()

    def fail(self, reason: str) -> None:
        """End the inbox; every waiting sample gets the reason."""
        self.close()
        while self._waiting:
            self._waiting.popleft().fail(reason)

    def _ring(self) -> None:
        self._bell.send_bytes(b"1")

    def clear(self) -> None:
        """Remove the signals of new samples."""
        while self.wake.poll():
            self.wake.recv_bytes()

    @property
    def is_closed(self) -> bool:
        """Whether no sample will come."""
        return self._closed and not self._waiting

    def take(self) -> tuple[list[LiveSample], float]:
        """The samples that are due, and the seconds until the next one is."""
        with self._lock:
            if not self._waiting:
                return [], _LOOK_EVERY_S
            left = self._waiting[0].arrived + self._max_wait_s - monotonic()
            if left > 0 and len(self._waiting) < BATCH_ITEMS and not self._closed:
                return [], left
            requests = list(self._waiting)
            self._waiting.clear()
        return [one for one in requests if not one.is_cancelled()], 0.0


class _LiveFeed(Feed):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.queue: deque[tuple[int, LiveSample]] = deque()
        self._current: LiveSample | None = None

    def request(self, has_room: Callable[[int], bool]) -> bool:
        """Request samples while `has_room(reads in flight)`; returns False."""
        while self.queue and self.reading < self._at_once and has_room(self.reading):
            number, one = self.queue.popleft()
            self._current = one
            self._request(number, one.sample, list(self._systems))
        return False

    def _request_file(self, number: int, path: str, folder: str) -> FileRequest | Diagnostic:
        assert self._current is not None
        return FileRequest(path, None, self._current.names.get(path, "the audio"), self._current.most_s)

    _systems: Sequence[Any] = ()


class _LiveWriter:
    """Passes finished records to their callers, in place of a run's record."""

    folder = Path("/nonexistent")

    def __init__(self) -> None:
        self.waiting: dict[int, LiveSample] = {}

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Pass finished records on."""
        for number, record in records:
            self.waiting.pop(number).done(record)


class LiveEngine(Engine):
    """Scores samples that arrive while it runs.

    Args:
        on_death: called with the reason when a worker ends and is replaced.
    """

    def __init__(self, *arguments: Any, on_death: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(*arguments)
        self._on_death = on_death

    def load(self) -> dict[str, Any]:
        """Load codecs and features in the workers; return the features' facts by stage.

        Raises:
            UserError: one of them cannot be loaded.
        """
        self.plan, _ = load_stages(self.plan, self._pool, self._dispatcher)
        features = [(f.stage.key, f.where) for f in self.plan.features.values()]
        facts = self._pool.build_stages(features) if features else {}
        for fact in facts.values():
            if isinstance(fact, Exception):
                raise fact
        return facts

    def serve(self, inbox: Inbox) -> None:
        """Score samples until the inbox is closed and empty; call `load` first."""
        handed = _LiveWriter()
        self._writer, self._progress = handed, lambda *_: None
        readers = len(self._pool.workers_for("cpu"))
        feed = _LiveFeed(self._dispatcher, self._arena, iter(()), frozenset(), handed.folder, self._admit, readers)
        feed._systems = self.plan.systems
        number = 0
        try:
            while True:
                requests, wait_s = inbox.take()
                for one in requests:
                    handed.waiting[number] = one
                    self._done[number] = set()
                    feed.queue.append((number, one))
                    number += 1
                feed.request(self._has_room)
                self._dispatcher.fill()
                self._write(force=True)
                if inbox.is_closed and not handed.waiting:
                    return
                if self._records:  # a sample that could not be read is finished at once
                    continue
                pipes = [worker.pipe for worker in self._pool.workers]
                wait([*pipes, inbox.wake], min(wait_s or _LOOK_EVERY_S, _LOOK_EVERY_S))
                inbox.clear()
                for event in self._pool.events(0.0):
                    if isinstance(event, Died):
                        self._on_death(event.reason)
                    self._dispatcher.handle(event)
                self._write(force=True)
                self._pool.detach(self._arena.trim())
        except BaseException as error:
            for one in handed.waiting.values():
                one.fail(str(error))
            inbox.fail(str(error))
            raise
        finally:
            feed.close()
            self._arena.close()
