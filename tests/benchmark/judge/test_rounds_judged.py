"""A conversation is judged as a whole: what the judge is given of each round, and the rating, as in URO-Bench's
program.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean

import pytest
from refusals import refuses

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.judge.metric import load_judge_metric
from codec_bench.benchmark.judge.rubric import with_own_rubrics
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.messages import Diagnostic
from codec_bench.types import Response

FILE = "uro_rounds"
CASES = json.loads((Path(__file__).parents[2] / "golden" / "text" / f"{FILE}.json").read_text("utf-8"))["cases"]
RUBRICS = {"multi": "uro-rounds", "sa": "uro-speaker"}


def conversation(rounds):
    requests, text, suggested = (list(texts) for texts in zip(*rounds))
    return Answer("q1", text[-1], (), {"questions": requests, "suggestions": suggested}, "en", turns=tuple(text[:-1]))


def test_a_hundred_conversations_are_judged_and_rated_as_in_uro_benchs_program():
    by_name = {"multi": [], "sa": []}
    for case in (case["input"] | case["expected"] for case in CASES):
        metric = load_judge_metric(f"rating[{RUBRICS[case['mode']]}]", "judge")
        options = conversation(case["rounds"])
        requests = metric.requests(options, None, 0)
        for request in requests:
            fenced = re.findall(r"<(\w+) (\w+)>\n(.*?)\n</\1 \2>", request.messages[-1].content[0], re.DOTALL)
            assert [text for _, _, text in fenced] == [text for one in case["rounds"] for text in one]
        replies = {request.id: Response(text=reply) for request, reply in zip(requests, case["replies"], strict=True)}
        score = metric.score(options, len(requests), replies)
        assert score.value == pytest.approx(case["rating"], abs=1e-12)
        by_name[case["mode"]].append((score.value, case["final"]))
    for scores in by_name.values():
        assert 20 * fmean(value for value, _ in scores) == pytest.approx(scores[0][1], abs=1e-9)
    assert len(CASES) == 102


def test_a_conversation_with_another_number_of_questions_than_answers_cannot_be_judged():
    metric = load_judge_metric("rating[uro-rounds]", "judge")
    options = conversation([("a", "b", "c"), ("d", "e", "f")])
    with refuses("rounds_of_answer", counts="2 questions, 1 answers, 2 suggestions"):
        metric.requests(Answer("q1", "e", (), options.fields, "en"), None, 0)


def test_a_conversation_of_which_the_data_lack_suggestions_is_judged_by_what_was_requested_and_answered(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "version: 1\nsummary: Mine.\nreply: rating\nrange: [1, 5]\n"
        'prompt: "{% for one in rounds %}{{ one.question }}{{ one.answer }}{% endfor %} Rating: N"\n'
    )
    metric = load_judge_metric(with_own_rubrics("rating[./mine.yaml]", str(tmp_path)), "judge")
    options = conversation([("a", "b", "c"), ("d", "e", "f")])
    fields = {name: value for name, value in options.fields.items() if name != "suggestions"}
    (request,) = metric.requests(Answer("q1", "e", (), fields, "en", turns=options.turns), None, 0)
    text = re.findall(r"<(\w+) \w+>\n(.*?)\n</", request.messages[-1].content[-1], re.DOTALL)
    assert text == [("question", "a"), ("answer", "b"), ("question", "d"), ("answer", "e")]


def test_a_judge_of_a_role_gets_the_answers_of_all_rounds_in_order_and_each_respect_is_a_request():
    metric = load_judge_metric("rating[speech-role]", "judge")
    options = conversation([("a", "b", "c"), ("d", "e", "f"), ("g", "h", "i")])
    fields = {**options.fields, "system_prompt": "Play a guide.", "aspects": ["Voice.", "Wit.", "Knowledge."]}
    options = Answer("q1", "h", (), fields, "en", turns=options.turns)
    first, second, last = (Clip(f"{name}.wav") for name in ("first", "second", "last"))
    requests = metric.requests(options, last, 0, earlier=[first, second])
    for aspect, request in zip(fields["aspects"], requests, strict=True):
        *sounds, text = request.messages[-1].content
        assert sounds == [first, second, last]
        fenced = re.findall(r"<(\w+) (\w+)>\n(.*?)\n</\1 \2>", text, re.DOTALL)
        assert [(name, texts) for name, _, texts in fenced] == [
            ("criterion", aspect), ("system_prompt", "Play a guide."),
            ("question", "a"), ("suggestion", "c"), ("question", "d"), ("suggestion", "f"), ("question", "g"),
            ("suggestion", "i"),
        ]  # fmt: skip
    replies = {one.id: Response(text=f"So.\nRating: {n}") for one, n in zip(requests, (10, 4, 7), strict=True)}
    score = metric.score(options, len(requests), replies)
    assert score.value == 7 and score.detail["verdicts"] == [10, 4, 7]
    silent = metric.requests(options, last, 0, earlier=[first, None])
    assert silent.reason == Diagnostic("no_sound_of_round", round=2)
    assert metric.requests(options, None, 0, earlier=[first, second]).reason == Diagnostic("no_sound_to_judge")


def test_a_judge_of_one_answer_gets_that_of_the_last_round_alone():
    metric, last = load_judge_metric("rating[uro-performance]", "judge"), Clip("last.wav")
    options = Answer("q1", "e", (), {"question": "d"}, "en", turns=("b",))
    for request in metric.requests(options, last, 0, earlier=[Clip("1.wav"), None]):
        assert [one for one in request.messages[-1].content if isinstance(one, Clip)] == [last]
