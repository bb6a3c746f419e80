"""An option is read where the answer clearly chooses one, in several wordings, and not otherwise."""

from __future__ import annotations

import pytest

from codec_bench.benchmark.reading import Parsed, Unparsed, load_steps
from codec_bench.messages.errors import UserError

FIELDS = {"choices": ["Acoustic guitar", "Bass drum", "Cello", "None"]}


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("A", "A"), ("b", "B"), (" C. ", "C"), ("(D)", "D"), ("ａ", "A"), ("**B**", "B"), ("`C`", "C"), ("B)", "B"),
        ("The answer is C.", "C"), ("the correct answer is option **B**", "B"), ("Answer: D", "D"), ("ANSWER: b", "B"),
        ("the answer is 'A'", "A"), ("So the final answer is \\boxed{D}", "D"),
        ("Answer is \\( \\boxed{\\text{B}} \\)", "B"),
        ("The correct answer would be: (C)", "C"), ("B is the correct answer", "B"), ("I would choose B", "B"),
        ("Option A:", "A"),
        ("答案是B", "B"), ("答案：D", "D"), ("答案是：Ａ", "A"), ("正确答案是选项C", "C"), ("故选D", "D"), ("我选择B", "B"), ("C是正确的", "C"),
        ("C选项", "C"), ("因此B。", "B"), ("不是A，而是C", "C"), ("答案应该是选项C，因为A不对", "C"),
        ("D. Lake Erie", "D"), ("A: first", "A"), ("C\nsince it is loud", "C"), ("A mola lives in D. Lake Erie", "D"),
        ("I think it is B, not A", "B"), ("First, A is wrong. So the answer is B", "B"),
        ("Option A is wrong; option B is right.", "B"),
        ("The answer is B because A (acoustic guitar) is too soft.", "B"), ("It would be A.", "A"),
        ("the answer is b because it is loud", "B"),
        # The answer repeats the text of a choice.
        ("Acoustic guitar", "A"), ("a bass drum", "B"), ("It sounds like a cello to me.", "C"), ("None", "D"),
        ("It is not the cello but the bass drum", "B"), ("A. Acoustic guitar", "A"), ("B: bass drum", "B"),
    ],
)  # fmt: skip
def test_an_option_that_is_clear(answer, letter):
    assert load_steps(["option-letter"])(answer, FIELDS) == Parsed(letter)


@pytest.mark.parametrize(
    "answer",
    [
        "", "   ", "A dog", "The correct answer is A dog", "Disco", "Because of noise", "no", "I don't know",
        "Option E", "无法回答",
        "Both A and B.", "maybe C or D.", "(B) or (C)", "The answer is A. The answer is B.", "the answer is not A",
        "a cello and a bass drum", "A. Cello", "It is in C major", "I visited Washington D.C. once",
        "It is a.", "That is a, surely", "I can't hear it", "BBC", "NASA.", "答案是香蕉。", "答案是 A 或者 答案是 B",
    ],
)  # fmt: skip
def test_an_option_that_is_not(answer):
    read = load_steps(["option-letter"])(answer, FIELDS)
    assert isinstance(read, Unparsed), read
    assert not answer.strip() or answer.split()[0] in read.reason


def test_a_letter_and_the_text_of_another_choice_are_two_answers():
    fields = {"choices": ["C", "G", "F", "D"]}  # chords: the text of the first choice is the third letter
    assert isinstance(load_steps(["option-letter"])("C", fields), Unparsed)
    assert load_steps(["option-letter"])("G", fields) == Parsed("B")
    assert load_steps(["option-letter"])("(B)", fields) == Parsed("B")


def test_the_name_of_a_note_is_no_letter():
    fields = {"choices": ["C major", "G minor", "F# major"]}
    for answer in ("The answer is C major.", "c major", "I would choose C major", "Answer: C-major"):
        assert load_steps(["option-letter"])(answer, fields) == Parsed("A")
    assert load_steps(["option-letter"])("(C) F# major", fields) == Parsed("C")
    assert isinstance(load_steps(["option-letter"])("The answer is B major", fields), Unparsed)


def test_letters_come_from_the_choices_or_the_argument():
    assert load_steps(["option-letter"])("E", {"choices": list("vwxyz")}) == Parsed("E")
    assert isinstance(load_steps(["option-letter"])("E", {}), Unparsed)
    assert load_steps(["option-letter[ABCDE]"])("The answer is E", {}) == Parsed("E")
    assert isinstance(load_steps(["option-letter"])("C", {"choices": ["yes", "no"]}), Unparsed)


@pytest.mark.parametrize(
    "fields",
    [
        {"choices": ["(A) Man", "(B) Woman"]}, {"choices": "(A) Man (B) Woman"}, {"choices": '["Man", "Woman"]'},
        {"choices": {"A": "Man", "B": "Woman"}},
        {"choices": {"choice_a": "Man", "choice_b": "Woman", "choice_c": None}},
        {"choice_a": "Man", "choice_b": "Woman"},
    ],
)  # fmt: skip
def test_choices_as_data_sets_write_them(fields):
    assert load_steps(["option-letter"])("a woman", fields) == Parsed("B")


@pytest.mark.parametrize(
    ("answer", "actual"),
    [
        ("Happy.", "Happy"), ("the speaker is not happy but sad", "sad"), ("SAD!!!", "sad"),
        ("throat clearing", "Throat-clearing"),
        ("他很难过", "难过"), ("happy or sad", None), ("glad", None), ("", None), ("unhappy", None), ("不难过", None),
    ],
)  # fmt: skip
def test_a_label(answer, actual):
    labels = ["Happy", "sad", "Throat-clearing", "难过"]
    for read in (
        load_steps(["label"])(answer, {"labels": labels}),
        load_steps([f"label[{','.join(labels)}]"])(answer, {}),
    ):
        assert read == Parsed(actual) if actual else isinstance(read, Unparsed)


def test_the_longest_label_counts():
    labels = {"labels": ["rock", "rock and roll"]}
    assert load_steps(["label"])("It is rock and roll.", labels) == Parsed("rock and roll")
    assert load_steps(["label"])("It is rock.", labels) == Parsed("rock")
    assert isinstance(load_steps(["label"])("rock", {}), Unparsed)
    with pytest.raises(UserError):
        load_steps(["label[ , ]"])


@pytest.mark.parametrize(
    ("answer", "actual"),
    [
        ("Yes.", "yes"), ("**No**", "no"), ("No, not at all", "no"), ("yes, no doubt", "yes"),
        ("The answer is yes", "yes"), ("Well, yes.", "yes"),
        ("是的，有", "yes"), ("不是", "no"), ("没有", "no"), ("答案是：是", "yes"), ("answer: no", "no"), ("是否", None),
        ("yes and no", None), ("Maybe", None),
        ("", None), ("not yes", None), ("对不起，我不能", None), ("Answer: yes. Answer: no.", None), ("yesterday", None),
    ],
)  # fmt: skip
def test_yes_or_no(answer, actual):
    read = load_steps(["yes-no"])(answer, {})
    assert read == Parsed(actual) if actual else isinstance(read, Unparsed)
