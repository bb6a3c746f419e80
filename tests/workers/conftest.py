"""Worker code that follows instructions in its requests, hosts that run it, and checks of what they leave behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from pathlib import Path

import pytest

CODE = """
import os, signal, subprocess, sys, tempfile, time
np = type("NumPy", (), {"__getattr__": lambda _, name: getattr(__import__("numpy"), name)})()  # imported when used


def load(**options):
    do = options.get("do")
    print("loading", options)
    if do == "raise":
        raise RuntimeError("the weights are not there")
    if do == "exit":
        sys.exit("no licence")
    if do == "hang":
        time.sleep(60)
    if do == "die":
        os._exit(7)
    return options


def answer(state, batch):
    return state_answers(state, batch)


def state_answers(state, batch):
    does = [item["fields"].get("do") for item in batch]
    if "fewer" in does:
        return [{"text": item["id"]} for item in batch][1:]
    if "none" in does:
        return None
    return [one(item, item["fields"].get("do")) for item in batch]


def one(item, do):
    if do == "print":
        print("a line on stdout")
        print("a line on stderr", file=sys.stderr)
    if do == "garbage":
        os.write(1, bytes(range(256)) * 64)
        os.write(2, b"\\xff\\xfe\\x00\\x00" * 64)
    if do == "raise":
        raise ValueError("this one\\nis not for me")
    if do == "exit":
        sys.exit(5)
    if do == "die":
        print("last words")
        os.kill(os.getpid(), signal.SIGKILL)
    if do == "die if marked" and "MARKED" in os.environ:
        os._exit(9)
    if do == "die once":
        mark = item["fields"]["mark"]
        if not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(9)
    if do == "hang":
        time.sleep(60)
    if do == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if do == "lost device":
        raise RuntimeError("CUDA error: device-side assert triggered")
    if do == "write everywhere":
        for handle in range(3, 4096):
            try:
                os.write(handle, b"\\xff" * 64)
            except OSError:
                pass
        time.sleep(60)
    if do == "start others":
        kept = [subprocess.Popen(["sleep", "60"]).pid]
        kept.append(subprocess.Popen(["sleep", "60"], start_new_session=True).pid)
        tempfile.NamedTemporaryFile(delete=False).write(b"x" * 1000)
        return {"text": " ".join(map(str, kept))}
    if do == "not a dictionary":
        return "text"
    if do == "not text":
        return {"text": 5}
    if do == "not JSON":
        return {"text": "x", "usage": {"x": object()}}
    if do == "numbers of NumPy":
        return {"text": "x", "usage": {"tokens": np.int64(3)}}
    if do == "NaN":
        return {"text": "x", "audio": {"samples": np.full(10, np.nan, np.float32), "sample_rate_hz": 8000}}
    if do == "empty audio":
        return {"text": "x", "audio": {"samples": np.zeros((1, 0), np.float32), "sample_rate_hz": 8000}}
    if do == "words as audio":
        return {"text": "x", "audio": {"samples": np.array(["a", "b"]), "sample_rate_hz": 8000}}
    if do == "integers as audio":
        return {"text": "x", "audio": {"samples": np.ones((1, 8), np.int16), "sample_rate_hz": 8000}}
    if do == "no rate":
        return {"text": "x", "audio": {"samples": np.zeros(8, np.float32)}}
    if do == "rate 0":
        return {"text": "x", "audio": {"samples": np.zeros(8, np.float32), "sample_rate_hz": 0}}
    if do == "three dimensions":
        return {"text": "x", "audio": {"samples": np.zeros((1, 2, 3), np.float32), "sample_rate_hz": 8000}}
    if do == "float64":
        return {"text": "x", "audio": {"samples": np.arange(6).reshape(2, 3) / 8, "sample_rate_hz": np.int64(8000)}}
    if do == "long text":
        return {"text": "ä" * 100_000}
    if do == "endless text":
        return {"text": "x" * (20 << 20)}
    if do == "half a character":
        return {"text": "a\\ud800b"}
    if do == "nothing":
        return {}
    if do == "error":
        return {"error": "too noisy"}
    if do == "refused":
        return {"refused": "not in this language"}
    if do == "keep":
        item["fields"]["audio"]["samples"] *= 2
        return {"text": "x", "audio": item["fields"]["audio"]}
    found = item["fields"].get("audio")
    return {"text": item["id"], "audio": found, "notes": [os.environ.get("CUDA_VISIBLE_DEVICES", "-")]}
"""


@pytest.fixture
def code(tmp_path) -> Path:
    """The file of the worker code."""
    file = tmp_path / "code.py"
    file.write_text(CODE, "utf-8")
    return file


@pytest.fixture
def settings(code):
    """Settings of workers that run in this environment, because these tests are not about the isolation itself."""
    from codec_bench.workers.host import WorkerSettings

    def build(**changed):
        options = {
            "name": "w",
            "python": Path(sys.executable),
            "code": code,
            "limit_s": 5.0,
            "start_s": 20.0,
            **changed,
        }
        return WorkerSettings(**options)

    return build


@pytest.fixture
def item():
    """A packed request that tells the worker code what to do."""
    from codec_bench.workers import wire

    def build(id: str = "a", **fields):
        return wire.pack({"id": id, "messages": [], "fields": fields, "wants": "text", "parameters": {}})

    return build


@pytest.fixture
def clean(caplog):
    """Checks that a coroutine leaves no file descriptor, no process and no warning behind; returns its result."""

    def run(coroutine):
        before, others = set(os.listdir("/proc/self/fd")), set(children(os.getpid()))
        result = asyncio.run(coroutine)
        left = {os.readlink(f"/proc/self/fd/{n}") for n in set(os.listdir("/proc/self/fd")) - before if _is_open(n)}
        assert not left, left
        assert not set(children(os.getpid())) - others
        gc.collect()  # futures with unread exceptions report them when they are deleted
        assert not [r.getMessage() for r in caplog.records if r.name == "asyncio" and r.levelno >= logging.ERROR]
        return result

    return run


def _is_open(number: str) -> bool:
    return os.path.exists(f"/proc/self/fd/{number}") or os.path.islink(f"/proc/self/fd/{number}")


def children(pid: int) -> list[int]:
    """Processes that a process has started and that are not reaped."""
    results = []
    for threads in Path(f"/proc/{pid}/task").glob("*/children"):
        results += [int(number) for number in threads.read_text().split()]
    return results
