"""The command line as a person uses it: in another process, with its exit code and its output."""

from __future__ import annotations

import pytest
from forked import COMMAND

from codec_bench.engine import pool


@pytest.fixture
def cli(tmp_path):
    """Runs `codec-bench ARGS` in a temporary folder and returns (exit code, stdout, stderr)."""

    def run(*args, timeout=1800):
        done = pool.subprocess.run(
            [*COMMAND, *map(str, args)], capture_output=True, text=True, cwd=tmp_path, timeout=timeout
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run
