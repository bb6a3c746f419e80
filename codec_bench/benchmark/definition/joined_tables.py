"""Rows with joined texts of another table, such as a sentence in another language."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from codec_bench.benchmark.definition.schema import Data, Join

if TYPE_CHECKING:
    from codec_bench.data.table import Table


class JoinedRows:
    """Rows of a table, each with another table's texts; yields `(key, row)`.

    Args:
        other: the other table, read together with the rows.

    Attributes:
        name, revision, types: of the table; the revision includes the other's, if that is another data set.
        total: how many rows there are; None if only reading would tell.
    """

    def __init__(self, table: Table, join: Join, other: Table) -> None:
        self._table, self._join, self._other = table, join, other
        self.name, self.types = table.name, table.types
        self.columns = (*table.columns, *join.columns)
        same = other.name == table.name
        self.revision = table.revision if same else f"{table.revision} with {other.name} {other.revision}"
        self.total = None if join.unmatched == "leave-out" else table.total

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        from codec_bench.data.table import row_problem

        partners = self._partners()
        for key, row in self._table:
            partner = partners.get(_key(row.get(self._join.key)))
            if row_problem(row) is not None:
                yield key, row
            elif partner is not None or self._join.unmatched == "keep":
                yield key, {**row, **(partner or dict.fromkeys(self._join.columns))}

    def _partners(self) -> Mapping[str, Mapping[str, Any]]:
        """Read the other table: for each join key, the columns to add."""
        partners: dict[str, Mapping[str, Any]] = {}
        to = self._join.other_key or self._join.key
        for _, row in self._other:
            if row.get(to) is not None:
                texts = {name: row.get(column) for name, column in self._join.columns.items()}
                partners.setdefault(_key(row[to]), texts)
        return partners


def joined(table: Table, data: Data, split: str | None, mirror: str | os.PathLike[str] | None) -> JoinedRows:
    """Join a table with the other table that `data.join` of the definition names.

    Args:
        split: the split of both tables, unless the join names another.
        mirror: a folder that replaces the hub, or None.

    Raises:
        UserError: the other table cannot be found, or lacks a column.
    """
    from codec_bench.data.table import open_table

    join = data.join
    assert join is not None, "called for definitions that join"
    revision = data.revision if join.repository is None else None
    other = open_table(
        f"hf:{join.repository or data.repository}",
        config=join.config if join.repository else join.config or data.config,
        split=join.split or split,
        revision=revision,
        mirror=mirror,
        columns=[join.other_key or join.key, *join.columns.values()],
        in_place=True,
    )
    return JoinedRows(table, join, other)


def _key(value: Any) -> str:
    """Convert a join key to text; whole numbers may be stored as floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
