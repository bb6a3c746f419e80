"""A worker process: builds stages, runs batches, sends results over its pipe, and ends when its parent ends.

It is started as `python -P -m codec_bench.engine.worker HANDLE DEVICE PROCESSES`, so that the caller's main module is not run again
and no folder of the caller is on the import path. No result goes over standard output, so that libraries may print.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from time import perf_counter, process_time
from typing import Any

from codec_bench.engine.arena import Segments
from codec_bench.engine.reading import ReadStage
from codec_bench.engine.stage import CheckStage, CodecStage, Fault, FeatureStage, MetricStage, StageSpec
from codec_bench.errors import UserError, describe
from codec_bench.memory import give_back, out_of_memory, own_device

STAGES = {"read": ReadStage, "codec": CodecStage, "feature": FeatureStage, "metrics": MetricStage}
"""What runs the stages of each kind; a check takes the stage of its codec."""


def serve(pipe: Connection, device: str, processes: int = 1) -> None:
    """Answers requests until the pipe closes.

    Args:
        pipe: from the main process. device: what the stages run on. processes: how many workers have this device.
    """
    specs: dict[str, StageSpec] = {}
    stages: dict[str, Any] = {}
    broken: dict[str, UserError] = {}
    segments = Segments()

    def stage(key: str) -> Any:
        if key in broken:  # so that unusable weights are not read again for every batch
            raise broken[key]
        if key not in stages:
            spec = specs[key]
            if not stages and spec.kind != "check":  # before the first network takes memory
                own_device(device, processes)
            try:
                if spec.kind == "check":  # it shares the codec that this process has anyway
                    stages[key] = CheckStage(stage(spec.names[0]))
                else:
                    stages[key] = STAGES[spec.kind](spec, device)
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
            pipe.send(("done", number, *run_batch(partial(stage, key), works, segments, device, began)))


def _facts(stage: Any, key: str) -> dict[str, Any] | UserError:
    try:
        return stage(key).facts
    except UserError as error:
        return error
    except Exception as error:  # own code may raise anything while it loads
        return UserError(f"'{key}' cannot be loaded: {describe(error)}")


def run_batch(
    load: Callable[[], Any], works: list[Any], segments: Any, device: str, began: Callable[[], None] = lambda: None
) -> tuple[Any, float, float, dict[str, float]]:
    """Runs a batch; gives (outcome, busy seconds, CPU seconds, seconds per step). See `Done` for the outcome.

    Args:
        load: gives the stage. works: the items. segments: the memory that holds their audio. device: where it runs.
        began: called when the stage is loaded: the time limit of the batch counts from then on.
    """
    start, start_cpu = perf_counter(), process_time()
    steps: dict[str, float] = {}
    outcome: Any
    try:
        runner = load()
        loaded = perf_counter() - start
        began()
        outcome, steps = runner.run(works, segments)
        steps = {"load": loaded, **steps}
    except Exception as error:  # the batch has failed; the main process sends its items again one by one
        outcome = "oom" if out_of_memory(error) else Fault(describe(error))
    if outcome == "oom":
        give_back(device)
    return outcome, perf_counter() - start, process_time() - start_cpu, steps


def main() -> None:
    """Entry point of the process."""
    serve(Connection(int(sys.argv[1])), sys.argv[2], int(sys.argv[3]))


if __name__ == "__main__":
    main()
