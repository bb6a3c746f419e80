"""Folders outside of runs that the project writes to."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "CODEC_BENCH_CACHE"


def cache_folder() -> Path:
    """Return the user's cache folder: $CODEC_BENCH_CACHE, else in the XDG cache."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "codec-bench"
