"""The record as a table: a row per system, metric, sample (docs/export.md)."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.store.record import Run
from codec_bench.store.rows import NUMBERS, TableRow

Target = Path | IO[str] | None
"""Target of an export: a file, an open stream, or standard output."""
COLUMNS = TableRow._fields
FORMATS = ("csv", "jsonl", "parquet")
_CHUNK = 16384
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def export_run(run: Run, form: str, out: Target, *, alignment: bool = False) -> None:
    """Write the rows of a run to a file, a stream or standard output.

    Args:
        form: `csv`, `jsonl` or `parquet`, which needs a file.
        alignment: add a column `alignment` for error rates, by `aligned_texts`.

    Raises:
        UserError: the format is unknown or does not fit the other arguments, or the file cannot be written.
    """
    check_format(form, FORMATS, "with --summary: csv, markdown or latex")
    columns, rows = (*COLUMNS, *(["alignment"] if alignment else [])), run.rows()
    table: Iterable[Sequence[Any]] = ((*row, aligned_texts(row.detail)) for row in rows) if alignment else rows
    if form == "parquet":
        if not isinstance(out, Path):
            raise UserError("parquet_to_output", hint="give --out FILE.parquet")
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
    """Aligned words of an error rate's texts; None for other metrics.

    Returns:
        A JSON list of `[operation, reference, estimate]`, one per run of equal, substituted, deleted or inserted words.
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


def check_format(form: str, known: Sequence[str], otherwise: str) -> None:
    """Refuse an unknown format; `otherwise` is the alternative for the message."""
    if form not in known:
        raise UserError("no_export_format", format=form, hint=f"use one of {', '.join(known)}; {otherwise}")


@contextmanager
def opened(out: Target, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file for a table, or use an open stream or standard output."""
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
        cause = error.strerror or error
        message = (
            Diagnostic("file_not_writable", path=out, cause=cause)
            if isinstance(out, Path)
            else Diagnostic("output_not_writable", cause=cause)
        )
        raise UserError(message, hint=hint) from error


@contextmanager
def _replace_when_complete(out: Path) -> Iterator[Path]:
    """Path to write a file atomically; a device or a pipe is written directly."""
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
    """Discard the rest of the output; the interpreter would write it at exit."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format a table as `write_csv` writes it."""
    file = io.StringIO()
    write_csv(file, head, rows)
    return file.getvalue()


def write_csv(file: IO[str], head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV with exact numbers and LF line ends.

    A text that a spreadsheet would read as a formula gets an apostrophe in front; `without_apostrophe` removes it.
    """
    # Before Python 3.13 a carriage return inside a text is quoted only if lines end with one as well.
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
    writer.writerows(map(_harmless, chain([head], rows)))


def _harmless(row: Sequence[Any]) -> list[Any]:
    return [f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell for cell in row]


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet reads a text as a formula, also after apostrophes."""
    return text.startswith(_FORMULA) or (text.startswith("'") and text.lstrip("'").startswith(_FORMULA))


def without_apostrophe(cell: str) -> str:
    """The text of a cell before it was made safe for spreadsheets."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


class _Lines:
    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> None:
        self._file.write(line[:-2] + "\n")


def write_parquet(rows: Iterable[Sequence[Any]], file: IO[bytes], columns: Sequence[str] = COLUMNS) -> None:
    """Write rows of `Run.rows`, perhaps with further text columns, to a parquet file."""
    import pyarrow
    import pyarrow.parquet

    kinds = [(name, pyarrow.float64() if name in NUMBERS else pyarrow.string()) for name in columns]
    schema = pyarrow.schema(kinds)
    source = iter(rows)
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        while chunk := list(islice(source, _CHUNK)):
            arrays = [pyarrow.array(c, f.type) for c, f in zip(zip(*chunk), schema)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
