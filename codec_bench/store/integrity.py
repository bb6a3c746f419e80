"""Checks that a run record is whole; a damaged one is refused in one sentence.

Opening checks header, length, tables, checksums of small tables, and row counts: under a second for a million items.
Before the first row is read, the content is checked: by `run.seal` (length and hash, written when a writer closes), or
row by row without a seal (a running or killed run). Files of different moments are refused too: a closed record next to
SQLite's log or journal, which SQLite would apply, and a record older than the results next to it.
"""

from __future__ import annotations

import html
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from codec_bench.messages import Diagnostic, is_code, read
from codec_bench.messages.errors import DamagedRecord, UserError, on_disk
from codec_bench.store.files import write_json
from codec_bench.store.tables import (
    CHECKSUM,
    IDENTITY,
    QUESTIONS,
    TABLES,
    TableLayout,
    address,
    identity_of,
    layouts,
    layouts_of,
    row_checksum,
)

SCHEMA = 6
DATABASE = "run.sqlite"
SEAL = "run.seal"
SMALL = ("meta", "systems", "metrics")
"""Tables that are read whole whenever a record is opened."""
MAPPINGS = tuple("config fingerprint versions machine timings data how benchmark answering arguments".split())
"""Entries of `meta` that other modules read as mappings."""
_MAGIC = b"SQLite format 3\0"
_VERSIONS = slice(18, 20)
"""Position in the header of the write and read version: 1, or 2 with a write-ahead log."""
_HASH = "blake2b"
_OF_THE_FILE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOG, _JOURNAL = "-wal", "-journal"
RUN_JSON, SUMMARY_JSON, PAGE = RESULTS = ("run.json", "summary.json", "report.html")
"""Files next to a record that state which version of it they were made from."""
STATE_OF_RECORD = "record"
"""Field of `summary.json` with the state of its record; `run.json` has the same entries at the top."""
_STATE_IN_PAGE = re.compile(rb'<meta name="codec-bench-record" content="([^"]*)">')
_HEAD_OF_PAGE = 4096
GENERATION = "generation"
"""Entry of `meta` that counts how often the record was opened for writing."""
_UNFINISHED = {"running": 0, "answering": 0, "answered": 1}
_FINISHED = 2


def damaged(path: Path, fault: str, **parameters: Any) -> DamagedRecord:
    """The error for a damaged record, with a hint.

    Args:
        fault: a code with its `parameters`, or what SQLite says.
    """
    return DamagedRecord(
        "record_damaged",
        path=path,
        fault=Diagnostic(fault, **parameters) if is_code(fault) else fault,
        hint=f"codec-bench verify {path.parent} shows the rest, codec-bench rescue {path.parent} --out NEW saves it",
    )


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite's error means a broken file, not a full disk or a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_FILE


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as DamagedRecord if the file is broken, else as UserError."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
        raise  # a defect of this program, not of the file
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        # Errors of SQLite's JSON functions, and text that is not UTF-8, have no separate code.
        if code in (*_OF_THE_FILE, sqlite3.SQLITE_ERROR, 0):
            raise damaged(path, str(error)) from error
        raise UserError("record_unreadable", path=path, cause=error) from error
    except UnicodeDecodeError as error:  # Python quotes the text that is not UTF-8, and fails at that
        raise damaged(path, "text_not_utf8") from error


def connect(path: Path) -> sqlite3.Connection:
    """Open a record for reading, or raise DamagedRecord."""
    check_journals(path)
    if _has_bytes(path, _JOURNAL):
        # The writer was killed while closing it. The unfinished write must be undone, which a reader may not.
        with suppress(sqlite3.Error), closing(sqlite3.connect(address(path, "rwc"), uri=True)) as db:
            db.execute("SELECT COUNT(*) FROM sqlite_master")
    # Threads may share the connection: it is read-only, and SQLite runs one query at a time.
    return sqlite3.connect(address(path, "ro"), uri=True, check_same_thread=False)


def has_started(path: Path) -> bool:
    """Whether a file contains a table; a run killed at its start has none."""
    if not path.is_file() or not path.stat().st_size:
        return False
    with closing(connect(path)) as db, reading(path):
        tables, pages = (
            db.execute(sql).fetchone()[0] for sql in ("SELECT COUNT(*) FROM sqlite_master", "PRAGMA page_count")
        )
    if not tables and pages > 1:
        raise damaged(path, "pages_without_tables", pages=pages)
    return bool(tables)


def json_cell(text: Any, path: Path, where: str) -> Any:
    """Parse a cell of JSON; the only way to read one, or raise DamagedRecord."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(path, "cell_not_json", cell=where, cause=str(error).splitlines()[0]) from error


def diagnostic_of(held: Any, path: Path, where: str) -> Diagnostic:
    """A reason, note or flag from its JSON value, or raise DamagedRecord."""
    try:
        return read(held)
    except ValueError as error:
        raise damaged(path, "cell_without_code", cell=where, cause=error) from error


# ---- when a record is opened ----


def check_header(path: Path) -> None:
    """Raise DamagedRecord for a cut or grown file, UserError for another file."""
    with on_disk("file_not_readable", path=path):
        with path.open("rb") as file:
            head = file.read(100)
            size = os.fstat(file.fileno()).st_size
    if size == 0 and read_seal(path.parent) is None:
        raise UserError("record_empty", path=path, hint="run the same command again")
    if len(head) < 100 or not head.startswith(_MAGIC):
        raise damaged(path, "record_begins_otherwise", bytes=size)
    if not set(head[_VERSIONS]) <= {1, 2}:  # SQLite would read a later one, and refuse to write it
        raise damaged(path, "header_form_unknown")
    # Changes that are not in the file yet may have moved its end.
    if any(_has_bytes(path, more) for more in (_LOG, _JOURNAL)):
        return
    page = int.from_bytes(head[16:18], "big")
    expected = int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)
    counted = head[24:28] == head[92:96]  # only then is the number of pages in the header that of the file
    if counted and size != expected:
        raise damaged(path, "record_size", bytes=size, expected=expected)


def _has_bytes(path: Path, suffix: str) -> bool:
    with suppress(OSError):
        return os.path.getsize(f"{path.resolve()}{suffix}") > 0  # SQLite looks next to the file that a link leads to
    return False


def check_journals(path: Path) -> None:
    """Check that SQLite's log or journal next to a record belongs to it.

    A writer removes the seal before it makes a log, and the log before it writes the seal or resets the header's
    version.

    Raises:
        DamagedRecord: the record is closed, and another copy left the log or journal.
    """
    for suffix in (_LOG, _JOURNAL):
        if not _has_bytes(path, suffix):
            continue
        closed = (path.parent / SEAL).exists() or (suffix == _LOG and _is_without_log(path))
        if closed and _has_bytes(path, suffix):  # a second look: a writer may have closed the record in this moment
            raise DamagedRecord(
                "journal_of_other_state", path=f"{path.resolve()}{suffix}", hint=_what_to_delete(path, suffix)
            )


def _what_to_delete(path: Path, suffix: str) -> str:
    """A hint for a journal that does not fit its record: delete it, or copy again."""
    again, file = "copy the folder again, into an empty one", f"{path.resolve()}{suffix}"
    seal = read_seal(path.parent)
    if seal is None:
        return f"delete {file}, or {again}"
    return f"delete {file}: the record is complete without it" if seal_of(path) == seal else again


def _is_without_log(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        head = file.read(100)
        return head.startswith(_MAGIC) and head[_VERSIONS] == bytes([1, 1])
    return False


def state_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """State of a record by its `meta`, for the files derived from it."""
    return {name: meta.get(name) for name in (IDENTITY, GENERATION, "state")}


def _order(state: Mapping[str, Any]) -> tuple[int, int]:
    """A key that orders the states of one record in time."""
    generation, name = state.get(GENERATION), state.get("state")
    return (
        generation if isinstance(generation, int) else 0,
        _UNFINISHED.get(name, _FINISHED) if isinstance(name, str) else 0,
    )


def check_results(path: Path, meta: Mapping[str, Any]) -> None:
    """Raise DamagedRecord if a result next to a record is of a later state."""
    for name in RESULTS:
        source_state = state_in(path.parent / name)
        if meta and source_state.get(IDENTITY) != meta.get(IDENTITY):  # of another run, which says nothing of this one
            continue
        order = _order(source_state)
        if order[1] and order > _order(meta):
            raise DamagedRecord(
                "record_older",
                path=path,
                name=name,
                hint=f"copy the folder again, into an empty one; or delete {', '.join(RESULTS)} to use this record",
            )


def state_in(path: Path) -> dict[str, Any]:
    """State of the record in a file of `RESULTS`; empty if missing."""
    with suppress(OSError, ValueError, RecursionError), path.open("rb") as file:
        if path.name == PAGE:
            match = _STATE_IN_PAGE.search(file.read(_HEAD_OF_PAGE))
            held = json.loads(html.unescape(match[1].decode())) if match else None
        else:
            held = json.load(file)
            held = held.get(STATE_OF_RECORD) if path.name == SUMMARY_JSON and isinstance(held, dict) else held
        return state_of(held) if isinstance(held, dict) else {}
    return {}


def check_opened(db: sqlite3.Connection, path: Path) -> None:
    """Check schema, tables, small tables and row counts, or raise DamagedRecord."""
    with reading(path):
        db.execute("BEGIN")  # rows and their counts are of one moment, also while the record is being written
        try:
            tables = layouts(db)
            _check_schema(db, path, tables)
            _check_definitions(path, tables)
            for name in SMALL:
                check_table(db, path, tables[name])
            _check_counts(db, path)
        finally:
            db.execute("ROLLBACK")


def _check_schema(db: sqlite3.Connection, path: Path, tables: Mapping[str, TableLayout]) -> None:
    """Raise an error for a file without a record, or one of another schema version."""
    if "meta" not in tables:
        if not tables and (read_seal(path.parent) is not None or has_started(path)):
            raise damaged(path, "closed_without_tables")
        other = f"it has the tables {', '.join(sorted(tables))}" if tables else "it has no tables"
        raise UserError("not_a_record", path=path, cause=other)
    row = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    schema = json_cell(row[0], path, "its schema") if row is not None else None
    if schema != SCHEMA:
        raise UserError(
            "record_schema",
            path=path,
            schema=schema,
            expected=SCHEMA,
            hint="read it with the version of codec-bench that wrote it",
        )


def _check_definitions(path: Path, tables: Mapping[str, TableLayout]) -> None:
    answers = tables.keys() & layouts_of(QUESTIONS).keys()
    written = layouts_of(TABLES + QUESTIONS if answers else TABLES)
    for name in (*written, *tables):
        if tables.get(name) != written.get(name):
            raise damaged(path, "table_missing", table=name)


def _check_counts(db: sqlite3.Connection, path: Path) -> None:
    expected = dict(db.execute("SELECT name, rows FROM counts").fetchall())
    for name in (name for name, layout in layouts(db).items() if layout.summed):
        count = db.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]
        if expected.get(name, 0) != count:
            raise damaged(path, "table_row_count", table=name, rows=count, expected=expected.get(name, 0))


def check_table(db: sqlite3.Connection, path: Path, layout: TableLayout) -> None:
    """Check every row of a table, or raise DamagedRecord."""
    identity = identity_of(db)
    # NOT INDEXED: an index is not read, since it is only a copy.
    for *cells, checksum in db.execute(
        f"SELECT {', '.join(layout.columns)}, {CHECKSUM} FROM {layout.name} NOT INDEXED"
    ):
        if row_checksum(cells, identity) != checksum:
            named = ", ".join(map(str, layout.key_of(cells)))
            raise damaged(path, "table_row_changed", table=layout.name, row=named)


# ---- before the first row is read ----


@dataclass(frozen=True, slots=True)
class Seal:
    """Length and hash of a record when it was closed."""

    bytes: int
    hash: str


def seal_of(path: Path) -> Seal:
    """The seal of the present content of a file."""
    with path.open("rb") as file:
        digest = file_digest(file, _HASH).hexdigest()
        return Seal(file.tell(), digest)


def read_seal(folder: Path) -> Seal | None:
    """The seal of a closed record in a folder; None if there is no file.

    Raises:
        DamagedRecord: the file holds no seal.
        UserError: the file cannot be read.
    """
    path = folder / SEAL
    try:
        with on_disk("file_not_readable", path=path):
            held = json.loads(path.read_bytes())
        if isinstance(held, dict) and isinstance(held.get("bytes"), int) and isinstance(held.get(_HASH), str):
            return Seal(held["bytes"], held[_HASH])
    except UserError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        if isinstance(error.__cause__, OSError):
            raise
    except (ValueError, RecursionError):
        pass
    raise DamagedRecord(
        "not_a_seal", path=path, hint="copy it again; or delete it, and the rows of the record are checked one by one"
    )


def check_seal(path: Path) -> bool:
    """Check a record by its seal; False if it has none, or raise DamagedRecord."""
    seal = read_seal(path.parent)
    while seal is not None:
        with on_disk("file_not_readable", path=path):
            if seal_of(path) == seal:
                return True
        again = read_seal(path.parent)
        if again == seal:
            raise damaged(path, "seal_broken", seal=SEAL)
        seal = again  # it was opened for writing in this moment
    return False


def write_seal(folder: Path) -> None:
    """Write the seal of a closed record; UserError if it cannot be written."""
    seal = seal_of(folder / DATABASE)
    write_json(folder / SEAL, {"bytes": seal.bytes, _HASH: seal.hash})


def remove_seal(folder: Path) -> None:
    """Remove the seal of a record that is about to change, durably."""
    (folder / SEAL).unlink(missing_ok=True)
    with suppress(OSError):  # not every file system can do that for a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_content(path: Path) -> None:
    """Check every row of a record, or its seal; raises DamagedRecord."""
    if check_seal(path):
        return
    check_pages(path)
    with closing(connect(path)) as db, reading(path):
        db.execute("BEGIN")
        for layout in layouts(db).values():
            if layout.summed:
                check_table(db, path, layout)


def check_pages(path: Path) -> None:
    """Check the file's structure and its indexes, or raise DamagedRecord."""
    with closing(connect(path)) as db, reading(path):
        result = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if result != "ok":
        raise damaged(path, " ".join(result.split()))
