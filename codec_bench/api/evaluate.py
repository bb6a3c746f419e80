"""Send audio through codecs and score it (`codec-bench eval`)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.api.executors import run_prepared
from codec_bench.api.metric_groups import expand_metrics
from codec_bench.config.option import documented
from codec_bench.config.request import EvalRequest
from codec_bench.data import broken_down, data_name, open_source, with_trials
from codec_bench.engine.evaluation import Evaluation
from codec_bench.engine.extend import restore_sample_order
from codec_bench.engine.running import Progress, Running
from codec_bench.engine.systems import Codecs, read_systems
from codec_bench.metrics import chosen_metrics
from codec_bench.report.open_run import Run


@documented(EvalRequest)
def evaluate(
    *,
    codec: Codecs,
    data: Any,
    metrics: str | Sequence[str] | None = None,
    preset: str | None = None,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    limit: int | None = None,
    trials: str | os.PathLike[str] | None = None,
    shard: str | tuple[int, int] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    **running_fields: Any,
) -> Run:
    """Send audio through codecs and score the output.

    A call with the same arguments continues a stopped run, also without `out`.

    Worker processes load codecs by name and classes of a file or a module. Objects, and classes of a notebook or the
    main script, run in this process, because no other can import them; the results are the same. They have no time
    limit, and are identified by the source of the class and by `info`: everything else they depend on should be in
    these. If the source cannot be read, the run cannot be continued.

    Args:
        progress: whether to show a progress line, or a function for progress. None: only in a notebook.
        running: how to run it, or its fields as keyword arguments (`device="cpu"`, `workers=2`, ...).

    Returns:
        The finished run, opened for reading; `run.folder` holds the record, `summary.json` and, but for a shard,
        `report.html`.

    Raises:
        UserError: a name, the data, a column or an option is wrong, or the folder cannot be written. A failure of a
            single item is in the run and is not raised.

    Examples:
        >>> from codec_bench import evaluate
        >>> run = evaluate(codec="g711-ulaw,g722", data="embedded", metrics="stoi,snr", limit=8, out="runs/small")
        >>> stoi = run.summary()["systems"]["g722"]["metrics"]["stoi"]
        >>> round(stoi["value"], 2), stoi["n"], stoi["failed"]
        (0.99, 8, 0)
    """
    return run_prepared(EvalRequest, prepare, locals())


def prepare(
    *,
    codec: Codecs,
    data: Any,
    metrics: str | Sequence[str] | None = None,
    preset: str | None = None,
    seed: int = 0,
    limit: int | None = None,
    trials: str | os.PathLike[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    by: str | Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    growing: str | os.PathLike[str] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Convert the arguments of `evaluate` to an evaluation, and open the data.

    Args:
        growing: the run folder to extend, in its order of samples; None for a new run.
        arguments: all of them, for the record.
    """
    systems, requested = read_systems(codec), chosen_metrics(metrics, preset)
    source = open_source(data, limit=limit, seed=seed if limit is not None else None)
    if trials is not None:
        source = with_trials(source, Path(trials))
    source = restore_sample_order(source, growing, limit=limit, seed=seed)
    chosen, groups = expand_metrics(requested, source, out, coded=True, options=options)
    request = {"command": "evaluate", "data": data_name(data), "seed": seed, "limit": limit, **groups}
    if trials is not None:
        request["trials"] = str(trials)
    about = {**broken_down(by, source.samples, source.name), "arguments": dict(arguments or {})}
    return Evaluation(systems, chosen, source, request, dict(options or {}), about)
