"""Merge the runs of all shards into one (`codec-bench merge`)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from codec_bench.benchmark.controls import record_controls
from codec_bench.benchmark.run_request import safe_name
from codec_bench.benchmark.runs_overview import RunOutcome, write_overview
from codec_bench.benchmark.scoring.scoring import score_sets_again
from codec_bench.messages.errors import Note, UserError
from codec_bench.report.open_run import Run
from codec_bench.report.results import write_results
from codec_bench.store.answers import has_answers
from codec_bench.store.controls import INSTEAD, Control
from codec_bench.store.folders import run_folders
from codec_bench.store.integrity import DATABASE
from codec_bench.store.merge import merge_records
from codec_bench.store.parts import MERGED

Notify = Callable[[str], None]


def merge(
    *,
    parts: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    partial: bool = False,
    page: bool = True,
    notify: Notify = lambda _: None,
) -> Run | RunOutcome:
    """Merge the runs of shards into one run, row for row that of one machine.

    Statistics, and metrics of all answers together, are computed from all parts. Merging into a folder with some of the
    parts adds the others.

    Args:
        parts: folders of shards (`evaluate(..., shard="3/8")`), or folders that hold them at any depth.
        out: the folder of the merged run.
        partial: whether shards may be missing or unfinished. The run is then marked as partial.
        page: whether `report.html` is written.
        notify: called with each step.

    Returns:
        The merged run, opened for reading. For shards of `run_benchmark`, its outcome with a run per benchmark and
        model.

    Raises:
        UserError: a part is missing, repeated, unfinished, damaged or of another run; each is named.

    Examples:
        >>> from codec_bench import evaluate, merge
        >>> request = {"codec": "g711-ulaw", "data": "embedded", "metrics": "snr", "limit": 4}
        >>> parts = [evaluate(**request, shard=f"{part}/2", out=f"runs/part-{part}").folder for part in (1, 2)]
        >>> run = merge(parts=parts, out="runs/merged", page=False)
        >>> run.counts()["finished"]
        4
    """
    named = [parts] if isinstance(parts, (str, os.PathLike)) else list(parts)
    target = Path(out)
    parents = [Path(one) for one in named]
    nested = ([one] if (one / DATABASE).is_file() else run_folders(one) for one in parents)
    groups = _groups(dict.fromkeys(folder for folders in nested for folder in folders))
    if not groups:
        raise UserError("no_part_named", hint="name the run folders of the shards")
    if list(groups) == [()]:
        return _merge_group(groups[()], target, partial, page, notify)
    if () in groups:
        raise UserError("not_benchmark_run", folder=groups[()][0], hint="merge one command's runs")
    runs: dict[tuple[str, str], Run] = {}
    for (benchmark, *model), folders in groups.items():
        run = _merge_group(folders, target.joinpath(*map(safe_name, (benchmark, *model))), partial, page, notify)
        runs.update({(benchmark, model[0] if model else system): run for system in run.systems})
    for run in runs.values():
        if record_controls(run.folder):
            write_results(Run(run.folder), page=page)
    outcome = RunOutcome(target, runs)
    write_overview(outcome)
    return outcome


def _groups(folders: Iterable[Path]) -> dict[tuple[str, ...], list[Path]]:
    """Group the folders of shards by (benchmark, model), or all as `()`."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for folder in folders:
        with closing(Run(folder)) as run:
            meta = run.meta
        if meta.get(MERGED):
            continue
        config = meta.get("config") or {}
        control = Control(**{name: config[name] for name in INSTEAD if name in config})
        model = [f"{config['model']}{control.suffix}"] if "model" in config else []
        key = (config["benchmark"], *model) if "benchmark" in config else ()
        groups.setdefault(key, []).append(folder)
    return groups


def _merge_group(folders: Sequence[Path], target: Path, partial: bool, page: bool, notify: Notify) -> Run:
    """Merge the shards of one run, score set metrics again and write the report."""
    merged = merge_records(folders, target, partial=partial, notify=notify)
    if not merged.complete:
        gaps = {"missing": len(merged.missing), "unfinished": len(merged.unfinished)}
        warnings.warn(Note("merged_run_partial", shards=merged.of, **gaps), stacklevel=3)
    if merged.added:
        with closing(Run(merged.folder)) as run:
            answers = has_answers(run)
        if answers and (sets := score_sets_again(merged.folder)):
            notify(f"{', '.join(sets)} need all answers at once, and were made anew")
    notify("writing the report")
    run = Run(merged.folder)
    write_results(run, page=page)
    return run
