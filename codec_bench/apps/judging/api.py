"""The verb `judge_check`: asks a judge questions with known answers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from codec_bench.api.executors import show_progress
from codec_bench.api.run_benchmark import run_benchmark
from codec_bench.apps.judging.figures import QuestionPlan, read_replies, write_questions
from codec_bench.apps.judging.injected import has_columns_for, text_rubrics
from codec_bench.apps.judging.page import write_check_page
from codec_bench.apps.judging.sounds import KINDS, TWO_CHANNELS
from codec_bench.benchmark.asking.benchmarks import Preview
from codec_bench.benchmark.definition.loader import is_path
from codec_bench.benchmark.judge.metric import JudgeMetric
from codec_bench.benchmark.judge.rubric import own_rubric
from codec_bench.benchmark.run_request import Terms, judge_label
from codec_bench.benchmark.runs_overview import RunOutcome
from codec_bench.config.custom_code import is_custom_code
from codec_bench.config.option import names
from codec_bench.engine.running import Progress, Running, choose_running
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.models import load_model
from codec_bench.report.answers import spent_text
from codec_bench.stats.summary import summarise
from codec_bench.store.files import read_json, write_json
from codec_bench.store.folders import mark_finished, named_folder, own_folder
from codec_bench.store.judge_tests import JudgeTest, PartTest, keep_test

SOUNDS, TEXTS = "sounds", "texts"
PARTS = (SOUNDS, TEXTS)
PER_KIND, REPEATS = 4, 2
CHECK_FILE, QUESTIONS, ANSWERS, PAGE = "check.json", "questions", "answers", "report.html"


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The result of a judge's check.

    Args:
        folder: of the questions and the record of the replies.
        test: the figures by part, stored for this user.
        excluded: questions without a request.
        broken: unfinished parts; the same call continues them. Both with reasons.
        previews: with `dry_run`, the questions and their cost; there is no test then.
    """

    folder: Path
    test: JudgeTest
    excluded: tuple[tuple[str, str], ...] = ()
    broken: tuple[tuple[str, str], ...] = ()
    previews: tuple[Preview, ...] = ()


def judge_check(
    judge: str,
    *,
    parts: str | Sequence[str] | None = None,
    rubrics: str | Sequence[str] | None = None,
    per_kind: int = PER_KIND,
    repeats: int = REPEATS,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    terms: Terms | None = None,
    dry_run: bool = False,
    progress: bool | Progress | None = None,
    running: Running | None = None,
    **running_fields: Any,
) -> JudgeCheck:
    """Test a judge with sounds and texts with known answers.

    The same call continues a stopped check. Answers of other runs are not reused, because the judge's present behaviour
    is tested.

    Args:
        judge: a model's name or own file.
        parts: `sounds`, `texts` or both; None for all that the model takes.
        rubrics: for the injected errors; None for all that fit.
        per_kind: sounds of each kind, a multiple of 4 for balance.
        repeats: of each question.
        seed: of the sounds.
        out: the folder; None for the unfinished check of the same call under `runs/`, or a new one.
        options: arguments by model.
        terms: limits of cost and time, as for `run_benchmark`.
        dry_run: ask nothing; the result has `previews`.
        progress: as for `run_benchmark`.
        running: how to run it, or its fields as keywords.

    Returns:
        The figures. They are also stored for this user (`store.judge_tests`), and accompany every later number of this
        judge.

    Raises:
        UserError: a name or number is wrong, a model without audio input gets audio, or no question is left.

    Examples:
        >>> from pathlib import Path
        >>> from codec_bench import judge_check
        >>> written = Path("yes.py").write_text('''
        ... from codec_bench.models.base import Model, ModelInfo
        ... from codec_bench.types import Response
        ... class Yes(Model):
        ...     info = ModelInfo("yes", inputs=("text", "audio"))
        ...     identity = {"says": "yes"}
        ...     async def ask(self, request):
        ...         return Response(text="Yes.")
        ... ''')
        >>> check = judge_check("./yes.py:Yes", parts="sounds", repeats=1)
        >>> hearing = check.test.parts["hearing"]
        >>> hearing.j.value, hearing.biases["yes"].value  # it tells nothing apart, and affirms everything
        (0.0, 1.0)
    """
    running = choose_running(running, running_fields)
    settings = {name: dict(values) for name, values in (options or {}).items()}
    metrics, excluded, kinds = _select_parts(judge, settings, parts, rubrics, running)
    _check_counts(per_kind, repeats)
    plan = QuestionPlan(metrics, kinds, per_kind, repeats, seed)
    label = judge_label(judge, settings.get(judge))
    request = {"judge": label, **plan.as_dict()}
    if dry_run:
        with TemporaryDirectory() as folder:
            done = _ask(Path(folder), plan, judge, settings, terms, running, dry_run=True)
        return JudgeCheck(Path(), JudgeTest(label), tuple(excluded), _broken(done), done.previews)
    with (
        show_progress(running, progress) as running,
        named_folder(out) if out is not None else own_folder("judge-check", request) as run_place,
    ):
        running.on_folder(run_place.path, run_place.words)
        started_at = _start_or_resume(run_place.path, request)
        try:
            done = _ask(run_place.path, plan, judge, settings, terms, running)
        except UserError:
            if (
                run_place.is_new and not (run_place.path / ANSWERS).exists()
            ):  # so that a check that is refused leaves no folder
                (run_place.path / CHECK_FILE).unlink()
                shutil.rmtree(run_place.path / QUESTIONS, ignore_errors=True)
            raise
        part_tests: dict[str, PartTest] = {}
        spent: dict[str, str] = {}
        for (benchmark, _), run in done.runs.items():
            with closing(run):
                name, part_test = read_replies(run, metrics.get(benchmark), started_at, plan)
                part_tests[name], spent[name] = part_test, spent_text(summarise(run).answers)
        test = JudgeTest(label, part_tests)
        write_json(run_place.path / "test.json", test.as_dict())
        if running.page and part_tests:
            write_check_page(test, spent, [*excluded, *_broken(done)], run_place.path / PAGE)
        keep_test(JudgeTest(label, {name: one for name, one in part_tests.items() if one.j.value is not None}))
        if not done.excluded:
            mark_finished(run_place.path)
    return JudgeCheck(run_place.path, test, tuple(excluded), _broken(done))


def _ask(
    folder: Path, plan: QuestionPlan, judge: str, settings: Mapping[str, Mapping[str, Any]], terms: Terms | None,
    running: Running, dry_run: bool = False
) -> RunOutcome:  # fmt: skip
    """Send the questions without an answer in `folder`, after reporting their cost."""
    quiet_running = replace(running, cache=False, page=False, retry_failed=True, on_folder=lambda *_: None)
    run = partial(
        run_benchmark, benchmark=[str(one) for one in write_questions(folder / QUESTIONS, plan)], model=judge,
        out=folder / ANSWERS, phase="answers", seed=plan.seed, options=settings, terms=terms,
        progress=False,
    )  # fmt: skip
    if dry_run or (folder / ANSWERS).exists():
        return run(dry_run=dry_run, running=quiet_running)
    for one in run(dry_run=True, running=quiet_running).previews:
        running.on_estimate(f"{one.benchmark}: {one.cost}")
    return run(running=replace(quiet_running, on_estimate=lambda words: None))


def _broken(done: RunOutcome) -> tuple[tuple[str, str], ...]:
    return tuple((name, why) for name, _, why in done.excluded)


def _check_counts(per_kind: int, repeats: int) -> None:
    if per_kind < 4 or per_kind % 4:
        raise UserError("sounds_of_kind", count=per_kind)
    if repeats < 1:
        raise UserError("question_repeats", count=repeats)


def _select_parts(
    judge: str, settings: Mapping[str, Mapping[str, Any]], parts: str | Sequence[str] | None,
    rubrics: str | Sequence[str] | None, running: Running
) -> tuple[dict[str, JudgeMetric], list[tuple[str, Diagnostic]], tuple[str, ...]]:  # fmt: skip
    """Select rubrics and kinds of sounds that the judge can take.

    Returns:
        Rubrics by the names of their questions, excluded parts with reasons, and kinds of sounds.
    """
    requested = names(parts or PARTS)
    for part_name in requested:
        if part_name not in PARTS:
            raise UnknownName("test_part", part_name, PARTS)
    info = load_model(judge, settings.get(judge), device=running.device).info
    if info.reads != "messages" or "text" not in info.outputs:
        raise UserError("answers_no_text_question", model=info.name, hint="codec-bench list models")
    excluded, kinds = [], tuple(KINDS) if SOUNDS in requested else ()
    if kinds and "audio" not in info.inputs:
        why = Diagnostic("judge_without_hearing", judge=info.name, inputs=info.inputs)
        if parts is not None:
            raise UserError("judge_hearing_untestable", cause=why, hint="--parts texts tests how it marks texts")
        excluded, kinds = [(SOUNDS, why)], ()
    elif kinds and not is_custom_code(judge):
        kinds = tuple(kind for kind in kinds if kind not in TWO_CHANNELS)
        excluded = [(kind, Diagnostic("two_channel_sounds")) for kind in TWO_CHANNELS]
    rubric_names = names(rubrics) if rubrics is not None else text_rubrics()
    chosen = [own_rubric(name) if is_path(name) else name for name in rubric_names] if TEXTS in requested else []
    for name in chosen:
        if not has_columns_for(name):
            raise UserError("rubric_not_for_injected", rubric=name, hint=f"they fit {', '.join(text_rubrics())}")
    return {f"marks-{name}": JudgeMetric(name) for name in chosen}, excluded, kinds


def _start_or_resume(folder: Path, request: Mapping[str, Any]) -> str:
    """Write the check's request into a folder, and return the day when it started.

    Raises:
        UserError: the folder holds a check of another request.
    """
    path = folder / CHECK_FILE
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, {**request, "date": date.today().isoformat()})
    held = read_json(path)
    other = [name for name in request if held.get(name) != request[name]]
    if other:
        raise UserError(
            "folder_of_other_check", folder=folder, field=other[0], value=held.get(other[0]), hint="give another --out"
        )
    return str(held["date"])


__all__ = ["JudgeCheck", "judge_check"]
