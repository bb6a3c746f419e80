"""The steps of one codec in its own worker, with limits on time and memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from codec_bench.codecs.checks.serialised_codes import SerialisedCodes
from codec_bench.codecs.checks.steps import ELSEWHERE, NEEDED, CheckJob, uniform_sections
from codec_bench.config.limits import Limits
from codec_bench.engine.pool import Died, Pool, PoolWorker, WorkerBatch, thread_variables
from codec_bench.engine.stage import StageSpec, StepResult, StepWork
from codec_bench.machine.environment import free_memory_bytes, resident_bytes
from codec_bench.messages import Diagnostic

_STEPS = "steps"
_HANGS_UP_TO = 2  # after so many workers that hung or ended, nothing further is measured
_LOOK_EVERY_S = 0.1
_FREE_SHARE = 0.9
_LINES = 3
_LONGEST_LINE = 200

Sections = dict[str, dict[str, Any]]


class Stopped(Exception):
    """A codec's worker did not finish a step: it hung, ended, or used too much memory."""

    def __init__(self, reason: Diagnostic) -> None:
        super().__init__(reason)
        self.reason = reason


class SingleWorkerPool(Pool):
    """A pool of one worker for one codec, with the threads that the request names.

    Args:
        output: takes the worker's output.
    """

    def __init__(self, request: CheckJob, output: IO[bytes], log: Path) -> None:
        self._limits: Limits = request.settings
        self._memory_bytes = memory_limit(self._limits.memory_gib)
        self._path, self._began_at = log, 0
        super().__init__((), 1, output)
        self.define({_STEPS: StageSpec(_STEPS, "steps", (request.codec,), {"request": request})})

    def environment(self) -> dict[str, str]:
        """Environment variables of the worker: the number of threads, if requested."""
        return {} if self._limits.threads is None else thread_variables(self._limits.threads)

    def run_step(self, work: StepWork) -> StepResult:
        """Run a step on the worker, and return its result.

        Raises:
            Stopped: the worker hung, ended or used too much memory. A new one runs the next step.
        """
        (worker,) = self.workers
        limit_s, output_from = self._limits.time_limit_s, self._began_at
        self.submit(worker, WorkerBatch(_STEPS, [work], 0.0, worker.device, limit_s), [work])
        cause: Diagnostic | None = None
        while True:
            for event in self.events(_LOOK_EVERY_S):
                if isinstance(event, Died):
                    ended = Diagnostic("call_timed_out", limit_s=limit_s) if event.late else None
                    cause = cause or ended or Diagnostic("process_ended", reason=event.reason)
                    last_output = _last_lines(self._path, output_from)
                    raise Stopped(Diagnostic("last_output", cause=cause, output=last_output) if last_output else cause)
                if not cause:
                    assert isinstance(event.outcome, list), event.outcome  # exceptions of a codec are in the sections
                    result: StepResult = event.outcome[0]
                    return result
            if self._memory_bytes is not None and resident_bytes(worker.process.pid) > self._memory_bytes:
                cause = Diagnostic("memory_exceeded", limit_gib=self._memory_bytes / 2**30)
                worker.kill()

    def _start(self, device: str, owner: str = "") -> PoolWorker:
        self._began_at = self._path.stat().st_size
        return super()._start(device, owner)


def memory_limit(requested_gib: float | None) -> float | None:
    """Most bytes for a codec's process: the request, else 90 % of the free memory.

    None if nothing was requested and the free memory is unknown: no limit.
    """
    if requested_gib is not None:
        return requested_gib * 2**30
    free = free_memory_bytes()
    return None if free is None else _FREE_SHARE * free


def measure(request: CheckJob, log: Path, on_step: Callable[[str], None] = lambda step: None) -> Sections:
    """Run a codec's steps and return their sections; a failed one has its reason.

    Args:
        request: the job. After a fault the remaining steps run in a new process, and so does `ELSEWHERE`.
        log: takes the codec's output.
        on_step: called with the name of every step that begins.
    """
    with log.open("ab") as output, closing(SingleWorkerPool(request, output, log)) as worker:
        sections, serialised = _measure_steps(request, worker, on_step)
        if ELSEWHERE in request.steps:
            if serialised is None:
                _skip(request, sections, [ELSEWHERE], {})
            else:
                on_step(ELSEWHERE)
                sections[ELSEWHERE] = _decode_elsewhere(worker, serialised)
    return sections


def _measure_steps(
    request: CheckJob, worker: SingleWorkerPool, on_step: Callable[[str], None]
) -> tuple[Sections, SerialisedCodes | None]:
    """Run all steps but `ELSEWHERE`; return their sections and the serialised codes."""
    sections: Sections = {}
    serialised: SerialisedCodes | None = None
    left = [step for step in request.steps if step not in ("load", ELSEWHERE)]
    loaded, faults = False, 0
    while left or "load" not in sections:
        step = left[0] if loaded else "load"
        on_step(step)
        try:
            result = worker.run_step(StepWork(step))
            step_sections, stopped = result.sections, False
            serialised = result.serialised or serialised
        except Stopped as fault:
            step_sections, stopped = uniform_sections(request, step, "failed", fault.reason), True
            faults += 1
        if step != "load" or stopped or "load" not in sections:  # later loads are quicker: the files are in memory then
            sections.update(step_sections)
        loaded = not stopped
        left = [other for other in left if other != step]
        if faults == _HANGS_UP_TO or (step in NEEDED and any(s["state"] == "failed" for s in step_sections.values())):
            _skip(request, sections, left, step_sections)
            break
    return sections, serialised


def _decode_elsewhere(worker: SingleWorkerPool, serialised: SerialisedCodes) -> dict[str, Any]:
    """The section of decoding in a process that has not encoded."""
    worker.restart(worker.workers[0])
    step_sections: Sections = {}
    for step in ("load", ELSEWHERE):
        try:
            step_sections = worker.run_step(StepWork(step, serialised)).sections
        except Stopped as fault:
            return {"state": "failed", "reason": fault.reason}
        failed = [section for section in step_sections.values() if section["state"] == "failed"]
        if failed:
            return failed[0]
    return step_sections[ELSEWHERE]


def _skip(request: CheckJob, sections: Sections, left: list[str], because: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the sections of the steps that never ran, as not measured."""
    reasons = [section["reason"] for section in because.values() if section.get("reason")]
    for step in left:
        for name, section in uniform_sections(
            request, step, "not measured", (reasons or [Diagnostic("not_tried")])[0]
        ).items():
            sections.setdefault(name, section)


def _last_lines(log: Path, offset: int) -> str:
    """Return the last lines of a log after an offset, joined by slashes."""
    try:
        with log.open("rb") as file:
            file.seek(max(offset, file.seek(0, os.SEEK_END) - _LINES * 10 * _LONGEST_LINE))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [" ".join(line.split())[:_LONGEST_LINE] for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-_LINES:])
