"""What a file holds, as a hash, and when a hash that is known still holds.

Conventions
    Caches have content as their key. A hash is taken again unless the file is as it was when it was hashed: the same
    inode of the same device, with the same size, time of modification and time of change in nanoseconds, on a machine
    that has not been started again since. No program can set the time of change. A file that was changed a moment ago
    has no such state, because another change within the same tick of the clock would not be seen.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sqlite3
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from codec_bench.config.bounded_cache import BoundedCache
from codec_bench.config.paths import cache_folder

TICK_NS = 2_000_000_000
"""The coarsest tick of a file system's clock: 2 s, of FAT."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_PART_BYTES = 1 << 20
_MAX_BYTES = 64 << 20
_LATEST = 10_000


def file_state(path: str | os.PathLike[str]) -> str | None:
    """What tells a file from all others that this machine has held; None for one that was changed a moment ago.

    Raises:
        OSError: there is no such file.
    """
    about = os.stat(path)
    if about.st_ctime_ns > time.time_ns() - TICK_NS:
        return None
    times = f"{about.st_mtime_ns}:{about.st_ctime_ns}"
    return f"{_machine()}:{about.st_dev}:{about.st_ino}:{about.st_size}:{times}"


@cache
def _machine() -> str:
    """This machine since it was started; machines that were copied from one image differ too."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return f"{platform.node()}:{uuid.getnode():x}"


def file_hash(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's content, which is not read again while the file is as it was.

    Raises:
        OSError: the file cannot be read.
    """
    state = file_state(path)
    known = _hashes(str(cache_folder())).get(state) if state is not None else None
    if known is not None:
        return known
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_PART_BYTES):
            digest.update(block)
    if state is not None and state == file_state(path):
        _hashes(str(cache_folder())).put(state, digest.hexdigest())
    return digest.hexdigest()


def files_hash(paths: Sequence[str | os.PathLike[str]]) -> str:
    """A hash of the content of several files in their order, 160 bits as hexadecimal.

    Raises:
        OSError: one cannot be read.
    """
    return hashlib.blake2b("\n".join(map(file_hash, paths)).encode(), digest_size=20).hexdigest()


def path_hash(path: str | os.PathLike[str]) -> str:
    """A hash of a file, or of all files below a folder with their names, 160 bits as hexadecimal.

    Raises:
        OSError: a file cannot be read.
    """
    if not os.path.isdir(path):
        return files_hash([path])
    digest = hashlib.blake2b(digest_size=20)
    for here, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(here, name)
            digest.update(f"{os.path.relpath(file, path)}\0{file_hash(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


class _Hashes(BoundedCache):
    """The hashes of files by their states."""

    content = "file hash"
    tables = (
        "CREATE TABLE IF NOT EXISTS files (key TEXT PRIMARY KEY, hash TEXT NOT NULL, used REAL NOT NULL) WITHOUT ROWID;"
    )
    table = "files"
    length = "LENGTH(key) + LENGTH(hash)"
    synchronous = "OFF"

    def __init__(self, path: Path) -> None:
        self._latest: dict[str, str] = {}
        super().__init__(path, _MAX_BYTES)

    def get(self, state: str) -> str | None:
        """The hash of the file that had a state; None if it is not known."""
        with self._lock:
            if state not in self._latest and self._db is not None:
                try:
                    row = self._db.execute("SELECT hash FROM files WHERE key = ?", (state,)).fetchone()
                except sqlite3.Error as error:
                    self._give_up(error)
                    row = None
                if row is not None and isinstance(row[0], str):
                    self._note(state, row[0])
                    self._used.add(state)
            return self._latest.get(state)

    def put(self, state: str, digest: str) -> None:
        """Stores a hash at once: files that are hashed here are few and large."""
        with self._lock:
            self._note(state, digest)
            self._new[state] = digest
            self.flush()

    def _note(self, state: str, digest: str) -> None:
        if len(self._latest) >= _LATEST:
            self._latest.clear()
        self._latest[state] = digest

    def _write(self, db: sqlite3.Connection, now: float) -> None:
        rows: list[tuple[Any, ...]] = [(key, digest, now) for key, digest in self._new.items()]
        db.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)


@cache
def _hashes(folder: str) -> _Hashes:
    return _Hashes(Path(folder) / "hashes.sqlite")
