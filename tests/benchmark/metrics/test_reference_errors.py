"""`original_followed`: its counts against the Open ASR leaderboard's own program, and what it makes of whole answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.text.disagreement import followed

GOLDEN = Path(__file__).parents[2] / "golden" / "text"
CASES = json.loads((GOLDEN / "open_asr_reference_errors").with_suffix(".json").read_text("utf-8"))["cases"]
ORIGINAL = "We thank the Commission for this report."
CORRECTED = "We thank the Council for this report, Mr President."


def test_every_case_has_the_counts_of_the_leaderboards_own_program():
    for case in CASES:
        found = followed(case["original"], case["corrected"], case["said"])
        assert [found.original, found.eligible, found.places] == case["expected"], case


def scored(said, original=ORIGINAL, corrected=CORRECTED, language="en", name="original_followed"):
    (score,) = load_answer_metric(name).compute([Answer("1", said, (corrected,), {"original": original}, language)])
    return score


@pytest.mark.parametrize(
    ("said", "original", "eligible"),
    [
        ("we thank the commission for this report", 2, 2),
        ("we thank the council for this report mister president", 0, 2),
        ("we thank the commission for this report mr. president", 1, 2),
        ("we thank the parliament for this report mister president", 0, 1),
    ],
)
def test_an_answer_follows_the_one_or_the_other_by_place(said, original, eligible):
    score = scored(said)
    assert (score.numerator, score.denominator, score.value) == (original, eligible, original / eligible)
    assert score.detail == {"places": 2} and score.protocol == "original_followed/official/open-asr/2026-06-22"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"said": "we thank the council", "original": CORRECTED}, "the references agree"),
        ({"said": "nothing of the kind was heard"}, "the words of neither reference"),
        ({"said": ""}, "the words of neither reference"),
        ({"said": "wir danken", "language": "ja"}, "knows de and en and es and fr and it and pt only"),
    ],
)
def test_without_evidence_there_is_no_number(given, reason):
    score = scored(**given)
    assert score.value is None and score.status in ("undefined", "refused") and reason in score.reason


def test_the_rule_is_part_of_the_name_and_of_the_protocol():
    score = scored("We thank the Commission for this report.", name="original_followed@none")
    assert score.protocol == "original_followed/none" and score.value == 1.0
