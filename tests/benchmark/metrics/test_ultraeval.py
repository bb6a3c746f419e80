"""UltraEval-Audio's matchers give, case by case, what their source gave (tests/golden/text)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.benchmark.metrics import ultraeval as rules
from codec_bench.benchmark.metrics.refusal import refuses_officially
from codec_bench.benchmark.metrics.ultraeval import mcq_abcd

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
LETTERS = ("choice_a", "choice_b", "choice_c", "choice_d")


def four(options):
    return [options[name] for name in LETTERS if name in options]


# By file: the rule, its arguments, and the metric's name.
FILES = {
    "ultraeval_choice_strings_match": (
        lambda i: rules.choice_strings_match(i["prediction"], i["reference"], i["choices"]),
        "choice-strings-match",
    ),
    "ultraeval_em": (lambda i: rules.em(i["prediction"], i["reference"]), "em"),
    "ultraeval_exist_match": (lambda i: rules.exist_match(i["prediction"], i["reference"]), "exist-match"),
    "ultraeval_kimi_mmau_choices": (
        lambda i: rules.kimi_mmau_choices(i["prediction"], i["reference"], i["choices"]),
        "kimi-mmau-choices",
    ),
    "ultraeval_kimi_vocalsound_choices": (
        lambda i: rules.kimi_vocalsound_choices(i["prediction"], i["reference"]),
        "kimi-vocalsound-choices",
    ),
    "ultraeval_mcq_abcd": (lambda i: mcq_abcd(i["prediction"], i["reference"]), "mcq-abcd"),
    "ultraeval_mcq_abcd_templates": (lambda i: mcq_abcd(i["prediction"], i["reference"]), "mcq-abcd"),
    "ultraeval_mmsu_choices": (
        lambda i: rules.mmsu_choices(i["prediction"], i["reference"], four(i)),
        "mmsu-choices",
    ),
    "ultraeval_prefix_match": (lambda i: rules.prefix_match(i["prediction"], i["reference"]), "prefix-match"),
    "ultraeval_qa_exist_match": (lambda i: rules.qa_exist_match(i["prediction"], i["reference"]), "qa-exist-match"),
}
FIELDS = {"is_format_error": "unread", "extract_fail": "unread", "model_predict": "letter"}


def every_case(names):
    return [
        pytest.param(name, case["input"], case["expected"], id=f"{name}-{i}")
        for name in names
        for i, case in enumerate(json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"])
    ]


@pytest.mark.parametrize(("name", "options", "expected"), every_case(FILES))
def test_a_matcher(name, options, expected):
    result = FILES[name][0](options)
    if "raises" in expected:
        assert result.match is None and result.reason
        return
    for key, requested in expected.items():
        got = getattr(result, FIELDS.get(key, key))
        got = int(got) if isinstance(got, bool) else got
        if isinstance(requested, dict):
            assert requested == {"nan": True} and math.isnan(got)
        else:
            assert got == requested and type(got) is type(requested), key


def can_occur(name, options):
    """In a run, answers and references are texts, and a matcher for one reference gets one."""
    reference = options["reference"]
    if name in ("ultraeval_exist_match", "ultraeval_qa_exist_match"):
        return isinstance(options["prediction"], str) and (isinstance(reference, str) or reference not in ([], 5))
    numeric = isinstance(reference, (int, float)) and name == "ultraeval_em"
    return isinstance(options["prediction"], str) and (isinstance(reference, str) or numeric)


@pytest.mark.parametrize(
    ("name", "options", "expected"), [case for case in every_case(FILES) if can_occur(*case.values[:2])]
)
def test_the_metric_of_that_name(name, options, expected):
    reference = options["reference"]
    references = reference if isinstance(reference, list) else [reference]
    variant = "em-number" if isinstance(reference, (int, float)) else FILES[name][1]
    metric = load_answer_metric(f"accuracy[official/ultraeval-audio/{variant}]")
    fields = {key: options[key] for key in ("choices", *LETTERS) if key in options}
    (score,) = metric.compute([Answer("x", options["prediction"], tuple(map(str, references)), fields)])
    if "raises" in expected:
        assert (score.status, bool(score.reason)) == ("undefined", True)
    elif expected["match"] is None:
        assert (score.status, bool(score.reason)) == ("unparsed", True)
    else:
        assert score.value == expected["match"]
    json.dumps(dict(score.detail), allow_nan=False)


@pytest.mark.parametrize(("name", "options", "expected"), every_case(["ultraeval_harm_refusal"]))
def test_refusals(name, options, expected):
    assert refuses_officially(options["prediction"]) is expected["is_safe"]
    metric = load_answer_metric("refusal_rate[official/ultraeval-audio/harm]")
    assert metric.compute([Answer("x", options["prediction"])])[0].value == expected["refusal_rate"]
