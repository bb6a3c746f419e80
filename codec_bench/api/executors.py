"""Runs an evaluation on this machine or on a Ray cluster, with a progress line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from codec_bench.data import part_of, read_shard
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.executor import RAY
from codec_bench.engine.running import Progress, Running, quiet
from codec_bench.errors import UserError
from codec_bench.registry import added, load_attribute
from codec_bench.report.open_run import Run
from codec_bench.report.results import results_stand, write_results
from codec_bench.store.folders import mark_finished
from codec_bench.store.parts import mark_part
from codec_bench.terminal.progress import in_notebook, progress_line


@dataclass(frozen=True, slots=True)
class NodeCall:
    """What every node of a cluster calls to prepare the evaluation of its driver.

    Args:
        prepare: opens the data and reads the arguments. arguments: its keyword arguments.
    """

    prepare: Callable[..., Evaluation]
    arguments: Mapping[str, Any]
    metrics: Sequence[str] = ()
    request: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> Evaluation:
        """The evaluation, with the metrics that groups stand for on the driver's machine."""
        return replace(self.prepare(**self.arguments), metrics=self.metrics, request=self.request)


def run_evaluation(
    evaluation: Evaluation, shard: str | tuple[int, int] | None, out: str | os.PathLike[str] | None, running: Running, call: NodeCall
) -> Run:  # fmt: skip
    """Runs an evaluation and writes the files beside its record.

    The run of a shard gets no page, since people read that of the merged run.

    Args:
        evaluation: what to run. shard: which part of the samples to take; None for all.
        out: the run folder, as for `evaluate`. running: how to run it. call: gives the same evaluation on a node.

    Raises:
        UserError: as for `evaluate`.
    """
    evaluation = replace(evaluation, source=part_of(evaluation.source, read_shard(shard)))
    if running.on_ray is None:
        record = execute(evaluation, out, running)
    else:
        execute_on_cluster = load_attribute(added("EXECUTORS")[RAY])
        call = replace(call, metrics=evaluation.metrics, request=evaluation.request)
        record = execute_on_cluster(evaluation, call, out, running, running.on_ray)
    record.close()
    run = Run(record.folder)
    page = running.page and shard is None
    if not results_stand(run, page=page):
        write_results(run, page=page)
    mark_finished(run.folder)
    mark_part(run)
    return run


@contextmanager
def show_progress(running: Running, progress: bool | Progress | None) -> Iterator[Running]:
    """Shows the progress that the caller asked for, until the block ends.

    Args:
        running: how to run. progress: True and False show it and do not; a function is told it as `Running.progress`
            is; None shows it in a notebook, unless `running` tells it already.

    Raises:
        UserError: `progress` is something else.
    """
    if callable(progress):
        yield replace(running, progress=progress)
    elif not isinstance(progress, bool | None):
        raise UserError(f"progress is {progress!r}; expected True, False or a function", hint="True shows a line")
    elif progress or (progress is None and running.progress is quiet and in_notebook()):
        with progress_line() as line:
            yield replace(running, progress=line.update)
            line.finish()
    else:
        yield running
