"""Packs what `make gpu` needs into parts of at most 60 MiB, most informative first, for a machine without a network.

    python bench/pack_wheels.py FOLDER [--python 3.12] [--part-mib 60]

The machine is expected to have torch, transformers, Triton, onnxruntime, numba, SciPy and a C compiler. FOLDER gets part-1,
part-2 and so on; `make gpu WHEELS=FOLDER` installs from all parts that have arrived.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

PART_MIB = 60
# In the order of what they let the steps say, the small ones of a part first. more-itertools is what whisper-normalizer imports;
# Cython and wheel are what pesq is built with.
PACKAGES = (
    "pydantic", "pydantic-core", "annotated-types", "typing-inspection", "soundfile", "soxr", "cffi", "pycparser",
    "speechmos", "faster-whisper", "snac", "einops", "whisper-normalizer", "more-itertools", "pystoi", "Cython", "wheel", "pesq",
    "typer", "rich", "pytest", "pluggy", "iniconfig", "av", "ctranslate2", "Resemblyzer", "onnx", "pyarrow", "librosa",
    "audioread", "decorator", "pooch", "platformdirs", "kaldiio", "rapidfuzz", "funasr",
)  # fmt: skip
FROM_SOURCE = frozenset({"pesq"})
NOT_IMPORTED = {
    "whisper-normalizer": {"indic-numtowords", "text2num"},
    "resemblyzer": {"typing", "webrtcvad"},
    "funasr": {
        "hydra-core", "jaconv", "jamo", "jieba", "modelscope", "omegaconf", "oss2", "tensorboardx", "torch-complex", "umap-learn",
        "websockets",
    },
}  # fmt: skip
"""What packages ask for, and what no step imports."""


def wanted(package: str) -> str:
    """A package as pip is asked for it: with the versions that the project takes, if it names it."""
    project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    ranges = {re.split("[^A-Za-z0-9._-]", one)[0].lower(): one.split(";")[0].strip() for one in named}
    return str(ranges.get(package.lower(), package))


def parts(sizes: Iterable[tuple[str, int]], limit: int = PART_MIB * 2**20) -> list[list[str]]:
    """Names in their order, in parts of at most `limit` bytes. A file that is larger by itself has a part of its own."""
    out: list[list[str]] = []
    room = 0
    for name, size in sizes:
        if not out or size > room:
            out.append([])
            room = limit
        out[-1].append(name)
        room -= size
    return out


def download(python: str, folder: Path) -> list[Path]:
    """Fetches each package without its dependencies; returns the files in order. What cannot be had is said and left out."""
    found: list[Path] = []
    for package in PACKAGES:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(folder),
            wanted(package),
        ]
        if package in FROM_SOURCE:
            command += ["--no-binary", package]
        else:
            command += ["--only-binary", ":all:", "--python-version", python]
            command += ["--platform", "manylinux_2_28_x86_64", "--platform", "manylinux2014_x86_64"]
        before = set(folder.iterdir())
        if subprocess.run(command, stdout=sys.stderr).returncode:
            sys.stderr.write(f"{package} cannot be had; it is left out\n")
        found += sorted(set(folder.iterdir()) - before)
    return found


def main() -> None:
    """Writes the parts and prints what is in them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="3.12", help="of the machine with the GPU")
    parser.add_argument("--part-mib", type=int, default=PART_MIB, help="the most that a part may hold")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as fetched:
        files = {file.name: file for file in download(asked.python, Path(fetched))}
        sizes = ((name, file.stat().st_size) for name, file in files.items())
        for number, names in enumerate(parts(sizes, asked.part_mib * 2**20), start=1):
            part = asked.folder / f"part-{number}"
            part.mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy(files[name], part)
            size = sum(files[name].stat().st_size for name in names) / 2**20
            print(f"{part}: {size:.1f} MiB: {', '.join(names)}")


if __name__ == "__main__":
    main()
