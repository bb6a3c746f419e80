"""The process of one codec: does the steps it is asked for, tells of every one, and ends when its parent does.

It is started as `python -P -m codec_bench.profiling.child HANDLE`, so that the caller's main module is never run again. Messages to
the parent are `("begin", step)`, `("alive",)`, `("end", step, sections)` and `("done",)`. Standard output belongs to nobody:
codecs may print.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from time import monotonic
from typing import Any

from codec_bench.codecs.adapt import CodecFault
from codec_bench.engine.stage import describe
from codec_bench.errors import UserError
from codec_bench.profiling.settings import NotApplicable

_LONGEST = 500  # characters of a reason; torch writes pages about weights that do not fit
_ALIVE_S = 0.5  # a sign of life is sent at most this often: a stream calls its codec many times a second


def serve(pipe: Connection) -> None:
    """Does what the first message asks for, then tells its parent that it is done."""
    kind, request = pipe.recv()
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    (_quality if kind == "quality" else _codec)(pipe, request)
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
        except Exception as error:  # a codec of the caller's own may raise anything; it is told, not raised
            sections = _all(STEPS[step], "failed", sentence(error))
        pipe.send(("end", step, json.loads(json.dumps(sections, default=_plain))))
        if step in NEEDED and any(s["state"] == "failed" for s in sections.values()):
            return


def _all(names: tuple[str, ...], state: str, reason: str) -> dict[str, dict[str, Any]]:
    return {name: {"state": state, "reason": reason} for name in names}


def _plain(value: Any) -> Any:
    """What JSON does not know: NumPy's numbers as Python's, and whatever else a codec of the caller's own declares as text."""
    return value.item() if hasattr(value, "item") else str(value)


def sentence(error: BaseException) -> str:
    """An error as one sentence: what is written for people as it is, anything else with its kind."""
    text = " ".join(str(error).split()) if isinstance(error, UserError | CodecFault) else describe(error)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


class _Alive:
    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._last = pipe, monotonic()

    def __call__(self) -> None:
        now = monotonic()
        if now - self._last >= _ALIVE_S:
            self._last = now
            self._pipe.send(("alive",))


def _quality(pipe: Connection, request: dict[str, Any]) -> None:
    """The engine's own run over codecs and metrics. Whoever ends this process ends its workers with it."""
    from codec_bench.api import Running, evaluate

    # The engine closes its workers on its way out, which a signal that just kills would not let it do.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def progress(stage: str, done: int, total: int, failed: int, audio_s: float) -> None:
        pipe.send(("alive", stage, done, total, failed, audio_s))

    running = Running(**request.pop("running"), progress=progress)
    pipe.send(("begin", "quality"))
    try:
        evaluate(**request, running=running)
    except UserError as error:
        pipe.send(("error", error))
        return
    pipe.send(("end", "quality", {}))


def main() -> None:
    """Entry point of the process."""
    serve(Connection(int(sys.argv[1])))


if __name__ == "__main__":
    main()
