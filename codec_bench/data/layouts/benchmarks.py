"""The layouts of data sets for benchmarks, by their names in definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from codec_bench.data.hub import Repository
from codec_bench.data.layouts.benchmark_files import (
    FileRows,
    open_air_bench,
    open_listed,
    open_minimax,
    open_seed_tts,
    open_tagged,
    open_transcribed,
)
from codec_bench.data.layouts.benchmark_pairs import open_story_cloze, open_zerospeech
from codec_bench.data.layouts.benchmark_styles import EXPRESSO_COLUMNS, open_esd, open_expresso


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkData:
    """The part of a data set that a definition reads.

    Args:
        config: the list, folder, part or track.
        folder: the folder or archive where paths of sounds begin.
        sounds: the columns that name sounds.
        keep: whether the definition reads a row.
        open_table: opens the data set as a table with the named columns.
    """

    config: str
    language: str
    folder: str | None
    sounds: tuple[str, ...]
    keep: Callable[[Mapping[str, Any]], bool]
    open_table: Callable[..., Any]


BENCHMARK_LAYOUTS: Mapping[str, Callable[[Repository, BenchmarkData], FileRows]] = {
    "air-bench": lambda repository, data: open_air_bench(repository, track=data.config, keep=data.keep),
    "esd": lambda repository, data: open_esd(repository, language=data.language, voice=data.config),
    "expresso": lambda repository, data: open_expresso(
        repository, data.open_table(columns=EXPRESSO_COLUMNS), voice=data.config, keep=data.keep
    ),
    "listed": lambda repository, data: open_listed(
        repository, listed=data.config, folder=data.folder, sounds=data.sounds, keep=data.keep
    ),
    "minimax": lambda repository, data: open_minimax(repository, language=data.language),
    "seed-tts": lambda repository, data: open_seed_tts(repository, listed=data.config),
    "story-cloze": lambda repository, data: open_story_cloze(repository, subset=data.config),
    "tagged": lambda repository, data: open_tagged(
        repository, listed=data.config, folder=data.folder, sounds=data.sounds, keep=data.keep
    ),
    "transcribed": lambda repository, data: open_transcribed(repository, listed=data.config, folder=data.folder),
    "zerospeech": lambda repository, data: open_zerospeech(repository, subset=data.config),
}
