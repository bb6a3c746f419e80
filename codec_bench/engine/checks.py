"""The checks of a run's codecs: a few short clips, in the workers that hold them.

Every codec gets one batch before its first item. A worker that has not encoded these clips decodes their codes. If
there is none, the worker is restarted after the last item (no second copy of a model in memory); codecs that load
slowly skip this, and the result says why. A continued run does not repeat checks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from codec_bench.codecs.checks import faulty_findings, finding
from codec_bench.codecs.checks.quick import CLIPS
from codec_bench.codecs.checks.serialised_codes import CHECK, unserialised_finding
from codec_bench.engine.batch import Dispatcher
from codec_bench.engine.pool import Pool
from codec_bench.engine.stage import CheckResult, CheckWork, Fault
from codec_bench.engine.systems import System
from codec_bench.messages import Diagnostic

LOADED_WITHIN_S = 10.0
"""A codec that takes longer to load is not loaded again for its check."""

LIMIT_S = 120.0
"""Seconds for the check of a codec."""


class RunChecks:
    """The checks of the codecs of one run.

    Args:
        clips: audio files for the checks; empty for no checks.
        done: systems without need.

    Attributes:
        results: by system, `ok` (passed checks), `findings` (suspect or failed), and `unchecked` (with reasons).
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        pool: Pool,
        systems: Sequence[System],
        clips: Sequence[str],
        folder: Path,
        done: Collection[str] = (),
    ) -> None:
        self._dispatcher, self._pool = dispatcher, pool
        self._codes_paths: dict[str, str] = {}
        self._open: set[str] = set()
        self._sent: dict[str, tuple[str, CheckResult]] = {}
        self.results: dict[str, dict[str, Any]] = {}
        for system in systems if clips else ():
            if system.stage is not None and system.name not in done:
                key = check_key(system.stage.key)
                self._open.add(system.name)
                codes_path = self._codes_paths[system.name] = os.path.abspath(
                    folder / f"check-{len(self._codes_paths) + 1}.npz"
                )
                work = CheckWork(codes_path, tuple(clips[:CLIPS]))
                dispatcher.put(key, work, 0.0, partial(self._on_result, system, key), alone=True)

    @property
    def has_open(self) -> bool:
        """Whether a check is not finished."""
        return bool(self._open)

    def _on_result(self, system: System, key: str, result: CheckResult | Fault) -> None:
        """Record a codec check; send its encoded items to another process to decode."""
        if isinstance(result, Fault):
            self._finish(system.name, [finding("contract", "failed", result.reason)])
        elif not result.sent:
            self._finish(system.name, result.findings)
        elif system.runs_here:
            self._finish(system.name, [*result.findings, unserialised_finding(Diagnostic("one_process_only"))])
        else:
            self._sent[system.name] = key, result
            self._dispatcher.stages[key].excluded_pid = result.process
            work = CheckWork(self._codes_paths[system.name])
            self._dispatcher.put(key, work, 0.0, partial(self._on_decoded, system.name), alone=True)

    def _on_decoded(self, name: str, result: CheckResult | Fault) -> None:
        """Record the findings of a check after another process decoded its items."""
        _, before = self._sent.pop(name)
        if isinstance(result, Fault):
            undecoded = finding(CHECK, "failed", Diagnostic("not_decoded_elsewhere", cause=result.reason))
            self._finish(name, [*before.findings, undecoded])
        else:
            self._finish(name, [*before.findings, *result.findings])

    def _finish(self, name: str, findings: Sequence[Mapping[str, Any]]) -> None:
        """Store a system's findings by state in `results`; delete its temporary codes."""
        listed = [dict(f) for f in findings]
        self.results[name] = {
            "ok": [f["check"] for f in listed if f["state"] == "ok"],
            "findings": faulty_findings(listed),
            "unchecked": [
                {"check": f["check"], "reason": f["found"]} for f in listed if f["state"] == "not applicable"
            ],
        }
        self._open.discard(name)
        with suppress(OSError):
            os.unlink(self._codes_paths[name])

    def finish(self) -> None:
        """Restart workers to decode codes in a new process; skip codecs that load slowly."""
        for name, (key, result) in list(self._sent.items()):
            stage = self._dispatcher.stages[key]
            fitting = self._pool.workers_for(stage.where, stage.spec.owner)
            if not stage.waiting or any(w.process.pid != stage.excluded_pid for w in fitting):
                continue
            if result.load_s > LOADED_WITHIN_S:
                stage.take(0.0)
                del self._sent[name]
                reason = Diagnostic("slow_to_load", load_s=result.load_s)
                self._finish(name, [*result.findings, unserialised_finding(reason)])
            elif not fitting[0].batches:
                self._pool.restart(fitting[0])


def check_key(key: str) -> str:
    """Key of the stage that checks a codec, by the key of the codec's stage."""
    return f"check of {key}"
