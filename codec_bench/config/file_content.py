"""Content hashes of files, reused while a file is unchanged.

Unchanged: same device, inode, size, mtime and ctime (ns) since the machine's start; no program can set the ctime. A
file that changed a moment ago has no state, because another change within the clock's tick would be invisible.
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
_WEIGHTS = ("weight", "checkpoint", "ckpt")


def file_state(path: str | os.PathLike[str]) -> str | None:
    """Return a unique state of a file, or None just after a change. Raises OSError."""
    about = os.stat(path)
    if about.st_ctime_ns > time.time_ns() - TICK_NS:
        return None
    times = f"{about.st_mtime_ns}:{about.st_ctime_ns}"
    return f"{_machine()}:{about.st_dev}:{about.st_ino}:{about.st_size}:{times}"


@cache
def _machine() -> str:
    """Return an id of this machine since its start, unique among copied images."""
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return f"{platform.node()}:{uuid.getnode():x}"


def file_hash(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, cached while it is unchanged. May raise OSError."""
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
    """Return a 160-bit hexadecimal hash of several files in order. May raise OSError."""
    return hashlib.blake2b("\n".join(map(file_hash, paths)).encode(), digest_size=20).hexdigest()


def path_hash(path: str | os.PathLike[str]) -> str:
    """Return a 160-bit hexadecimal hash of a file or folder. Raises OSError."""
    if not os.path.isdir(path):
        return files_hash([path])
    digest = hashlib.blake2b(digest_size=20)
    for here, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            file = os.path.join(here, name)
            digest.update(f"{os.path.relpath(file, path)}\0{file_hash(file)}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def with_content(name: str, option: Any) -> str:
    """Return an option of custom code as text; weights in files with their content's hash.

    An option has weights if its name says so. Another may name a file that the code writes.
    """
    text = str(option)
    if not any(word in name.lower() for word in _WEIGHTS) or not os.path.exists(text):
        return text
    with suppress(OSError):
        return f"{text} {path_hash(text)}"
    return text


class _Hashes(BoundedCache):
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
        """Return the hash of a file's state, or None."""
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
        """Store a hash at once: such files are few and large."""
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
