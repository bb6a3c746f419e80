"""The Parquet file of a baseline: the scores of one system, by item and metric, of its runs.

A checksum over the content reveals truncated or edited files.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codec_bench.apps.gating.run_scores import GatedMetric, ItemScore, RunScores
from codec_bench.errors import UserError, on_disk
from codec_bench.machine.environment import package_version

SCHEMA = 1
KEY = b"codec_bench_gate"
_HINT = "make it again with: codec-bench gate freeze RUN --out FILE"


def write_baseline(repeats: Sequence[RunScores], file: Path) -> None:
    """Write comparable repeats of one system atomically."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = repeats[0]
    rows = [
        (number, id, first.contents[id], first.units[id], first.texts[id], metric, one.value, one.status,
         None if one.parts is None else list(one.parts), one.transcript)
        for number, run in enumerate(repeats) for metric, held in run.scores.items() for id, one in held.items()
    ]  # fmt: skip
    columns = list(zip(*rows))
    head = {
        "schema": SCHEMA,
        "version": package_version("codec-bench"),
        "system": first.system,
        "identity": dict(first.identity),
        "metrics": {name: asdict(facts) for name, facts in first.metrics.items()},
        "repeats": [
            {"failed": run.failed, "silent": run.silent, "truncated": run.truncated, "seed": run.seed}
            for run in repeats
        ],
        "checksum": _checksum(columns),
    }
    table = pa.table([pa.array(c, field.type) for c, field in zip(columns, _schema())], schema=_schema())
    table = table.replace_schema_metadata({KEY: json.dumps(head).encode()})
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    with on_disk(f"'{file}' cannot be written"):
        try:
            pq.write_table(table, partial, compression="zstd")
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)


def read_baseline(file: Path) -> list[RunScores]:
    """Read the scores of each repeat; raises UserError for a damaged file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(file).read()
    except FileNotFoundError as error:
        raise UserError(f"there is no baseline '{file}'", hint=_HINT) from error
    except OSError as error:
        raise UserError(f"'{file}' cannot be read: {error}", hint=_HINT) from error
    except pa.ArrowException as error:
        raise UserError(f"'{file}' is not a complete Parquet file", hint=_HINT) from error
    head = _head(table.schema.metadata, file)
    if not table.schema.equals(_schema()):
        raise UserError(f"'{file}' does not have the columns of a baseline", hint=_HINT)
    columns = [tuple(column.to_pylist()) for column in table.columns]
    if _checksum(columns) != head["checksum"]:
        raise UserError(f"'{file}' was changed after it was written: its checksum differs", hint=_HINT)
    return _repeats(columns, head, file)


def _repeats(columns: Sequence[tuple[Any, ...]], head: Mapping[str, Any], file: Path) -> list[RunScores]:
    metrics = {
        name: GatedMetric(**{**facts, "bounds": None if facts["bounds"] is None else tuple(facts["bounds"])})
        for name, facts in head["metrics"].items()
    }
    contents: dict[str, str] = {}
    units: dict[str, str | None] = {}
    texts: dict[str, str | None] = {}
    scores: list[dict[str, dict[str, ItemScore]]] = [{name: {} for name in metrics} for _ in head["repeats"]]
    for number, id, content, unit, text, metric, value, status, parts, transcript in zip(*columns):
        held = scores[number][metric]
        if id in held:
            raise UserError(f"'{file}' holds the item '{id}' twice for {metric}", hint=_HINT)
        held[id] = ItemScore(value, status, None if parts is None else tuple(parts), transcript)
        contents[id], units[id], texts[id] = content, unit, text
    return [
        RunScores(
            head["system"], metrics, contents, units, texts, of, head["identity"],
            facts["failed"], facts["silent"], facts["truncated"], facts["seed"],
        )
        for of, facts in zip(scores, head["repeats"])
    ]  # fmt: skip


def _head(metadata: Mapping[bytes, bytes] | None, file: Path) -> dict[str, Any]:
    try:
        head = json.loads((metadata or {})[KEY])
    except (KeyError, ValueError) as error:
        raise UserError(f"'{file}' is no baseline of a gate", hint=_HINT) from error
    if head.get("schema") != SCHEMA:
        raise UserError(f"'{file}' has the baseline schema {head.get('schema')}; expected {SCHEMA}", hint=_HINT)
    return dict(head)


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("repeat", pa.int32()),
            *(pa.field(name, pa.string()) for name in ("id", "content", "unit", "text", "metric")),
            pa.field("value", pa.float64()),
            pa.field("status", pa.string()),
            pa.field("parts", pa.list_(pa.float64())),
            pa.field("transcript", pa.string()),
        ]
    )


def _checksum(columns: Sequence[Sequence[Any]]) -> str:
    total = hashlib.blake2b(digest_size=16)
    for column in columns:
        total.update(json.dumps(column, ensure_ascii=True).encode())
    return total.hexdigest()
