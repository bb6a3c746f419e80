"""Run an evaluation on this machine or on a Ray cluster, with a progress line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from codec_bench.api.recorded_arguments import record_arguments
from codec_bench.config.registry import added, load_attribute
from codec_bench.config.request import CommandOptions
from codec_bench.data import part_of, read_shard
from codec_bench.engine.evaluation import Evaluation, execute
from codec_bench.engine.executor import RAY
from codec_bench.engine.running import Progress, Running, choose_running, report_nothing
from codec_bench.messages.errors import UserError
from codec_bench.report.open_run import Run
from codec_bench.report.results import results_stand, write_results
from codec_bench.store.folders import mark_finished
from codec_bench.store.parts import mark_part
from codec_bench.terminal.progress import in_notebook, progress_line


@dataclass(frozen=True, slots=True)
class NodeCall:
    """The call with which a cluster's node prepares the evaluation of its driver."""

    prepare: Callable[..., Evaluation]
    arguments: Mapping[str, Any]
    metrics: Sequence[str]
    request: Mapping[str, Any]

    def __call__(self) -> Evaluation:
        """The evaluation, with the driver's members of groups of metrics."""
        return replace(self.prepare(**self.arguments), metrics=self.metrics, request=self.request)


def run_prepared(schema: type[CommandOptions], prepare: Callable[..., Evaluation], values: Mapping[str, Any]) -> Run:
    """Prepare an evaluation, run it, and write its summary and page.

    The run of a shard gets no page; the merged run has one.

    Args:
        schema: declares the options.
        prepare: builds the evaluation from the arguments.
        values: all arguments of the public function, such as `evaluate`.
    """
    running, shard, out = choose_running(values["running"], values["running_fields"]), values["shard"], values["out"]
    request = {name: value for name, value in values.items() if name in signature(prepare).parameters}
    request["arguments"] = record_arguments(schema, values, running)
    request["growing"] = out if running.on_ray is None else None
    with show_progress(running, values["progress"]) as running:
        evaluation = prepare(**request)
        evaluation = replace(evaluation, source=part_of(evaluation.source, read_shard(shard)))
        if running.on_ray is None:
            record = execute(evaluation, out, running)
        else:
            execute_on_cluster = load_attribute(added("EXECUTORS")[RAY])
            call = NodeCall(prepare, request, evaluation.metrics, evaluation.request)
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
    """Show the requested progress until the block ends; None shows it in a notebook."""
    if callable(progress):
        yield replace(running, progress=progress)
    elif not isinstance(progress, bool | None):
        raise UserError(
            "option_value",
            option="progress",
            value=repr(progress),
            expected="progress",
            hint="True shows a line",
        )
    elif progress or (progress is None and running.progress is report_nothing and in_notebook()):
        with progress_line() as line:
            yield replace(running, progress=line.update)
            line.finish()
    else:
        yield running
