"""Runs the engine over the profiled codecs, in a process that is ended if it hangs, and finds the codec that hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from codec_bench.errors import RunMismatch, UserError
from codec_bench.profiling.isolate import Stopped, converse
from codec_bench.stats.summary import summarise
from codec_bench.store.record import open_run

BITRATE = "bitrate"
_FOLDERS = 99


def measure(
    codecs: Mapping[str, str],
    request: Mapping[str, Any],
    folder: Path,
    *,
    limit_s: float,
    log: Path,
    tell: Callable[[str, int, int, int, float], None],
) -> dict[str, dict[str, Any]]:
    """The quality of each codec: `state`, `reason`, `metrics` (summary entries by name), `failures` (reasons) and `run`.

    All codecs are one run, so that features of the references are computed once. If that run does not answer for too long,
    or ends, each codec is run by itself, which shows which of them is at fault. `run` is the folder of the run.

    Args:
        codecs: what each codec is loaded by, by its name.
        request: the other arguments of `evaluate`, except the run folder.
        folder: where the run folder is made: `quality`, or `quality-2` and so on if that holds another run.
        limit_s: seconds that the engine may take from one report to the next.
        log: the file that its output goes to.
        tell: called as `Running.progress` is.

    Raises:
        UserError: an argument that concerns all codecs is wrong, such as the name of a metric.
    """
    try:
        run_folder = _evaluate(codecs, request, folder, partial(converse, limit_s=limit_s, log=log), tell)
        return _entries(codecs, run_folder)
    except Stopped as fault:
        if len(codecs) == 1:
            return {next(iter(codecs)): {"state": "failed", "reason": str(fault)}}
    found: dict[str, dict[str, Any]] = {}
    for number, (name, codec) in enumerate(codecs.items(), 1):
        alone = folder / f"alone-{number}"
        alone.mkdir(parents=True, exist_ok=True)
        found.update(measure({name: codec}, request, alone, limit_s=limit_s, log=log, tell=tell))
    return found


def _evaluate(
    codecs: Mapping[str, str],
    request: Mapping[str, Any],
    folder: Path,
    ask: Callable[[tuple[Any, ...]], Iterable[tuple[Any, ...]]],
    tell: Callable[..., None],
) -> Path:
    for number in range(1, _FOLDERS):
        out = folder / ("quality" if number == 1 else f"quality-{number}")
        message = ("quality", {**request, "codec": dict(codecs), "out": str(out)})
        mismatch = False
        for said in ask(message):
            if said[0] == "error":
                mismatch = isinstance(said[1], RunMismatch)
                if not mismatch:
                    raise said[1]
            elif said[0] == "alive":
                tell(*said[1:])
        if not mismatch:
            return out
    raise UserError(f"'{folder}' holds {_FOLDERS} other runs", hint="name another folder with --out")


def _entries(codecs: Iterable[str], folder: Path) -> dict[str, dict[str, Any]]:
    summary = summarise(open_run(folder))
    found = {}
    for codec in codecs:
        reasons = [r for r in summary["failures"]["reasons"] if r["system"] == codec]
        lost = sum(r["count"] for r in reasons if r["metric"] is None)
        broken = [r for r in reasons if r["metric"] is None or r["status"] in ("failed", "unparsed", "not_scored")]
        state, reason = (
            ("ok", None) if not lost else ("failed", f"{lost} clips gave no estimate: {reasons[0]['reason']}")
        )
        found[codec] = {
            "state": state, "reason": reason, "metrics": summary["systems"][codec]["metrics"], "failures": broken, "run": folder.name,
        }  # fmt: skip
    return found
