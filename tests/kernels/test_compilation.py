"""Several processes that meet a function first: one compiles it, the others load its code."""

from __future__ import annotations

import os
import sys
import time

import forked
import numpy as np
import pytest

from codec_bench.kernels.compilation.cpu import SharedCache, jit

CODE = """
import os
import sys
import time
import numba
import numpy as np
numba.config.CACHE_DIR = sys.argv[1]
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

open(f"ready-{os.getpid()}", "w").close()
while not os.path.exists("go"):
    time.sleep(0.001)
print(outer(np.linspace(-1, 1, 100)), sum(outer.stats.cache_misses.values()), flush=True)
"""


def test_one_of_several_processes_compiles(tmp_path):
    (tmp_path / "functions.py").write_text(CODE)
    command = [sys.executable, str(tmp_path / "functions.py"), str(tmp_path / "cache")]
    processes = [forked.start(command, cwd=tmp_path) for _ in range(2)]
    until = time.monotonic() + 240
    while len(list(tmp_path.glob("ready-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.001)
    (tmp_path / "go").touch()  # all are ready, so that they begin at one time
    lines = [process.communicate(timeout=240)[0].split() for process in processes]
    assert len({value for value, _ in lines}) == 1
    assert sorted(misses for _, misses in lines) == ["0", "1"]


HALVED = """
import sys
import numba
numba.config.CACHE_DIR = sys.argv[1]
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
from constants import HALF
from codec_bench.kernels.compilation.cpu import jit

@jit()
def halved(x):
    return x * HALF

print(halved(3.0))
"""


def test_a_constant_of_another_file_is_no_older_than_that_file(tmp_path):
    (tmp_path / "halved.py").write_text(HALVED)
    command = [sys.executable, str(tmp_path / "halved.py"), str(tmp_path / "cache"), str(tmp_path)]
    results = []
    for value in ("0.5", "2.0"):
        (tmp_path / "constants.py").write_text(f"HALF = {value}")
        os.utime(tmp_path / "constants.py", ns=(0, 0))
        output, errors = forked.start(command, cwd=tmp_path).communicate(timeout=240)
        results.append(output.strip())
        assert any((tmp_path / "cache").rglob("*.nbi")), errors
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
