"""The columns of a run's samples, by which results can be broken down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codec_bench.data.columns import FACTS, Value, groups, value_of
from codec_bench.store.answers import has_answers
from codec_bench.store.record import DURATION, OF_FIRST, Run
from codec_bench.store.rows import SAMPLE_RATE


def grouped(run: Run, by: str | Sequence[str]) -> dict[str, dict[str, list[int]]]:
    """Group the numbers of a run's samples by column and value (see `data.columns`)."""
    hint = "a new column of the manifest is read when the run's command is run again; nothing is computed again"
    return groups(sample_columns(run), by, f"the run '{run.folder}'", hint)


def sample_columns(run: Run) -> Iterator[tuple[int, dict[str, Value]]]:
    """Number and known values by column of each sample of a run.

    The columns are `FACTS`, further columns of the manifest, and fields and subsets of questions; facts take
    precedence.
    """
    held = _read(run, "extras", "columns")
    fields, subsets = ({}, {}) if not has_answers(run) else (_read(run, "questions", c) for c in ("fields", "subsets"))
    for number, *facts in run.query_lazily(
        f"SELECT p.number, p.speaker, p.language, {DURATION}, {SAMPLE_RATE} FROM samples p {OF_FIRST} ORDER BY p.number"
    ):
        further = {**fields.get(number, {}), **held.get(number, {}), **subsets.get(number, {})}
        cells = {**further, **dict(zip(FACTS, facts))}
        yield number, {name: value for name, cell in cells.items() if (value := value_of(cell)) is not None}


def _read(run: Run, table: str, column: str) -> dict[int, Mapping[str, Any]]:
    where = f"the {column} of sample"
    return {
        number: run.json(text, f"{where} {number}")
        for number, text in run.query(f"SELECT number, {column} FROM {table}")
    }
