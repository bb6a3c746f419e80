"""Rows of Parquet files: needed columns only, sounds as clips with positions."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codec_bench.audio.clip import Clip
from codec_bench.data.cells import (
    SOUND_TYPE,
    SoundPaths,
    declared_features,
    find_class_names,
    is_sound_name,
    sound_feature,
)
from codec_bench.data.hub import Repository
from codec_bench.decoding.table import RATES, Locator
from codec_bench.messages.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_ONCE = 512
_MOST_WITHOUT_SOUND = 1024
"""Mean bytes of a row of texts without sound. A second of sound has more, in any encoding."""
_BUFFER_BYTES = 1 << 18
_FOOTERS_AT_ONCE = 8


class _Column:
    """How to read one column of a file.

    Args:
        field: its type in the file.
        feature: its type in the data set's card, or None.
        leaves: the stored parts of the column.
        siblings: the names of the other columns.

    Attributes:
        leaves: the parts to read: all of them, or the smallest that tell which rows have a sound.
        kind: `plain`, `path` (text that may name sound files), `sound`, `sounds` (a list of sounds), or `outside` (the
            table names sounds without holding them).
    """

    def __init__(self, name: str, field: pa.DataType, feature: Any, leaves: Sequence[str], siblings: set[str]) -> None:
        self.name, self.leaves, self.kind = name, list(leaves), "plain"
        inner, listed = _item_type(value_type(field))
        self.typed = typed = sound_feature(feature)
        if _is_file(inner) and typed is not False and (typed or is_sound_name(name) or _is_struct(inner)):
            self.kind = "sounds" if listed else "sound"
            cheap = [leaf for leaf in leaves if leaf.endswith((".path", *(f".{rate}" for rate in RATES)))]
            # Without such a leaf, a list is read with its sounds, to count them.
            self.leaves = cheap[:1] if cheap or not listed else self.leaves
        elif _is_text(inner) and typed is not False:
            self.kind = "path"
        elif _is_numbers(field) and siblings & set(RATES) and (typed or is_sound_name(name)):
            self.kind, self.leaves = "sound", []


def value_type(field: pa.DataType) -> pa.DataType:
    """The type of the values of a column, which may be dictionary-encoded."""
    import pyarrow as pa

    return field.value_type if pa.types.is_dictionary(field) else field


def _item_type(field: pa.DataType) -> tuple[pa.DataType, bool]:
    import pyarrow as pa

    listed = pa.types.is_list(field) or pa.types.is_large_list(field) or pa.types.is_fixed_size_list(field)
    return (field.value_type, True) if listed else (field, False)


def _is_text(field: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_string(field) or pa.types.is_large_string(field)


def _is_numbers(field: pa.DataType) -> bool:
    import pyarrow as pa

    inner, listed = _item_type(field)
    return listed and (pa.types.is_floating(inner) or _is_numbers(inner))


def _is_struct(field: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_struct(field)


def _type_words(field: pa.Field, feature: Any) -> str:
    """The type of a column in words: `audio`, or as Arrow writes it."""
    inner, _ = _item_type(value_type(field.type))
    holds = sound_feature(feature)
    sound = holds or (holds is None and _is_struct(inner) and _is_file(inner))
    return SOUND_TYPE if sound else str(field.type)


def _is_file(field: pa.DataType) -> bool:
    """Whether a cell of this type is a sound file's bytes, or samples with their rate."""
    import pyarrow as pa

    if _is_struct(field):
        names = {field.field(at).name for at in range(field.num_fields)}
        return {"bytes", "path"} <= names or ("array" in names and bool(names & set(RATES)))
    return pa.types.is_binary(field) or pa.types.is_large_binary(field)


class ParquetRows:
    """The rows of every split of a data set in Parquet files.

    Args:
        splits: the paths of the files of every split, in order.
        features: the types of the columns, as the data set's card declares them.
        sizes: the number of rows of each split, as the card declares it.
    """

    def __init__(
        self,
        repository: Repository,
        splits: Mapping[str, Sequence[str]],
        features: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._repository, self._splits, self._features, self._sizes = repository, splits, features or {}, sizes or {}
        self._rows: dict[str, int] = {}
        self._paths = SoundPaths(repository)
        first = next(path for paths in splits.values() for path in paths)
        metadata = repository.metadata(first)
        self._rows[first] = metadata.num_rows
        schema = metadata.schema.to_arrow_schema()
        self.columns = tuple(schema.names)
        declared = {**self._features, **declared_features(schema)}
        self.types: Mapping[str, str] = {field.name: _type_words(field, declared.get(field.name)) for field in schema}
        self.class_names: Mapping[str, Sequence[Any]] = find_class_names(declared)

    def count(self, split: str) -> int:
        """The number of rows of a split, from the footers of its files.

        Raises:
            UserError: a file is missing, broken or cannot be reached.
        """
        unknown = [path for path in self._splits[split] if path not in self._rows]
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            for path, rows in zip(unknown, pool.map(lambda path: self._repository.metadata(path).num_rows, unknown)):
                self._rows[path] = rows
        return sum(self._rows[path] for path in self._splits[split])

    def known_count(self, split: str, enough: int | None) -> int | None:
        """The number of rows of a split, if no file must be fetched for it; else None.

        Args:
            enough: counting stops at so many rows.
        """
        rows = 0
        for path in self._splits[split]:
            if enough is not None and rows >= enough:
                break
            if path not in self._rows and self._repository.root is None:
                return self._sizes.get(split)
            if path not in self._rows:
                self._rows[path] = self._repository.metadata(path).num_rows
            rows += self._rows[path]
        return rows

    def rows(self, split: str, columns: Sequence[str], chosen: array | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """A split's rows in order with positions; a file is fetched for its first row.

        Args:
            columns: the columns that each row gets.
            chosen: the positions of the rows, in order; None for all.
        """
        start = 0
        for path in self._splits[split]:
            picks = None
            if chosen is not None:
                rows = self._rows[path]
                picks = chosen[bisect_left(chosen, start) : bisect_left(chosen, start + rows)]
                if not picks:
                    start += rows
                    continue
            for at, row in self._rows_of(path, columns, picks, start):
                yield start + at, row
            start += self._rows[path]

    def _rows_of(
        self, path: str, columns: Sequence[str], picks: array | None, start: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (row number in the file, row); with `in_place`, texts are read remotely.

        Args:
            picks: sorted positions in the split; None for all.
            start: the split's position of the file's first row.
        """
        texts_only = all(self.types[c] != SOUND_TYPE for c in columns)
        if self._repository.in_place and self._repository.root is None and texts_only:
            with self._repository.remote(path) as opened:
                yield from self._rows_in(opened, path, path, columns, picks, start)
            return
        local = os.path.abspath(self._repository.local(path))
        yield from self._rows_in(local, path, local, columns, picks, start)

    def _rows_in(
        self, source: Any, path: str, local: str, columns: Sequence[str], picks: array | None, start: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Read the selected rows of an open Parquet file, one row group at a time."""
        import pyarrow as pa

        try:
            with open_parquet(source, buffer_size=_BUFFER_BYTES) as file:
                self._rows[path] = file.metadata.num_rows
                plan = self._plan(file, path, columns)
                first = 0
                for group in range(file.metadata.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    selected = None
                    if picks is not None:
                        low = bisect_left(picks, start + first)
                        upto = bisect_left(picks, start + first + rows)
                        selected = [pick - start - first for pick in picks[low:upto]]
                    if selected is None or selected:
                        for at, row in self._rows_of_group(file, group, plan, selected, (path, local, first)):
                            yield first + at, row
                    first += rows
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise UserError(
                "hub_table_not_parquet", path=path, name=self._repository.name, cause=str(error).splitlines()[0]
            ) from error
        except OSError as error:
            raise UserError("table_unreadable", local=local, cause=str(error).splitlines()[0]) from error

    def _plan(self, file: pq.ParquetFile, path: str, columns: Sequence[str]) -> list[_Column]:
        """Decide for each requested column how its cells are read."""
        schema = file.schema_arrow
        missing = [name for name in columns if name not in schema.names]
        if missing:
            raise UserError(
                "table_lacks_column",
                path=path,
                name=self._repository.name,
                columns=", ".join(missing),
                hint=f"its columns are {', '.join(schema.names)}",
            )
        plan = _columns(file, {**self._features, **declared_features(schema)})
        for column in plan.values():
            if column.kind == "sound" and _only_paths(file, column.name):
                column.kind = "outside"
            if column.kind == "path" and column.typed:
                self._paths.declare(column.name)
        self._paths.others = any(column.kind not in ("plain", "path") for column in plan.values())
        return [plan[name] for name in columns]

    def _rows_of_group(
        self,
        file: pq.ParquetFile,
        group: int,
        plan: Sequence[_Column],
        selected: Sequence[int] | None,
        where: tuple[str, str, int],
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (row number in the group, row) of the selected rows, in batches.

        Args:
            selected: sorted row numbers in the group; None for all.
            where: (path in the repository, local path, the group's first row in the file).
        """
        import pyarrow as pa

        leaves = [leaf for column in plan for leaf in column.leaves]
        start = position = 0
        for size, batch in batches_of(file, leaves, _ROWS_AT_ONCE, [group]):
            end = start + size
            places: Sequence[int] = range(start, end)
            if selected is not None:
                upto = bisect_left(selected, end, position)
                places, position = selected[position:upto], upto
                if places:
                    batch = batch.take(pa.array([row_index - start for row_index in places]))
            if places:
                cells = [self._cells(column, batch, places, where) for column in plan]
                for row_index, *values in zip(places, *cells):
                    yield row_index, dict(zip((column.name for column in plan), values))
            if selected is not None and position == len(selected):
                return
            start = end

    def _cells(self, column: _Column, batch: Any, places: Sequence[int], where: tuple[str, str, int]) -> list[Any]:
        """The values of one column of a batch, with audio as clips.

        Args:
            places: the rows' numbers in the group.
            where: as for `_rows_of_group`.
        """
        path, local, first = where
        read: list[Any] = values_of(batch.column(column.name)) if column.leaves else [True] * len(places)
        if column.kind == "sound":
            return [
                None if value is None else Clip(str(Locator(local, column.name, first + at)))
                for at, value in zip(places, read)
            ]
        if column.kind == "sounds":
            clip = lambda at, item: Clip(str(Locator(local, column.name, first + at, item)))  # noqa: E731
            return [
                values and [None if value is None else clip(at, item) for item, value in enumerate(values)]
                for at, values in zip(places, read)
            ]
        if column.kind == "path":
            return [self._paths.clip(column.name, value, path) for value in read]
        if column.kind == "outside":
            named = [None if value is None else value.get("path") for value in read]
            return [None if name is None else Clip(self._repository.sound(name, path)) for name in named]
        return read


def _columns(file: pq.ParquetFile, features: Mapping[str, Any]) -> dict[str, _Column]:
    """Decide for each column of a file how its cells are read, by name."""
    schema = file.schema_arrow
    leaves: dict[str, list[str]] = {}
    for at in range(len(file.schema)):
        leaf = file.schema.column(at).path
        leaves.setdefault(leaf if leaf in schema.names else leaf.partition(".")[0], []).append(leaf)
    siblings = set(schema.names)
    return {
        name: _Column(name, schema.field(name).type, features.get(name), leaves[name], siblings - {name})
        for name in schema.names
    }


def open_parquet(path: Any, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file; text columns are read as dictionaries to save memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, **options) as file:
        metadata, schema = file.metadata, file.schema_arrow
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    return pq.ParquetFile(path, metadata=metadata, read_dictionary=texts, **options)


def values_of(column: pa.Array) -> list[Any]:
    """The values of an Arrow column, dates, times and decimals as text for JSON.

    Equal texts of a dictionary share one object.

    Raises:
        pyarrow.ArrowInvalid: a damaged file refers to a text outside its dictionary.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        values = column.to_pylist()
        return [_as_text(value) for value in values] if _has_times_or_decimals(column.type) else values
    codes = column.indices.to_pylist()
    used, known = {code for code in codes if code is not None}, len(column.dictionary)
    if used and not 0 <= min(used) <= max(used) < known:
        raise pa.ArrowInvalid(f"a row names text {max(used, key=abs)} of a list of {known} texts")
    values = {code: _as_text(column.dictionary[code].as_py()) for code in used}
    return [values.get(code) for code in codes]


def is_time_or_decimal(kind: pa.DataType) -> bool:
    """Whether values of a type are dates, times, durations or decimals."""
    import pyarrow as pa

    return bool(pa.types.is_temporal(kind) or pa.types.is_decimal(kind))


def _has_times_or_decimals(kind: pa.DataType) -> bool:
    parts = (kind.field(at).type for at in range(kind.num_fields))
    return is_time_or_decimal(kind) or any(map(_has_times_or_decimals, parts))


def _as_text(value: Any) -> Any:
    """The value with text for each date, time, duration and decimal in it."""
    if isinstance(value, dict):
        return {name: _as_text(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_text(member) for member in value]
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta | Decimal) else value


def sound_leaves(file: pq.ParquetFile, name: str) -> list[str] | None:
    """A column's leaves that tell which rows have a sound, or None."""
    column = _columns(file, {name: {"_type": "Audio"}})[name]
    return column.leaves if column.kind == "sound" else None


def batches_of(
    file: pq.ParquetFile, leaves: Sequence[str], rows: int, groups: Sequence[int] | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches of some columns, each with its number of rows, from the front.

    Args:
        leaves: the columns or parts of columns; without any, the batches hold only nulls.
        rows: of a batch, at most.
        groups: the row groups to read; None reads all.
    """
    groups = range(file.metadata.num_row_groups) if groups is None else groups
    if leaves:
        for batch in file.iter_batches(rows, row_groups=list(groups), columns=list(leaves), use_threads=False):
            yield batch.num_rows, batch
    else:
        import pyarrow as pa

        for group in groups:
            held = file.metadata.row_group(group).num_rows
            yield held, pa.record_batch([pa.nulls(held)], names=[""])


def _only_paths(file: pq.ParquetFile, name: str) -> bool:
    """Whether a column {bytes, path} has only paths, by the file's statistics."""
    leaves = [file.schema.column(at).path for at in range(len(file.schema))]
    if f"{name}.bytes" not in leaves or f"{name}.path" not in leaves:
        return False
    at = leaves.index(f"{name}.bytes")
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size > _MOST_WITHOUT_SOUND * group.num_rows:
            return False
        # pyarrow ends the process on statistics of a wrongly described column; reading a row raises an exception.
        next(file.iter_batches(batch_size=1, row_groups=[number], columns=[leaves[at]], use_threads=False), None)
        held = group.column(at).statistics
        if held is None or held.null_count != group.num_rows:
            return False
    return True
