"""Every rubric reads judges' replies as it should: one table of replies for each reader and range of ratings."""

from __future__ import annotations

import pytest

from codec_bench.benchmark.judge.replies import read_pair, read_preferred, read_rating, read_yes_no
from codec_bench.benchmark.judge.rubric import load_rubric, rubric_names

ANSWER = 'A dog barks twice. [[5]] Rating: 5 {"score": 5} Yes, it is right.'
# Replies of a judge that rates. A number is the rating that each rubric should read if its range holds it; None is no
# verdict.
RATINGS = [
    ("Rating: 1", 1), ("Rating: 0", 0), ("Rating: 2", 2), ("Rating: 3", 3), ("Rating: 4", 4), ("Rating: 7", 7),
    ("Rating: 10", 10),
    ("rating: 1", 1), ("Score: 1", 1), ("**Rating: 1**", 1), ("Rating: **1**", 1), ("[[1]]", 1), ("[[ 1 ]]", 1),
    ("1", 1), ("**1**", 1),
    ('{"score": 1}', 1), ('{"score": "1"}', 1), ('```json\n{"score": 1}\n```', 1), ("It fits.\nRating: 1", 1),
    ("It fits. [RESULT] 1", 1),
    ("评分：1", 1), ("答案正确。\n评分：1", 1), ("Rating: １", 1), ("La réponse est bonne.\nRating: 1", 1),
    ("Rating: 1\n\nI was strict.", 1),
    ("Rating: 1. It fits.", 1), ("Rating: 0.5", 0.5), ("Rating: 2.5", 2.5), ("Rating: 4.0", 4), ("[[3.5]]", 3.5),
    ("0.25", 0.25),
    ("Rating: 11", None), ("Rating: 100", None), ("Rating: -1", None), ("[[-2]]", None), ("Rating: 99999999999", None),
    ("Rating: 3-4", None), ("Rating: 3 to 4", None), ("Rating: 1 or 2", None), ("between 3 and 4", None), ("3-4", None),
    ("Rating: 1e0", None), ("Rating: 4,5", None), ("Rating: nan", None), ("Rating: inf", None), ("Rating: one", None),
    ("Rating: N", None),
    ("Rating: 1/7", None), ("Rating: 1 out of 7", None), ("[[1]] [[0]]", None), ("Rating: 1\nRating: 0", None),
    ('{"score": null}', None),
    ('{"score": true}', None), ('{"rating": 1}', 1), ("", None), (" \n", None), ("The answer is good.", None),
    ("I cannot judge this.", None),
    ("As a language model I cannot hear the recording.", None), ("抱歉，我无法评分。", None), ("Was ist zu hören?", None),
    ("...", None),
    ("Which animal is heard?", None), ('The answer says "Rating: 5".', None), ("The answer says [[5]].", None),
    ('The answer gives itself "[[5]]".\nRating: 1', 1), ("> Rating: 5\nRating: 1", 1),
    ("```\nRating: 5\n```\nRating: 1", 1),
]  # fmt: skip
# Replies of a judge that decides: 1 for yes, 0 for no.
DECISIONS = [
    ("Yes", 1), ("No", 0), ("yes", 1), ("no", 0), ("YES", 1), ("NO", 0), ("Yes.", 1), ("No.", 0), ("**Yes**", 1),
    ("**No**", 0), ('"Yes"', 1),
    ("(No)", 0), ("Yes!", 1), ("Yes\nThe pitch is low.", 1), ("No\nThe pitch is high.", 0),
    ("No, it is another option.", 0), ("Yes, both agree.", 1),
    ("Answer: Yes", 1), ("Answer: No", 0), ("Verdict: No", 0), ("Result: Yes", 1), ("**Answer:** No", 0),
    ("The pitch is low.\nYes", 1),
    ("The pitch is high.\nNo", 0), ("是", 1), ("否", 0), ("是的", 1), ("答案：是", 1), ("结论：否", 0), ("  Yes  ", 1),
    ("\n\nNo\n", 0), ("Yes\n\nYes", 1), ("No\nNo", 0),
    ("Yes\nNo", None), ("No\n\nYes", None), ("", None), (" \n", None), ("Maybe", None), ("Perhaps.", None), ("1", None),
    ("0", None), ("4", None),
    ("3-4", None), ("0.5", None), ("I cannot judge this.", None), ("I'm not able to hear the recording.", None),
    ("As a language model I have no ears.", None),
    ("抱歉，我无法判断。", None), ("Correct", None), ("Wrong", None), ("True", None), ("Oui", None), ("Nein", None),
    ("Nope", None), ("Yesterday", None),
    ("Nothing is heard.", None), ("Not sure", None), ("Which option is right?", None), ("The answer is good.", None),
    ("Rating: 1", None), ("...", None),
    ("> Yes, it is right.\nNo", 0), ('The answer says "Yes, it is right."\nNo', 0),
    ("The answer says: Yes, it is right.", None),
]  # fmt: skip
# Replies of a judge that rates the reference and the answer side by side, from 1 to 10.
PAIRS = [
    ("8 6", (8, 6)), ("10 1", (10, 1)), ("1 10", (1, 10)), ("7 7", (7, 7)), ("8, 6", (8, 6)), ("8; 6", (8, 6)),
    ("8 / 6", (8, 6)),
    ("8 | 6", (8, 6)), ("8\t6", (8, 6)), ("8  6", (8, 6)), ("(8, 6)", (8, 6)), ("[8, 6]", (8, 6)), ("**8 6**", (8, 6)),
    ("8 6.", (8, 6)), ("8\n6", (8, 6)),
    ("8.5 6", (8.5, 6)), ("8.5 6.5", (8.5, 6.5)), ("1.0 10.0", (1, 10)), ("８ ６", (8, 6)),
    ("8 6\nThe first is fuller.", (8, 6)),
    ("The first is fuller.\n8 6", (8, 6)), ("第一个更好。\n8 6", (8, 6)), ("  8 6  ", (8, 6)), ("\n8 6\n", (8, 6)),
    ("8 6\n8 6", (8, 6)),
    ("Ici le verdict :\n8 6", (8, 6)), ("> 1 10\n8 6", (8, 6)), ("```\n1 10\n```\n8 6", (8, 6)),
    ('It says "1 10".\n8 6', (8, 6)),
    ("0 6", None), ("8 0", None), ("11 6", None), ("8 11", None), ("-1 6", None), ("80 60", None), ("8 6 7", None),
    ("8", None), ("8 6\n6 8", None),
    ("8,6", None), ("7-8 6", None), ("7-8 5-6", None), ("eight six", None), ("8 six", None), ("8 N/A", None),
    ("nan 6", None), ("inf 6", None), ("8e0 6", None),
    ("8\n6\n7", None), ("", None), (" \n", None), ("The first is better.", None), ("Both are good.", None),
    ("I cannot judge this.", None),
    ("I am sorry, I cannot hear the audio.", None), ("抱歉，我无法评分。", None), ("Which is better?", None), ("First", None),
    ("Tie", None), ("...", None),
    ("The first gets 8 and the second gets 6.", None), ('It says "8 6".', None), ("> 8 6", None),
]  # fmt: skip

# Replies of a judge that prefers one of two: the share of the first.
PREFERENCES = [
    ("first", 1), ("second", 0), ("tie", 0.5), ("First", 1), ("SECOND", 0), ("Tie.", 0.5), ("**first**", 1),
    ('"second"', 0), ("(tie)", 0.5),
    ("A", 1), ("B", 0), ("equal", 0.5), ("both", 0.5), ("[B]", 0), ("The first answer.", 1), ("the second answer", 0),
    ("Better: first", 1),
    ("Verdict: second", 0), ("Winner: tie", 0.5), ("Better: **second**", 0), ("Answer: A", 1), ("  first \n", 1),
    ("first\nIt is fuller.", 1),
    ("It is fuller.\nsecond", 0), ("Both are good.\n\ntie", 0.5), ("second\n\nsecond", 0), ("> first\nsecond", 0),
    ('It says "first".\nsecond', 0),
    ("first\nsecond", None), ("second\ntie", None), ("", None), (" \n", None), ("first or second", None),
    ("neither", None), ("C", None), ("1", None),
    ("The first is better than the second.", 1), ("I prefer the first.", 1), ("The first answer is better.", 1),
    ("Answer B is clearly better than answer A.", 0), ("**The second one wins!**", 0), ("A sounds better.", 1),
    ("The second recording is slightly better than the other.", 0), ("It is a tie.", 0.5), ("Both are equal", 0.5),
    ("Neither answer is better.", 0.5), ("They are equally good.", 0.5), ("I prefer answer B", 0),
    ("Both are correct.\nThe second answer is better.", 0), ("The first answer is better.\nIt is fuller.", 1),
    ("first\nThe second answer is better.", None), ("The first is better than the first.", None),
    ("The first is hardly better.", None), ("The first answer is better, or not.", None),
    ("Is the first better?", None),
    ("The third answer is better.", None), ("The first is worse.", None), ("The answer is better.", None),
    ("I would prefer the first.", None), ("The first paragraph is better.", None), ("I cannot judge this.", None),
    ("8 6", None), ("firstly", None),
    ("Both have merits.", None), ("Rating: 5", None), ("抱歉，我无法判断。", None), ('The answer says "first".', None),
    ("> first", None), ("...", None),
    ("not first", None), ("first?", None), ("first, second", None), ("tie or first", None), ("A and B", None),
    ("Yes", None), ("No", None),
    ("Better: neither", None), ("first is not better", None), ("the third answer", None), ("winner", None),
    ("Better:", None), ("none", None),
]  # fmt: skip


def rubrics(reply):
    return [name for name in rubric_names() if load_rubric(name).reply == reply]


def test_no_rubric_is_without_a_table():
    tested = {
        "rating",
        "yes-no",
        "pair",
        "preferred",
        "letter",
        "nearest",
    }  # letters: test_aligning.py; the nearest: test_nearest.py; published readers: test_replies.py
    by_name = {load_rubric(name).reply for name in rubric_names()}
    assert {reply for reply in by_name if not reply.startswith("official/")} == tested
    assert min(len(RATINGS), len(DECISIONS), len(PAIRS), len(PREFERENCES)) >= 60


@pytest.mark.parametrize("name", rubrics("rating"))
def test_a_rating(name):
    low, high = load_rubric(name).range
    for reply, expected in RATINGS:
        held = expected is not None and low <= expected <= high
        verdict = read_rating(reply, low=low, high=high, answer=ANSWER)
        assert dict(verdict.values) == ({"score": expected} if held else {}), reply
        assert (verdict.reason is None) == held, reply


@pytest.mark.parametrize("name", rubrics("yes-no"))
def test_a_decision(name):
    assert tuple(load_rubric(name).range) == (0, 1)
    for reply, expected in DECISIONS:
        verdict = read_yes_no(reply, answer=ANSWER)
        assert dict(verdict.values) == ({} if expected is None else {"score": expected}), reply
        assert (verdict.reason is None) == (expected is not None), reply


@pytest.mark.parametrize("name", rubrics("pair"))
def test_a_pair(name):
    low, high = load_rubric(name).range
    for reply, expected in PAIRS:
        verdict = read_pair(reply, low=low, high=high, answer=ANSWER)
        assert tuple(verdict.values.get(key) for key in ("first", "second")) == (expected or (None, None)), reply
        assert (verdict.reason is None) == (expected is not None), reply


def test_a_sentence_of_the_judged_answer_is_no_preference():
    sentence = "The first answer is better."
    assert read_preferred(f"{sentence}\nI cannot tell.", answer=f"Paris.\n{sentence}").reason.code == "repeats_answer"
    assert read_preferred(f"{sentence}\nI cannot tell.", answer="Paris.").values["first"] == 1


@pytest.mark.parametrize("name", rubrics("preferred"))
def test_a_preference(name):
    assert load_rubric(name).compares and load_rubric(name).swap
    for reply, expected in PREFERENCES:
        verdict = read_preferred(reply, answer=ANSWER)
        assert dict(verdict.values) == ({} if expected is None else {"first": expected, "second": 1 - expected}), reply
        assert (verdict.reason is None) == (expected is not None), reply
