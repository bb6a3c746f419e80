"""Cache files in SQLite, of bounded size and shared by all runs of a user."""

from __future__ import annotations

import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Literal

_FLUSH = 256


class BoundedCache(ABC):
    """Entries by key; empty with an unusable file (space, permission, corruption).

    Args:
        max_bytes: largest size of the stored entries.

    Class attributes:
        content: the kind of entries, for the message.
        tables: the SQL statements that create the tables.
        table: the table of the entries, with the columns `key` and `used`, the time of the last use.
        length: an SQL expression for the bytes of an entry.
        synchronous: OFF if a crash may lose entries.

    Attributes:
        hits, misses: how many keys were found and not found.
        trouble: why the cache is not used, or None.
    """

    content: ClassVar[str]
    tables: ClassVar[str]
    table: ClassVar[str]
    length: ClassVar[str]
    synchronous: ClassVar[Literal["OFF", "NORMAL"]]

    def __init__(self, path: Path | None, max_bytes: int) -> None:
        self._db: sqlite3.Connection | None = None
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._new: dict[str, Any] = {}
        self._used: set[str] = set()
        self.hits = self.misses = 0
        self.trouble: str | None = None
        if path is None:
            return
        try:
            self._db = self._open(path)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def flush(self) -> None:
        """Write new entries and times of use, and evict the oldest entries over the limit."""
        with self._lock:
            if self._db is None:
                return
            now = time.time()
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._write(self._db, now)
                self._db.executemany(f"UPDATE {self.table} SET used = ? WHERE key = ?", [(now, k) for k in self._used])
                self._db.execute("COMMIT")
                pragmas = ("page_count", "freelist_count", "page_size")
                pages, free, size = (self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas)
                excess = (pages - free) * size - self._max_bytes
                if excess > 0:
                    self._shrink(self._db, excess)
            except sqlite3.Error as error:
                self._give_up(error)
            self._new.clear()
            self._used.clear()

    def close(self) -> None:
        """Write new entries and close the file."""
        with self._lock:
            self.flush()
            if self._db is not None:
                self._db.close()
                self._db = None

    @abstractmethod
    def _write(self, db: sqlite3.Connection, now: float) -> None:
        """Insert the entries of `_new`, used now."""

    def _keep(self, key: str, entry: Any) -> None:
        """Hold an entry until the next flush; many new entries cause one."""
        with self._lock:
            self._new[key] = entry
            if len(self._new) >= _FLUSH:
                self.flush()

    def _shrink(self, db: sqlite3.Connection, excess: int) -> None:
        """Delete the least recently used entries: `excess` bytes and a tenth of the limit."""
        doomed, freed = [], 0
        for key, entry_bytes in db.execute(f"SELECT key, {self.length} FROM {self.table} ORDER BY used"):
            doomed.append((key,))
            freed += entry_bytes
            if freed >= excess + self._max_bytes // 10:
                break
        db.executemany(f"DELETE FROM {self.table} WHERE key = ?", doomed)
        db.execute("PRAGMA incremental_vacuum")

    def _open(self, path: Path) -> sqlite3.Connection:
        """Open the database with a write-ahead log, and create its tables."""
        path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {self.synchronous}")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.executescript(self.tables)
        return db

    def _give_up(self, error: Exception) -> None:
        self.trouble = f"the {self.content} cache is off: {error}"
        if self._db is not None:
            self._db.close()
            self._db = None
