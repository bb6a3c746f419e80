"""Fetch audio behind URLs ahead of the workers that read it.

Threads fetch the next samples into a temporary folder; a sample is ready when its files are there. Adjacent members of
a tar file are fetched together. Samples and bytes in progress are limited. Local samples pass at once. A failed
download is a reason for its own sample only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from codec_bench.decoding.decode import Decoded, decode_bytes
from codec_bench.decoding.read import TarMember, find_member
from codec_bench.decoding.remote import is_url, read_remote, shown
from codec_bench.decoding.span import cut_span, find_span
from codec_bench.engine.systems import System
from codec_bench.messages.errors import UserError, describe
from codec_bench.types import Sample

THREADS = 16
SAMPLES = 256
"""Samples that are being fetched or wait for a worker, at most."""
HELD_BYTES = 256 << 20
"""Fetching pauses at so many bytes that no worker has read yet."""
TOGETHER_BYTES = 4 << 20
GAP_BYTES = 64 << 10
"""Members of a tar file are fetched together up to so many bytes, and gaps up to so many."""

Entry = tuple[int, Sample, list[System]]
"""Number of a sample in the data, the sample, and the systems that still need it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file behind a URL: the path of its copy, or the reason why there is none."""

    path: str | None
    reason: str | None = None


@dataclass(slots=True, eq=False)
class _Pending:
    entry: Entry
    left: int
    files: dict[str, Fetched] = field(default_factory=dict)


class SamplePrefetch:
    """The samples of a run, each once its sound is on this machine."""

    def __init__(self, todo: Iterator[Entry]) -> None:
        self._todo = todo
        self._ended = False
        self._seen: Entry | None = None
        self._ready: deque[_Pending] = deque()
        self._pending = 0
        self._jobs: dict[Future[list[Fetched]], list[tuple[_Pending, str]]] = {}
        self._held: dict[int, dict[str, Fetched]] = {}
        self._bytes = 0
        self._threads: ThreadPoolExecutor | None = None
        self._folder = ""

    @property
    def is_downloading(self) -> bool:
        """Whether files are being downloaded."""
        return bool(self._jobs)

    @property
    def is_exhausted(self) -> bool:
        """Whether no sample is left."""
        return self._ended and self._seen is None and not self._pending and not self._ready

    def next(self) -> Entry | None:
        """The next sample; None if none is ready."""
        self._collect()
        self._begin()
        if self._ready:
            sample_files = self._ready.popleft()
            self._held[sample_files.entry[0]] = sample_files.files
            return sample_files.entry
        if self._seen is not None and not _remote_of(self._seen):
            entry, self._seen = self._seen, None
            return entry
        return None

    def copy_of(self, number: int, path: str) -> Fetched:
        """The local copy of a sample's file, by the path that the sample names."""
        return self._held.get(number, {}).get(path) or Fetched(path)

    def drop(self, number: int) -> None:
        """Remove the copies of a sample that was read."""
        for one in self._held.pop(number, {}).values():
            if one.path is not None:
                self._bytes -= os.path.getsize(one.path)
                os.unlink(one.path)

    def close(self) -> None:
        """End the threads and remove all copies."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            shutil.rmtree(self._folder, ignore_errors=True)

    def _begin(self) -> None:
        """Start downloads of the next samples while there is room; stop at a local one."""
        group: list[tuple[_Pending, str]] = []
        while self._pending + len(self._ready) < SAMPLES and self._bytes < HELD_BYTES:
            if self._seen is None:
                self._seen = next(self._todo, None)
                self._ended = self._ended or self._seen is None
            paths = [] if self._seen is None else _remote_of(self._seen)
            if self._seen is None or not paths:
                break
            pending = _Pending(self._seen, len(paths))
            self._seen = None
            self._pending += 1
            for path in paths:
                if group and not _is_adjacent(group, path):
                    self._submit(group)
                    group = []
                group.append((pending, path))
        if group:
            self._submit(group)

    def _submit(self, group: list[tuple[_Pending, str]]) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="fetch")
            self._folder = tempfile.mkdtemp(prefix="codec-bench-fetched-")
        self._jobs[self._threads.submit(_fetch, [path for _, path in group], self._folder)] = group

    def _collect(self) -> None:
        """Move samples whose downloads have all finished to the ready ones."""
        for job in [job for job in self._jobs if job.done()]:
            for (pending, path), one in zip(self._jobs.pop(job), job.result()):
                pending.files[path] = one
                pending.left -= 1
                if one.path is not None:
                    self._bytes += os.path.getsize(one.path)
                if not pending.left:
                    self._pending -= 1
                    self._ready.append(pending)


def _remote_of(entry: Entry) -> list[str]:
    number, sample, systems = entry
    named = [sample.audio, *(system.sample(number, sample).estimate for system in systems if system.kind == "files")]
    return [path for path in dict.fromkeys(named) if path is not None and is_url(path)]


def _is_adjacent(group: Sequence[tuple[_Pending, str]], path: str) -> bool:
    """Whether a tar member follows the group closely enough to fetch them together."""
    first, last, this = (find_member(one) for one in (group[0][1], group[-1][1], path))
    if first is None or last is None or this is None or last.file != this.file:
        return False
    return 0 <= this.begin - last.end <= GAP_BYTES and this.end - first.begin <= TOGETHER_BYTES


def _fetch(paths: Sequence[str], folder: str) -> list[Fetched]:
    """Download audio to files; samples that fail get the reason."""
    members = [find_member(path) for path in paths]
    try:
        if members[0] is None:
            if (span := find_span(paths[0])) is None:
                return [Fetched(_write_temporary(read_remote(paths[0]), paths[0], folder))]
            return [Fetched(_segment(cut_span(span, decode_bytes(read_remote(span.file), shown(span.file))), folder))]
        there = [member for member in members if member is not None]
        return _cut(read_remote(there[0].file, there[0].begin, there[-1].end), there, folder)
    except UserError as error:
        return [Fetched(None, error.message) for _ in paths]
    except Exception as error:  # such as a disk that is full; only these samples fail
        return [Fetched(None, f"'{shown(path)}' cannot be fetched: {describe(error)}") for path in paths]


def _cut(data: bytes, members: Sequence[TarMember], folder: str) -> list[Fetched]:
    start = members[0].begin
    return [Fetched(_write_temporary(data[one.begin - start : one.end - start], one.name, folder)) for one in members]


def _segment(sound: Decoded, folder: str) -> str:
    """Write decoded audio to a temporary float WAV file."""
    import soundfile

    handle, path = tempfile.mkstemp(dir=folder, suffix=".wav")
    with open(handle, "wb") as file:
        soundfile.write(file, sound.samples.T, sound.sample_rate_hz, subtype="FLOAT", format="WAV")
    return path


def _write_temporary(data: bytes, name: str, folder: str) -> str:
    handle, path = tempfile.mkstemp(dir=folder, suffix=os.path.splitext(shown(name))[1][:12])
    with open(handle, "wb") as file:
        file.write(data)
    return path
