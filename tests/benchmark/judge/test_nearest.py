"""The option that is most like an answer: as MMAU-Pro's program finds it, with embeddings of its own, from the answers
to the record.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses

from codec_bench.benchmark.judge.metric import load_judge_metric
from codec_bench.benchmark.judge.rubric import Rubric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.config import fit
from codec_bench.messages import Diagnostic
from codec_bench.types import Response

FILE = "mmau_pro_nearest"
CASES = json.loads((Path(__file__).parents[2] / "golden" / "text" / f"{FILE}.json").read_text("utf-8"))["cases"]
BUILT = load_judge_metric("rating[mmau-pro-nearest-official]", "judge")


def embedding(text):
    """How often each pair of letters is in a text, in 32 places. The golden file was made with these."""
    pairs = f"^{text}$"
    counts = [zlib.crc32(pairs[at : at + 2].encode()) % 32 for at in range(len(pairs) - 1)]
    return np.bincount(counts, minlength=32).astype(float)


def likeness(request):
    text, others = embedding(request.fields["text"]), [embedding(other) for other in request.fields["texts"]]
    return [float(text @ other / np.linalg.norm(text) / np.linalg.norm(other)) for other in others]


def answer(text="a dog", choices=("a dog", "a cat"), right="a dog"):
    return Answer("q1", text, (right,), {"question": "What is heard?", "choices": list(choices)}, "en", text)


def judged(options, reply=None):
    (requests,) = BUILT.requests(options, None, 0)
    text = json.dumps({"similarities": likeness(requests)}) if reply is None else reply
    return BUILT.score(options, 1, {requests.id: Response(text=text)})


def test_a_hundred_answers_are_read_as_the_authors_program_reads_them():
    results = []
    for case in CASES:
        options = answer(case["input"]["answer"], case["input"]["choices"], case["input"]["reference"])
        score = judged(options)
        results.append({"option": score.detail["option"], "score": score.value})
    assert len(CASES) == 100 and results == [case["expected"] for case in CASES]
    assert 30 < sum(one["score"] for one in results) < 70


def test_a_question_needs_two_options_and_an_answer_needs_words():
    assert BUILT.requests(answer(choices=["a dog"]), None, 0).status == "undefined"
    unknown = Answer("q1", "a dog", (), {"choices": ["a dog", "a cat"]}, "en", "a dog")
    assert BUILT.requests(unknown, None, 0).status == "undefined"
    empty = BUILT.requests(answer(" \n"), None, 0)
    assert (empty.value, empty.status, empty.detail["flag"]) == (0, "ok", Diagnostic("empty_answer_no_option"))
    assert BUILT.reads_raw and BUILT.range == (0, 1)


@pytest.mark.parametrize(
    "reply",
    [
        "A",
        "",
        "[1, 0]",
        '{"similarities": [1]}',
        '{"similarities": [1, NaN]}',
        '{"similarities": "ab"}',
        "[" * 9999,
        "null",
    ],
)
def test_what_is_no_similarity_of_each_option_is_no_number(reply):
    score = judged(answer(), reply)
    assert (score.value, score.status) == (None, "unparsed") and score.reason.as_dict() == {
        "code": "reply_without_similarities",
        "texts": 2,
    }


def test_the_first_of_equal_options_is_selected_and_the_chance_is_known():
    score = judged(answer("a cat"), '{"similarities": [0.5, 0.5]}')
    assert (score.value, score.detail["option"], score.detail["chance"]) == (1, "a dog", 0.5)


def test_a_rubric_has_a_prompt_or_compares():
    for fields in ({"reply": "yes-no"}, {"reply": "nearest", "prompt": "{{ answer }}"}):
        with refuses("does_not_fit", mistakes={"code": "wrong_field", "message": "rubric_prompt_missing"}):
            fit({"version": 1, "summary": "s", "range": (0, 1), **fields}, Rubric, source="mine.yaml")
