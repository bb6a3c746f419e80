"""A copy of the project in which a test adds something, and what has changed in it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from forked import ONE_CORE

ROOT = Path(__file__).resolve().parents[2]
EXCLUDED = shutil.ignore_patterns(
    ".git", ".venv*", "build", "dist", "runs", "*.egg-info", ".*_cache", ".cache", ".hypothesis"
)

SEVERAL = f"""{ONE_CORE}
import contextlib, io, json, sys
from codec_bench.cli import main

printed = []
for step in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if isinstance(step, str):
            exec(step)
        else:
            sys.argv = ["codec-bench", *step]
            try:
                main()
            except SystemExit as end:
                if end.code:
                    raise
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


def _copy(file: str, to: str) -> None:
    # What Python and numba have compiled is copied too, so that the copy need not compile it again. Other processes of
    # tests write such files under other names first, which may be gone by now.
    with suppress(FileNotFoundError):
        shutil.copy2(file, to)


def copied(folder: Path) -> tuple[Path, dict[str, str]]:
    """Copies the project; returns the copy, and the environment in which its package is the one that is imported."""
    copy = folder / "project"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=EXCLUDED, copy_function=_copy)
    target = folder / "place"  # not the project's root: what lies there must not be importable by its bare name
    target.mkdir()
    (target / "codec_bench").symlink_to(copy / "codec_bench")
    return copy, {**os.environ, "PYTHONPATH": str(target), "CODEC_BENCH_CACHE": str(folder / "cache")}


def sums(folder: Path) -> dict[str, str]:
    """A digest of every file, by its path."""
    files = (f for f in folder.rglob("*") if f.is_file() and not f.is_symlink() and "__pycache__" not in f.parts)
    return {f.relative_to(folder).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def printed_by(copy: Path, environment: dict[str, str], *steps: list[str] | str) -> list[str]:
    """What each of several steps prints in the copy's folder: a command of `codec-bench` as its arguments, or a
    program.

    They run in one process, because each would import the project anew.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", SEVERAL], input=json.dumps(steps), cwd=copy.parent, env=environment,
        capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
