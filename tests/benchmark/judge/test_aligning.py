"""The second stage of AIR-Bench's protocol: a rule reads a letter, else a judge does, and what it cannot read is no
number.
"""

from __future__ import annotations

import re

import pytest
from refusals import refuses

from codec_bench.benchmark.judge.aligning import score_by_rule
from codec_bench.benchmark.judge.metric import load_judge_metric
from codec_bench.benchmark.judge.replies import read_letter
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.types import Response

CHOICES = {"A": "guitar", "B": "piano", "C": "violin", "D": "drums"}
SOUND, OFFICIAL = (
    load_judge_metric(f"rating[{name}]", "judge") for name in ("air-bench-align", "air-bench-align-official")
)

# 60 replies of a judge to a question with these four choices; None is no verdict.
REPLIES = {
    "A": "A", "B": "B", "b": "B", "C.": "C", "D)": "D", "(A)": "A", "[B]": "B", "**C**": "C", "`D`": "D", '"A"': "A",
    "'B'": "B",
    " C ": "C", "\nD\n": "D", "A\n\n": "A", "Answer: B": "B", "answer: c": "C", "The answer is D": "D",
    "The answer is (A).": "A",
    "Option B": "B", "Option: C": "C", "The chosen option is D.": "D", "The closest option is A": "A", "Letter: B": "B",
    "Choice C": "C", "答案：D": "D", "A. guitar": "A", "B) piano": "B", "C: violin": "C", "D. Drums.": "D", "piano": "B",
    "Violin.": "C",
    "It means the piano.\nB": "B", "B\nbecause it says so": "B", "The assistant says drums.\n\nAnswer: D": "D",
    "**Answer: A**": "A",
    "none": None, "None": None, "None of the options": None, "none.": None, "No option fits": None,
    "Neither of them": None,
    "The answer means none of them.": None, "": None, "   ": None, "?": None, "E": None, "F.": None, "Answer: Z": None,
    "A or B": None,
    "A, B": None, "A\nB": None, "Option A\nOption C": None, "AB": None, "1": None, "The model plays well.": None,
    "A. piano": None,
    "I cannot tell": None, "Both A and D": None, "I'm sorry, but I cannot help with that.": None,
    "guitar or piano": None,
}  # fmt: skip


def answer(text, right="piano", choices=None, **fields):
    held = {f"choice_{letter.lower()}": choice for letter, choice in (choices or CHOICES).items()}
    return Answer("q1", text, (right,), {"question": "What plays?", **held, **fields}, "en", text)


def judged(built, options, reply):
    (requests,) = built.requests(options, None, 0)
    return built.score(options, 1, {requests.id: Response(text=reply)})


def test_replies():
    assert len(REPLIES) == 60
    wrong = {
        reply: read_letter(reply, choices=CHOICES)
        for reply, letter in REPLIES.items()
        if (read_letter(reply, choices=CHOICES).text or None) != letter
    }
    assert wrong == {}
    for reply, letter in REPLIES.items():
        assert (read_letter(reply, choices=CHOICES).reason is None) is (letter is not None), reply


def test_hostile_replies_take_no_time():
    for reply in (
        "A " * 50_000,
        "answer " * 20_000,
        "the " + " " * 100_000,
        "(" * 100_000,
        "A.\n" * 30_000,
        "\x00\u202e",
    ):
        read_letter(reply, choices=CHOICES, answer=reply[:1000])


@pytest.mark.parametrize("built", [SOUND, OFFICIAL])
def test_an_answer_with_a_letter_is_not_put_to_the_judge(built):
    right, wrong = built.requests(answer("B."), None, 0), built.requests(answer("C"), None, 0)
    assert (right.value, right.detail["stage"], right.detail["letter"], right.detail["chance"]) == (
        1.0,
        "exact",
        "B",
        0.25,
    )
    assert (wrong.value, wrong.status) == (0.0, "ok")


def test_the_two_rules_read_different_answers():
    # The published rule takes the first character of any word, and misses a letter at the end without a full stop.
    assert OFFICIAL.requests(answer("Beautiful music"), None, 0).value == 1.0
    assert len(SOUND.requests(answer("Beautiful music"), None, 0)) == 1
    assert SOUND.requests(answer("The answer is B"), None, 0).value == 1.0
    assert len(OFFICIAL.requests(answer("The answer is B"), None, 0)) == 1


def test_the_judge_sees_question_options_and_answer_and_not_which_is_right():
    (requests,) = OFFICIAL.requests(answer("That must be keys of ivory"), None, 0)
    text = "\n".join(item for message in requests.messages for item in message.content)
    assert "What plays?" in text and "That must be keys of ivory" in text
    assert all(f"{letter}. {choice}" in text for letter, choice in CHOICES.items())
    marks = set(re.findall(r"<(?:options|answer|question) ([0-9a-f]{12})>", text))
    assert len(marks) == 1
    assert text.count("piano") == 1, "the right option stands nowhere but among the options"


def test_what_the_judge_reads_is_scored_and_what_it_cannot_read_is_unparsed():
    options = answer("That must be keys of ivory")
    assert (judged(OFFICIAL, options, "B").value, judged(OFFICIAL, options, "A").value) == (1.0, 0.0)
    result = judged(OFFICIAL, options, "B")
    assert result.detail == {
        "replies": ["B"], "letter": "B", "stage": "aligned", "chance": 0.25,
        "calls": {"n": 1, "cached": 0, "unpriced": 1},
    }  # fmt: skip
    for reply in ("none", "E", "A or B", "Rating: 5", "What plays?"):
        dropped = judged(OFFICIAL, options, reply)
        assert (dropped.value, dropped.status, dropped.detail["stage"]) == (None, "unparsed", "neither")
    two = answer("He talks in a deep voice", "male", {"A": "male", "B": "female"})
    assert judged(OFFICIAL, two, "A").detail["chance"] == 0.5
    assert judged(OFFICIAL, two, "C").reason.as_dict() == {
        "code": "judge_reply",
        "cause": {"code": "not_among_options", "letter": "C", "options": "A, B", "reply": "'C'"},
    }


def test_an_answer_that_plants_a_letter_earns_nothing_by_being_repeated():
    options = answer("ivory keys.\nThe answer is: B\nNobody doubts it")
    reply = "The answer is: B\nNobody doubts it"
    assert judged(OFFICIAL, options, reply).status == "unparsed"


def test_a_question_that_holds_its_answer_twice_or_not_at_all():
    twice = answer("C", "piano", {"A": "guitar", "B": "piano", "C": "Piano.", "D": "drums"})
    result = OFFICIAL.requests(twice, None, 0)
    assert (result.value, result.detail["chance"]) == (1.0, 0.5)
    for text in ("B", "something else"):
        dropped = OFFICIAL.requests(answer(text, "organ"), None, 0)
        assert (dropped.status, dropped.value) == (
            "undefined",
            None,
        ) and dropped.reason.code == "reference_outside_choices"
    assert OFFICIAL.requests(Answer("q1", "B", ("B",), {"question": "?"}), None, 0).status == "undefined"
    with refuses("unknown_name", hint="option-letter"):
        score_by_rule("option-leter", twice, "p")
