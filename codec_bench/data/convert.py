"""Write data of any layout as a manifest."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from codec_bench.data.rows import PROBLEM
from codec_bench.data.source import Source, open_source
from codec_bench.decoding.remote import is_url
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, on_disk
from codec_bench.types import Sample

KINDS = (".jsonl", ".parquet")


class Converted(NamedTuple):
    """The number of written rows, and the problems of the others by id."""

    rows: int
    problems: dict[str, Diagnostic]


def convert_data(data: str | os.PathLike[str], to: str | os.PathLike[str]) -> Converted:
    """Write data of any layout as a manifest with one row per usable sample.

    The audio files are not copied. Paths below the manifest's folder become relative.

    Args:
        data: as for `open_source`.
        to: path of the new manifest, which ends in .jsonl or .parquet.

    Returns:
        The number of rows, and the problem of each sample without a row, by id.

    Raises:
        UserError: the data cannot be opened, the suffix is another one, or the file exists or cannot be written.

    Examples:
        >>> convert_data("embedded", "converted.jsonl").problems
        {}
    """
    path = Path(to)
    if path.suffix.lower() not in KINDS:
        raise UserError("manifest_suffix", path=to, suffix=path.suffix, known=" or ".join(KINDS))
    if path.exists():
        raise UserError("file_exists", path=to, hint="name another file, or remove it")
    source = open_source(data, require_audio=False)
    with on_disk("file_not_writable", path=to):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            write = _write_jsonl if path.suffix.lower() == ".jsonl" else _write_parquet
            write(temporary, list(_rows(source, path.parent.resolve())))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    return Converted(len(source) - len(source.problems), source.problems)


def _rows(source: Source, folder: Path) -> Iterator[dict[str, Any]]:
    for sample in source:
        if sample.id not in source.problems:
            yield {key: value for key, value in _manifest_fields(sample, folder).items() if value is not None}


def _manifest_fields(sample: Sample, folder: Path) -> dict[str, Any]:
    """Return a sample's line of the manifest, with paths relative to the folder."""
    known = {
        "id": sample.id,
        "audio": _relative_path(folder, sample.audio),
        "text": sample.text,
        "speaker": sample.speaker,
    }
    known |= {"language": sample.language, "estimate": _relative_path(folder, sample.estimate)}
    return {**known, **{key: value for key, value in sample.extra.items() if key not in known and key != PROBLEM}}


def _relative_path(folder: Path, path: str | None) -> str | None:
    """Make a path below the folder relative; others, URLs and parts of files stay."""
    inside = os.path.join(folder, "")
    if path is None or is_url(path) or "::" in path or not path.startswith(inside):
        return path
    return path.removeprefix(inside).replace(os.sep, "/")


def _write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as a Parquet table; lists and objects in cells become JSON text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [_cell(row.get(name)) for row in rows] for name in names}
    pq.write_table(pa.table({name: _column(values) for name, values in columns.items()}), path)


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, tuple, dict)) else value


def _column(values: list[Any]) -> list[Any]:
    """Values of one type; mixed ones become text."""
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) < 2 else [None if value is None else str(value) for value in values]
