"""Find the intact rows (correct checksums) and items of a damaged record.

If reading in order fails, rows are read from the other end, and those between one by one.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.config.paths import hint_for_path
from codec_bench.messages.errors import UserError
from codec_bench.store.integrity import DATABASE, SCHEMA, connect
from codec_bench.store.tables import (
    CHECKSUM,
    QUESTIONS,
    TABLES,
    TableLayout,
    identity_of,
    layout_of,
    layouts_of,
    row_checksum,
)

MOST_ENTRIES = 1_000
"""Rows to try one by one in a table of unknown length."""
REQUIRED = ("meta", "systems", "metrics", "samples", "items", "scores")
"""Tables without which nothing can be saved; lost extras or readings are made again."""
ANSWERING = ("questions", "answers")
OWN_TURN = "assistant: "
"""Start of a model's answer in the prompt of a later round."""


@dataclass(frozen=True, slots=True)
class TableState:
    """Rows of one table: written (None if unknown) and intact."""

    expected: int | None
    intact: int

    @property
    def missing(self) -> int:
        """Known number of damaged or missing rows."""
        return max((self.expected or 0) - self.intact, 0)


@dataclass(slots=True)
class Survey:
    """Intact rows of a damaged record.

    Args:
        parts: the tables by name.
        items: (system, sample) of intact items with all their scores.
        answers: numbers of questions with intact answers; None without questions.
    """

    path: Path
    meta: dict[str, Any]
    parts: dict[str, TableState] = field(default_factory=dict)
    systems: Sequence[int] = ()
    metrics: Sequence[int] = ()
    samples: set[int] = field(default_factory=set)
    items: set[tuple[int, int]] = field(default_factory=set)
    missing_items: int = 0
    answers: set[int] | None = None
    missing_answers: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether no row is damaged or missing."""
        return not (self.missing_items or self.missing_answers or any(table.missing for table in self.parts.values()))

    def rows(self, table: str) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
        """Rows of a table to save, each with the names of its cells."""
        with closing(_open_damaged(self.path)) as db:
            layout = _tables(db)[table]
            reach = (self.systems, self.metrics, max(self.samples, default=-1) + 1)
            for cells in _Reader(db, reach).rows(layout):
                if self._belongs(table, dict(zip(layout.columns, cells))):
                    yield layout.columns, cells

    def _belongs(self, table: str, row: Mapping[str, Any]) -> bool:
        """Whether a row is of an item or answer that can be saved."""
        if table in ("items", "scores"):
            return (row["system"], row["sample"]) in self.items
        if table == "samples":
            return row["number"] in (self.samples if self.answers is None else self.answers)
        if self.answers is not None and table in (*ANSWERING, "readings"):
            return row["number"] in self.answers
        return True


def survey(folder: Path) -> Survey:
    """Read all intact rows of the record in a folder; raises UserError."""
    path = folder / DATABASE
    if not path.is_file():
        hint = hint_for_path(folder, "name the folder of --out")
        raise UserError("not_a_run_folder", folder=folder, database=DATABASE, hint=hint)
    try:
        with closing(_open_damaged(path)) as db:
            return _survey(db, path)
    except sqlite3.Error as error:
        raise UserError("nothing_to_save", path=path, cause=error, hint="run it again") from error


def _open_damaged(path: Path) -> sqlite3.Connection:
    """Open a record that may be cut or hold text that is not UTF-8."""
    db = connect(path)
    db.execute("PRAGMA writable_schema = ON")  # SQLite then also reads a file that is shorter than its header says
    db.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return db


def _survey(db: sqlite3.Connection, path: Path) -> Survey:
    """Count the intact rows of each table, and find the items that can be saved."""
    tables = _tables(db)
    meta = _read_meta(db, tables["meta"]) if "meta" in tables else {}
    answering = isinstance(meta.get("fingerprint"), dict) and "asked" in meta["fingerprint"]
    for name in (*REQUIRED, *(ANSWERING if answering else ())):
        if name not in tables:
            raise UserError("table_lost", path=path, name=name, hint="run it again")
    if meta.get("schema") != SCHEMA or not isinstance(meta.get("fingerprint"), dict):
        raise UserError("entries_lost", path=path, hint="run it again")
    result = Survey(path, meta)
    expected = _expected_rows(db, tables)
    small = _Reader(db, ((), (), max(expected.get("samples", 0), _requested_samples(meta))))
    numbers = {name: {cells[0] for cells in small.rows(tables[name])} for name in ("systems", "metrics", "samples")}
    result.systems, result.metrics = sorted(numbers["systems"]), sorted(numbers["metrics"])
    result.samples = numbers["samples"]
    result.parts = {"meta": TableState(expected.get("meta"), len(meta))}
    result.parts |= {name: TableState(expected.get(name), len(held)) for name, held in numbers.items()}
    reader = _Reader(db, (result.systems, result.metrics, max(small.most, max(result.samples, default=-1) + 1)))
    if answering:
        _survey_answers(result, reader, tables, expected)
    _survey_items(result, reader, tables, expected)
    for name, layout in tables.items():
        if name not in result.parts and layout.summed:
            result.parts[name] = TableState(expected.get(name), sum(1 for _ in reader.rows(layout)))
    return result


def _tables(db: sqlite3.Connection) -> dict[str, TableLayout]:
    return {name: known for name, known in layouts_of(TABLES + QUESTIONS).items() if layout_of(db, name) == known}


def _survey_answers(
    result: Survey, reader: _Reader, tables: Mapping[str, TableLayout], expected: Mapping[str, int]
) -> None:
    """Find answers whose question, sample and earlier turns are intact; count others."""
    held = {name: {cells[0] for cells in reader.rows(tables[name])} for name in ANSWERING}
    for name, numbers in held.items():
        result.parts[name] = TableState(expected.get(name), len(numbers))
    result.answers = (
        result.samples & held["questions"] & held["answers"] - _without_turns(result, reader, tables, expected)
    )
    result.missing_answers = max(expected.get("answers", 0), len(held["answers"])) - len(result.answers)


def _without_turns(
    result: Survey, reader: _Reader, tables: Mapping[str, TableLayout], expected: Mapping[str, int]
) -> set[int]:
    """Numbers of answers whose earlier turns were lost, and so are not saved."""
    cells_of = lambda table, *names: (  # noqa: E731
        tuple(cells[tables[table].columns.index(name)] for name in names) for cells in reader.rows(tables[table])
    )
    held = {id for (id,) in cells_of("turns", "id")} if "turns" in tables else set()
    turns_state = TableState(expected.get("turns"), len(held))
    if "turns" in tables:
        result.parts["turns"] = turns_state
    if not turns_state.missing:
        return set()
    # Nothing says whose turns they were: an answer whose prompt has a turn of the model's own is whole only with its
    # turns.
    ids = dict(cells_of("samples", "number", "id"))
    return {
        number
        for number, prompt in cells_of("questions", "number", "prompt")
        if OWN_TURN in (prompt or "") and ids.get(number) not in held
    }


def _survey_items(
    result: Survey, reader: _Reader, tables: Mapping[str, TableLayout], expected: Mapping[str, int]
) -> None:
    """Find the intact items that have all their scores and readings."""
    scored: Counter[tuple[int, int]] = Counter()
    at = [tables["scores"].columns.index(name) for name in ("system", "sample", "metric")]
    count = 0
    for cells in reader.rows(tables["scores"]):
        count += 1
        scored[cells[at[0]], cells[at[1]]] += cells[at[2]] in result.metrics
    result.parts["scores"] = TableState(expected.get("scores"), count)
    complete = {tables["items"].key_of(cells) for cells in reader.rows(tables["items"])}
    result.parts["items"] = TableState(expected.get("items"), len(complete))
    saved = {(system, sample) for system, sample in complete if sample in result.samples}
    if result.answers is not None:
        saved = {key for key in saved if key[1] in result.answers}
    if result.parts["scores"].missing or result.parts["metrics"].missing or reader.failed:
        # A score was lost, and nothing says whose it was: an item is whole only if it has one of each metric.
        every = max(expected.get("metrics", 0), len(result.metrics))
        saved = {key for key in saved if scored[key] == every}
    if "readings" in tables:
        readings = {cells[0] for cells in reader.rows(tables["readings"])}
        result.parts["readings"] = TableState(expected.get("readings"), len(readings))
        if result.parts["readings"].missing:
            saved = {key for key in saved if key[1] in readings}
    result.items = saved
    result.missing_items = max(expected.get("items", 0), len(complete)) - len(saved)


def _read_meta(db: sqlite3.Connection, layout: TableLayout) -> dict[str, Any]:
    """Read the readable entries of the table `meta`."""
    held = {}
    for cells in _Reader(db, ((), (), 0)).rows(layout):
        try:
            held[cells[layout.columns.index("key")]] = json.loads(cells[layout.columns.index("value")])
        except (ValueError, TypeError, RecursionError):
            continue
    return held


def _expected_rows(db: sqlite3.Connection, tables: Mapping[str, TableLayout]) -> dict[str, int]:
    """Read the recorded numbers of rows by table; empty if unreadable."""
    if "counts" not in tables:
        return {}
    try:
        rows = db.execute("SELECT name, rows FROM counts").fetchall()
    except sqlite3.Error:
        return {}
    return {name: count for name, count in rows if isinstance(name, str) and isinstance(count, int)}


def _requested_samples(meta: Mapping[str, Any]) -> int:
    data = meta.get("data")
    samples = data.get("samples") if isinstance(data, dict) else None
    return samples if isinstance(samples, int) else 0


class _Reader:
    """Reads intact rows of a table; `failed` if one was damaged.

    Args:
        reach: numbers of systems and of metrics, and the largest number of samples, to try one by one.
    """

    def __init__(self, db: sqlite3.Connection, reach: tuple[Sequence[int], Sequence[int], int]) -> None:
        self._db, self._identity = db, identity_of(db)
        systems, metrics, self.most = reach
        self._of = {"system": systems, "metric": metrics}
        self.failed = False

    def rows(self, layout: TableLayout) -> Iterator[tuple[Any, ...]]:
        """The cells of each intact row, once, in the order of the table's columns."""
        named = layout.key if all(name in (*self._of, "sample", "number") for name in layout.key) else ("rowid",)
        last = named[-1]
        columns = ", ".join((*layout.columns, CHECKSUM))
        for prefix in itertools.product(*(self._of[name] for name in named[:-1])):
            where = " AND ".join([*(f"{name} = ?" for name in named[:-1]), f"{last} BETWEEN ? AND ?"])
            sql = f"SELECT {last}, {columns} FROM {layout.name} NOT INDEXED WHERE {where} ORDER BY {last}"
            for row in self._through(sql, prefix):
                if row_checksum(row[:-1], self._identity) == row[-1]:
                    yield row[:-1]
                else:
                    self.failed = True

    def _through(self, sql: str, prefix: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield a damaged table's readable rows: forwards, backwards, then key by key.

        Args:
            sql: a query of (key, cells...) that ends with `key BETWEEN ? AND ? ORDER BY key`; the key is cut off.
            prefix: values of its earlier placeholders.
        """
        low, high = 0, max(self.most, MOST_ENTRIES) - 1  # a damaged key may say anything
        try:
            for position, *row in self._db.execute(sql, (*prefix, low, 2**62)):
                if not isinstance(position, int) or position < low:
                    continue  # a damaged page repeats itself
                yield tuple(row)
                low = position + 1
            return
        except sqlite3.Error:
            self.failed = True
        above = 2**62
        try:
            for position, *row in self._db.execute(f"{sql} DESC", (*prefix, low, above)):
                if isinstance(position, int) and low <= position < above:
                    yield tuple(row)
                    above = position
        except sqlite3.Error:
            pass
        for number in range(low, min(high + 1, above)):
            try:
                row = self._db.execute(sql, (*prefix, number, number)).fetchone()
            except sqlite3.Error:
                continue
            if row is not None and row[0] == number:
                yield tuple(row[1:])
