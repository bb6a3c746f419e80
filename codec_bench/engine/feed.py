"""Requests samples ahead of the other stages (`reading.py`) while memory has room."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codec_bench.data import problem_of
from codec_bench.decoding.remote import shown
from codec_bench.engine.arena import Arena
from codec_bench.engine.batch import Dispatcher
from codec_bench.engine.prefetch import Entry, SamplePrefetch
from codec_bench.engine.reading import READ_AT_ONCE, READING, FileRequest, ReadResult, ReadWork, Signal
from codec_bench.engine.stage import Fault
from codec_bench.engine.systems import System
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.types import Sample

LEAST_ROOM = 4 << 20
SMALL = 8
"""While no sample has needed more than `LEAST_ROOM`, so many count as one in a batch."""
MOST_ROOM = 256 << 20
"""Smallest and largest room for a sample of unknown size, in bytes."""


LARGE_BYTES = 16 << 20
LOOKED_AT, AMONG = 1024, 16
"""One sample in `AMONG` may be a large one moved forward from the next `LOOKED_AT`."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """One sample that was read.

    Args:
        reason: why there is no reference.
        estimates: signals of estimates from files, or why there is none, by system.
    """

    number: int
    sample: Sample
    reference: Signal | None
    reason: Diagnostic | None
    estimates: Mapping[str, Signal | Diagnostic]


class Feed:
    """Requests samples from the workers, as many at a time as memory has room for.

    Args:
        todo: (number, sample, the systems that still need it).
        keep: numbers of the samples whose audio is saved in `folder`, the run folder.
        admit: called with each sample that was read, and the systems that need it.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        arena: Arena,
        todo: Iterator[Entry],
        keep: frozenset[int],
        folder: Path,
        admit: Callable[[Loaded, list[System]], None],
        readers: int,
    ) -> None:
        self._dispatcher, self._arena, self._keep, self._folder = dispatcher, arena, keep, folder
        self._ahead = SamplePrefetch(put_large_first(todo))
        self._admit, self._readers = admit, readers
        self.reading = 0
        self._exhausted = False
        self._room = LEAST_ROOM

    @property
    def has_more(self) -> bool:
        """Whether samples are left to read, or reads are in flight."""
        return not self._exhausted or self.reading > 0

    @property
    def _weight(self) -> float:
        return 1.0 if self._room > LEAST_ROOM else 1 / SMALL

    @property
    def _at_once(self) -> int:
        return int(2 * READ_AT_ONCE / self._weight) * self._readers

    @property
    def is_downloading(self) -> bool:
        """Whether audio is being downloaded, so a sample may be ready at any time."""
        return self._ahead.is_downloading

    def close(self) -> None:
        """End all downloads."""
        self._ahead.close()

    def request(self, has_room: Callable[[int], bool]) -> bool:
        """Queue file reads for the next samples, as many as memory has room for.

        Args:
            has_room: tells, from the number of reads in flight, whether another may start.

        Returns:
            True if it stopped after a full round: call again once finished items are recorded. False if no sample is
            ready, or no room is left.
        """
        # Samples that cannot be read are done at once, and are recorded between the calls.
        at_once = self._at_once
        for _ in range(at_once):
            if self._exhausted or self.reading >= at_once or not has_room(self.reading):
                return False
            entry = self._ahead.next()
            if entry is None:
                self._exhausted = self._ahead.is_exhausted
                return False
            self._request(*entry)
        return True

    def _request(self, number: int, sample: Sample, systems: list[System]) -> None:
        """Request the sample's audio files, or admit it at once with its problem."""
        reason = problem_of(sample)
        from_files = [system for system in systems if system.kind == "files"]
        if reason is None and sample.audio is None and len(from_files) < len(systems):
            reason = Diagnostic("no_reference_audio")
        if reason is not None:
            self._admit(Loaded(number, sample, None, reason, {}), systems)
            return
        missing: dict[str, Diagnostic] = {}
        estimates: dict[str, FileRequest] = {}
        for system in from_files:
            item = system.sample(number, sample)
            if item.estimate is None:
                missing[system.name] = problem_of(item) or Diagnostic("no_generated_audio")
            else:
                request = self._request_file(number, item.estimate, system.folder)
                if isinstance(request, Diagnostic):
                    missing[system.name] = request
                else:
                    estimates[system.name] = request
        reference = None if sample.audio is None else self._request_file(number, sample.audio, "reference")
        if isinstance(reference, Diagnostic):
            self._ahead.drop(number)
            self._admit(Loaded(number, sample, None, reference, {}), systems)
            return
        self.reading += 1
        self._read(
            ReadWork(reference, estimates, self._arena.allocate_bytes(self._room)),
            lambda result: self._on_read(number, sample, systems, missing, result),
        )

    def _request_file(self, number: int, path: str, folder: str) -> FileRequest | Diagnostic:
        fetched = self._ahead.copy_of(number, path)
        if fetched.path is None:
            return as_reason(fetched.reason) or Diagnostic("not_fetched", path=shown(path))
        return FileRequest(fetched.path, self._copy_path(folder, number), path)

    def _copy_path(self, folder: str, number: int) -> str | None:
        return str(self._folder / "audio" / folder / f"{number:07d}.flac") if number in self._keep else None

    def _read(self, work: ReadWork, then: Callable[[ReadResult | Fault], None]) -> None:
        """Queue a read job; repeat it with more shared memory if the audio does not fit."""

        def done(result: ReadResult | Fault) -> None:
            """Pass on the read, or repeat it with the shared memory that it needs."""
            if isinstance(result, Fault):
                self._arena.free(work.room)
                then(result)
                return
            self._room = min(max(self._room, 2 * max(result.used, result.needs)), MOST_ROOM)
            if result.needs:
                self._arena.free(work.room)
                self._read(work._replace(room=self._arena.allocate_bytes(result.needs)), then)
                return
            self._arena.shrink(work.room, result.used)
            then(result)

        self._dispatcher.put(READING, work, self._weight, done)

    def _on_read(
        self,
        number: int,
        sample: Sample,
        systems: list[System],
        missing: dict[str, Diagnostic],
        result: ReadResult | Fault,
    ) -> None:
        """Admit a sample after its files were read, with its signals or problem."""
        self.reading -= 1
        self._ahead.drop(number)
        if isinstance(result, Fault):
            self._admit(Loaded(number, sample, None, Diagnostic("unreadable", cause=result.reason), {}), systems)
        elif isinstance(result.reference, Diagnostic):
            self._admit(Loaded(number, sample, None, result.reference, {}), systems)
        else:
            self._admit(Loaded(number, sample, result.reference, None, {**result.estimates, **missing}), systems)


def put_large_first(todo: Iterator[Entry]) -> Iterator[Entry]:
    """Yield the entries in order, but move large files forward among the others.

    Each `AMONG`-th entry is a large file. A file of an hour takes seconds to read and would delay the end of the run.
    """
    large: deque[Entry] = deque()
    others: deque[Entry] = deque()
    for turn in itertools.count():
        for entry in itertools.islice(todo, LOOKED_AT - len(large) - len(others)):
            (large if file_bytes(entry[1]) >= LARGE_BYTES else others).append(entry)
        if large and (turn % AMONG == 0 or not others):
            yield large.popleft()
        elif others:
            yield others.popleft()
        else:
            return


def file_bytes(sample: Sample) -> int:
    """Size of the larger of a sample's files; 0 for other locators."""
    sizes = [0]
    for path in (sample.audio, sample.estimate):
        with suppress(OSError, ValueError):
            sizes.append(os.path.getsize(path) if isinstance(path, str) else 0)
    return max(sizes)
