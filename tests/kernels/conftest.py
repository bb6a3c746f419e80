"""What tests of Triton kernels share."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def interpreted(tmp_path):
    """A function that runs a program under Triton's interpreter, in a process of its own, and gives what it printed."""
    pytest.importorskip("triton", reason="Triton is not installed: pip install 'codec-bench[gpu]'")

    def run(program):
        environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-P", "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
