"""Sections of songs: each song's numbers are those of SongFormer's own program, and how an answer is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading import Parsed, Unparsed, load_steps
from codec_bench.messages.errors import UnknownName

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
FILE = "songformer_sections"
CASES = json.loads((GOLDEN / f"{FILE}.json").read_text("utf-8"))["cases"]
OFFICIAL = {"acc": "section_accuracy[official/songformer]", "0.5": "boundary_f1[0.5]", "3": "boundary_f1[3]"}
SONG = [(0.0, "intro"), (10.0, "verse"), (30.0, "pre-chorus"), (40.0, "chorus"), (60.0, "end")]


def score(metric, text, song=SONG):
    read = load_steps(["sections"])(text, {})
    assert isinstance(read, Parsed), read
    sections = [{"start": start, "label": label} for start, label in song]
    return load_answer_metric(metric).compute([Answer("a", read.text, (), {"sections": sections})])[0]


@pytest.mark.parametrize("column", OFFICIAL)
def test_every_song_has_the_number_of_the_program(column):
    for case in CASES:
        expected = case["expected"] and case["expected"][column]
        result = score(OFFICIAL[column], case["input"]["answer"], case["input"]["reference"])
        if expected is not None:
            assert result.value == pytest.approx(expected, abs=1e-12)
        elif column == "acc":  # the program ends in an error where the two share no time
            assert result.status == "undefined" and result.reason.as_dict() == {"code": "no_shared_time", "id": "a"}


def test_time_that_an_answer_leaves_out_is_wrong():
    answer = "0 intro\n10 end"
    assert score("section_accuracy", answer).value == pytest.approx(10 / 60)
    assert score(OFFICIAL["acc"], answer).value == 1.0
    assert score("section_accuracy", "0 intro\n10 verse\n40 chorus\n90 end").value == pytest.approx(1.0)
    assert score("section_accuracy", "70 verse\n80 end").value == 0.0
    assert (
        score(OFFICIAL["acc"], "70 verse\n80 end").value == 1.0
    )  # as the program has it: it compares `end` with `end`


@pytest.mark.parametrize(
    "answer",
    [
        '[{"start": 0, "end": 10, "label": "Intro"}, {"start": "0:10", "end": "0:30.0", "label": "verse 1"},\n'
        ' {"start": 30, "end": 40, "label": "Pre Chorus"}, {"start": 40.0, "end": 60, "label": "hook"}]',
        "Here: [('0.0', '10.0', 'intro'), ('10.0', '30.0', 'verse'), ('30.0', '40.0', 'pre-chorus'), "
        "('40', '60', 'refrain')]",
        '[[0, 10, "intro"], [10, 30, "Verse 1"], [30, 40, "prechorus"], [40, 60, "Guitar Solo"]]',
        "0.0 intro\n10.0 verse\n30 pre-chorus\n40 drop\n60 end",
        "0:00 intro\n0:10 verse\n0:30 pre-chorus\n0:40 drop\n1:00 end",
    ],
)
def test_an_answer_is_read(answer):
    assert load_steps(["sections"])(answer, {}) == Parsed(
        "0.0 intro\n10.0 verse\n30.0 pre-chorus\n40.0 other\n60.0 end"
    )
    assert score("section_accuracy", answer).value == pytest.approx(40 / 60)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("It begins with an intro and then there is a verse.", "no sections"),
        ("0 intro\n10 verse", "does not end"),
        ('[[0, 10, "intro"], [0, 20, "verse"]]', "after the one before"),
        ('[[0, 10, "intro"], [10, 10, "verse"]]', "does not end"),
        ('{"start": -1, "end": 2, "label": "intro"}', "no sections"),
        ("", "no sections"),
    ],
)
def test_what_cannot_be_read_says_why(answer, reason):
    read = load_steps(["sections"])(answer, {})
    assert isinstance(read, Unparsed) and reason in read.reason


def test_what_is_no_song_has_no_number():
    for sections in ([], None, [{"start": 0, "label": "intro"}], [{"label": "end"}], "x"):
        result = load_answer_metric("section_accuracy").compute(
            [Answer("a", "0 intro\n1 end", (), {"sections": sections})]
        )[0]
        assert result.status == "undefined" and result.reason.as_dict() == {
            "code": "no_sections",
            "id": "a",
            "end": "end",
        }
    result = load_answer_metric("boundary_f1[3]").compute(
        [Answer("a", "a song", (), {"sections": [{"start": 0, "label": "end"}]})]
    )
    assert result[0].status == "undefined"
    with pytest.raises(UnknownName):
        load_answer_metric("boundary_f1[2]")
    with pytest.raises(UnknownName):
        load_answer_metric("section_accuracy[mine]")


@pytest.mark.parametrize("metric", ["section_accuracy", "boundary_f1[3]"])
def test_an_answer_that_is_no_list_of_sections_is_undefined(metric):
    sections = [{"start": start, "label": label} for start, label in SONG]
    (score,) = load_answer_metric(metric).compute([Answer("a", "a song", (), {"sections": sections})])
    assert (score.status, score.reason.code) == ("undefined", "answer_not_sections")
