"""Folders outside of runs that the project writes to."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "CODEC_BENCH_CACHE"


def cache_folder() -> Path:
    """The folder of this user's caches: $CODEC_BENCH_CACHE, or `codec-bench` in the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "codec-bench"
