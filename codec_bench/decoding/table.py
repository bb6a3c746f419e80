"""Audio in Parquet or Arrow files, by locators `FILE::COLUMN::ROW`.

`/data/test.parquet::audio::17` is row 17 (from 0) of the column `audio`; `ROW.ITEM` (`::17.2`) is an item of a list. A
cell is `{bytes, path}` (a file's bytes, or if null a path relative to the table or a folder above), `{array,
sampling_rate}` (samples `(samples,)` or `(channels, samples)` in [-1, 1]), a file's bytes, a path, or samples with a
column `sampling_rate` or `sample_rate`. In-order reads, from any number of threads, decode each row group once, in
bounded memory.
"""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.config.file_content import file_state
from codec_bench.decoding.decode import Decoded, check_audio, decode_bytes, decoded, guarded, read_file
from codec_bench.messages.errors import AudioError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MARK = "::"
ARROW = ".arrow"
RATES = ("sampling_rate", "sample_rate")
CACHED_BYTES = 128 << 20
"""Memory for the decoded parts of all tables in one process."""
_BATCH_BYTES = 4 << 20
_BUFFER_BYTES = 1 << 20
_FOLDERS_ABOVE = 3
_OF_THE_HUB = re.compile(r".*/snapshots/[0-9a-f]{40}/")
"""The root of a data set in the cache of the hub."""
_OPEN_FILES = 16


@dataclass(frozen=True, slots=True)
class Locator:
    """One clip in a table.

    Args:
        row: counted from 0.
        item: index in a list of clips; None where the cell is one clip.
    """

    file: str
    column: str
    row: int
    item: int | None = None

    def __str__(self) -> str:
        item = "" if self.item is None else f".{self.item}"
        return f"{self.file}{MARK}{self.column}{MARK}{self.row}{item}"


def find_locator(path: str) -> Locator | None:
    """Parse a locator, or return None. An existing file of that name is a path.

    Names of folders, files and columns may hold `::` too. The reading whose file exists wins.
    """
    rest, mark, position = path.rpartition(MARK)
    row, dot, item = position.partition(".")
    if not mark or not _count(row) or (dot and not _count(item)) or os.path.exists(path):
        return None
    reading = None
    at = rest.rfind(MARK)
    while at > 0:
        reading = Locator(rest[:at], rest[at + len(MARK) :], int(row), int(item) if dot else None)
        if os.path.isfile(reading.file):
            return reading
        at = rest.rfind(MARK, 0, at)
    return reading


def _count(text: str) -> bool:
    return text.isascii() and text.isdigit()


def read_located(locator: Locator) -> Decoded:
    """Decode an audio cell of a table: all channels, at the file's sample rate.

    Raises:
        AudioError: table, column, row or item is missing, or the table or the audio is broken.
    """
    return guarded(str(locator), partial(_read, locator))


def _read(locator: Locator) -> Decoded:
    """Decode the audio of a table cell: bytes, an array or a path."""
    import pyarrow as pa

    try:
        value, rate = _cell(locator)
    except OSError as error:
        raise AudioError("file_not_readable", path=locator.file, cause=error.strerror or _first_line(error)) from error
    except pa.ArrowException as error:
        raise AudioError("parquet_unreadable", path=locator.file, cause=_first_line(error)) from error
    if isinstance(value, dict):
        array = value.get("array")
        rate = next((value[name] for name in RATES if value.get(name)), None) if array is not None else rate
        value = next((v for v in (value.get("bytes"), array, value.get("path")) if v is not None), None)
    if value is None:
        raise AudioError("cell_null", locator=locator)
    if isinstance(value, bytes):
        return decode_bytes(value, str(locator))
    if isinstance(value, str):
        return read_file(_sibling(locator.file, value))
    if not isinstance(value, np.ndarray):
        raise AudioError("cell_without_sound", locator=locator, type=type(value).__name__)
    if not rate:
        raise AudioError("cell_without_rate", locator=locator, known=" or ".join(RATES))
    try:
        audio = decoded(value, int(rate))
    except (ValueError, TypeError, OverflowError) as error:
        raise AudioError("cell_unusable", locator=locator, cause=error) from error
    check_audio(audio, str(locator))
    return audio


def _sibling(file: str, path: str) -> str:
    """Resolve a cell's path against the table's folder and those above it."""
    places = [os.path.join(folder, path) for folder in list(Path(file).parents)[:_FOLDERS_ABOVE]]
    if root := _OF_THE_HUB.match(file):
        places = [candidate for candidate in places if os.path.normpath(candidate).startswith(root[0])]
        if not places:
            raise AudioError("path_leads_out", path=path, file=file)
    return next(filter(os.path.exists, places), places[0])


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


# --------------------------------------------------------------------------------------------------- reading in order


def _cell(locator: Locator) -> tuple[Any, float | None]:
    """Return a cell (bytes, text, array, dict or None) and the row's rate or None."""
    if locator.file.lower().endswith(ARROW):
        return _arrow_cell(locator)
    table = _table(locator.file)
    _check_place(locator, table.schema.names, table.starts[-1])
    group = bisect_right(table.starts, locator.row) - 1
    batch, at = _CACHE.reader(table, locator.column, group).batch(locator.row - table.starts[group])
    scalar = batch.column(0)[at]
    rate = batch.column(1)[at].as_py() if batch.num_columns > 1 else None
    if locator.item is not None and scalar.is_valid:
        items = scalar.values if hasattr(scalar, "values") else ()
        if locator.item >= len(items):
            raise AudioError("cell_item", locator=locator, sounds=len(items), item=locator.item)
        scalar = items[locator.item]
    return _plain(scalar), rate


def _arrow_cell(locator: Locator) -> tuple[Any, float | None]:
    """As `_cell`, for a memory-mapped stream of Arrow batches."""
    import pyarrow as pa

    def read(identity: tuple[str, object]) -> pa.Table:
        with pa.memory_map(locator.file) as file:
            return pa.ipc.open_stream(file).read_all()

    table = _cached(_ARROWS, locator.file, read)
    _check_place(locator, table.schema.names, table.num_rows)
    return _plain(table.column(locator.column)[locator.row]), None


def _check_place(locator: Locator, columns: list[str], rows: int) -> None:
    if locator.column not in columns:
        raise AudioError("table_column", file=locator.file, column=locator.column, known=", ".join(columns))
    if locator.row >= rows:
        raise AudioError("table_row", file=locator.file, rows=rows, row=locator.row)


def _plain(scalar: pa.Scalar) -> Any:
    """Convert a scalar to bytes, text, a dictionary or an array (faster than floats)."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.StructScalar):
        return {name: _plain(scalar[name]) for name in scalar}
    if isinstance(scalar, (pa.ListScalar, pa.LargeListScalar, pa.FixedSizeListScalar)):
        values = scalar.values
        if pa.types.is_floating(values.type):
            return values.to_numpy(zero_copy_only=False)
        rows = [_plain(value) for value in values]
        same = {row.shape for row in rows if isinstance(row, np.ndarray)}
        return np.stack(rows) if len(same) == 1 and all(isinstance(row, np.ndarray) for row in rows) else rows
    return scalar.as_py()


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """The footer of a Parquet file.

    Args:
        identity: path and state of the file, so that another file at the same path differs.
        starts: the first row of every row group, then the number of rows.
    """

    path: str
    identity: tuple[str, object]
    metadata: pq.FileMetaData
    schema: pa.Schema
    starts: tuple[int, ...]


_TABLES: OrderedDict[tuple[str, object], _Table] = OrderedDict()
_ARROWS: OrderedDict[tuple[str, object], pa.Table] = OrderedDict()
_TABLES_LOCK = threading.Lock()


def _cached(tables: OrderedDict[Any, Any], path: str, read: Callable[[tuple[str, object]], Any]) -> Any:
    """Return the result of `read` for a file, cached until the file changes."""
    # A file that changed a moment ago is not cached: it may change again unnoticed.
    identity = (path, file_state(path) or object())
    with _TABLES_LOCK:
        if identity not in tables:
            tables[identity] = read(identity)
            while len(tables) > _OPEN_FILES:
                tables.popitem(last=False)
        tables.move_to_end(identity)
        return tables[identity]


def _table(path: str) -> _Table:
    """Open a Parquet file's metadata, with the first row of each row group."""
    import pyarrow.parquet as pq

    def read(identity: tuple[str, object]) -> _Table:
        with pq.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
        rows = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        return _Table(path, identity, metadata, schema, tuple(accumulate(rows, initial=0)))

    table: _Table = _cached(_TABLES, path, read)
    return table


class _GroupReader:
    """One column of one row group, decoded in order; caches its latest batches."""

    def __init__(self, table: _Table, column: str, group: int, allowed_bytes: int) -> None:
        rate = next((name for name in RATES if name in table.schema.names), None)
        self._table, self._group, self._allowed = table, group, allowed_bytes
        self._columns = [column] if rate is None or rate == column else [column, rate]
        self._lock = threading.Lock()
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._recent: deque[tuple[int, pa.RecordBatch]] = deque()
        self._next = 0
        self.nbytes = 0

    def batch(self, row: int) -> tuple[pa.RecordBatch, int]:
        """Return the batch with a row of the group, and the row's index in the batch."""
        with self._lock:
            batches = self._batches
            if batches is None or row < (self._recent[0][0] if self._recent else self._next):
                batches = self._begin()
            while row >= self._next:
                batch = next(batches, None)
                if batch is None:
                    declared = self._table.metadata.row_group(self._group).num_rows
                    raise AudioError(
                        "part_damaged", path=self._table.path, part=self._group, declared=declared, held=self._next
                    )
                # Parquet files need not have their columns in this order.
                batch = batch.select(self._columns)
                self._recent.append((self._next, batch))
                self._next += batch.num_rows
                self.nbytes += batch.nbytes
                while self.nbytes > self._allowed and len(self._recent) > 1:
                    self.nbytes -= self._recent.popleft()[1].nbytes
            for start, batch in reversed(self._recent):
                if start <= row:
                    return batch, row - start
        raise AssertionError("a batch before the cached ones was requested")

    def _begin(self) -> Iterator[pa.RecordBatch]:
        """Start reading a row group in batches of limited bytes."""
        import pyarrow.parquet as pq

        # The size of all columns: pyarrow crashes on a column's facts if the footer describes it wrongly.
        group = self._table.metadata.row_group(self._group)
        size = group.total_byte_size
        rows = max(1, min(1024, _BATCH_BYTES * group.num_rows // max(1, size)))
        # A row group of speech can have hundreds of megabytes, and few rows are needed at a time.
        file = pq.ParquetFile(self._table.path, metadata=self._table.metadata, buffer_size=_BUFFER_BYTES)
        options: dict[str, Any] = {"row_groups": [self._group], "columns": self._columns, "use_threads": False}
        # A value of many rows is stored once, so rows can be far larger than the row group.
        first = next(file.iter_batches(batch_size=1, **options), None)
        rows = min(rows, max(1, _BATCH_BYTES // max(1, first.nbytes if first is not None else 0)))
        batches: Iterator[pa.RecordBatch] = file.iter_batches(batch_size=rows, **options)
        self._batches = batches
        self._recent.clear()
        self._next = self.nbytes = 0
        return batches


class _TableCache:
    def __init__(self, allowed_bytes: int) -> None:
        self._allowed = allowed_bytes
        self._lock = threading.Lock()
        self._parts: OrderedDict[tuple[Any, ...], _GroupReader] = OrderedDict()

    def reader(self, table: _Table, column: str, group: int) -> _GroupReader:
        """Return the cached reader of a row group; drop the oldest ones."""
        key = (table.identity, column, group)
        with self._lock:
            if key not in self._parts:
                self._parts[key] = _GroupReader(table, column, group, self._allowed // 2)
            self._parts.move_to_end(key)
            # Half of the memory stays free for the next part.
            while len(self._parts) > 1 and (
                len(self._parts) > 4 * _OPEN_FILES or sum(p.nbytes for p in self._parts.values()) > self._allowed // 2
            ):
                self._parts.popitem(last=False)
            return self._parts[key]


_CACHE = _TableCache(CACHED_BYTES)
