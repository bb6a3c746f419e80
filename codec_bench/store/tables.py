"""The tables of a record: row checksums, and a row count per table.

A row's checksum is the CRC-32 of its cells in column order, written by `ascii`, XOR the run's random number; a row of
another run is wrong too. The table `counts` holds each table's number of rows and changes in the same transaction.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from codec_bench.messages import Diagnostic, as_reason, as_remark

_HALVES = re.compile("[\ud800-\udfff]")

_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def json_text(value: Any) -> str:
    """A value as standard JSON, with null for NaN and the infinities."""
    try:
        text = _ENCODE(value)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None), ensure_ascii=False)
    return storable(text) or ""


def storable(text: str | None) -> str | None:
    """A text with U+FFFD for lone surrogates, as in an answer that was cut."""
    return text if text is None or text.isascii() else _HALVES.sub("\ufffd", text)


def reason_text(reason: str | None) -> str | None:
    """Encode a reason for its cell of the record: code and parameters."""
    diagnostic = as_reason(reason)
    return None if diagnostic is None else json_text(diagnostic.as_dict())


def notes_text(notes: Iterable[str]) -> str | None:
    """Encode notes for their cell of the record; None if empty."""
    held = [as_remark(note).as_dict() for note in notes]
    return json_text(held) if held else None


def detail_text(detail: Mapping[str, Any]) -> str | None:
    """Encode the detail of a score for its cell of the record; None if empty."""
    held = {name: value.as_dict() if isinstance(value, Diagnostic) else value for name, value in detail.items()}
    return json_text(held) if held else None


CHECKSUM = "checksum"
IDENTITY = "identity"
"""Entry of `meta` with the number of the run, of 32 bits."""
_CACHE_KIB = 131_072
"""Memory of SQLite for sorting gathered rows; the rest is sorted in files."""
TABLES = """
CREATE TABLE counts (name TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER);
CREATE TABLE systems (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL, checksum INTEGER);
CREATE TABLE metrics (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL, checksum INTEGER);
CREATE TABLE samples (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, audio TEXT, text TEXT, speaker TEXT, language TEXT,
    duration_s REAL, sample_rate_hz INTEGER, channels INTEGER, sound TEXT, checksum INTEGER);
CREATE TABLE extras (number INTEGER PRIMARY KEY, columns TEXT NOT NULL, checksum INTEGER);
CREATE TABLE items (
    system INTEGER NOT NULL, sample INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, bits REAL, notes TEXT,
    audio TEXT, sound TEXT, duration_s REAL, checksum INTEGER, PRIMARY KEY (system, sample)) WITHOUT ROWID;
CREATE TABLE scores (
    system INTEGER NOT NULL, metric INTEGER NOT NULL, sample INTEGER NOT NULL, value REAL, status TEXT NOT NULL,
    reason TEXT, numerator REAL, denominator REAL, detail TEXT, checksum INTEGER,
    PRIMARY KEY (system, metric, sample)) WITHOUT ROWID;
"""
"""SQL statements that create the tables of every record."""
QUESTIONS = """
CREATE TABLE questions (
    number INTEGER PRIMARY KEY, fields TEXT NOT NULL, expected TEXT NOT NULL, subsets TEXT NOT NULL, prompt TEXT,
    audio TEXT, draw_of TEXT, draw INTEGER, checksum INTEGER);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY, status TEXT NOT NULL, reason TEXT, text TEXT, audio TEXT, usage TEXT, latency_s REAL,
    first_s REAL, finish TEXT, cut_s REAL NOT NULL, attempts INTEGER NOT NULL, cached INTEGER NOT NULL, notes TEXT,
    served TEXT, sound_s REAL, reasoning TEXT, checksum INTEGER);
CREATE TABLE readings (
    number INTEGER PRIMARY KEY, transcript TEXT, parsed TEXT, reason TEXT, turns TEXT, code TEXT, checksum INTEGER);
CREATE TABLE turns (id TEXT PRIMARY KEY, answers TEXT NOT NULL, checksum INTEGER);
"""
"""SQL statements that create the further tables of a record of answers."""
_FORMS: dict[str, Callable[[Any], Any]] = {"INTEGER": int, "TEXT": str}


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table, without the checksum.

    Args:
        kinds: `INTEGER`, `REAL` or `TEXT` by column.
        summed: whether rows have checksums.
    """

    name: str
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    key: tuple[str, ...]
    summed: bool

    @property
    def where_key(self) -> str:
        """SQL condition that selects one row by its primary key."""
        return " AND ".join(f"{name} = ?" for name in self.key)

    def key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The key of a row with cells in the order of `columns`."""
        return tuple(row[self.columns.index(name)] for name in self.key)


def address(path: Path, mode: Literal["ro", "rwc"]) -> str:
    """SQLite's URI of a file, for reading or for writing, which creates it."""
    escaped_path = path.resolve().as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{escaped_path}?mode={mode}"


def layouts(db: sqlite3.Connection) -> dict[str, TableLayout]:
    """The tables of a record by name."""
    names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
    return {name: layout_of(db, name) for (name,) in names}


@functools.cache
def layouts_of(sql: str) -> Mapping[str, TableLayout]:
    """The tables that SQL statements create."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(sql)
        return layouts(db)


def layout_of(db: sqlite3.Connection, table: str) -> TableLayout:
    """One table; without columns if it does not exist."""
    table_columns = db.execute("SELECT name, type, pk FROM pragma_table_info(?)", (table,)).fetchall()
    columns = [(name, kind.upper()) for name, kind, _ in table_columns if name != CHECKSUM]
    key = [name for name, _, position in sorted(table_columns, key=lambda column: column[2]) if position]
    names, kinds = zip(*columns) if columns else ((), ())
    return TableLayout(table, names, kinds, tuple(key), len(columns) < len(table_columns))


def row_checksum(cells: Sequence[Any], identity: int) -> int:
    """Checksum of a row: of its cells as SQLite returns them, and of its run's number."""
    return crc32(ascii(tuple(cells)).encode()) ^ identity


def identity_of(db: sqlite3.Connection, schema: str = "main") -> int:
    """The number of the run of a record; 0 if it has none."""
    row = db.execute(f"SELECT value FROM {schema}.meta NOT INDEXED WHERE key = ?", (IDENTITY,)).fetchone()
    return int(row[0]) if row and re.fullmatch("[0-9]{1,10}", str(row[0])) else 0


def checksum_of(identity: int) -> str:
    """SQL expression of a row's checksum XOR a number; SQLite has no such operator."""
    return f"({CHECKSUM} | {identity}) - ({CHECKSUM} & {identity})"


def stored(value: Any, kind: str) -> Any:
    """The value that SQLite returns after storing it in a column of type `kind`."""
    if value is None:
        return None
    if kind == "REAL":
        number = float(value)
        return None if math.isnan(number) else number + 0.0  # SQLite keeps no NaN and no negative zero
    return _FORMS[kind](value)


class RowWriter:
    """Writes rows with their checksums and counts, inside `transaction`."""

    def __init__(self, db: sqlite3.Connection, identity: int, held: dict[str, TableLayout] | None = None) -> None:
        self._db, self._identity = db, identity
        self._grown: Counter[str] = Counter()
        self.layouts = layouts(db) if held is None else held

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything inside together, or not at all after an exception."""
        self._grown.clear()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.executemany(
                "INSERT INTO counts VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET rows = rows + ?2",
                [(table, grown) for table, grown in self._grown.items() if grown],
            )
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        clash: Literal["refuse", "ignore", "replace"] = "refuse",
    ) -> None:
        """Write rows with cells in the order of `columns`; other columns stay empty.

        Args:
            clash: for a key in the table: `refuse` raises `sqlite3.IntegrityError`, `ignore` keeps the old row,
                `replace` deletes it first.
        """
        layout = self.layouts[table]
        sql, places = _inserting(layout, tuple(columns), clash == "ignore")
        summed: Iterable[tuple[Any, ...]] = self._with_checksums(len(layout.columns), places, rows)
        if clash == "replace":
            summed, before = list(summed), self._db.total_changes
            try:  # most rows are new, and to look for each before it is written doubles the work
                self._db.executemany(sql, summed)
            except sqlite3.IntegrityError:
                self._grown[table] += self._db.total_changes - before
                self.delete(table, layout.where_key, list(map(layout.key_of, summed)))
            else:
                self._grown[table] += self._db.total_changes - before
                return
        self._grown[table] += max(self._db.executemany(sql, summed).rowcount, 0)

    def delete(self, table: str, where: str, values: Sequence[Sequence[Any]] = ((),)) -> None:
        """Delete the rows of an SQL condition, once for each of `values`."""
        self._grown[table] -= max(self._db.executemany(f"DELETE FROM {table} WHERE {where}", values).rowcount, 0)

    def change(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Change cells of existing rows; `rows`: a key and its cells of `columns` each."""
        layout = self.layouts[table]
        names = ", ".join(layout.columns)
        places = [layout.columns.index(name) for name in columns]
        for row in rows:
            key, cells = row[: len(layout.key)], row[len(layout.key) :]
            before = self._db.execute(f"SELECT {names} FROM {table} WHERE {layout.where_key}", key).fetchone()
            if before is None:
                continue
            now = list(before)
            for position, cell in zip(places, cells):
                now[position] = stored(cell, layout.kinds[position])
            if now == list(before):
                continue
            changed = ", ".join(f"{name} = ?" for name in (*columns, CHECKSUM))
            self._db.execute(
                f"UPDATE {table} SET {changed} WHERE {layout.where_key}",
                (*(now[position] for position in places), row_checksum(now, self._identity), *key),
            )

    def _with_checksums(
        self, width: int, places: Sequence[tuple[int, str]], rows: Iterable[Sequence[Any]]
    ) -> Iterator[tuple[Any, ...]]:
        """Place the cells of rows in the table's columns, and add a checksum."""
        for row in rows:
            cells: list[Any] = [None] * width
            for (position, kind), cell in zip(places, row):
                if cell is not None:
                    cells[position] = stored(cell, kind)
            yield (*cells, row_checksum(cells, self._identity))

    def make_tables(self, sql: str) -> None:
        """Create the tables of a new record."""
        for statement in sql.split(";"):
            self._db.execute(statement)
        self.layouts = layouts(self._db)


def gather(db: sqlite3.Connection, tables: Sequence[TableLayout], records: Sequence[Path]) -> None:
    """Copy the rows of several records into `db`, in key order; keys must be disjoint."""
    ((database_path,),) = db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'")
    db.execute("ATTACH ? AS heap", (address(Path(f"{database_path}.heap"), "rwc"),))
    db.execute("PRAGMA heap.journal_mode = OFF")
    db.execute("PRAGMA heap.synchronous = OFF")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    for layout in tables:
        db.execute(f"CREATE TABLE heap.{layout.name} ({', '.join((*layout.columns, CHECKSUM))})")
    for record in records:
        db.execute("ATTACH ? AS part", (address(record, "ro"),))
        checksum = checksum_of(identity_of(db) ^ identity_of(db, "part"))
        for layout in tables:
            cells = ", ".join((*layout.columns, checksum))
            db.execute(f"INSERT INTO heap.{layout.name} SELECT {cells} FROM part.{layout.name}")
        db.execute("DETACH part")
    for layout in tables:
        cells = ", ".join((*layout.columns, CHECKSUM))
        order = ", ".join(layout.key)
        done = db.execute(
            f"INSERT INTO main.{layout.name} ({cells}) SELECT {cells} FROM heap.{layout.name} ORDER BY {order}"
        )
        db.execute(
            "INSERT INTO counts VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET rows = rows + ?2",
            (layout.name, max(done.rowcount, 0)),
        )
    db.execute("DETACH heap")
    Path(f"{database_path}.heap").unlink()


@functools.cache
def _inserting(layout: TableLayout, columns: tuple[str, ...], ignore: bool) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The SQL to insert a row, and (index in the row, SQL type) of each column."""
    names, marks = ", ".join((*layout.columns, CHECKSUM)), ", ".join("?" * (len(layout.columns) + 1))
    places = [layout.columns.index(name) for name in columns]
    verb = "INSERT OR IGNORE" if ignore else "INSERT"
    sql = f"{verb} INTO {layout.name} ({names}) VALUES ({marks})"
    return sql, tuple((position, layout.kinds[position]) for position in places)
