"""The command line as a person uses it: in another process, with its exit code and its output."""

from __future__ import annotations

import subprocess
import sys

import pytest

# One worker of one thread, as on a machine of one core. A second worker takes longer to start than a few clips take.
ONE_CORE = "import os; os.sched_getaffinity = lambda _: {0}; "
COMMAND = [sys.executable, "-P", "-c", f"{ONE_CORE}from codec_bench.cli import main; main()"]


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
