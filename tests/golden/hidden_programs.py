"""A machine without the optional programs, for `pytest --without-programs`."""

from __future__ import annotations

import ctypes.util
import os
import tempfile
from pathlib import Path

import pytest

PROGRAMS = {
    "c++", "cc", "chromedriver", "chromium", "clang", "espeak-ng", "ffmpeg", "ffprobe", "flite", "g++", "gcc",
    "kpsewhich", "latex", "node",
    "npm", "pdflatex", "sacct", "sbatch", "scancel", "sinfo", "slurmctld", "slurmd", "squeue", "srun",
}  # fmt: skip
LIBRARIES = {"vo-amrwbenc"}
MODULE = "codec_bench.benchmark.metrics.meteor"
"""It reads WordNet from a folder of the system."""


def hide(config: pytest.Config) -> None:
    """Hides programs from this process and from those that it starts, and libraries and WordNet from this process."""
    folders = []
    for name in os.environ["PATH"].split(os.pathsep):
        folder = Path(name)
        if any((folder / program).exists() for program in PROGRAMS):
            others = tempfile.TemporaryDirectory(prefix="programs-")
            config.add_cleanup(others.cleanup)
            for program in folder.iterdir():
                if program.name not in PROGRAMS:
                    Path(others.name, program.name).symlink_to(program)
            name = others.name
        folders.append(name)
    os.environ["PATH"] = os.pathsep.join(folders)
    find = ctypes.util.find_library
    ctypes.util.find_library = lambda name: None if name in LIBRARIES else find(name)
    __import__(MODULE, fromlist=["_SYSTEM"])._SYSTEM = "/nonexistent"
