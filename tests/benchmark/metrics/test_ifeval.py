"""IFEval's instructions: the published cases, and more of each instruction than those hold."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest
from refusals import refuses

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.benchmark.metrics.instructions import CHECKS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
FILE = "ultraeval_ifeval"
PUBLISHED = json.loads((GOLDEN / f"{FILE}.json").read_text("utf-8"))
CASES = [pytest.param(c["input"], c["expected"], id=f"{FILE}-{i}") for i, c in enumerate(PUBLISHED["cases"])]
KINDS = {
    "strict_prompt": "strict",
    "strict_instruction": "strict-instruction",
    "loose_prompt": "loose",
    "loose_instruction": "loose-instruction",
}


def asks_for_a_language(options):
    return any(name.startswith(("language:", "change_case:english")) for name in options["instruction_id_list"])


def score(variant, options):
    fields = {"instruction_id_list": options["instruction_id_list"], "kwargs": options["kwargs"]}
    return load_answer_metric(f"ifeval[{variant}]").compute([Answer("x", options["response"], (), fields)])[0]


@pytest.mark.parametrize(("options", "expected"), CASES)
def test_a_published_case(options, expected):
    if asks_for_a_language(options):
        pytest.importorskip("langdetect")
    for key, value in expected.items():
        assert score(f"official/ultraeval-audio/{KINDS[key]}", options).value == value
        if not options["response"].startswith("<1>") and not options["response"].endswith("<|user|>"):
            assert score(KINDS[key], options).value == value


@pytest.mark.parametrize("key", KINDS)
def test_the_published_means(key):
    pytest.importorskip("langdetect")
    results = [score(f"official/ultraeval-audio/{KINDS[key]}", case["input"]).value for case in PUBLISHED["cases"]]
    assert 100 * fmean(results) == pytest.approx(PUBLISHED["corpus"][key], rel=1e-9)


@pytest.mark.parametrize(
    ("name", "arguments", "text", "followed"),
    [
        ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "One. Dr. Two comes!",
            True),
        ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}, "One. Two. Three",
            False),
        ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "一。二。", True),
        ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "Pi is 3.14 today.",
            False),
        ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"},
            "NASA and ESA fly", True),
        ("change_case:capital_word_frequency", {"capital_frequency": 1, "capital_relation": "less than"}, "NASA flies",
            False),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\na\n***\nb", True),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\n***\nb", False),
        ("length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Waves"}, "a\n\n'waves, b", True),
        ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 1, "nth_paragraph": 2, "first_word": "a"},
            "a", False),
        ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a\n] [b]", False),
        ("detectable_format:number_bullet_lists", {"num_bullets": 3}, "* a\n- b\n  * c\n**d**", True),
        ("detectable_format:multiple_sections", {"section_spliter": "Part", "num_sections": 2}, "Part 1 a Part2 b",
            True),
        ("detectable_format:json_format", {}, "```json\n[1]\n```", True),
        ("detectable_format:title", {}, "x <<a>> y", True),
        ("combination:two_responses", {}, "a******a", False),
        ("keywords:existence", {"keywords": ["C++"]}, "I like c++", True),
        ("keywords:forbidden_words", {"forbidden_words": ["can"]}, "candid", True),
        ("startend:quotation", {}, '"', False),
        ("detectable_format:constrained_response", {}, "My answer is maybe", False),
    ],
)  # fmt: skip
def test_more_of_the_instructions(name, arguments, text, followed):
    assert CHECKS[name](arguments, text) is followed


def test_levels_and_arguments_as_text():
    options = {
        "instruction_id_list": json.dumps(["punctuation:no_comma", "startend:quotation"]),
        "kwargs": json.dumps([{"num_words": None}, None]),
        "response": "no comma",
    }
    assert score("strict", options).value == 0
    share = score("strict-instruction", options)
    assert (share.value, share.numerator, share.denominator) == (0.5, 1, 2)
    assert share.detail["followed"] == {"punctuation:no_comma": True, "startend:quotation": False}
    assert load_answer_metric("ifeval[strict-instruction]").aggregate == "ratio"


@pytest.mark.parametrize(
    ("ids", "kwargs", "status"),
    [
        (["punctuation:no_comma"], [], "undefined"), ([], [], "undefined"), (["no:such"], [{}], "failed"),
        (["keywords:frequency"], [{"keyword": "a"}], "failed"), ("not json", "x", "undefined"),
    ],
)  # fmt: skip
def test_bad_rows_state_why(ids, kwargs, status):
    result = score("loose", {"instruction_id_list": ids, "kwargs": kwargs, "response": "text"})
    assert (result.status, bool(result.reason)) == (status, True)


def test_there_is_no_other_variant():
    with refuses("unknown_name", name="tight"):
        load_answer_metric("ifeval[tight]")


MMAU_FILE = "mmau_pro_instructions"
MMAU_PRO = json.loads((GOLDEN / f"{MMAU_FILE}.json").read_text("utf-8"))["cases"]


def by_mmau_pro(options):
    return load_answer_metric("ifeval[official/mmau-pro]").compute([Answer("x", options["response"], (), options)])[0]


def test_instructions_are_checked_as_by_mmau_pros_program():
    """Sentences are counted by a rule of our own, which takes an ellipsis for an end; everything else is equal."""
    wrong = [case["input"] for case in MMAU_PRO if by_mmau_pro(case["input"]).value != case["expected"]]
    assert [case["response"] for case in wrong] == ["Wait... what? No."] * 2
    assert len(MMAU_PRO) >= 180 and {case["expected"] for case in MMAU_PRO} == {0, 1}


def test_arguments_may_be_json_and_those_of_no_use_fail():
    options = {"response": "one two", "task_identifier": "Number Words (at least)", "question": "?"}
    assert [by_mmau_pro({**options, "kwargs": f'{{"N": {n}}}'}).value for n in (2, 3)] == [1.0, 0.0]
    for kwargs in ({"N": None}, "two", [2]):
        assert by_mmau_pro({**options, "kwargs": kwargs}).status == "failed", kwargs
