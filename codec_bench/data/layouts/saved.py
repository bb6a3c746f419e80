"""Folders of `datasets.save_to_disk`: Arrow files and their descriptions.

Format: https://huggingface.co/docs/datasets/process#save (`Dataset.save_to_disk`, `DatasetDict.save_to_disk`).
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator, Sequence
from typing import Any

from codec_bench.data.cells import declared_features, find_class_names, name_class
from codec_bench.data.layouts.base import LayoutResult
from codec_bench.data.layouts.tree import Tree
from codec_bench.data.manifest import CellSound, Columns, make_row
from codec_bench.data.parquet import values_of
from codec_bench.data.rows import Position, Row
from codec_bench.decoding.table import Locator
from codec_bench.messages.errors import UserError, on_disk


def claims_saved(tree: Tree, file: str) -> bool:
    """Whether `state.json` lists Arrow files."""
    return bool(_state(tree, file).get("_data_files"))


def _state(tree: Tree, file: str) -> dict[str, Any]:
    """Read a JSON object; empty if the file is unreadable or no object."""
    try:
        with open(tree.path(file), encoding="utf-8") as opened:
            held = json.load(opened)
    except (OSError, ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


def read_saved(tree: Tree, files: Sequence[str]) -> LayoutResult:
    """Read data saved by `datasets` (Arrow); several splits add the column `split`."""
    tables = [
        (posixpath.dirname(file), posixpath.join(posixpath.dirname(file), posixpath.basename(str(one.get("filename")))))
        for file in files
        for one in _state(tree, file)["_data_files"]
        if isinstance(one, dict)
    ]

    def rows() -> Iterator[Row]:
        count = 0
        for folder, table in tables:
            split = posixpath.basename(folder) if len(files) > 1 else None
            for row in _rows_of(tree.path(table), tree.path(folder)):
                count += 1
                extra = {**row.extra, "split": split} if split else row.extra
                yield row._replace(number=count, extra=extra)

    known = [file for file in tree.texts if posixpath.basename(file) in ("dataset_info.json", "dataset_dict.json")]
    return LayoutResult(rows(), [*files, *(table for _, table in tables)], known)


def _rows_of(path: str, folder: str) -> Iterator[Row]:
    """Read the rows of an Arrow stream file."""
    import pyarrow as pa

    with on_disk("file_not_readable", path=path):
        try:
            with pa.memory_map(path) as file, pa.ipc.open_stream(file) as stream:
                yield from _rows_in(stream, path, folder)
        except pa.ArrowException as error:
            raise UserError("arrow_unreadable", path=path, cause=str(error).splitlines()[0]) from error


def _rows_in(stream: Any, path: str, folder: str) -> Iterator[Row]:
    """Convert Arrow record batches to rows; audio stays in the file until read.

    Args:
        path: of the file, for the locators of its audio.
        folder: where relative paths begin.
    """
    import pyarrow as pa

    names = tuple(stream.schema.names)
    columns = Columns(names)
    types = dict(zip(names, stream.schema.types))
    fields = {names[at]: field for field, at in columns.at.items()}
    sounds = [name for name in names if fields.get(name) in ("audio", "estimate") and pa.types.is_struct(types[name])]
    nested = [name for name in names if pa.types.is_nested(types[name]) or pa.types.is_binary(types[name])]
    plain = [name for name in names if name not in sounds and name not in nested]
    classes = find_class_names(declared_features(stream.schema))
    row = 0
    for batch in stream:
        batch.validate(full=True)
        values = {name: values_of(batch.column(name)) for name in plain}
        paths = {
            name: batch.column(name).field("path").to_pylist() for name in sounds if "path" in _children(types[name])
        }
        for at in range(batch.num_rows):
            cells: list[Any] = [
                name_class(values[name][at], classes.get(name, ())) if name in values else None for name in names
            ]
            for name in sounds:
                there = batch.column(name)[at].is_valid
                cells[names.index(name)] = (
                    CellSound(str(Locator(path, name, row)), paths.get(name, {at: None})[at]) if there else None
                )
            parsed = make_row(row + 1, columns, names, cells, folder, ("audio", "text"))
            if parsed.problem is not None:
                where = Position("row", row + 1, os.path.basename(path))
                parsed = parsed._replace(problem=where.problem(parsed.problem))
            yield parsed
            row += 1


def _children(kind: Any) -> list[str]:
    return [kind.field(at).name for at in range(kind.num_fields)]
