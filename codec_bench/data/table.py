"""Rows of a data set, one by one: from the hub, a folder, or a file.

Sounds are clips, without decoding. Only the requested columns of a Parquet file are read, without the sound. A row's
key is `SPLIT/INDEX`, counted from 0 in the split and independent of limit, seed and files. An unreadable row is empty,
with the reason in `row_problem`. A row without a sound has None in that column.
"""

from __future__ import annotations

import heapq
import os
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

from codec_bench.audio.clip import Clip
from codec_bench.data.cells import name_class
from codec_bench.data.hub import PREFIX, Repository, find_repository, folder_repository, parse_hub_name
from codec_bench.data.layout import Layout, read_layout
from codec_bench.data.manifest import READERS, CellSound, Columns, make_row
from codec_bench.data.parquet import ParquetRows
from codec_bench.data.rows import ALIASES, Position, Row, rank
from codec_bench.data.streamed import ManifestRows, StreamedRows, row_problem
from codec_bench.messages.errors import UserError

__all__ = ["SPLIT", "Table", "open_table", "row_problem"]

SPLIT = "split"
"""The column of each row's split. It is added if all splits are read and the data have no such column."""
_SHARD_OF = re.compile(r"-\d{5}-of-\d{5}.*$")


class Rows(Protocol):
    """A reader of the rows of a data set's splits.

    Attributes:
        types: the type of each column in words, `audio` for sounds; empty if the file declares no types.
        class_names: the class names of each column that holds their numbers.
    """

    columns: tuple[str, ...]
    types: Mapping[str, str]
    class_names: Mapping[str, Sequence[Any]]

    def count(self, split: str) -> int:
        """The number of rows of a split, which may need a read of the whole split."""

    def known_count(self, split: str, enough: int | None) -> int | None:
        """A split's number of rows, or at least `enough`, if cheap; else None."""

    def rows(self, split: str, columns: Sequence[str], chosen: array | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """A split's rows at the `chosen` positions (None: all), with positions."""


@dataclass(frozen=True, slots=True)
class RowSelection:
    """The part of a data set to read; the fields are arguments of `open_table`."""

    columns: Sequence[str] | None = None
    limit: int | None = None
    seed: int | None = None


class Table:
    """Rows of a data set, read during iteration, any number of times.

    Args:
        selection: the columns and rows to read.
        mark_split: whether a column says which split a row belongs to.

    Attributes:
        columns: of every row, in order.
    """

    def __init__(
        self,
        name: str,
        rows: Rows,
        splits: Sequence[str],
        selection: RowSelection,
        *,
        revision: str | None = None,
        mark_split: bool = False,
    ) -> None:
        self.name, self.revision, self.splits = name, revision, tuple(splits)
        self._rows, self._limit, self._seed = rows, selection.limit, selection.seed
        columns = selection.columns
        marked = mark_split and SPLIT not in rows.columns
        there = (*rows.columns, SPLIT) if marked else rows.columns
        if missing := [column for column in columns or () if column not in there]:
            raise UserError("no_such_columns", data=name, names=missing, hint=f"its columns are {', '.join(there)}")
        self.columns = tuple(columns) if columns is not None else there
        self.types, self.class_names = rows.types, rows.class_names
        self._marked = marked and SPLIT in self.columns
        self._read = tuple(column for column in self.columns if column != SPLIT or not marked)
        self._chosen: dict[str, array] | None = None
        self._total: int | None = None
        self._counted = False

    def __repr__(self) -> str:
        return f"Table({self.name!r}, splits={list(self.splits)}, columns={list(self.columns)})"

    def narrowed(self, columns: Sequence[str]) -> Table:
        """A copy of the table that reads only some of its columns."""
        narrowed = copy(self)
        narrowed.columns = tuple(column for column in self.columns if column in columns)
        narrowed._marked = self._marked and SPLIT in narrowed.columns
        narrowed._read = tuple(column for column in self._read if column in columns)
        return narrowed

    @property
    def total(self) -> int | None:
        """The number of rows, perhaps by the hub's card; None if unknown."""
        if not self._counted:
            self._total = self._count()
            self._counted = True
        return self._total

    def _count(self) -> int | None:
        """Count the selected rows; None if that needs reading the data."""
        if self._picks_at_random:
            return sum(len(chosen) for chosen in self._choice().values())
        total = 0
        for split in self.splits:
            left = None if self._limit is None else self._limit - total
            if left is not None and left <= 0:
                break
            known = self._rows.known_count(split, left)
            if known is None:
                return None
            total += known
        return total if self._limit is None else min(total, self._limit)

    @property
    def _picks_at_random(self) -> bool:
        return self._limit is not None and self._seed is not None

    def _choice(self) -> dict[str, array]:
        """By split, the positions of the rows whose keys rank lowest by the seed."""
        if self._chosen is None:
            assert self._limit is not None, "rows are picked at random only up to a limit"
            keys = ((split, at) for split in self.splits for at in range(self._rows.count(split)))
            chosen: dict[str, array] = {split: array("q") for split in self.splits}
            for split, at in heapq.nsmallest(self._limit, keys, key=lambda at: rank(self._seed, f"{at[0]}/{at[1]}")):
                chosen[split].append(at)
            self._chosen = {split: array("q", sorted(places)) for split, places in chosen.items()}
        return self._chosen

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        left = self._limit if not self._picks_at_random else None
        for split in self.splits:
            chosen = self._choice()[split] if self._picks_at_random else None
            if left == 0 or (chosen is not None and not chosen):
                continue
            for at, row in self._rows.rows(split, self._read, chosen):
                if self._marked and row_problem(row) is None:
                    row[SPLIT] = split
                yield f"{split}/{at}", row
                if left is not None:
                    left -= 1
                    if left == 0:
                        break


def open_table(
    where: str | os.PathLike[str],
    *,
    config: str | None = None,
    data_dir: str | None = None,
    split: str | None = None,
    revision: str | None = None,
    mirror: str | os.PathLike[str] | None = None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    seed: int | None = None,
    sounds: str | None = None,
    in_place: bool = False,
) -> Table:
    """Open a data set's rows. From the hub this fetches card and footers only.

    Args:
        where: `hf:REPO[@REVISION][:CONFIG][:SPLIT]`, a folder in the hub's layout, or a Parquet, JSON-lines, CSV or TSV
            file.
        config: the configuration; None takes the default one, or the only one.
        data_dir: the only folder of the repository to read; None reads all files of the configuration.
        split: None reads all splits, with the column `split`.
        revision: a commit, branch or tag of the repository; None takes `main`.
        mirror: a folder that holds the repository as OWNER/NAME and replaces the hub, as does the folder in the
            environment variable CODEC_BENCH_DATA. With HF_HUB_OFFLINE=1, or without a network, the hub's cache is used.
        columns: the columns to read; None takes all.
        limit: at most this many rows.
        seed: None takes the first rows. A number takes a random part, which depends only on the number and the rows'
            keys. Files without such rows are not fetched.
        sounds: a folder or archive of the repository where the rows' sound paths begin; an archive is unpacked into the
            cache for its first sound.
        in_place: read only the needed columns of Parquet files on the hub, without a download, if none holds sound.

    Raises:
        UserError: there is no such data set, configuration, split or column, it is gated, or cannot be read.
        MissingExtra: the `datasets` library is needed and not installed.
    """
    if limit is not None and limit < 1:
        raise UserError("limit_too_low", limit=limit)
    selection = RowSelection(columns, limit, seed)
    where = os.fspath(where)
    if where.startswith(PREFIX):
        repo, pinned, names = parse_hub_name(where)
        if pinned is not None and revision not in (None, pinned):
            raise UserError("two_revisions", path=where, pinned=pinned, revision=revision, hint="name one of them")
        repository = replace(find_repository(repo, revision or pinned, mirror), sounds=sounds, in_place=in_place)
        return _open_repository(repository, (config, data_dir), split, names, selection)
    path = os.path.abspath(os.path.expanduser(where))
    if os.path.isdir(path):
        repository = replace(folder_repository(path, os.path.basename(path) or "root", revision), sounds=sounds)
        return _open_repository(repository, (config, data_dir), split, [], selection)
    if not os.path.exists(path):
        raise UserError("no_table", path=where, hint="a data set on the hub is hf:OWNER/NAME")
    if data_dir is not None:
        raise UserError("file_without_folder", path=path, data_dir=data_dir, hint="name the folder that contains it")
    return _open_file(path, config, split, selection)


def _open_file(path: str, config: str | None, split: str | None, selection: RowSelection) -> Table:
    """Open a single table file as a table with one split, named as the file."""
    base = os.path.basename(path)
    stem, kind = os.path.splitext(base)
    if kind.lower() not in READERS:
        raise UserError("not_a_table", path=path, known=", ".join(READERS))
    name = _SHARD_OF.sub("", stem)
    for option, requested in (("configuration", config), ("split", split)):
        if requested not in (None, name):
            raise UserError(
                "file_without_option",
                path=path,
                option=option,
                value=requested,
                hint="name the folder that contains it",
            )
    if kind.lower() == ".parquet":
        rows: Rows = ParquetRows(Repository(base, os.path.dirname(path)), {name: (base,)})
    else:
        rows = ManifestRows(path, name)
    return Table(name, rows, (name,), selection)


def _open_repository(
    repository: Repository,
    subset: tuple[str | None, str | None],
    split: str | None,
    names: Sequence[str],
    selection: RowSelection,
) -> Table:
    """Open a repository as a table, with the splits of one configuration.

    Args:
        subset: (configuration, folder), each or None.
        split: None for all.
        names: of `hf:REPO:...`; a single one is a configuration or else a split.
        selection: the columns and rows to read.
    """
    config, data_dir = subset
    layout: Layout | None = None
    if len(names) == 2:
        config, split = config or names[0], split or names[1]
    elif names:
        try:
            layout = read_layout(repository, names[0], data_dir)
        except UserError as error:
            try:
                layout = read_layout(repository, config, data_dir)
            except UserError:
                raise error from None
            split = split or names[0]
    layout = layout or read_layout(repository, config, data_dir)
    splits = {name: paths for name, paths in layout.splits.items() if paths}
    if split is not None and split not in splits:
        raise UserError("no_split", name=repository.name, split=split, hint=f"there are: {', '.join(splits) or 'none'}")
    if not splits:
        raise UserError("no_data_files", name=repository.name)
    chosen = {name: paths for name, paths in splits.items() if split in (None, name)}
    if all(path.endswith(".parquet") for paths in chosen.values() for path in paths):
        rows: Rows = ParquetRows(repository, chosen, layout.features, layout.sizes)
    else:
        rows = StreamedRows(repository, replace(layout, splits=chosen))
    return Table(
        repository.name, rows, tuple(chosen), selection, revision=repository.revision, mark_split=split is None
    )


def table_rows(table: Table, *, require_audio: bool) -> Iterator[Row]:
    """Convert the rows of a table to rows of a manifest.

    The id is the column `id` if that holds text, else the row's key: numbers often name a sentence or speaker of many
    rows. With several splits, the split's name precedes the id.

    Raises:
        UserError: the table lacks a needed column.
    """
    needed = ("audio",) if require_audio else ("audio", "estimate", "text")
    expected = [alias for field in needed for alias in ALIASES[field]]
    if not any(name.strip().lower() in expected for name in table.columns):
        raise UserError(
            "no_column_for",
            data=table.name,
            needed=" or ".join(needed),
            columns=", ".join(table.columns),
            hint=f"expected one of {', '.join(expected)}",
        )
    layouts: dict[tuple[str, ...], Columns] = {}
    for number, (key, row) in enumerate(table, 1):
        problem = row_problem(row)
        if problem is not None:
            yield Row(number, key, problem=problem)
            continue
        names = tuple(row)
        columns = layouts.setdefault(names, Columns(names))
        values = [_value(name_class(value, table.class_names.get(name, ()))) for name, value in row.items()]
        parsed = make_row(number, columns, names, values, "", needed)
        id = key
        if "id" in columns.at and isinstance(values[columns.at["id"]], str) and parsed.id:
            id = parsed.id if len(table.splits) == 1 else f"{key.partition('/')[0]}/{parsed.id}"
        extra = {name: value for name, value in parsed.extra.items() if isinstance(value, (str, int, float, bool))}
        if parsed.problem is not None:
            problem = Position("row", key, table.name).problem(parsed.problem)
        yield parsed._replace(id=id, extra=extra, problem=problem)


def _value(value: Any) -> Any:
    """Convert a clip with a path to a `CellSound`, which a sample can name."""
    if not isinstance(value, Clip):
        return value
    return CellSound(value.source, None) if isinstance(value.source, str) else value
