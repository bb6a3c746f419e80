"""The record as a table: one row per system, sample and metric, in the record's order."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from codec_bench.errors import UserError
from codec_bench.store.record import Run

COLUMNS = ("system", "id", "metric", "value", "status", "reason", "protocol")
FORMATS = ("csv", "jsonl", "parquet")
_CHUNK = 65536


def rows(run: Run) -> Iterator[tuple[Any, ...]]:
    """The scores as tuples in the order of `COLUMNS`."""
    for s in run.scores():
        yield s.system, s.id, s.metric, s.value, s.status, s.reason, s.protocol


def export_run(run: Run, form: str, out: Path | None) -> None:
    """Writes the scores to a file, or to standard output.

    Args:
        form: `csv`, `jsonl` or `parquet`.
        out: the file; None is standard output, which parquet does not take.

    Raises:
        UserError: an unknown format, parquet without a file, or a file that cannot be written.
    """
    if form not in FORMATS:
        raise UserError(f"there is no export format '{form}'", hint=f"there is {', '.join(FORMATS)}")
    if form == "parquet":
        if out is None:
            raise UserError("parquet cannot be written to standard output", hint="give --out FILE.parquet")
        _write_parquet(run, out)
        return
    write = _write_csv if form == "csv" else _write_jsonl
    if out is None:
        write(run, sys.stdout)
        return
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            write(run, file)
    except OSError as error:
        raise UserError(f"'{out}' cannot be written: {error.strerror}") from error


def _write_csv(run: Run, file: Any) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows(run))


def _write_jsonl(run: Run, file: Any) -> None:
    for row in rows(run):
        file.write(json.dumps(dict(zip(COLUMNS, row)), ensure_ascii=False) + "\n")


def _write_parquet(run: Run, out: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    text = pyarrow.string()
    schema = pyarrow.schema([(c, pyarrow.float64() if c == "value" else text) for c in COLUMNS])
    source = rows(run)
    try:
        with pyarrow.parquet.ParquetWriter(out, schema) as writer:
            while chunk := list(islice(source, _CHUNK)):
                columns = [pyarrow.array(c, f.type) for c, f in zip(zip(*chunk), schema)]
                writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))
    except OSError as error:
        raise UserError(f"'{out}' cannot be written: {error}") from error
