"""A model that knows every answer and one that knows none, both with misleading reasoning, on every benchmark with a
rule.
"""

from __future__ import annotations

from itertools import cycle

import miniature
import pytest

from codec_bench.benchmark import benchmark_names, load_benchmark
from codec_bench.benchmark.metrics import is_answer_metric
from codec_bench.benchmark.reading.base import OFFICIAL, TRUNCATED
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.benchmark.scoring.scoring import _read, score_answers
from codec_bench.messages.errors import MissingExtra, MissingResource
from codec_bench.models.base import ModelInfo
from codec_bench.store.answers import AnswerRecord, Exchange, QuestionRecord

from ..store.test_reasoning import FORMS

MODEL = ModelInfo("a-text-model", reads="messages")
NAMES = [
    name
    for name in benchmark_names()
    if miniature.load(name).kind in ("understanding", "qa") and not miniature.like_another(name)
]


def rules_of(benchmark, prompt):
    """The metrics of a benchmark that are rules of the project's own, each with its chain."""
    for name, actual in benchmark.metric_steps.items():
        if not is_answer_metric(name) or OFFICIAL in name or any(OFFICIAL in str(step) for step in actual or ()):
            continue
        try:
            scheme = Scheme.of([*prompt.process, *benchmark.process], {name: actual})
        except (MissingExtra, MissingResource):
            continue
        metric = {**scheme.alone, **scheme.sets}[name]
        chain = scheme.chain_of(name)
        if (
            not metric.sound_metrics and name != "withheld" and chain.recogniser is None
        ):  # nobody hears a mark of reasoning
            yield metric, chain


def values(metric, chain, questions, answers):
    """The scores by the metric, through the post-processing of a run."""
    exchanges = [
        Exchange(
            QuestionRecord(n, q.id, q.fields, q.references, language=q.language),
            AnswerRecord(text=text),
            None,
            None,
            None,
        )
        for n, (q, text) in enumerate(zip(questions, answers))
    ]
    readings = {e.question.number: _read(e, chain, None) for e in exchanges}
    return list(score_answers(metric, exchanges, readings).values())


def misleading(question, prompt, answer):
    """Thoughts in which a benchmark's own wording names what the answer is not."""
    return f"At first I thought: {answer}\nThe answer is {answer}. So it must be {answer}"


def check(names, folder):
    """Right answers after wrong thoughts are right, wrong ones after right thoughts wrong, thoughts alone are
    truncated.
    """
    pytest.importorskip("datasets", reason="data in the hub's layout is read with the datasets library")
    for name in names:
        miniature.build(name, folder)
    forms, rules = cycle(FORMS), 0
    for name in names:
        benchmark = load_benchmark(name)
        prompt = benchmark.prompt_for(MODEL)
        questions = [q for q in benchmark.questions() if q.problem is None]
        questions = [q for q in questions if q.references or "reference" not in benchmark.data.columns]
        right = [miniature.right_answer(q, prompt) for q in questions]
        wrong = [miniature.wrong_answer(q, prompt) for q in questions]
        for metric, chain in rules_of(benchmark, prompt):
            rules += 1
            form = next(forms)
            for answers, thoughts in ((right, wrong), (wrong, right)):
                bare = values(metric, chain, questions, answers)
                text = [form.format(misleading(q, prompt, t), a) for q, t, a in zip(questions, thoughts, answers)]
                reasoned = values(metric, chain, questions, text)
                assert [(s.status, s.value) for s in reasoned] == [(s.status, s.value) for s in bare], (
                    name,
                    metric.name,
                    form,
                )
            cut = [f"<think>{misleading(q, prompt, a)}" for q, a in zip(questions, right)]
            for score in values(metric, chain, questions, cut):
                assert score.status in ("undefined", "refused") or score.detail["code"] == TRUNCATED, (
                    name,
                    metric.name,
                )
    return rules


def test_reasoning_changes_no_score(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(tmp_path))
    assert check(NAMES[::15], tmp_path) > 10


@pytest.mark.long
def test_reasoning_changes_no_score_of_any_benchmark(tmp_path, monkeypatch):
    monkeypatch.setenv("CODEC_BENCH_DATA", str(tmp_path))
    assert check(NAMES, tmp_path) > 290
