"""The command line as a person uses it: in another process, with its exit code and its output."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]


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


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Runs `codec-bench ARGS` in this process, which saves its imports; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for variable in ("OPENAI_API_KEY", "CODEC_BENCH_DATA"):
        monkeypatch.delenv(variable, raising=False)

    def run(*args):
        from codec_bench.cli import main

        monkeypatch.setattr(sys, "argv", ["codec-bench", *map(str, args)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run
