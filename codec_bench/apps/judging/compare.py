"""The verb `judge_compare`: the effect of another judge on the same answers.

The new judge marks a copy of a run (`run_benchmark`, phase `scores`); the run itself stays as it is.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from heapq import nsmallest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from codec_bench.api.executors import show_progress
from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.judging.page import MovedAnswer, write_compare_page
from codec_bench.apps.judging.words import part_name
from codec_bench.benchmark import has_benchmark
from codec_bench.benchmark.judge.metric import STEM
from codec_bench.benchmark.judge.rubric import load_rubric
from codec_bench.benchmark.run_request import Terms, judge_label, run_folder
from codec_bench.config.option import names
from codec_bench.engine.running import Progress, Running, choose_running
from codec_bench.messages.errors import UserError
from codec_bench.models import load_model
from codec_bench.stats import interval
from codec_bench.stats.correlation import spearman
from codec_bench.stats.notes import Note
from codec_bench.store.answers import AnswerWriter, exchanges
from codec_bench.store.controls import result_folders, without_marks
from codec_bench.store.judge_successions import Succession, keep_succession
from codec_bench.store.judge_tests import Figure, judge_words
from codec_bench.store.record import DATABASE, Run

PAGE, MOST, SHOWN = "comparison.html", 20, 400
"""The page next to the copies, its number of answers, and characters of a text."""
_ABOVE = 4
"""Parent folders of a run to search for an own benchmark's definition."""
Mark = tuple[str, str, str, str, float, float]
"""Benchmark, system, sample, unit, the old judge's mark and the new one's."""


def judge_compare(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    judges: str | Sequence[str],
    *,
    out: str | os.PathLike[str],
    benchmark: str | Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    terms: Terms | None = None,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    **running_fields: Any,
) -> list[Succession]:
    r"""Let a new judge mark answers again, and compare both judges' verdicts.

    The same call continues after a stop.

    Args:
        runs: folders of runs with verdicts of the old judge.
        judges: the old one, by its recorded or requested name, and the new one. The same one twice shows changes behind
            its name.
        out: folder of the copies with the new verdicts.
        benchmark: folders of own benchmarks; those in the current folder and above a run are found without it.
        options: arguments by model.
        terms: limits of cost and time.
        progress: as for `run_benchmark`.
        running: how to run it, or its fields as keywords.

    Returns:
        One for each rubric. They are also stored for this user (`store.judge_successions`), and boards show them.

    Raises:
        UserError: there are not two judges, a run has no verdicts of the old one, or the copy in `out` has other
            answers.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import judge_compare, run_benchmark
        >>> Path("towns").mkdir(exist_ok=True)
        >>> rows = [f'{{"id": "{n}", "q": "Question {n}?"}}' for n in range(12)]
        >>> written = Path("towns/rows.jsonl").write_text("\n".join(rows))
        >>> written = Path("towns/benchmark.yaml").write_text('''
        ... {version: 1, title: Towns, summary: Which town., category: QA, kind: qa, language: en,
        ... data: {path: rows.jsonl, id: id, columns: {question: q}},
        ... prompt: {messages: [{content: ["{{ question }}"]}]},
        ... metrics: ["rating[alpaca-1-10]"], primary: "rating[alpaca-1-10]"}''')
        >>> for name, says in (("teller", "Paris"), ("strict", "[[6]]"), ("mild", "[[8]]")):
        ...     written = Path(f"{name}.py").write_text(f'''
        ... from codec_bench.models.base import Model, ModelInfo
        ... from codec_bench.types import Response
        ... class Says(Model):
        ...     info = ModelInfo("{name}")
        ...     identity = {{"says": "{says}"}}
        ...     async def ask(self, request):
        ...         return Response(text="{says}")
        ... ''')
        >>> old, new = "./strict.py:Says", "./mild.py:Says"
        >>> runs = run_benchmark(benchmark="./towns", model="./teller.py:Says", judge=old, out="runs/towns")
        >>> (change,) = judge_compare("runs/towns", [old, new], out="runs/mild", benchmark="./towns")
        >>> change.offset.value
        2.0
    """
    running = choose_running(running, running_fields)
    settings = {name: dict(of) for name, of in (options or {}).items()}
    named = names(judges)
    if len(named) != 2:
        raise UserError("judges_to_compare", count=len(named), hint="--judge OLD --judge NEW")
    old, new = (judge_label(one, settings.get(one)) for one in named)
    running = replace(running, on_estimate=_once(running.on_estimate))
    own_paths = {Path(name).name: name for name in names(benchmark or "")}
    marks: dict[str, list[Mark]] = defaultdict(list)
    kinds: dict[tuple[str, str], Mapping[str, str]] = {}
    served: tuple[set[str], set[str]] = set(), set()
    missing: dict[str, int] = defaultdict(int)
    reaches: dict[str, float] = {}
    folder_of: dict[tuple[str, str], Path] = {}
    folders = result_folders(runs)
    own_paths = {**_find_definitions(folders), **own_paths}
    _check_can_mark(folders, old, own_paths)
    # Reject unknown models before copying.
    load_model(named[1], settings.get(named[1]), device=running.device)
    with show_progress(running, progress) as running:
        for folder in folders:
            with closing(Run(folder)) as run:
                (system,) = run.systems
                benchmark_name = run.meta["config"]["benchmark"]
                folder_of[benchmark_name, system] = folder
                copy = _copy_run(run, run_folder(Path(out), benchmark_name, system), without_scores=old == new)
            done = run_benchmark(
                benchmark=own_paths.get(benchmark_name, benchmark_name), model=system, out=out, phase="scores",
                judge=named[1], options=settings, terms=terms, progress=False,
                rescore=not _is_marked(copy, new),
                running=replace(running, page=False, cache=running.cache and old != new),
            )  # fmt: skip
            for one in done.runs.values():
                one.close()
            with closing(Run(folder)) as run, closing(Run(copy)) as again:
                units = {one.id: one.speaker or one.id for one in run.samples()}
                kinds |= {
                    (benchmark_name, one.question.id): without_marks(one.question.subsets) for one in exchanges(run)
                }
                reaches |= _reaches(run)
                before, after = _read_marks(run, old, served[0]), _read_marks(again, new, served[1])
                for rubric in before.keys() & after.keys():
                    both = before[rubric].keys() & after[rubric].keys()
                    missing[rubric] += len(before[rubric].keys() | after[rubric].keys()) - len(both)
                    marks[rubric] += [
                        (benchmark_name, system, id, units[id], before[rubric][id], after[rubric][id])
                        for id in sorted(both)
                    ]
    successions = [
        _succession(rubric, old, new, held, kinds, served, missing[rubric], reaches[rubric])
        for rubric, held in sorted(marks.items())
    ]
    for succession in successions:
        keep_succession(succession)
    if running.page and successions:
        tested = {name: _tested(successions, index) for index, name in enumerate(successions[0].display_names)}
        write_compare_page(successions, _moved_most(marks, folder_of), tested, Path(out) / PAGE)
    return successions


def _tested(successions: Sequence[Succession], index: int) -> str:
    texts = set()
    for one in successions:
        has_audio = bool(load_rubric(part_name(one.rubric)).hears)
        texts.add(judge_words((one.old, one.new)[index], one.rubric, has_audio, one.served[index]))
    return "; ".join(sorted(texts))


def _moved_most(marks: Mapping[str, Sequence[Mark]], folders: Mapping[tuple[str, str], Path]) -> list[MovedAnswer]:
    """List the answers whose two marks differ most; equal marks are excluded."""
    every = ((rubric, mark) for rubric, held in sorted(marks.items()) for mark in held if mark[4] != mark[5])
    most = nsmallest(MOST, every, key=lambda one: (-abs(one[1][5] - one[1][4]), one[1][:3]))
    texts: dict[tuple[str, str, str], tuple[str, str]] = {}
    for benchmark, system in {mark[:2] for _, mark in most}:
        with closing(Run(folders[benchmark, system])) as run:
            for one in exchanges(run):
                texts[benchmark, system, one.question.id] = one.question.prompt or "", one.answer.text or ""
    return [
        MovedAnswer(rubric, benchmark, system, id, _short(question), _short(answered), old, new)
        for rubric, (benchmark, system, id, _, old, new) in most
        for question, answered in [texts[benchmark, system, id]]
    ]


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"


def _once(notify: Callable[[str], None]) -> Callable[[str], None]:
    """Wrap a function so that it receives each sentence only once."""
    sent: set[str] = set()

    def once(words: str) -> None:
        if words not in sent:
            sent.add(words)
            notify(words)

    return once


def _reaches(run: Run) -> dict[str, float]:
    """Largest possible difference of two marks, by rubric."""
    marked = [facts for facts in run.metrics.values() if facts.get("judge")]
    return {str(one["protocol"]).rpartition("/")[0]: float(one["range"][1] - one["range"][0]) for one in marked}


def _labels(run: Run) -> list[str]:
    return sorted({facts["judge"] for facts in run.metrics.values() if facts.get("judge")})


def _find_definitions(folders: Sequence[Path]) -> dict[str, str]:
    """Find the folders of own benchmarks, in the current folder and above each run."""
    definitions: dict[str, str] = {}
    for folder in folders:
        with closing(Run(folder)) as run:
            benchmark = str(run.meta["config"]["benchmark"])
        if has_benchmark(benchmark):
            continue
        places = (Path(), *folder.resolve().parents[:_ABOVE])
        known = [parent / benchmark for parent in places if (parent / benchmark / "benchmark.yaml").is_file()]
        if known:
            definitions[benchmark] = str(known[0].resolve())
    return definitions


def _check_can_mark(folders: Sequence[Path], old: str, own_paths: Mapping[str, str]) -> None:
    """Check each run for the old judge's verdicts and the benchmark."""
    for folder in folders:
        with closing(Run(folder)) as run:
            if old not in _labels(run):
                there = ", ".join(_labels(run)) or "no judge"
                raise UserError("no_verdicts_of_judge", folder=folder, judge=old, hint=f"it holds verdicts of {there}")
            config = run.meta["config"]
            if config.get("baseline") is not None:
                raise UserError(
                    "verdicts_next_to_baseline",
                    folder=folder,
                    baseline=config["baseline"],
                    hint="run the benchmark again with --judge NEW --phase scores and the same --baseline",
                )
            benchmark = config["benchmark"]
        if benchmark not in own_paths and not has_benchmark(benchmark):
            raise UserError(
                "benchmark_of_folder_missing",
                benchmark=benchmark,
                folder=folder,
                hint="name the folder of the custom benchmark with --benchmark",
            )


def _is_marked(folder: Path, judge: str) -> bool:
    with closing(Run(folder)) as run:
        return judge in _labels(run)


def _copy_run(run: Run, copy: Path, *, without_scores: bool) -> Path:
    """Copy a run unless the copy exists, and return it; UserError if answers differ.

    Args:
        without_scores: delete the scores of a new copy.
    """
    if not (copy / DATABASE).is_file():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=copy.parent, prefix=".copy-") as temporary:
            complete = Path(temporary) / copy.name
            shutil.copytree(run.folder, complete)
            if without_scores:
                with closing(AnswerWriter(complete, run.meta["fingerprint"])) as writer:
                    writer.delete_scores()
            complete.replace(copy)
    with closing(Run(copy)) as there:
        texts = [[(one.question.id, one.answer.text) for one in exchanges(of)] for of in (run, there)]
    if texts[0] != texts[1]:
        raise UserError("answers_differ", folder=run.folder, copy=copy, hint="give another --out")
    return copy


def _read_marks(run: Run, judge: str, served: set[str]) -> dict[str, dict[str, float]]:
    """Read a judge's marks, as {rubric: {sample: mark}}.

    Args:
        served: the names of the models that served the judge are added to it.
    """
    verdicts: dict[str, dict[str, float]] = {}
    for name, facts in run.metrics.items():
        if facts.get("judge") != judge or not name.startswith(STEM):
            continue
        marks = verdicts.setdefault(str(facts["protocol"]).rpartition("/")[0], {})
        for score in run.scores(metric=name):
            served.update(score.detail.get("calls", {}).get("served", ()))
            if score.value is not None:
                marks[score.id] = score.value
    return verdicts


def _succession(
    rubric: str, old: str, new: str, marks: Sequence[Mark], kinds: Mapping[tuple[str, str], Mapping[str, str]],
    served: tuple[set[str], set[str]], missing: int, reach: float,
) -> Succession:  # fmt: skip
    """Summarise two judges' marks by a rubric: offset, agreement, rank correlation.

    Args:
        kinds: by (benchmark, id), the sample's value in each column; offsets are split by them.
        missing: answers with a mark of one judge only.
        reach: the width of the rubric's range.
    """
    of: dict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        for column, value in kinds.get(mark[:1] + mark[2:3], {}).items():
            of[f"{column}={value}"].append(mark)
    moved = {name: _offset(held, reach) for name, held in of.items()}
    return Succession(
        rubric, old, new, (sorted(served[0]), sorted(served[1])), _offset(marks, reach),
        _figure([float(a == b) for *_, a, b in marks], marks, (0.0, 1.0)), _ranks(marks),
        dict(sorted(moved.items(), key=lambda one: -abs(one[1].value or 0.0))), missing,
    )  # fmt: skip


def _offset(marks: Sequence[Mark], reach: float) -> Figure:
    return _figure([after - before for *_, before, after in marks], marks, (-reach, reach))


def _figure(values: Sequence[float], marks: Sequence[Mark], bounds: tuple[float, float]) -> Figure:
    """Average values with an interval; all answers to one question are one cluster."""
    if not values:
        return Figure(None, note=Note("no_common_answer"))
    estimate = interval(values, bounds=bounds, clusters=[f"{mark[0]}/{mark[3]}" for mark in marks])
    return Figure(float(np.mean(values)), estimate.low, estimate.high, len(values), estimate.units, estimate.note)


def _ranks(marks: Sequence[Mark]) -> Figure:
    """Correlate the systems' mean marks by the old and the new judge (Spearman)."""
    systems = sorted({mark[1] for mark in marks})
    means = [
        np.array([np.mean([mark[column] for mark in marks if mark[1] == system]) for system in systems])
        for column in (4, 5)
    ]
    correlation = spearman(*means)
    return Figure(correlation.value, correlation.low, correlation.high, len(means[0]), len(means[0]), correlation.note)


__all__ = ["Succession", "judge_compare"]
