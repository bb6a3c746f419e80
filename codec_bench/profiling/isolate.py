"""Runs each codec in a process of its own, and ends that process when it does not answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from codec_bench.profiling.steps import NEEDED, STEPS, Request

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_ENDING_S = 20.0
_HANGS_UP_TO = 2  # after so many processes that hung or ended, nothing further is measured


class Hangs(Exception):
    """The process did not answer in time and was ended; `step` is the step that it was in."""

    def __init__(self, step: str, seconds: float) -> None:
        super().__init__(f"it did not answer for {seconds:g} s and was ended")
        self.step = step


class Ended(Exception):
    """The process ended by itself; `step` is the step that it was in."""

    def __init__(self, step: str, how: str) -> None:
        super().__init__(f"its process ended ({how})")
        self.step = step


def converse(
    message: tuple[str, Any], *, limit_s: float, log: Path, threads: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Starts a process, sends it one message, and yields the messages that it sends until it is done.

    Args:
        message: as `child.serve` takes it.
        limit_s: seconds that it may take from one message to the next.
        log: the file that its standard output and errors are added to.
        threads: how many threads its libraries may use; None for their own choice.

    Raises:
        Hangs: it sent nothing for too long.
        Ended: it ended before it was done.
    """
    environment = dict(os.environ)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    ours, theirs = Pipe()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "codec_bench.profiling.child", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,  # so that whatever it started can be ended with it
        )  # fmt: skip
    theirs.close()
    step = "load"
    try:
        ours.send(message)
        while True:
            if not ours.poll(limit_s):
                raise Hangs(step, limit_s)
            said = ours.recv()
            if said[0] == "done":
                return
            if said[0] == "begin":
                step = said[1]
            yield said
    except (EOFError, OSError) as error:
        code = process.wait()
        raise Ended(step, f"killed by signal {-code}" if code < 0 else f"exit code {code}") from error
    finally:
        _end(process, ours)


def _end(process: subprocess.Popen[bytes], pipe: Connection) -> None:
    pipe.close()
    process.terminate()
    try:
        process.wait(_ENDING_S if process.poll() is None else 0.0)
    except subprocess.TimeoutExpired:
        pass
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def measure(request: Request, log: Path, tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Every section of one codec's profile. A section that failed says why in one sentence; a codec's fault is not raised.

    Args:
        request: what to measure. After a fault the remaining steps run in a new process.
        log: the file that the codec's output goes to.
        tell: called with the name of every step that begins.
    """
    sections: dict[str, dict[str, Any]] = {}
    left = list(request.steps)
    faults = 0
    while left:
        try:
            for said in converse(
                ("codec", replace(request, steps=tuple(left))), limit_s=request.settings.time_limit_s, log=log,
                threads=request.settings.threads,
            ):  # fmt: skip
                if said[0] == "begin":
                    tell(said[1])
                elif said[0] == "end":
                    _, step, found = said
                    if (
                        step != "load" or "load" not in sections
                    ):  # later loads are quicker: the files are in memory by then
                        sections.update(found)
                    if step in left:
                        left.remove(step)
                    if step in NEEDED and any(s["state"] == "failed" for s in found.values()):
                        return _skipped(sections, left, found)
            return _skipped(sections, left, {})
        except (Hangs, Ended) as fault:
            faults += 1
            failed = {name: {"state": "failed", "reason": str(fault)} for name in STEPS[fault.step]}
            sections.update(failed)
            left = [s for s in left if s != fault.step]
            if fault.step in NEEDED or faults >= _HANGS_UP_TO:
                return _skipped(sections, left, failed)
    return sections


def _skipped(
    sections: dict[str, dict[str, Any]], left: list[str], because: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Adds the sections of the steps that were never begun, as not measured."""
    reasons = [s["reason"] for s in because.values() if s.get("reason")]
    for step in left:
        for name in STEPS[step]:
            sections.setdefault(
                name, {"state": "not measured", "reason": reasons[0] if reasons else "it was not asked for"}
            )
    return sections
