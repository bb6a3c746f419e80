"""Codecs of one's own runs and of publications side by side (see `codecs.py`)."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.apps.leaderboards.codecs import CodecBoard, CodecTable


def codec_board(
    runs: Iterable[str | os.PathLike[str]] = (),
    *,
    axis: str = "bitrate",
    metrics: Sequence[str] = (),
    anchor: str | None = None,
    seed: int = 0,
) -> CodecBoard:
    """The codecs of runs and of publications: quality against cost, with Pareto fronts and delta rates.

    Numbers of different sources, data or protocols never share a table.

    Args:
        runs: run folders, or folders that hold run folders at any depth.
        axis: what quality is set against: `bitrate`, `real_time_factor`, `lookahead` or `parameters`.
        metrics: only these metrics; empty for all.
        anchor: a family of codecs, which delta rates (Bjøntegaard) of the others are measured against.
        seed: of the draws of other items.

    Raises:
        UnknownName: there is no such axis, metric or family.
        UserError: a folder holds no run, or a record is damaged.
    """
    from codec_bench.apps.leaderboards.codecs import codec_board as side_by_side

    return side_by_side(runs, published_codecs(), axis=axis, metrics=metrics, anchor=anchor, seed=seed)


def published_codecs() -> list[CodecTable]:
    """The published tables of codecs, each with its source and protocol."""
    from codec_bench.config import config_names, read_config

    names = [name for name in config_names("published") if name.startswith("codecs-")]
    return [table for name in names for table in _tables(read_config("published", name))]


def _tables(document: dict[str, Any]) -> list[CodecTable]:
    from codec_bench.apps.leaderboards.codecs import CodecPoint, CodecTable

    text = (files("codec_bench") / "configs" / "published" / document["published"]).read_bytes().decode("utf-8")
    lines = list(csv.DictReader(io.StringIO(text, newline="")))
    lines.sort(key=lambda line: float(line["kbps"]))
    return [
        CodecTable(
            document["source"],
            column.get("data", document["data"]),
            column["metric"],
            column.get("unit", ""),
            column["higher_is_better"],
            column["protocol"],
            tuple(
                CodecPoint(
                    line["codec"],
                    line["family"],
                    "",
                    {"bitrate": 1000 * float(line["kbps"])},
                    float(line[column["name"]]),
                )
                for line in lines
                if line[column["name"]]
            ),
        )
        for column in document["columns"]
    ]
