"""Cache files in SQLite, of bounded size and shared by all runs of a user."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal


def open_bounded(
    path: Path, tables: str, *, synchronous: Literal["OFF", "NORMAL"], check_same_thread: bool = True
) -> sqlite3.Connection:
    """Opens a cache file, or makes it. Its tables have the columns `key` and `used`, the time of the last use.

    Args:
        tables: the SQL statements that make the tables.
        synchronous: OFF if it matters little that a crash may lose entries.

    Raises:
        OSError, sqlite3.Error: the file cannot be used.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(path, timeout=2.0, isolation_level=None, check_same_thread=check_same_thread)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.executescript(tables)
    return db


def over_bound(db: sqlite3.Connection, max_bytes: int) -> int:
    """By how many bytes the file exceeds `max_bytes`; 0 or less if it does not."""
    pages, free, size = (db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * size - max_bytes


def drop_oldest(db: sqlite3.Connection, table: str, length: str, to_free: int) -> None:
    """Deletes the entries that were used longest ago.

    Args:
        length: SQL expression for the bytes of an entry. to_free: bytes to free, at least.
    """
    doomed, freed = [], 0
    for key, entry_bytes in db.execute(f"SELECT key, {length} FROM {table} ORDER BY used"):
        doomed.append((key,))
        freed += entry_bytes
        if freed >= to_free:
            break
    db.executemany(f"DELETE FROM {table} WHERE key = ?", doomed)
    db.execute("PRAGMA incremental_vacuum")
