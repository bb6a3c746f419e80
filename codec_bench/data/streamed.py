"""Rows of files other than Parquet, read from the front. No sound is decoded."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.data.cells import SOUND_TYPE, SoundPaths, find_class_names, sound_feature, sound_in_memory
from codec_bench.data.hub import Repository
from codec_bench.data.layout import Layout
from codec_bench.data.manifest import READERS, unit_of
from codec_bench.data.rows import Position
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk

_LINES_FOR_COLUMNS = 100


class ProblemRow(dict):
    """An unreadable row. It has no columns, and it counts like any other row.

    Args:
        problem: the reason, such as `line 7 of x.jsonl is not JSON`.
    """

    def __init__(self, problem: Diagnostic) -> None:
        super().__init__()
        self.problem = problem


def row_problem(row: Mapping[str, Any]) -> Diagnostic | None:
    """Why a row of a table cannot be read, or None."""
    return row.problem if isinstance(row, ProblemRow) else None


class ManifestRows:
    """The rows of one JSON-lines, CSV or TSV file, as one split."""

    def __init__(self, path: str, split: str) -> None:
        self._path, self._split = path, split
        self._paths = SoundPaths(Repository(os.path.basename(path), os.path.dirname(path)))
        # JSON lines may differ in their keys.
        names = [names for _, names, _, _ in islice(self._cells(), _LINES_FOR_COLUMNS)]
        self.columns = tuple(dict.fromkeys(name for row in names for name in row))
        self.types: Mapping[str, str] = {}
        self.class_names: Mapping[str, Sequence[Any]] = {}

    def _cells(self) -> Iterator[Any]:
        with on_disk("file_not_readable", path=self._path):
            yield from READERS[os.path.splitext(self._path)[1].lower()](self._path, ())

    def count(self, split: str) -> int:
        """The number of rows, by reading the whole file."""
        return sum(1 for _ in self._cells())

    def known_count(self, split: str, enough: int | None) -> int | None:
        """None: only reading the file tells."""
        return None

    def rows(self, split: str, columns: Sequence[str], chosen: array | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """As `ParquetRows.rows`."""
        table_name = os.path.basename(self._path)
        for at, (number, names, values, problem) in _chosen(self._cells(), chosen):
            if problem is not None:
                yield at, ProblemRow(Position(unit_of(self._path), number, table_name).problem(problem))
                continue
            cells = dict(zip(names, values))
            yield at, {name: self._cell(name, cells[name]) for name in columns if name in cells}

    def _cell(self, name: str, value: Any) -> Any:
        sound = sound_in_memory(value, f"{os.path.basename(self._path)}: {name}")
        return sound if sound is not None else self._paths.clip(name, value, os.path.basename(self._path))


class StreamedRows:
    """Rows of splits that `datasets` reads: sounds, JSON, CSV, archives."""

    def __init__(self, repository: Repository, layout: Layout) -> None:
        self._repository, self._layout, self._paths = repository, layout, SoundPaths(repository)
        every = [path for paths in layout.splits.values() for path in paths] if repository.partial else []
        missing = [path for path in every if not repository.has(path)]
        if missing:
            raise UserError(
                "cache_lacks_files",
                count=len(missing),
                name=repository.name,
                revision=repository.revision,
                example=missing[0],
                hint="unset HF_HUB_OFFLINE, or fetch them: hf download --repo-type dataset " + repository.name,
            )
        first = next(iter(layout.splits))
        self._features = {**layout.features, **(layout.builder.as_streaming_dataset(split=first).features or {})}
        self.columns = tuple(self._features)
        if not self.columns:
            self.columns = tuple(next((row for _, row in self._raw(first)), {}))
        self._paths.others = any(sound_feature(feature) for feature in self._features.values())
        self.types: Mapping[str, str] = {
            name: SOUND_TYPE if sound_feature(of) else _type_words(of) for name, of in self._features.items()
        }
        self.class_names: Mapping[str, Sequence[Any]] = find_class_names(self._features)

    def _raw(self, split: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Stream the undecoded rows of a split as (position, row)."""
        from datasets import IterableDataset

        read = 0
        try:
            stream = self._layout.builder.as_streaming_dataset(split=split)
            # With the declared types, the library would decode each sound.
            for at, row in enumerate(IterableDataset(stream._ex_iterable)):
                yield at, row
                read = at + 1
        except UserError:
            raise
        except Exception as error:  # a dozen formats' readers raise exceptions of any class over a broken file
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise UserError(
                "split_unreadable", split=split, name=self._repository.name, read=read, reason=reason
            ) from error

    def count(self, split: str) -> int:
        """The number of rows of a split, by reading the whole split."""
        return sum(1 for _ in self._raw(split))

    def known_count(self, split: str, enough: int | None) -> int | None:
        """The number of rows of a split as the data set's card declares it, or None."""
        return self._layout.sizes.get(split)

    def rows(self, split: str, columns: Sequence[str], chosen: array | None) -> Iterator[tuple[int, dict[str, Any]]]:
        """As `ParquetRows.rows`."""
        table_path = next(iter(self._layout.splits[split]), "")
        for at, (_, row) in _chosen(self._raw(split), chosen):
            name = f"{self._repository.name} {split}/{at}"
            yield at, {c: self._cell(c, row[c], f"{name}: {c}", table_path) for c in columns if c in row}

    def _cell(self, column: str, value: Any, name: str, table_path: str) -> Any:
        """Convert a cell to a clip if it is audio or the path of audio.

        Args:
            name: of the clip, if the cell has no path.
            table_path: of a file of the split, where relative paths begin.
        """
        if isinstance(value, list):
            return [self._cell(column, item, name, table_path) for item in value]
        typed = sound_feature(self._features.get(column))
        if typed is False:
            return value
        sound = sound_in_memory(value, name)
        if sound is not None:
            return sound
        if isinstance(value, Mapping) and set(value) == {"bytes", "path"}:
            return self._clip(value["path"], table_path)
        if typed and isinstance(value, (str, type(None))):
            return self._clip(value, table_path)
        return self._paths.clip(column, value, table_path)

    def _clip(self, path: str | None, table_path: str) -> Clip | None:
        """The clip of audio on the hub, at a local path or in an archive; None for None."""
        if path is None:
            return None
        if path.startswith("hf://"):
            return Clip(self._repository.local(self._repository.path_of(path)))
        if "://" not in path:
            return Clip(self._repository.sound(path, table_path))
        from datasets.utils.file_utils import xopen

        with xopen(path, "rb") as file:  # a member of an archive
            return Clip(file.read(), path)


def _type_words(feature: Any) -> str:
    return str(getattr(feature, "dtype", None) or feature)


def _chosen(rows: Iterator[Any], chosen: array | None) -> Iterator[tuple[int, Any]]:
    """Yield (position, row) of the rows at sorted positions; None for all."""
    if chosen is None:
        yield from enumerate(rows)
        return
    remaining = iter(chosen)
    next_chosen = next(remaining, None)
    for at, row in enumerate(rows):
        if at == next_chosen:
            yield at, row
            next_chosen = next(remaining, None)
        if next_chosen is None:
            return
