"""The command line as a person uses it: in another process, with its exit code and its output."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def _on_one_core() -> str:
    """Python that keeps a command to one core, another one for each process of pytest.

    The command then has one worker of one thread. A second worker takes longer to start than a few clips take.
    """
    if not hasattr(os, "sched_setaffinity"):
        return ""
    cores = sorted(os.sched_getaffinity(0))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return f"import os; os.sched_setaffinity(0, {[cores[number % len(cores)]]}); "


COMMAND = [sys.executable, "-P", "-c", f"{_on_one_core()}from codec_bench.cli import main; main()"]


@pytest.fixture
def cli(tmp_path):
    """Runs `codec-bench ARGS` in a temporary folder and returns (exit code, stdout, stderr)."""

    def run(*args, timeout=1800):
        done = subprocess.run(
            [*COMMAND, *map(str, args)], capture_output=True, text=True, cwd=tmp_path, timeout=timeout
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run
