"""Samples from a registered name, a folder, a manifest or the Hugging Face hub, and rows of tables. Only `sameness.py` decodes sound."""

from __future__ import annotations

from codec_bench.data.columns import broken_down
from codec_bench.data.pairing import match_estimates
from codec_bench.data.part import part_of
from codec_bench.data.sameness import sameness
from codec_bench.data.shard import Shard, read_shard
from codec_bench.data.source import REGISTERED, Source, data_name, open_source, problem_of

__all__ = [
    "REGISTERED",
    "Shard",
    "Source",
    "broken_down",
    "data_name",
    "match_estimates",
    "open_source",
    "part_of",
    "problem_of",
    "read_shard",
    "sameness",
]
