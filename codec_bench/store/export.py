"""The record as a table in a file: one row per system, metric and sample. docs/export.md explains the columns."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from codec_bench.errors import UserError
from codec_bench.store.record import Run
from codec_bench.store.rows import NUMBERS, TableRow

Target = Path | IO[str] | None
"""Where an export goes: a file, a stream that is open already, or standard output."""
COLUMNS = TableRow._fields
FORMATS = ("csv", "jsonl", "parquet")
_CHUNK = 16384
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def export_run(run: Run, form: str, out: Target, *, alignment: bool = False) -> None:
    """Writes the rows of a run to a file, or to standard output.

    Args:
        form: `csv`, `jsonl` or `parquet`.
        out: the file or stream; None for standard output. Parquet needs a file.
        alignment: add a column `alignment` to the rows of error rates, as `aligned_texts` gives it, in JSON.

    Raises:
        UserError: the format is unknown or does not fit the other arguments, or the file cannot be written.
    """
    check_format(form, FORMATS, f"export format '{form}'", "with --summary: csv, markdown or latex")
    columns, rows = (*COLUMNS, *(["alignment"] if alignment else [])), run.rows()
    table: Iterable[Sequence[Any]] = ((*row, aligned_texts(row.detail)) for row in rows) if alignment else rows
    if form == "parquet":
        if not isinstance(out, Path):
            raise UserError("parquet cannot be written to standard output", hint="give --out FILE.parquet")
        with opened(out, binary=True) as file:
            write_parquet(table, file, columns)
        return
    with opened(out) as file:
        if form == "csv":
            write_csv(file, columns, table)
        else:
            for cells in table:
                file.write(json.dumps(dict(zip(columns, cells)), ensure_ascii=False) + "\n")


def aligned_texts(detail: str) -> str | None:
    """How the words of an error rate's two texts stand together: a JSON list of `[operation, reference, estimate]`, with
    one entry for each run of equal, substituted, deleted or inserted items; None for other metrics.

    Args:
        detail: of the score, as JSON.
    """
    from codec_bench.text.error_rate import alignment, tokens

    held = json.loads(detail)
    reference, estimate = held.get("reference"), held.get("hypothesis")
    if not isinstance(reference, str) or not isinstance(estimate, str):
        return None
    unit: Any = held.get("unit") or "word"
    words, recognised = tokens(reference, unit), tokens(estimate, unit)
    joint = "" if unit == "char" else " "
    runs = [
        [operation, joint.join(words[start:end]), joint.join(recognised[begin:stop])]
        for operation, start, end, begin, stop in alignment(
            reference=reference, estimate=estimate, unit=unit, normaliser="none"
        )
    ]
    return json.dumps(runs, ensure_ascii=False)


def check_format(form: str, known: Sequence[str], subject: str, otherwise: str) -> None:
    """Refuses an unknown format.

    Args:
        known: the formats. subject, otherwise: the format and the other way out, for the message.

    Raises:
        UserError: there is no such format.
    """
    if form not in known:
        raise UserError(f"there is no {subject}", hint=f"use one of {', '.join(known)}; {otherwise}")


@contextmanager
def opened(out: Target, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A file to write a table to, a stream that is open already, or standard output.

    Raises:
        UserError: it cannot be written.
    """
    stream = sys.stdout if out is None or isinstance(out, Path) else out
    try:
        if not isinstance(out, Path):
            yield stream
            stream.flush()
        else:
            with (
                _replace_when_complete(out) as temporary,
                temporary.open("wb") if binary else temporary.open("w", newline="", encoding="utf-8") as file,
            ):
                yield file
    except BrokenPipeError:
        raise  # whoever reads the pipe has read enough, which is no fault
    except OSError as error:
        hint = None
        if stream is sys.stdout and not isinstance(out, Path):
            drop_output()
        elif isinstance(out, Path) and not out.parent.is_dir():
            hint = f"there is no folder '{out.parent}'; make it first"
        name = f"'{out}'" if isinstance(out, Path) else "standard output"
        raise UserError(f"{name} cannot be written: {error.strerror or error}", hint=hint) from error


@contextmanager
def _replace_when_complete(out: Path) -> Iterator[Path]:
    """Where to write a file so that it is there whole or stays as it was: a table that breaks off reads as a whole one.

    A device or a pipe is written itself.
    """
    if out.exists() and not out.is_file():
        yield out
        return
    target = Path(os.path.realpath(out))
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def drop_output() -> None:
    """Sends what is left of the output nowhere: the interpreter would try again to write it at its end, and complain."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def write_csv(file: IO[str], head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a CSV whose numbers read back exactly, and its texts by `without_apostrophe`. Lines end with a line feed.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.

    Args:
        file: where to.
        head: the names of the columns.
        rows: texts, numbers, and None for an empty cell.
    """
    # Before Python 3.13 a carriage return inside a text is quoted only if lines end with one as well.
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
    writer.writerows(map(_harmless, chain([head], rows)))


def _harmless(row: Sequence[Any]) -> list[Any]:
    return [f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell for cell in row]


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a text for a formula; also one with apostrophes before it, so that a reader
    knows whose they are.
    """
    return text.startswith(_FORMULA) or (text.startswith("'") and text.lstrip("'").startswith(_FORMULA))


def without_apostrophe(cell: str) -> str:
    """The text of a cell as it was before it was written safe for spreadsheets."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


class _Lines:
    """Takes the lines of a CSV, each with its two characters at the end, and writes them with a line feed alone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line[:-2] + "\n")


def write_parquet(rows: Iterable[Sequence[Any]], file: IO[bytes], columns: Sequence[str] = COLUMNS) -> None:
    """Writes rows as `Run.rows` gives them, perhaps with further columns of text, to a parquet file."""
    import pyarrow
    import pyarrow.parquet

    kinds = [(name, pyarrow.float64() if name in NUMBERS else pyarrow.string()) for name in columns]
    schema = pyarrow.schema(kinds)
    source = iter(rows)
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while chunk := list(islice(source, _CHUNK)):
            arrays = [pyarrow.array(c, f.type) for c, f in zip(zip(*chunk), schema)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
