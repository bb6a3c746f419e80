"""Carries out an evaluation where its caller asked for it, on this machine or on a Ray cluster, and shows how far it
is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
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


def carried_out(
    prepare: Callable[[], Evaluation], shard: str | tuple[int, int] | None, out: str | os.PathLike[str] | None, running: Running
) -> Run:  # fmt: skip
    """Runs an evaluation to its end, and writes the files beside its record. `evaluate` and `score` both end here.

    The run of a shard gets no page, since people read that of the merged run.

    Args:
        prepare: opens the data and reads what is asked for. On a cluster every node calls it.
        shard: which part of the samples to take; None for all. out: the run folder, as for `evaluate`. running: how to
            run it.

    Raises:
        UserError: as for `evaluate`.
    """
    cluster = running.on_ray
    asked = prepare()
    asked = replace(asked, source=part_of(asked.source, read_shard(shard)))
    if cluster is None:
        done = execute(asked, out, running)
    else:
        execute_there = load_attribute(added("EXECUTORS")[RAY])
        done = execute_there(asked, partial(_as_here, prepare, asked.metrics, asked.request), out, running, cluster)
    done.close()
    run = Run(done.folder)
    page = running.page and shard is None
    if not results_stand(run, page=page):
        write_results(run, page=page)
    mark_finished(run.folder)
    mark_part(run)
    return run


def _as_here(prepare: Callable[[], Evaluation], metrics: Sequence[str], request: Mapping[str, Any]) -> Evaluation:
    """What a node of a cluster evaluates.

    Groups of metrics stand for what the packages and weights of this machine allow.
    """
    return replace(prepare(), metrics=metrics, request=request)


@contextmanager
def shown_to_caller(running: Running, progress: bool | Progress | None) -> Iterator[Running]:
    """How to run, with the progress that the caller asked for, which is shown until the block ends.

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
            yield replace(running, progress=line.tell)
            line.finish()
    else:
        yield running
