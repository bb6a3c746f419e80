"""Both signs of fitting: their counts against the Open ASR leaderboard's own programs, and what they make of whole
answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.messages import Diagnostic
from codec_bench.text.disagreement import followed
from codec_bench.text.rendering import rendered
from codec_bench.text.rules import get_rule

GOLDEN = Path(__file__).parents[2] / "golden" / "text"
CASES = json.loads((GOLDEN / "open_asr_reference_errors").with_suffix(".json").read_text("utf-8"))["cases"]
WRITTEN = json.loads((GOLDEN / "open_asr_rendering").with_suffix(".json").read_text("utf-8"))["cases"]
ORIGINAL = "We thank the Commission for this report."
CORRECTED = "We thank the Council for this report, Mr President."


def test_every_case_has_the_counts_of_the_leaderboards_own_program():
    for case in CASES:
        result = followed(case["original"], case["corrected"], case["said"])
        assert [result.original, result.eligible, result.places] == case["expected"], case


def scored(text, original=ORIGINAL, corrected=CORRECTED, language="en", name="original_followed"):
    (score,) = load_answer_metric(name).compute([Answer("1", text, (corrected,), {"original": original}, language)])
    return score


@pytest.mark.parametrize(
    ("message", "original", "eligible"),
    [
        ("we thank the commission for this report", 2, 2),
        ("we thank the council for this report mister president", 0, 2),
        ("we thank the commission for this report mr. president", 1, 2),
        ("we thank the parliament for this report mister president", 0, 1),
    ],
)
def test_an_answer_follows_the_one_or_the_other_by_place(message, original, eligible):
    score = scored(message)
    assert (score.numerator, score.denominator, score.value) == (original, eligible, original / eligible)
    assert score.detail == {"places": 2} and score.protocol == "original_followed/official/open-asr/2026-06-22"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"text": "we thank the council", "original": CORRECTED}, Diagnostic("references_agree")),
        ({"text": "nothing of the kind was heard"}, "the words of neither reference"),
        ({"text": ""}, "the words of neither reference"),
        ({"text": "wir danken", "language": "ja"}, "knows de and en and es and fr and it and pt only"),
    ],
)
def test_without_evidence_there_is_no_number(options, reason):
    score = scored(**options)
    assert score.value is None and score.status in ("undefined", "refused") and reason in score.reason


def test_the_rule_is_part_of_the_name_and_of_the_protocol():
    score = scored("We thank the Commission for this report.", name="original_followed@none")
    assert score.protocol == "original_followed/none" and score.value == 1.0


def normalised(text):
    steps = get_rule("official/open-asr/2026-06-22").trace(text, "en")
    return steps[-1][1] if steps else text


def test_every_rendering_has_the_counts_of_the_leaderboards_own_program():
    for case in WRITTEN:
        result = rendered(case["reference"], case["said"], normalised)
        assert {kind: [*counts] for kind, counts in result.items() if counts.places} == case["expected"], case


def written(text, reference="The colour of Mr. Smith's T.V. on the 12th", language="en", name="rendering_followed"):
    (score,) = load_answer_metric(name).compute([Answer("1", text, (reference,), {}, language)])
    return score


@pytest.mark.parametrize(
    ("message", "same", "places"),
    [
        ("the colour of Mr. Smith's T.V. on the 12th", 4, 4),
        ("the color of mister Smith's TV on the twelfth", 0, 4),
        ("the color of mr smith's T.V. on the 12th", 3, 4),
        ("the dollar of Mr. Smith's radio on the 13th", 1, 1),
    ],
)
def test_a_place_counts_where_the_words_are_transcribed_whatever_their_form(message, same, places):
    score = written(message)
    assert (score.numerator, score.denominator, score.value) == (same, places, same / places)
    assert score.protocol == "rendering_followed/official/open-asr/2026-06-22"


def test_one_kind_is_counted_alone_and_the_kinds_are_reported():
    text = "the colour of mister Smith's TV on the 12th"
    assert written(text, name="rendering_followed[spelling]").value == 1.0
    assert written(text, name="rendering_followed[lexical]").value == 0.0
    assert written(text).detail == {
        "spelling": {"same": 1, "places": 1},
        "initialism": {"same": 0, "places": 1},
        "number": {"same": 1, "places": 1},
        "lexical": {"same": 0, "places": 1},
    }
    with refuses("unknown_name", kind="rendering"):
        load_answer_metric("rendering_followed[accents]")


@pytest.mark.parametrize(
    ("options", "status", "reason"),
    [
        ({"text": "nothing of the kind"}, "undefined", "could have written otherwise"),
        ({"text": "the house", "reference": "the house"}, "undefined", "could have written otherwise"),
        ({"text": "TV", "reference": "[T.V.]"}, "undefined", "could have written otherwise"),
        ({"text": "die Farbe", "language": "de"}, "refused", "known for en only"),
    ],
)
def test_without_a_form_there_is_no_rendering(options, status, reason):
    score = written(**options)
    assert score.value is None and score.status == status and reason in score.reason
