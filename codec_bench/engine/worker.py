"""A worker process: builds the stages it is told of, runs batches, answers over its pipe, ends when its parent does.

It is started as `python -P -m codec_bench.engine.worker HANDLE DEVICE` so that the caller's main module is never run
again and no folder of the caller's is on the import path. Its standard output belongs to nobody: libraries may print.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

from codec_bench.engine.arena import Segments
from codec_bench.engine.stage import STAGES, Fault, StageSpec, describe
from codec_bench.errors import UserError


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the batch was too large."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def serve(pipe: Connection, device: str) -> None:
    """Answers requests until the pipe closes."""
    specs: dict[str, StageSpec] = {}
    stages: dict[str, Any] = {}
    broken: dict[str, UserError] = {}
    segments = Segments()

    def stage(key: str) -> Any:
        if key in broken:  # weights that do not fit are not read again for every item
            raise broken[key]
        if key not in stages:
            try:
                stages[key] = STAGES[specs[key].kind](specs[key], device)
            except UserError as error:
                broken[key] = error
                raise
        return stages[key]

    while True:
        try:
            kind, *rest = pipe.recv()
        except (EOFError, OSError):
            return
        if kind == "specs":
            specs.update(rest[0])
        elif kind == "forget":
            segments.forget(rest[0])
        elif kind == "facts":
            pipe.send(("facts", rest[0], _facts(stage, rest[0])))
        else:
            number, key, works = rest
            began = partial(pipe.send, ("began", number))
            pipe.send(("done", number, *_run(stage, key, works, segments, device, began)))


def _facts(stage: Any, key: str) -> dict[str, Any] | UserError:
    try:
        return stage(key).facts
    except UserError as error:
        return error
    except Exception as error:  # a codec of somebody else's may raise anything while it loads
        return UserError(f"'{key}' cannot be loaded: {describe(error)}")


def _run(
    stage: Any, key: str, works: list[Any], segments: Segments, device: str, began: Callable[[], None]
) -> tuple[Any, ...]:
    """(outcome, busy seconds, CPU seconds, seconds per step); the outcome is a list, or a Fault of the whole batch.

    `began` is called when the stage is loaded: from then on the batch's time counts.
    """
    start, start_cpu = perf_counter(), process_time()
    steps: dict[str, float] = {}
    outcome: Any
    try:
        runner = stage(key)
        loaded = perf_counter() - start
        began()
        outcome, steps = runner.run(works, segments)
        steps = {"load": loaded, **steps}
    except Exception as error:  # the batch's failure; the main process asks again item by item
        outcome = "oom" if out_of_memory(error) else Fault(describe(error))
        if outcome == "oom" and device != "cpu":
            import torch

            torch.cuda.empty_cache()
    return outcome, perf_counter() - start, process_time() - start_cpu, steps


def main() -> None:
    """Entry point of the process."""
    serve(Connection(int(sys.argv[1])), sys.argv[2])


if __name__ == "__main__":
    main()
