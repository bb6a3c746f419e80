"""The checks of a run's codecs: a few short pieces of the data, in the workers that hold the codecs anyway.

How it goes
    Every codec gets one batch of its own, before its first item. A worker that has not encoded these pieces then
    decodes their codes. If there is no such worker, the one that has encoded them is started anew when every item is
    finished, so that no second copy of a model is in memory; for codecs that take long to load this is left out, and
    the result says so. Nothing of it is in a score or in the fingerprint of the run. A codec that a continued run has
    checked before is not checked again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from codec_bench.codecs.checks import finding, wrong
from codec_bench.codecs.checks.quick import CLIPS
from codec_bench.codecs.checks.serialised_codes import CHECK, unsent
from codec_bench.engine.batch import Dispatcher
from codec_bench.engine.pool import Pool
from codec_bench.engine.stage import CheckResult, CheckWork, Fault
from codec_bench.engine.systems import System
from codec_bench.messages import Diagnostic

LOADED_WITHIN_S = 10.0
"""A codec that takes longer to load is not loaded again for its check."""

LIMIT_S = 120.0
"""Seconds that the check of a codec may take."""


class Checks:
    """The checks of the codecs of one run.

    Args:
        dispatcher, pool: who computes them.
        systems: the systems of the run. done: the names of those that need no check.
        clips: the sound that the pieces are taken from; empty for no checks. folder: where files are kept until a check
            is finished.

    Attributes:
        found: by system, `ok` (the names of what was checked and is right), `findings` (what is suspect or failed), and
            `unchecked` (what could not be checked, each with a reason).
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
        self._parcels: dict[str, str] = {}
        self._open: set[str] = set()
        self._sent: dict[str, tuple[str, CheckResult]] = {}
        self.results: dict[str, dict[str, Any]] = {}
        for system in systems if clips else ():
            if system.stage is not None and system.name not in done:
                key = check_key(system.stage.key)
                self._open.add(system.name)
                parcel = self._parcels[system.name] = os.path.abspath(folder / f"check-{len(self._parcels) + 1}.npz")
                work = CheckWork(parcel, tuple(clips[:CLIPS]))
                dispatcher.put(key, work, 0.0, partial(self._on_result, system, key), alone=True)

    @property
    def open(self) -> bool:
        """Whether a check is not finished."""
        return bool(self._open)

    def _on_result(self, system: System, key: str, result: CheckResult | Fault) -> None:
        if isinstance(result, Fault):
            self._finish(system.name, [finding("contract", "failed", result.reason)])
        elif not result.sent:
            self._finish(system.name, result.findings)
        elif system.runs_here:
            self._finish(system.name, [*result.findings, unsent(Diagnostic("one_process_only"))])
        else:
            self._sent[system.name] = key, result
            self._dispatcher.stages[key].barred = result.process
            work = CheckWork(self._parcels[system.name])
            self._dispatcher.put(key, work, 0.0, partial(self._on_decoded, system.name), alone=True)

    def _on_decoded(self, name: str, result: CheckResult | Fault) -> None:
        _, before = self._sent.pop(name)
        if isinstance(result, Fault):
            undecoded = finding(CHECK, "failed", Diagnostic("not_decoded_elsewhere", cause=result.reason))
            self._finish(name, [*before.findings, undecoded])
        else:
            self._finish(name, [*before.findings, *result.findings])

    def _finish(self, name: str, findings: Sequence[Mapping[str, Any]]) -> None:
        listed = [dict(f) for f in findings]
        self.results[name] = {
            "ok": [f["check"] for f in listed if f["state"] == "ok"],
            "findings": wrong(listed),
            "unchecked": [
                {"check": f["check"], "reason": f["found"]} for f in listed if f["state"] == "not applicable"
            ],
        }
        self._open.discard(name)
        with suppress(OSError):
            os.unlink(self._parcels[name])

    def finish(self) -> None:
        """Called when every item is finished: starts the workers anew that a check waits for, or gives the check up."""
        for name, (key, result) in list(self._sent.items()):
            stage = self._dispatcher.stages[key]
            fitting = self._pool.fitting(stage.where, stage.spec.owner)
            if not stage.waiting or any(w.process.pid != stage.barred for w in fitting):
                continue
            if result.load_s > LOADED_WITHIN_S:
                stage.take(0.0)
                del self._sent[name]
                reason = Diagnostic("slow_to_load", load_s=result.load_s)
                self._finish(name, [*result.findings, unsent(reason)])
            elif not fitting[0].batches:
                self._pool.renew(fitting[0])


def check_key(key: str) -> str:
    """The key of the stage that checks a codec, by the key of the codec's stage."""
    return f"check of {key}"
