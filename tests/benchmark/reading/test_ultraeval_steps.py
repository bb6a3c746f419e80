"""Published post-processing gives, case by case, what its source gave (tests/golden/text)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codec_bench.benchmark.reading import Parsed, Unparsed, load_steps
from codec_bench.benchmark.reading.ultraeval_steps import extract, first_option, json_content, qwen_asr

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
ULTRAEVAL = "official/ultraeval-audio"


def every_case(name):
    cases = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"]
    return [pytest.param(case["input"], case["expected"], id=f"{name}-{i}") for i, case in enumerate(cases)]


def step(name, text):
    return load_steps([f"{ULTRAEVAL}/{name}"])(text, {})


@pytest.mark.parametrize(("options", "expected"), every_case("ultraeval_first_option"))
def test_first_option(options, expected):
    answer = options["answer"]
    assert first_option(answer) == expected["first_option"]
    assert step("first-option", answer) == Parsed(expected["first_option"])
    assert step("first-option-a", answer) == Parsed(expected["first_option_with_default_a"])


@pytest.mark.parametrize(("options", "expected"), every_case("ultraeval_json_content"))
def test_json_content(options, expected):
    content = json_content(options["answer"])
    assert content == expected["content"] and type(content) is type(expected["content"])
    assert step("json-content", options["answer"]) == Parsed(str(expected["content"]))


@pytest.mark.parametrize(("options", "expected"), every_case("ultraeval_extract_audio_text"))
@pytest.mark.parametrize("key", ["audio", "text"])
def test_extract(options, expected, key):
    requested = expected[f"extract_{key}"]
    result = extract(options["answer"], key)
    if isinstance(requested, dict) and "raises" in requested:
        assert isinstance(result, Unparsed) and key in result.reason
    else:
        assert result == requested
        if isinstance(options["answer"], str):
            assert step(f"extract-{key}", options["answer"]) == Parsed(str(requested))


@pytest.mark.parametrize(("options", "expected"), every_case("ultraeval_qwen_asr_extract"))
def test_qwen_asr(options, expected):
    for language, text in expected.items():
        assert qwen_asr(options["answer"], language) == text
        assert step(f"qwen-asr[{language}]", options["answer"]) == Parsed(text)


def test_the_rewritten_patterns_take_what_the_regular_expressions_took():
    """`答案是\\s?(\\S+)(?:。|$)` and `the correct answer is:?.*?boxed{([ABCD])}` by Python's own engine."""
    import itertools
    import re

    from codec_bench.benchmark.reading.ultraeval_steps import _boxed_after, _run_after

    run = re.compile(r"答案是\s?(\S+)(?:。|$)")
    boxed = re.compile(r"the correct answer is:?.*?boxed{([ABCD])}", re.DOTALL | re.IGNORECASE)
    own_run, own_boxed = _run_after("答案是"), _boxed_after("the correct answer is", "([ABCD])")
    for parts in itertools.product(["答案是", " ", "。", "甲", ""], repeat=5):
        text = "".join(parts).strip()
        match = run.search(text)
        assert own_run(text) == (match[1] if match else None), text
    for parts in itertools.product(["The correct answer is", ":", "boxed{B}", "boxed{e}", "boxed{c}", "\n"], repeat=4):
        match = boxed.search("".join(parts))
        assert own_boxed("".join(parts)) == (match[1] if match else None), parts
