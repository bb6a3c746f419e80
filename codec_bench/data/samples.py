"""Samples from the rows of a table. This is how `--data` takes a data set of the hub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.data.manifest import Columns, Sound, make_row
from codec_bench.data.rows import ALIASES, Row
from codec_bench.data.table import Table, row_problem
from codec_bench.errors import UserError


def table_rows(table: Table, *, require_audio: bool) -> Iterator[Row]:
    """Reads the rows of a table as the rows of a manifest, with the columns that manifests have.

    The id is the column `id` if that holds text, else the row's key. Numbers are not taken as ids, because they often
    name a sentence or a speaker and stand in many rows. With several splits, the split's name goes before the id.

    Args:
        table: the rows.
        require_audio: as `read_manifest`.

    Raises:
        UserError: the table has no column that is needed.
    """
    needed = ("audio",) if require_audio else ("audio", "estimate", "text")
    wanted = [alias for field in needed for alias in ALIASES[field]]
    if not any(name.strip().lower() in wanted for name in table.columns):
        raise UserError(
            f"the data set '{table.name}' has no column for {' or '.join(needed)}; it has {', '.join(table.columns)}",
            hint=f"expected one of {', '.join(wanted)}",
        )
    layouts: dict[tuple[str, ...], Columns] = {}
    for number, (key, row) in enumerate(table, 1):
        problem = row_problem(row)
        if problem is not None:
            yield Row(number, key, problem=problem)
            continue
        names = tuple(row)
        columns = layouts.setdefault(names, Columns(names))
        values = [_value(value) for value in row.values()]
        made = make_row(number, columns, names, values, "", needed)
        id = key
        if "id" in columns.at and isinstance(values[columns.at["id"]], str) and made.id:
            id = made.id if len(table.splits) == 1 else f"{key.partition('/')[0]}/{made.id}"
        extra = {name: value for name, value in made.extra.items() if isinstance(value, (str, int, float, bool))}
        problem = f"row '{key}' of {table.name} {made.problem}" if made.problem is not None else None
        yield made._replace(id=id, extra=extra, problem=problem)


def _value(value: Any) -> Any:
    """A value of a cell; a clip that has a path becomes a `Sound`, which a sample can name."""
    if not isinstance(value, Clip):
        return value
    return Sound(value.source, None) if isinstance(value.source, str) else value
