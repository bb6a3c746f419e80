"""The process of one codec: runs the steps that it is asked for, reports each, and ends when its parent ends.

It is started as `python -P -m codec_bench.profiling.child HANDLE`, so that the caller's main module is not run again. It sends
its parent the messages `("begin", step)`, `("alive",)`, `("parcel", what another process is to decode)`,
`("end", step, sections)` and `("done",)`. No message goes over standard output, so that codecs may print.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from time import monotonic
from typing import TYPE_CHECKING, Any

from codec_bench.codecs.adapt import sentence
from codec_bench.errors import UserError
from codec_bench.profiling.settings import NotApplicable

if TYPE_CHECKING:
    from codec_bench.engine.running import Running
    from codec_bench.store.record import Run

_ALIVE_S = 0.5  # seconds between two `alive` messages, at least: a stream calls its codec many times a second


def serve(pipe: Connection) -> None:
    """Runs what the first message asks for, then tells the parent that it is done."""
    kind, request = pipe.recv()
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    {"quality": _quality, "batches": _batches}.get(kind, _codec)(pipe, request)
    pipe.send(("done",))


def _end_with_parent(pipe: Connection) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)


def _codec(pipe: Connection, request: Any) -> None:
    from codec_bench.profiling.steps import NEEDED, STEPS, Measuring

    alive = _Alive(pipe)
    measuring = Measuring(request, alive)
    for step in ("load", *(s for s in request.steps if s != "load")):
        pipe.send(("begin", step))
        try:
            sections = {name: {"state": "ok", **found} for name, found in measuring.step(step).items()}
        except NotApplicable as reason:
            sections = _all(STEPS[step], "not applicable", str(reason))
        except Exception as error:  # own code may raise anything: its section has failed, and the other steps go on
            sections = _all(STEPS[step], "failed", sentence(error))
        if step == "sent" and measuring.parcel is not None:
            pipe.send(("parcel", measuring.parcel))
        pipe.send(("end", step, json.loads(json.dumps(sections, default=_plain))))
        if step in NEEDED and any(s["state"] == "failed" for s in sections.values()):
            return


def _batches(pipe: Connection, request: Any) -> None:
    """Compares batches with one by one; the answer is what was found, or why the codec failed."""
    from codec_bench.profiling.batches import compare_batches

    try:
        pipe.send(("found", compare_batches(request, _Alive(pipe))))
    except Exception as error:  # own code may raise anything
        pipe.send(("failed", sentence(error)))


def _all(names: tuple[str, ...], state: str, reason: str) -> dict[str, dict[str, Any]]:
    return {name: {"state": state, "reason": reason} for name in names}


def _plain(value: Any) -> Any:
    """Values that JSON does not know: NumPy's numbers become Python's, anything else becomes text."""
    return value.item() if hasattr(value, "item") else str(value)


class _Alive:
    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, monotonic()

    def __call__(self) -> None:
        now = monotonic()
        if now - self._last >= _ALIVE_S:
            self._last = now
            self._pipe.send(("alive",))


def _quality(pipe: Connection, request: dict[str, Any]) -> None:
    """Runs the engine over codecs and metrics. When this process is ended, its workers end too."""
    from codec_bench.engine.running import Running
    from codec_bench.report.results import write_results

    # As an exception, the signal lets the engine close its workers before the process ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    # The engine reports only what has changed, so that a codec that hangs is silent here.
    def progress(stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        pipe.send(("alive", stage, done, total, failed, audio_s))

    running = Running(**request.pop("running"), progress=progress)
    pipe.send(("begin", "quality"))
    try:
        run = _evaluate(request, running)
        write_results(run, page=running.page)
    except UserError as error:
        pipe.send(("error", error))
        return
    pipe.send(("end", "quality", {}))


def _evaluate(request: dict[str, Any], running: Running) -> Run:
    from codec_bench.data import data_name, open_source
    from codec_bench.engine.evaluation import Evaluation, execute
    from codec_bench.registry import names

    data, seed, limit = request["data"], request["seed"], request["limit"]
    source = open_source(data, limit=limit, seed=seed if limit is not None else None)
    asked = {"command": "evaluate", "data": data_name(data), "seed": seed, "limit": limit}
    evaluation = Evaluation(request["codec"], names(request["metrics"]), source, asked, dict(request["options"]))
    return execute(evaluation, request["out"], running)


def main() -> None:
    """Entry point of the process."""
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
