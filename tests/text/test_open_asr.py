"""The rules of the Open ASR leaderboard, held against what its own programs of four dates and kaldialign say
(tests/golden/text/open_asr.json).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.text.open_asr import VERSIONS, joined_pairs
from codec_bench.text.rules import get_rule

GOLDEN = Path(__file__).parents[1] / "golden" / "text"
CASES = json.loads((GOLDEN / "open_asr").with_suffix(".json").read_text("utf-8"))["cases"]


def expected(case, version):
    """What is expected of a case by a version; a version that gives what the one before gives says only that."""
    details = [case["expected"][one] for one in VERSIONS[: VERSIONS.index(version) + 1]]
    return next(one for one in reversed(details) if one != "as before")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_pair_has_the_texts_and_counts_of_the_leaderboards_own_program(version):
    columns = {name: [case[name] for case in CASES] for name in ("reference", "estimate", "language")}
    compared = get_rule(f"official/open-asr/{version}").compare(**columns)
    for case, one in zip(CASES, compared, strict=True):
        details = expected(case, version)
        assert (" ".join(one.reference.split()), " ".join(one.estimate.split())) == (
            details["reference"],
            details["estimate"],
        ), case
        counts = one.counts
        assert [counts.insertions, counts.deletions, counts.substitutions] == details["ins_del_sub"], case
        assert counts.reference_length == details["words"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_corpus_value_is_errors_over_words(version):
    rule = get_rule(f"official/open-asr/{version}")
    mine = [
        case for case in CASES if case["language"] == "en" and (case["reference"].strip() or version >= "2026-06-11")
    ]
    compared = rule.compare(
        reference=[case["reference"] for case in mine],
        estimate=[case["estimate"] for case in mine],
        language=["en"] * len(mine),
    )
    details = [expected(case, version) for case in mine]
    errors, words = sum(sum(one["ins_del_sub"]) for one in details), sum(one["words"] for one in details)
    assert rule.corpus(compared) == pytest.approx(errors / words, abs=1e-12)


def test_the_versions_differ_in_what_they_were_changed_for():
    def rate(version, reference, estimate):
        (one,) = get_rule(f"official/open-asr/{version}").compare(
            reference=[reference], estimate=[estimate], language=["en"]
        )
        return one.value

    changes = [
        ("send an email", "send an e-mail", ["2026-03-23"]),
        ("Stephen came", "steven came", ["2026-03-23"]),
        ("the b b c news", "the BBC news", ["2026-03-23"]),
        ("all right then", "alright then", VERSIONS[:2]),
        ("Sarah's dog", "sarah is dog", VERSIONS[2:]),
        ("a white paper", "a whitepaper", VERSIONS[:2]),
        ("the flyer", "the flier", VERSIONS[:3]),
    ]
    for reference, estimate, wrong in changes:
        results = [version for version in VERSIONS if rate(version, reference, estimate)]
        assert results == list(wrong), (reference, results)


def test_joined_pairs_joins_both_sides_and_nothing_else():
    assert joined_pairs("haus boot", "hausboot") == ("hausboot", "hausboot")
    assert joined_pairs("haus boot", "haus brot") == ("haus boot", "haus brot")
