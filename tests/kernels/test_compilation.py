"""Several processes that meet a function first: one compiles it, the others load its code."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from codec_bench.kernels.compilation.cpu import SharedCache, jit

CODE = """
import sys
import numpy as np
from codec_bench.kernels.compilation.cpu import jit

@jit(nogil=True)
def inner(x, k):
    total = 0.0
    for i in range(x.size):
        total += np.sin(x[i]) ** k if x[i] > 0 else np.exp(x[i]) * k
    return total

@jit(nogil=True)
def outer(x):
    total = 0.0
    for k in range(5):
        total += inner(x, k)
    return total

print("ready", flush=True)
sys.stdin.readline()
print(outer(np.linspace(-1, 1, 100)), sum(outer.stats.cache_misses.values()), flush=True)
"""


def test_one_of_several_processes_compiles(tmp_path):
    (tmp_path / "functions.py").write_text(CODE)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-P", str(tmp_path / "functions.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all are ready, so that they begin at one time
        process.stdin.write("\n")
        process.stdin.flush()
    lines = [process.communicate(timeout=240)[0].split() for process in processes]
    assert len({value for value, _ in lines}) == 1
    assert sorted(misses for _, misses in lines) == ["0", "1"]


HALVED = """
from constants import HALF
from codec_bench.kernels.compilation.cpu import jit

@jit()
def halved(x):
    return x * HALF

print(halved(3.0))
"""


def test_a_constant_of_another_file_is_no_older_than_that_file(tmp_path):
    (tmp_path / "halved.py").write_text(HALVED)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    results = []
    for value in ("0.5", "2.0"):
        (tmp_path / "constants.py").write_text(f"HALF = {value}")
        os.utime(tmp_path / "constants.py", ns=(0, 0))
        command = [sys.executable, str(tmp_path / "halved.py")]
        results.append(
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
        )
    assert results == ["1.5", "6.0"]


def test_a_folder_that_cannot_be_written_has_no_lock(monkeypatch):
    cache = SharedCache(_double)

    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "open", refused)
    cache._acquire()
    monkeypatch.undo()
    assert cache._lock is None


def test_a_process_that_compiles_for_too_long_is_not_waited_for(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    import codec_bench.kernels.compilation.cpu as compilation

    first, second = SharedCache(_double), SharedCache(_double)
    for cache in (first, second):
        cache._cache_path = str(tmp_path)
    monkeypatch.setattr(compilation, "WAIT_S", 0.1)
    first._acquire()
    held = os.open(next(tmp_path.glob("*.lock")), os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    second._acquire()
    first._release()
    second._release()
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(held)


def test_options_are_numbas():
    function = jit(nogil=True, error_model="numpy")(_double)
    assert function(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert function.targetoptions["nogil"] and function.targetoptions["error_model"] == "numpy"


def _double(x):
    return x * 2.0
