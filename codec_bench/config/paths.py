"""Folders outside of runs that the project writes to, and hints on users' paths."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "CODEC_BENCH_CACHE"


def cache_folder() -> Path:
    """Return the user's cache folder: $CODEC_BENCH_CACHE, else in the XDG cache."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "codec-bench"


def hint_for_path(path: str | os.PathLike[str], expected: str) -> str:
    """A hint on a wrong path: what it is, unless it is a folder, and what is expected."""
    file = Path(path).expanduser()
    if file.is_dir():
        return expected
    if not file.exists():
        return f"there is no such file or folder; {expected}"
    kind = {".py": "a Python file", ".yaml": "a YAML file", ".yml": "a YAML file"}.get(file.suffix.lower(), "a file")
    return f"it is {kind}; {expected}"
