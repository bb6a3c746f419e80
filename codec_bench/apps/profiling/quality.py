"""The quality of the profiled codecs: a run of the engine over all of them, from which a codec that hangs is left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.pool import NotLoaded
from codec_bench.engine.running import Running
from codec_bench.errors import RunMismatch, UserError
from codec_bench.report.opened import open_run
from codec_bench.report.results import write_results
from codec_bench.stats.summary import summarise

BITRATE = "bitrate"
_FOLDERS = 99


def measure(asked: Evaluation, folder: Path, running: Running) -> dict[str, dict[str, Any]]:
    """The quality of each codec: `state`, `reason`, `metrics` (summary entries by name), `failures` (reasons) and `run`.

    All codecs are one run, so that features of the references are computed once. `run` is the folder of the run. The engine
    ends a worker that hangs or dies, and gives up what hangs. A codec whose workers hang or die while they load it fails,
    and the others are run without it.

    Args:
        asked: the codecs by their names, and the metrics.
        folder: where the run folder is made: `quality`, or `quality-2` and so on if that holds another run.
        running: how it is run.

    Raises:
        UserError: what concerns all codecs is wrong, such as a folder that cannot be written.
    """
    left: dict[str, str] = dict(asked.systems)
    failed: dict[str, dict[str, Any]] = {}
    while left:
        try:
            return {**failed, **_entries(left, _run(replace(asked, systems=left), folder, running))}
        except NotLoaded as fault:
            failed[fault.key] = {"state": "failed", "reason": fault.message}
            del left[fault.key]
    return failed


def _run(asked: Evaluation, folder: Path, running: Running) -> Path:
    """The folder of a run of the engine."""
    for number in range(1, _FOLDERS):
        out = folder / ("quality" if number == 1 else f"quality-{number}")
        try:
            write_results(execute(asked, out, running), page=running.page)
        except RunMismatch:
            continue
        return out
    raise UserError(f"'{folder}' holds {_FOLDERS} other runs", hint="name another folder with --out")


def _entries(codecs: Iterable[str], folder: Path) -> dict[str, dict[str, Any]]:
    summary = summarise(open_run(folder))
    found = {}
    for codec in codecs:
        reasons = [r for r in summary.failures.reasons if r.system == codec]
        lost = sum(r.count for r in reasons if r.metric is None)
        broken = [r for r in reasons if r.metric is None or r.status in ("failed", "unparsed", "not_scored")]
        state, reason = ("ok", None) if not lost else ("failed", f"{lost} clips gave no estimate: {reasons[0].reason}")
        found[codec] = {
            "state": state, "reason": reason, "metrics": summary.systems[codec].as_dict()["metrics"],
            "failures": [r.as_dict() for r in broken], "run": folder.name,
        }  # fmt: skip
    return found
