"""The feature cache: each feature of a signal is computed once, for all runs.

A key is the content hash of the audio, the feature, its protocol and its weights, so no entry becomes invalid. One
SQLite file of limited size drops the entries used longest ago. If it cannot be used, the run goes on without it.
"""

from __future__ import annotations

import io
import json
import sqlite3
from collections import OrderedDict
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from codec_bench.config.bounded_cache import BoundedCache

MAX_BYTES = 4 << 30
_SUM_BYTES = 4
_ARRAY = "\x00array"


def pack(result: dict[str, Any]) -> bytes:
    """Serialize a feature result without pickling: JSON, then the arrays it names."""
    arrays: list[np.ndarray] = []

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {_ARRAY: len(arrays) - 1}
        return value.item() if isinstance(value, np.generic) else value

    head = json.dumps({k: plain(v) for k, v in result.items()}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    body = io.BytesIO()
    body.write(len(head).to_bytes(4, "little") + head)
    for array in arrays:
        np.lib.format.write_array(body, np.ascontiguousarray(array), allow_pickle=False)
    packed = body.getvalue()
    return crc32(packed).to_bytes(_SUM_BYTES, "little") + packed


def unpack(data: bytes) -> dict[str, Any]:
    """The feature result from the bytes of `pack`; ValueError if they are damaged."""
    if not isinstance(data, bytes) or int.from_bytes(data[:_SUM_BYTES], "little") != crc32(data[_SUM_BYTES:]):
        raise ValueError("an entry of the cache is damaged")
    body = io.BytesIO(data[_SUM_BYTES:])
    head = json.loads(body.read(int.from_bytes(body.read(4), "little")))
    count = sum(isinstance(v, dict) and _ARRAY in v for v in head.values())
    arrays = [np.lib.format.read_array(body, allow_pickle=False) for _ in range(count)]
    return {k: arrays[v[_ARRAY]] if isinstance(v, dict) and _ARRAY in v else v for k, v in head.items()}


class FeatureCache(BoundedCache):
    """Feature results by key, in an SQLite file, or nowhere if `path` is None."""

    content = "feature"
    tables = (
        "CREATE TABLE IF NOT EXISTS features "
        "(key TEXT PRIMARY KEY, value BLOB NOT NULL, used REAL NOT NULL) WITHOUT ROWID;"
    )
    table = "features"
    length = "LENGTH(value)"
    synchronous = "OFF"  # an entry that a crash loses is computed again

    def __init__(self, path: Path | None, max_bytes: int = MAX_BYTES) -> None:
        super().__init__(path, max_bytes)

    def get(self, key: str) -> dict[str, Any] | None:
        """The result stored under a key, or None."""
        data = self._new.get(key)
        if data is None and self._db is not None:
            try:
                row = self._db.execute("SELECT value FROM features WHERE key = ?", (key,)).fetchone()
                data = row[0] if row else None
            except sqlite3.Error as error:
                self._give_up(error)
        if data is None:
            self.misses += 1
            return None
        try:
            result = unpack(data)
        except ValueError:
            self.misses += 1
            return None
        self.hits += 1
        self._used.add(key)
        return result

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Store a result; the next `flush` writes it to the disk."""
        if self._db is not None:
            self._keep(key, pack(result))

    def _write(self, db: sqlite3.Connection, now: float) -> None:
        db.executemany("INSERT OR REPLACE INTO features VALUES (?, ?, ?)", [(k, v, now) for k, v in self._new.items()])


MEMORY_BYTES = 64 << 20
"""Of a `FeatureMemory`: thousands of speaker embeddings."""


class FeatureMemory:
    """A `FeatureCache` in memory."""

    def __init__(self, max_bytes: int = MEMORY_BYTES) -> None:
        self._max, self._bytes = max_bytes, 0
        self._held: OrderedDict[str, tuple[dict[str, Any], int]] = OrderedDict()
        self.hits = self.misses = 0

    def get(self, key: str) -> dict[str, Any] | None:
        """The feature stored under a key, or None."""
        if (entry := self._held.get(key)) is None:
            self.misses += 1
            return None
        self.hits += 1
        self._held.move_to_end(key)
        return entry[0]

    def put(self, key: str, result: dict[str, Any]) -> None:
        """Store a feature."""
        size = sum(getattr(value, "nbytes", 64) for value in result.values())
        if key in self._held or size > self._max:
            return
        self._held[key] = (result, size)
        self._bytes += size
        while self._bytes > self._max:
            _, (_, dropped) = self._held.popitem(last=False)
            self._bytes -= dropped
