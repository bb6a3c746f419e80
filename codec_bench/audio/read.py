"""Reading a sound by its path: a file, or a row of a table."""

from __future__ import annotations

import os

from codec_bench.audio.decode import read_file
from codec_bench.audio.table import find_locator, read_located
from codec_bench.types import Audio


def read_audio(path: str | os.PathLike[str]) -> Audio:
    """Decodes a file, or the sound in a row of a table: all channels, at its own rate.

    Args:
        path: the path of a file, or a locator such as `/data/test.parquet::audio::17` (see `codec_bench.audio.table`).

    Raises:
        AudioError: the sound is missing, empty, truncated or not audio, or it holds no samples or samples that are not
            finite.
    """
    path = os.fspath(path)
    if "::" in path:
        locator = find_locator(path)
        if locator is not None:
            return read_located(locator)
    return read_file(path)
