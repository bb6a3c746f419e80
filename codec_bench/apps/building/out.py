"""The data set that a build gives: Parquet files in the hub's layout, a card, and a benchmark definition beside it.

Conventions
    Equal items give equal bytes: nothing of a file depends on the time, the machine, or the order in which items were made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from codec_bench.apps.building.funnel import Funnel, reason_of
from codec_bench.apps.building.item import Item
from codec_bench.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

SPLIT = "test"
SHARD_BYTES = 400 << 20
_GROUP = 100
"""Rows of a row group: the hub's viewer and the reader fetch one group at a time."""
_SOUND = "audio.bytes"
_DTYPES = {"text": "string", "number": "float64", "truth": "bool"}


def write_tables(
    folder: Path, outcomes: Iterable[Item], columns: Mapping[str, str], *, count: int, size_bytes: int
) -> list[Path]:
    """Writes the kept items as Parquet files; files of an earlier build of other length are removed.

    Args:
        folder: of the data set.
        outcomes: all items in order, with their sounds; dropped ones are passed over.
        columns: as `Maker.columns`.
        count: how many items are kept. size_bytes: the bytes of their sounds.

    Raises:
        UserError: the folder cannot be written.
    """
    import pyarrow.parquet as pq

    data = folder / "data"
    shards = max(1, -(-size_bytes // SHARD_BYTES))
    each = -(-count // shards)
    kept = (outcome for outcome in outcomes if outcome.row is not None)
    schema = _schema(columns)
    # A sound is compressed already, and none is like another.
    small = [
        "id",
        "audio.path",
        *(f"{name}.list.element" if kind == "texts" else name for name, kind in columns.items()),
    ]
    how = {"compression": {_SOUND: "none", **dict.fromkeys(small, "zstd")}, "use_dictionary": small}
    written: list[Path] = []
    try:
        data.mkdir(exist_ok=True)
        for number in range(shards):
            path = data / f"{SPLIT}-{number:05d}-of-{shards:05d}.parquet"
            part = path.with_suffix(".part")
            with pq.ParquetWriter(part, schema, **how) as writer:
                for rows in _batches(kept, min(each, count - number * each)):
                    writer.write_table(_table(rows, schema, columns), row_group_size=_GROUP)
            os.replace(part, path)
            written.append(path)
        for other in set(data.glob("*.parquet")) - set(written):
            other.unlink()
    except OSError as error:
        raise UserError(f"'{data}' cannot be written: {error.strerror}") from error
    return written


def _batches(kept: Iterator[Item], count: int) -> Iterator[list[Item]]:
    while count > 0:
        rows = list(islice(kept, min(count, _GROUP)))
        if not rows:
            return
        count -= len(rows)
        yield rows


def _schema(columns: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    types = {"text": pa.string(), "texts": pa.list_(pa.string()), "number": pa.float64(), "truth": pa.bool_()}
    features: dict[str, Any] = {"id": {"dtype": "string", "_type": "Value"}, "audio": {"_type": "Audio"}}
    for name, kind in columns.items():
        value = {"dtype": _DTYPES.get(kind, "string"), "_type": "Value"}
        features[name] = {"feature": value, "_type": "List"} if kind == "texts" else value
    sound = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    fields = [("id", pa.string()), ("audio", sound), *((name, types[kind]) for name, kind in columns.items())]
    declared = json.dumps({"info": {"features": features}})
    return pa.schema(fields, metadata={"huggingface": declared})


def _table(rows: Sequence[Item], schema: pa.Schema, columns: Mapping[str, str]) -> pa.Table:
    import pyarrow as pa

    held: dict[str, list[Any]] = {
        "id": [one.key for one in rows],
        "audio": [{"bytes": one.sound, "path": f"{one.key}.flac"} for one in rows],
    }
    for name in columns:
        held[name] = [(one.row or {}).get(name) for one in rows]
    return pa.table(held, schema=schema)


def write_dropped(folder: Path, outcomes: Iterable[Item], steps: Sequence[str]) -> None:
    """Writes `dropped.jsonl`: every dropped item with its reason and every try that failed."""
    lines = []
    for one in outcomes:
        if not one.kept:
            last = reason_of(one, steps)
            tries = [{"step": f.step, "reason": f.reason, "detail": f.detail} for f in one.failures]
            line = {"id": one.key, "step": last.step, "reason": last.reason, **one.groups, "tries": tries}
            lines.append(json.dumps(line, ensure_ascii=False))
    write_text(folder / "dropped.jsonl", "".join(f"{line}\n" for line in lines))


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all.

    Raises:
        UserError: it cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise UserError(f"'{path}' cannot be written: {error.strerror}") from error


def yaml_text(value: Any) -> str:
    """A value as YAML, in the order in which it is given."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))


def table_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown. Cells come from data, so that marks in them are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def spread(values: Sequence[float], show: Callable[[float], str] = lambda value: f"{value:.2f}") -> list[str]:
    """The least value, the quartiles and the greatest value, as text."""
    import numpy as np

    return [show(float(value)) for value in np.percentile(values, [0, 25, 50, 75, 100])] if values else ["-"] * 5


def funnel_text(funnel: Funnel) -> str:
    """The funnel as tables in Markdown."""
    parts = [
        table_text(("step", "items that reached it", "dropped because", "dropped"), funnel.rows()),
        f"There were {funnel.tries:,} tries for {funnel.items:,} items. Tries that failed, also those of items that were kept in the end:\n",
        table_text(
            ("step", "reason", "tries"),
            [
                (step, reason, count)
                for step, held in funnel.as_dict()["failed_tries"].items()
                for reason, count in held.items()
            ]
            or [("-", "none failed", 0)],
        ),
    ]
    for name, held in funnel.as_dict()["groups"].items():
        rows = [(value, counts["items"], counts["kept"]) for value, counts in held.items()]
        parts.append(table_text((name, "items", "kept"), rows))
    return "\n".join(parts)
