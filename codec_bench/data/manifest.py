"""Rows of a manifest: JSON lines, CSV, TSV or Parquet, read as a stream.

Conventions
    Column names are compared without regard to case. A field is read from the column of its own name, else from the
    first of its aliases that is there.
    Paths are relative to the manifest's folder. What is wrong with one row is that row's problem; what is wrong with
    the whole file is a `UserError`.
    CSV follows RFC 4180. In TSV a quote is a character like any other, unless it encloses a whole cell with the inner
    quotes doubled, as spreadsheets write it.
"""

from __future__ import annotations

import csv
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from codec_bench.audio.table import Locator
from codec_bench.data.rows import NOTHING, PROBLEM, Row
from codec_bench.errors import UserError

ALIASES = {
    "id": ("id",),
    "audio": ("audio", "path", "wav", "audio_path", "audio_filepath"),
    "text": ("text", "transcript", "transcription", "sentence"),
    "speaker": ("speaker", "speaker_id", "spk"),
    "language": ("language", "lang"),
    "estimate": ("estimate", "generated", "hypothesis_audio"),
}
Cells = tuple[int, tuple[str, ...], Sequence[Any], str | None]  # number, column names, values, problem
_ROWS_AT_ONCE = 16_384
_LAYOUTS_KEPT = 256


class Columns:
    """Where the known fields stand among the columns of a row."""

    def __init__(self, names: Sequence[str]) -> None:
        plain = [name.strip().lower() for name in names]
        self.at = {
            field: plain.index(found)
            for field, aliases in ALIASES.items()
            if (found := next((alias for alias in aliases if alias in plain), None)) is not None
        }
        known = set(self.at.values())
        # A column of the user's that is called like the mark of a bad row must not make every row a bad one.
        self.further = [
            (at, sys.intern(name + "_" if name == PROBLEM else name))
            for at, name in enumerate(names)
            if at not in known
        ]


class Sound(NamedTuple):
    """A cell that holds a sound, or names it elsewhere than beside the manifest.

    Args:
        path: as `read_audio` takes it.
        name: what the file was called, or None; ids are made from it.
    """

    path: str
    name: str | None


class _BadCell(Exception):
    """A value that cannot be used; the message says why."""


def _text(value: Any, field: str) -> str | None:
    """A cell as text; missing values of every format are None."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise _BadCell(f"has a {field} that is not UTF-8 text") from None
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    raise _BadCell(f"has a {type(value).__name__} as its {field}; expected text")


def make_row(
    number: int, columns: Columns, names: Sequence[str], values: Sequence[Any], folder: str, needed: Sequence[str]
) -> Row:
    """One row from its cells; what is wrong with it continues `line 7 of x.jsonl ...`.

    Args:
        values: one a name; sounds as `Sound`.
        folder: what paths are relative to. needed: fields of which a row must have one.
    """
    problem = None
    cells: dict[str, str | None] = {}
    stems: dict[str, str | None] = {}
    for field, at in columns.at.items():
        value = values[at]
        try:
            if isinstance(value, Sound) and field in ("audio", "estimate"):
                cells[field], stems[field] = value
            else:
                cells[field] = stems[field] = _text(value, field)
        except _BadCell as bad:
            problem = problem or str(bad)
    if problem is None and all(not cells.get(field) for field in needed):
        problem = f"has no {' and no '.join(needed)} (its columns are {', '.join(names)})"

    def absolute(path: str | None) -> str | None:
        return os.path.normpath(os.path.join(folder, path)) if path else None

    speaker, language = cells.get("speaker"), cells.get("language")
    extra = {name: value for at, name in columns.further if (value := values[at]) is not None}
    return Row(
        number,
        cells.get("id") or None,
        None if problem else stems.get("audio") or stems.get("estimate") or None,
        absolute(cells.get("audio")),
        cells.get("text"),
        sys.intern(speaker) if speaker else None,
        sys.intern(language) if language else None,
        absolute(cells.get("estimate")),
        extra or NOTHING,
        problem,
    )


def read_manifest(path: str, *, require_audio: bool) -> Iterator[Row]:
    """The rows of a manifest, in order.

    Args:
        path: absolute.
        require_audio: whether a row without reference audio is a problem; else audio, generated audio or a text will do.

    Raises:
        UserError: not a known kind, not readable as that kind, or without a column that is needed.
    """
    kind = os.path.splitext(path)[1].lower()
    if kind not in READERS:
        raise UserError(f"'{path}' is neither a folder, a sound file nor a manifest ({', '.join(READERS)})")
    place, folder = os.path.basename(path), os.path.dirname(path)
    needed = ("audio",) if require_audio else ("audio", "estimate", "text")
    layouts: dict[tuple[str, ...], Columns] = {}
    try:
        for number, names, values, problem in READERS[kind](path, needed):
            if problem is None:
                if names not in layouts:
                    if len(layouts) == _LAYOUTS_KEPT:  # JSON whose keys are data would grow it without end
                        layouts.clear()
                    layouts[names] = Columns(names)
                row = make_row(number, layouts[names], names, values, folder, needed)
                problem = row.problem
            else:
                row = Row(number, None)
            yield row if problem is None else row._replace(problem=f"{unit_of(path)} {number} of {place} {problem}")
    except OSError as error:
        raise UserError(f"'{path}' cannot be read: {error.strerror or error}") from error


def unit_of(path: str) -> str:
    """What one item of a manifest is called in messages."""
    return "row" if path.lower().endswith(".parquet") else "line"


def _check_header(path: str, names: Sequence[str], needed: Sequence[str]) -> None:
    plain = [name.strip().lower() for name in names]
    for name in plain:
        if plain.count(name) > 1:
            raise UserError(f"'{path}' has two columns called '{name}'")
    if needed and not any(alias in plain for field in needed for alias in ALIASES[field]):
        wanted = ", ".join(alias for field in needed for alias in ALIASES[field])
        raise UserError(
            f"'{path}' has no column for {' or '.join(needed)}; it has {', '.join(names) or 'none'}",
            hint=f"expected one of {wanted}",
        )


def _read_jsonl(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    with open(path, "rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            try:
                item = json.loads(raw.decode().rstrip())
            except UnicodeDecodeError:
                yield number, (), (), "is not UTF-8"
            except json.JSONDecodeError as error:
                yield number, (), (), f"is not JSON: {error.msg} (column {error.colno})"
            except (ValueError, RecursionError) as error:  # integers of thousands of digits, nesting without end
                yield number, (), (), f"is not JSON: {error}"
            else:
                if isinstance(item, dict):
                    yield number, tuple(item), tuple(item.values()), None
                else:
                    yield (
                        number,
                        (),
                        (),
                        f"is a JSON {type(item).__name__}; expected an object with the columns as keys",
                    )


def _read_csv(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    with open(path, encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        # Strict, because a lenient reader takes a stray quote as the start of a cell that ends with the file.
        yield from _table(path, csv.reader(file, strict=True), needed)


class _TsvLines:
    """Cells of every line of a TSV file; counts the lines in `line_num` as a csv reader does."""

    def __init__(self, file: TextIO) -> None:
        self.file, self.line_num = file, 0

    def __iter__(self) -> Iterator[list[str]]:
        for line in self.file:
            self.line_num += 1
            cells = line.rstrip("\n").split("\t")
            yield [self.unquoted(cell) for cell in cells] if '"' in line else cells if line.strip() else []

    @staticmethod
    def unquoted(cell: str) -> str:
        """The cell without enclosing quotes, where its inner quotes show that they enclose it."""
        if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"' or '"' in cell[1:-1].replace('""', ""):
            return cell
        return cell[1:-1].replace('""', '"')


def _read_tsv(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        yield from _table(path, _TsvLines(file), needed)


def _table(path: str, lines: Any, needed: Sequence[str]) -> Iterator[Cells]:
    """Cells of a table with a header; `lines` gives lists and counts the lines it has read in `line_num`."""
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
                raise UserError(f"the header of '{path}' cannot be read: {error}") from error
            span = f" (up to line {lines.line_num})" if lines.line_num > number else ""
            yield number, (), (), f"is not CSV{span}: {error}"
            continue
        if not cells:
            continue
        if names is None:
            names = tuple(sys.intern(name) for name in cells)
            _check_header(path, names, needed)
        elif len(cells) != len(names):
            yield number, (), (), f"has {len(cells)} cells where the header has {len(names)}"
        else:
            yield number, names, cells, None


def _sounds(path: str, column: str, first: int, cells: Sequence[Mapping[str, Any] | None]) -> list[Sound | None]:
    """Where the sounds of some rows lie, from what was read of them."""
    return [
        None if cell is None else Sound(str(Locator(path, column, first + at)), cell.get("path"))
        for at, cell in enumerate(cells)
    ]


def _read_parquet(path: str, needed: Sequence[str]) -> Iterator[Cells]:
    import pyarrow
    import pyarrow.parquet

    from codec_bench.data.parquet import batches_of, sound_leaves

    def plain(kind: pyarrow.DataType) -> bool:
        kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
        types = pyarrow.types
        return any(
            check(kind)
            for check in (
                types.is_string,
                types.is_large_string,
                types.is_integer,
                types.is_floating,
                types.is_boolean,
                types.is_null,
            )
        )

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            _check_header(path, schema.names, needed)
            sounds: dict[str, list[str]] = {}
            for field, at in Columns(schema.names).at.items():
                name = schema.names[at]
                if field in ("audio", "estimate") and (leaves := sound_leaves(file, name)) is not None:
                    sounds[name] = leaves
                elif not plain(schema.types[at]):
                    raise UserError(
                        f"the column '{name}' of '{path}' holds {schema.types[at]}; expected text"
                        f"{' or sound' if field in ('audio', 'estimate') else ''} as its {field}"
                    )
            names = tuple(n for n, kind in zip(schema.names, schema.types) if plain(kind) or n in sounds)
            leaves = [leaf for name in names for leaf in sounds.get(name, (name,))]
            number = 0
            for size, batch in batches_of(file, leaves, _ROWS_AT_ONCE):
                columns = [
                    _sounds(path, name, number, batch.column(name).to_pylist() if sounds[name] else [{}] * size)
                    if name in sounds
                    else batch.column(name).to_pylist()
                    for name in names
                ]
                for values in zip(*columns):
                    number += 1
                    yield number, names, values, None
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise UserError(f"'{path}' cannot be read as Parquet: {str(error).splitlines()[0]}") from error


READERS: Mapping[str, Callable[[str, Sequence[str]], Iterator[Cells]]] = {
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
}
NAMES = tuple(f"manifest{kind}" for kind in READERS)
