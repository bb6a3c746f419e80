"""Rows of a text data set: dialogues as they are written, answers by letter and by text, and
rows that cannot be used.
"""

from __future__ import annotations

import json

import pytest
from refusals import refuses

from codec_bench.apps.building.recipe_spoken import Dialogue, TextSource
from codec_bench.apps.building.sources import BadRow, DialogueTurn, parse_turns, read_texts

DIALOGUE = Dialogue(column="dialogue", genders={"Mrs*": "female", "M*": "male", "[Ww]": "female"})


@pytest.mark.parametrize(
    "held",
    [
        ["W: It is 7:30.", "Mrs. Ray: Is it?", "Paul: Yes."],
        "W: It is 7:30.\nMrs. Ray: Is it?\nPaul: Yes.",
        [
            {"speaker": "W", "text": "It is 7:30."},
            {"speaker": "Mrs. Ray", "text": "Is it?"},
            {"speaker": "Paul", "text": " Yes."},
        ],
    ],
    ids=["list", "lines", "mappings"],
)
def test_turns_have_speakers_and_the_gender_that_the_name_tells(held):
    assert parse_turns(held, DIALOGUE) == (
        DialogueTurn("W", "female", "It is 7:30."),
        DialogueTurn("Mrs. Ray", "female", "Is it?"),
        DialogueTurn("Paul", None, "Yes."),
    )


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ([], "dialogue_without_turns"),
        (["Hello."], "turn_without_speaker"),
        (3, "cell_without_turns"),
        ([{}], "turn_without_speaker"),
    ],
)
def test_a_dialogue_without_speakers_says_so(held, reason):
    with refuses(reason, error=BadRow):
        parse_turns(held, DIALOGUE)


def read(tmp_path, *rows, **changed):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_texts(TextSource(data="rows.jsonl", licence="MIT", **changed), tmp_path).rows.values())


def test_an_answer_by_its_text_is_the_letter_of_one_option(tmp_path):
    row = {"question": "Which?", "choices": ["red", " blue "]}
    result = read(
        tmp_path,
        {**row, "answer": "blue"},
        {**row, "answer": "B"},
        {**row, "choices": ["a", "a"], "answer": "a"},
        answer_is="text",
    )
    assert result[0].answer == "B" and result[0].choices == ("red", "blue")
    assert "0 of the options" in result[1] and "2 of the options" in result[2]


def test_trailing_empty_options_are_none(tmp_path):
    row = {"question": "Which?", "answer": "a", "A": "one", "B": "two"}
    result = read(
        tmp_path, {**row, "C": None}, {**row, "C": "three"}, {**row, "B": "", "C": "three"}, choices=("A", "B", "C")
    )
    assert [text.choices for text in result] == [("one", "two"), ("one", "two", "three"), ("one", "", "three")]
    assert result[0].answer == "A" and len({text.digest() for text in result}) == 3
