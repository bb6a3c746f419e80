"""Rows of a manifest: JSON lines, CSV, TSV or Parquet, read as a stream.

Column names are case-insensitive. A field is read from the column with its name, else from its first alias. Paths are
relative to the manifest's folder. An error in one row is that row's problem; an error of the whole file raises
`UserError`. CSV follows RFC 4180. In TSV a quote is an ordinary character, unless it encloses a whole cell with doubled
inner quotes, as spreadsheets write it. Such a cell may hold tabs and line breaks, unless the lines without it have all
cells of the header.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from codec_bench.data.remote import joined
from codec_bench.data.rows import ALIASES, NOTHING, PROBLEM, DoubleKey, Position, Row, parse_json
from codec_bench.decoding.table import Locator
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk

Cells = tuple[int, tuple[str, ...], Sequence[Any], Diagnostic | None]  # number, column names, values, problem
_ROWS_AT_ONCE = 16_384
_MOST_LINES = 1_000
"""The most lines of a quoted cell of a TSV file."""
_MOST_LAYOUTS = 256
MOST_COLUMNS = 10_000
"""The most columns of a manifest."""
MOST_CHARACTERS = 500_000
"""The most characters of a cell (nine hours of speech). Parquet may repeat a long text in every row at no cost."""


class Columns:
    """The columns of the known fields, and the remaining columns."""

    def __init__(self, names: Sequence[str]) -> None:
        plain = [name.strip().lower() for name in names]
        self.at = {
            field: plain.index(alias_present)
            for field, aliases in ALIASES.items()
            if (alias_present := next((alias for alias in aliases if alias in plain), None)) is not None
        }
        self.twice = next((name for name, count in Counter(plain).items() if count > 1), None)
        known = set(self.at.values())
        # The name `problem` marks a bad row, so a user's column of that name gets another one.
        self.further = [
            (at, sys.intern(name + "_" if name == PROBLEM else name))
            for at, name in enumerate(names)
            if at not in known
        ]


class CellSound(NamedTuple):
    """A cell's sound: in the cell, or in a file outside the manifest's folder.

    Args:
        path: a path that `Audio.read` takes.
        name: the original name of the file, for ids, or None.
    """

    path: str
    name: str | None


class _BadCell(Exception):
    """Raised for an unusable value, with the reason."""


def _text(value: Any, field: str) -> str | None:
    """Convert a manifest's cell to text; None for a missing value.

    Raises:
        _BadCell: it is too long, not UTF-8 or no text or number.
    """
    if isinstance(value, str):
        if len(value) > MOST_CHARACTERS:
            raise _BadCell(Diagnostic("cell_too_long", field=field, characters=len(value), most=MOST_CHARACTERS))
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _BadCell(Diagnostic("cell_not_utf8", field=field)) from None
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise _BadCell(Diagnostic("cell_type", type=type(value).__name__, field=field))


def make_row(
    number: int, columns: Columns, names: Sequence[str], values: Sequence[Any], folder: str, needed: Sequence[str]
) -> Row:
    """Build a sample's row from its cells; an unusable one gets a problem.

    The problem continues a text such as `line 7 of x.jsonl`.

    Args:
        number: of the line or row, from 1.
        columns: the fields of these names.
        names: the column names.
        values: one for each name; sounds as `CellSound`.
        folder: where relative paths begin.
        needed: a row must have at least one of these fields.
    """
    problem = None
    cells: dict[str, str | None] = {}
    stems: dict[str, str | None] = {}
    for field, at in columns.at.items():
        value = values[at]
        try:
            if isinstance(value, CellSound) and field in ("audio", "estimate"):
                cells[field], stems[field] = value
            else:
                cells[field] = stems[field] = _text(value, field)
                if field in ("audio", "estimate") and (path := cells[field]):
                    cells[field] = joined(folder, path)
        except _BadCell as bad:
            problem = problem or bad.args[0]
    if problem is None and all(not cells.get(field) for field in needed):
        problem = Diagnostic("row_lacks", fields=", ".join(needed), known=", ".join(names))

    speaker, language = cells.get("speaker"), cells.get("language")
    extra = {name: value for at, name in columns.further if (value := values[at]) is not None}
    return Row(
        number,
        cells.get("id") or None,
        None if problem else stems.get("audio") or stems.get("estimate") or None,
        cells.get("audio") or None,
        cells.get("text"),
        sys.intern(speaker) if speaker else None,
        sys.intern(language) if language else None,
        cells.get("estimate") or None,
        extra or NOTHING,
        problem,
    )


def read_manifest(
    path: str, *, require_audio: bool, folder: str | None = None, kind: str | None = None
) -> Iterator[Row]:
    """Yield the rows of a manifest (JSON lines, CSV, TSV or Parquet), in order.

    Args:
        path: absolute.
        folder: where relative paths begin, possibly a URL; None for the manifest's own.
        kind: the suffix of its format; None for the path's own.
        require_audio: whether a row needs reference audio. If not, it needs audio, generated audio or a text.

    Raises:
        UserError: the file is of no known kind, cannot be read as its kind, or lacks a needed column.
    """
    kind = kind or os.path.splitext(path)[1].lower()
    if kind not in READERS:
        raise UserError(
            "not_a_manifest",
            path=path,
            known=", ".join(READERS),
            hint=f"own code is named by its file and its class: {path}:CLASS" if kind == ".py" else None,
        )
    table_name, folder = os.path.basename(path), folder or os.path.dirname(path)
    needed = ("audio",) if require_audio else ("audio", "estimate", "text")
    layouts: dict[tuple[str, ...], Columns] = {}
    with on_disk("file_not_readable", path=path):
        for number, names, values, problem in READERS[kind](path, needed):
            if problem is None:
                if names not in layouts:
                    if len(layouts) == _MOST_LAYOUTS:  # JSON lines with ever new keys
                        layouts.clear()
                    layouts[names] = Columns(names)
                row = make_row(number, layouts[names], names, values, folder, needed)
                twice = layouts[names].twice
                problem = row.problem if twice is None else Diagnostic("key_twice", key=twice)
            else:
                row = Row(number, None)
            if problem is not None:
                where = Position(unit_of(path), number, table_name)
                row = row._replace(problem=where.problem(problem))
            yield row


def unit_of(path: str) -> str:
    """The word for one item of a manifest in messages: `row` or `line`."""
    return "row" if path.lower().endswith(".parquet") else "line"


def _check_header(path: str, names: Sequence[str], needed: Sequence[str]) -> None:
    """Check a manifest's columns: not too many, no duplicates, a needed one."""
    if len(names) > MOST_COLUMNS:
        raise UserError("too_many_columns", path=path, count=len(names), most=MOST_COLUMNS)
    plain = [name.strip().lower() for name in names]
    if (twice := Columns(names).twice) is not None:
        raise UserError("two_columns_alike", path=path, column=twice)
    if needed and not any(alias in plain for field in needed for alias in ALIASES[field]):
        expected = ", ".join(alias for field in needed for alias in ALIASES[field])
        raise UserError(
            "manifest_lacks_column",
            path=path,
            needed=" or ".join(needed),
            known=", ".join(names) or "none",
            hint=f"expected one of {expected}",
        )


def _read_jsonl(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    """Yield each line's number, keys and values, or its problem."""
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            try:
                item = parse_json(raw.decode().rstrip())
            except UnicodeDecodeError:
                yield number, (), (), Diagnostic("row_not_utf8")
            except DoubleKey as error:
                yield number, (), (), error.args[0]
            except json.JSONDecodeError as error:
                yield number, (), (), Diagnostic("row_not_json", cause=error.msg, column=error.colno)
            except (ValueError, RecursionError) as error:  # a number of thousands of digits, or too deep nesting
                yield number, (), (), Diagnostic("row_not_json", cause=error)
            else:
                if isinstance(item, dict):
                    yield number, tuple(item), tuple(item.values()), None
                else:
                    yield number, (), (), Diagnostic("row_not_object", type=type(item).__name__)


def _read_csv(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        # A lenient reader takes a stray quote as the start of a cell that ends with the file.
        yield from _table(path, csv.reader(file, strict=True), needed)


class _QuotedCells:
    """The cells of the lines of one TSV row, where quotes may enclose tabs and breaks.

    Args:
        most: number of cells above which the lines are no row.
    """

    def __init__(self, most: int | None) -> None:
        self.cells: list[str] = []
        self._most, self._open = most, list[str]()
        self.is_open, self.is_wrong = False, False

    def add(self, line: str) -> None:
        """Read one more line, without its break."""
        at = 0
        while not self.is_wrong:
            if self.is_open:
                end = line.find('"', at)
                if end < 0:
                    self._open.append(f"{line[at:]}\n")
                    return
                if line[end + 1 : end + 2] == '"':
                    self._open.append(line[at : end + 1])
                    at = end + 2
                    continue
                self._open.append(line[at:end])
                self.cells.append("".join(self._open))
                self.is_open, at = False, end + 1
                self.is_wrong = line[at : at + 1] not in ("", "\t")
            elif line[at : at + 1] == '"':
                self.is_open, self._open, at = True, [], at + 1
                continue
            else:
                end = line.find("\t", at)
                self.cells.append(line[at:] if end < 0 else line[at:end])
                at = len(line) if end < 0 else end
            self.is_wrong |= self._most is not None and len(self.cells) > self._most
            if at >= len(line):
                return
            at += 1  # after the tab


class _TsvLines:
    """The cells of each row of a TSV file; `line_num` counts lines as a csv reader does."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.line_num = file, 0
        self._columns: int | None = None
        self._ahead: deque[str] = deque()

    def __iter__(self) -> Iterator[list[str]]:
        while (line := self._next_line()) is not None:
            cells = line.split("\t") if line.strip() else []
            row = self._quoted(line, len(cells)) if '"' in line else None
            if row is None:
                row = [self.unquoted(cell) for cell in cells] if '"' in line else cells
            self._columns = self._columns or len(row) or None
            yield row

    def _next_line(self) -> str | None:
        line = self._ahead.popleft() if self._ahead else next(self.file, None)
        self.line_num += line is not None
        return None if line is None else line.rstrip("\n")

    def _quoted(self, line: str, count: int) -> list[str] | None:
        """The cells of a row with tabs or line breaks in quotes; None if it is no such row.

        Args:
            count: number of cells between the tabs of the line.
        """
        row = _QuotedCells(self._columns)
        row.add(line)
        further, length, fits = 0, len(line), count == self._columns
        while row.is_open and not row.is_wrong and further < _MOST_LINES and length <= MOST_CHARACTERS:
            if further == len(self._ahead):
                if (more := next(self.file, None)) is None:
                    break
                self._ahead.append(more)
            text = self._ahead[further].rstrip("\n")
            further, length = further + 1, length + len(text)
            fits = fits and text.count("\t") + 1 == self._columns
            row.add(text)
        # Lines that each have all cells are rows with stray quotes.
        if row.is_open or row.is_wrong or fits or (self._columns is not None and len(row.cells) != self._columns):
            return None
        for _ in range(further):
            self._next_line()
        return row.cells

    @staticmethod
    def unquoted(cell: str) -> str:
        """Remove enclosing quotes, if all inner quotes are doubled."""
        if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"' or '"' in cell[1:-1].replace('""', ""):
            return cell
        return cell[1:-1].replace('""', '"')


def _read_tsv(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        yield from _table(path, _TsvLines(file), needed)


def _table(path: str, lines: Any, needed: Sequence[str]) -> Iterator[Cells]:
    """Yield (line number, names, cells, problem) of a table with a header.

    Args:
        lines: iterates over lists of cells, and counts lines in `line_num`.
        needed: the header must have at least one of these fields.
    """
    cells_of = iter(lines)
    names: tuple[str, ...] | None = None
    while True:
        number = lines.line_num + 1
        try:
            cells = next(cells_of)
        except StopIteration:
            return
        except csv.Error as error:
            if names is None:
                raise UserError("header_unreadable", path=path, cause=error) from error
            span = f" (up to line {lines.line_num})" if lines.line_num > number else ""
            yield number, (), (), Diagnostic("row_not_csv", span=span, cause=error)
            continue
        if not cells:
            continue
        if names is None:
            names = tuple(sys.intern(name) for name in cells)
            _check_header(path, names, needed)
        elif len(cells) != len(names):
            yield number, (), (), Diagnostic("row_cells", cells=len(cells), columns=len(names))
        else:
            yield number, names, cells, None


def _sounds(path: str, column: str, first: int, cells: Sequence[Mapping[str, Any] | None]) -> list[CellSound | None]:
    """Locators of the sounds of some rows, with their names if these are texts."""
    names = [None if cell is None else cell.get("path") for cell in cells]
    return [
        None
        if cell is None
        else CellSound(str(Locator(path, column, first + at)), name if isinstance(name, str) else None)
        for at, (cell, name) in enumerate(zip(cells, names))
    ]


def _read_parquet(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    """Yield (row number, names, values, problem) of a Parquet file; sounds stay in it."""
    import pyarrow

    from codec_bench.data.cells import declared_features, find_class_names, name_class
    from codec_bench.data.parquet import (
        batches_of,
        is_time_or_decimal,
        open_parquet,
        sound_leaves,
        value_type,
        values_of,
    )

    types = pyarrow.types
    text_checks = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_boolean)

    def plain(kind: pyarrow.DataType) -> bool:
        return any(check(value_type(kind)) for check in (*text_checks, types.is_null, is_time_or_decimal))

    try:
        with open_parquet(path) as file:
            schema = file.schema_arrow
            _check_header(path, schema.names, needed)
            sounds: dict[str, list[str]] = {}
            for field, at in Columns(schema.names).at.items():
                name = schema.names[at]
                if field in ("audio", "estimate") and (leaves := sound_leaves(file, name)) is not None:
                    sounds[name] = leaves
                elif not plain(schema.types[at]):
                    raise UserError(
                        "column_type",
                        name=name,
                        path=path,
                        type=schema.types[at],
                        expected=["text", "sound"] if field in ("audio", "estimate") else ["text"],
                    )
            names = tuple(n for n, kind in zip(schema.names, schema.types) if plain(kind) or n in sounds)
            leaves = [leaf for name in names for leaf in sounds.get(name, (name,))]
            classes = find_class_names(declared_features(schema))
            number = 0
            for size, batch in batches_of(file, leaves, _ROWS_AT_ONCE):
                columns = [
                    _sounds(path, name, number, batch.column(name).to_pylist() if sounds[name] else [{}] * size)
                    if name in sounds
                    else [name_class(value, classes.get(name, ())) for value in values_of(batch.column(name))]
                    for name in names
                ]
                for values in zip(*columns):
                    number += 1
                    yield number, names, values, None
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError("table_not_parquet", path=path, cause=str(error).splitlines()[0]) from error


READERS: Mapping[str, Callable[[str, Sequence[str]], Iterator[Cells]]] = {
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
}
NAMES = tuple(f"manifest{kind}" for kind in READERS)
