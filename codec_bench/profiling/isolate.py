"""Runs each codec in a process of its own, and ends that process when it does not answer or takes too much memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from codec_bench.codecs.checks.sent import Parcel
from codec_bench.environment import free_memory_bytes, resident_bytes
from codec_bench.profiling.steps import ELSEWHERE, NEEDED, STEPS, Request

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_ENDING_S = 20.0
_HANGS_UP_TO = 2  # after so many processes that hung or ended, nothing further is measured
_LOOK_EVERY_S = 0.1
_FREE_SHARE = 0.9
_LINES = 3
_LONGEST_LINE = 200


class Stopped(Exception):
    """The process of a codec did not finish; `step` is the step that it was in."""

    def __init__(self, step: str, how: str, said: str = "") -> None:
        super().__init__(f"{how}; the last that it wrote: {said}" if said else how)
        self.step = step


class Hangs(Stopped):
    """The process did not answer in time and was ended."""


class Ended(Stopped):
    """The process ended by itself, or was ended because it took too much memory."""


def converse(
    message: tuple[str, Any], *, limit_s: float, log: Path, threads: int | None = None, memory_bytes: float | None = None
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """Starts a process, sends it one message, and yields the messages that it sends until it is done.

    Args:
        message: as `child.serve` takes it.
        limit_s: seconds that it may take from one message to the next.
        log: the file that its standard output and errors are added to.
        threads: how many threads its libraries may use; None for their own choice.
        memory_bytes: how much memory it may hold; None for any.

    Raises:
        Hangs: it sent nothing for too long.
        Ended: it ended before it was done, or took too much memory.
    """
    environment = dict(os.environ)
    if threads is not None:
        environment.update(dict.fromkeys(_THREAD_VARIABLES, str(threads)))
    ours, theirs = Pipe()
    with log.open("ab") as output:
        written = partial(_last_lines, log, output.tell())
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "codec_bench.profiling.child", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,  # so that whatever it started can be ended with it
        )  # fmt: skip
    theirs.close()
    step = "load"
    memory = _Memory(process, memory_bytes)
    try:
        ours.send(message)
        while True:
            if not ours.poll(limit_s):
                raise Hangs(step, f"it did not answer for {limit_s:g} s and was ended", written())
            said = ours.recv()
            if said[0] == "done":
                return
            if said[0] == "begin":
                step = said[1]
            yield said
    except (EOFError, OSError) as error:
        code = process.wait()
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        raise Ended(step, memory.exceeded or f"its process ended ({how})", written()) from error
    finally:
        memory.leave()
        _end(process, ours)


class _Memory:
    """Ends a process that holds more memory than it may; `exceeded` then says so in a sentence."""

    def __init__(self, process: subprocess.Popen[bytes], limit_bytes: float | None) -> None:
        self.exceeded: str | None = None
        self._process, self._limit_bytes, self._left = process, limit_bytes, threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        if limit_bytes is not None:
            self._thread.start()

    def _watch(self) -> None:
        limit = self._limit_bytes or 0.0
        while not self._left.wait(_LOOK_EVERY_S):
            if resident_bytes(self._process.pid) > limit:
                self.exceeded = f"it took more than {limit / 2**30:.3g} GiB of memory and was ended"
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                return

    def leave(self) -> None:
        """Stops watching."""
        self._left.set()
        if self._thread.ident is not None:
            self._thread.join()


def _last_lines(log: Path, begun: int) -> str:
    """The last lines that a process wrote to its log, which it began at a byte, in one line."""
    try:
        with log.open("rb") as file:
            file.seek(max(begun, file.seek(0, os.SEEK_END) - _LINES * 10 * _LONGEST_LINE))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [" ".join(line.split())[:_LONGEST_LINE] for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-_LINES:])


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


def talk_to(request: Request, log: Path) -> Iterator[tuple[Any, ...]]:
    """What the process of one codec says while it does the steps of a request; raises as `converse` does."""
    settings = request.settings
    memory = memory_limit(settings.memory_gib)
    return converse(
        ("codec", request), limit_s=settings.time_limit_s, log=log, threads=settings.threads, memory_bytes=memory
    )


def memory_limit(asked_gib: float | None) -> float | None:
    """How many bytes a codec's process may hold: what was asked for, or nine tenths of what is free."""
    if asked_gib is not None:
        return asked_gib * 2**30
    free = free_memory_bytes()
    return None if free is None else _FREE_SHARE * free


def measure(request: Request, log: Path, tell: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Every section of one codec's profile. A section that failed says why in one sentence; a codec's fault is not raised.

    Args:
        request: what to measure. After a fault the remaining steps run in a new process, and so does `ELSEWHERE`.
        log: the file that the codec's output goes to.
        tell: called with the name of every step that begins.
    """
    here = tuple(step for step in request.steps if step != ELSEWHERE)
    sections, parcel = _measure(replace(request, steps=here), log, tell)
    if ELSEWHERE not in request.steps:
        return sections
    if parcel is None:
        return _skipped(sections, [ELSEWHERE], {})
    tell(ELSEWHERE)
    found, _ = _measure(replace(request, steps=(ELSEWHERE,), parcel=parcel), log, lambda step: None)
    faults = [found[name] for name in (*STEPS["load"], ELSEWHERE) if found[name]["state"] == "failed"]
    sections[ELSEWHERE] = faults[0] if faults else found[ELSEWHERE]
    return sections


def _measure(
    request: Request, log: Path, tell: Callable[[str], None]
) -> tuple[dict[str, dict[str, Any]], Parcel | None]:
    """The sections of the steps, and what another process is to decode."""
    sections: dict[str, dict[str, Any]] = {}
    parcel: Parcel | None = None
    left = list(request.steps)
    faults = 0
    while left:
        try:
            for said in talk_to(replace(request, steps=tuple(left)), log):
                if said[0] == "begin":
                    tell(said[1])
                elif said[0] == "parcel":
                    parcel = said[1]
                elif said[0] == "end":
                    _, step, found = said
                    if (
                        step != "load" or "load" not in sections
                    ):  # later loads are quicker: the files are in memory by then
                        sections.update(found)
                    if step in left:
                        left.remove(step)
                    if step in NEEDED and any(s["state"] == "failed" for s in found.values()):
                        return _skipped(sections, left, found), None
            return _skipped(sections, left, {}), parcel
        except Stopped as fault:
            faults += 1
            failed = {name: {"state": "failed", "reason": str(fault)} for name in STEPS[fault.step]}
            sections.update(failed)
            left = [s for s in left if s != fault.step]
            if fault.step in NEEDED or faults >= _HANGS_UP_TO:
                return _skipped(sections, left, failed), parcel
    return sections, parcel


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
