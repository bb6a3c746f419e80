"""Published rules give, case by case, what their sources gave: the texts exactly, the numbers to 1e-9.

`tests/golden/text` holds the cases: texts written for the purpose and what the reference code of each file's
`reference` returned for them.
"""

from __future__ import annotations

import json
import math
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from codec_bench.text import published_steps
from codec_bench.text.error_rate import tokens
from codec_bench.text.normalise import get_normaliser
from codec_bench.text.rules import get_rule, weighted_mean

PACKAGES = ("zhconv", "sacrebleu", "MeCab", "ipadic", "num2words", "pythainlp")
MISSING = [name for name in PACKAGES if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} is not installed")

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "text"
TOKENISERS = ("sacrebleu-13a", "sacrebleu-zh", "ja-mecab")
ULTRAEVAL = "official/ultraeval-audio"

# File: rule, language of the cases (None: named by the case).
FILES = {
    "seed_tts_eval_en": ("official/seed-tts-eval", "en"),
    "seed_tts_eval_zh": ("official/seed-tts-eval", "zh"),
    "ultraeval_wer_default": (f"{ULTRAEVAL}/wer", None),
    "ultraeval_wer_en": (f"{ULTRAEVAL}/wer", "en"),
    "ultraeval_wer_jp": (f"{ULTRAEVAL}/wer", "jp"),
    "ultraeval_wer_yue": (f"{ULTRAEVAL}/wer", "yue"),
    "ultraeval_wer_zh": (f"{ULTRAEVAL}/wer", "zh"),
    "ultraeval_naive_wer_en": (f"{ULTRAEVAL}/naive-wer", "en"),
    "ultraeval_naive_wer_zh": (f"{ULTRAEVAL}/naive-wer", "zh"),
    "ultraeval_seed_tts_en": (f"{ULTRAEVAL}/seed-tts", "en"),
    "ultraeval_seed_tts_zh": (f"{ULTRAEVAL}/seed-tts", "zh"),
    "ultraeval_seed_tts_ja_ko_th_yue": (f"{ULTRAEVAL}/seed-tts", None),
    "audiobench_asr_en": ("official/audiobench/asr", "en"),
    "audiobench_asr_code_switch": ("official/audiobench/asr-code-switch", "zh"),
    "audiobench_asr_imda_part4": ("official/audiobench/asr-imda-part4", "en"),
    "audiobench_asr_indonesian": ("official/audiobench/asr-indonesian", "id"),
    "audiobench_asr_thai": ("official/audiobench/asr-thai", "th"),
    "audiobench_asr_vietnamese": ("official/audiobench/asr-vietnamese", "vi"),
}
LONG_TTS = {"ultraeval_long_tts_en": "en", "ultraeval_long_tts_zh": "zh"}
NORMALISERS = {
    "ultraeval_normalizer_basic": "basic",
    "ultraeval_normalizer_en": "ultraeval-en",
    "ultraeval_normalizer_zh": "cn-tn",
    "ultraeval_normalizer_zh_units": "cn-tn",
}


@cache
def golden(name):
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def of_every_case(check):
    """A test of a file out of one of a case: it names every case that is wrong."""

    def test(name):
        wrong = []
        for number, case in enumerate(golden(name)["cases"]):
            try:
                check(name, case)
            except AssertionError as error:
                wrong.append(f"case {number}: {error}")
        assert not wrong, "\n".join(wrong)

    return test


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def compare(name, cases):
    """The rule of a file, and its results for cases of that file."""
    rule, language = FILES[name]
    inputs = [case["input"] for case in cases]
    return get_rule(rule), get_rule(rule).compare(
        reference=[i["reference"] for i in inputs],
        estimate=[i["hypothesis"] for i in inputs],
        language=[language or i["language"] for i in inputs],
    )


def before_tokens(rule, text, language, role):
    """The text as normalised, before a tokeniser cut it."""
    done = rule.trace(text, language, role)
    cut = next((index for index, (step, _) in enumerate(done) if step in TOKENISERS), len(done))
    return done[cut - 1][1]


@pytest.mark.parametrize("name", FILES)
@of_every_case
def test_a_pair(name, case):
    options, expected = case["input"], case["expected"]
    rule, (result,) = compare(name, [case])
    language = FILES[name][1] or options["language"]
    traced = {}
    for role, text in (("reference", options["reference"]), ("estimate", options["hypothesis"])):
        traced[role] = before_tokens(rule, text, language, role)
    assert traced["reference"] == expected["reference_normalized"]
    assert traced["estimate"] == expected["hypothesis_normalized"]
    counts = result.counts
    if "reference_tokens" in expected:
        assert tokens(result.reference, result.unit) == expected["reference_tokens"]
        assert tokens(result.estimate, result.unit) == expected["hypothesis_tokens"]
        assert (counts.errors, counts.reference_length) == (expected["distance"], expected["reference_length"])
    else:
        assert (result.reference, result.estimate) == (
            expected["reference_normalized"],
            expected["hypothesis_normalized"],
        )
    if "metric_key" in expected:
        assert f"{rule.rate(language)}%" == expected["metric_key"]
    if "hits" in expected:
        for kind in ("hits", "substitutions", "deletions", "insertions"):
            assert getattr(counts, kind) == expected[kind]
    published = expected.get("result", expected)
    value = published.get("wer", published.get("score_percent"))
    if "raises" in published or isinstance(value, dict):
        assert result.value is None
        assert result.note
        return
    assert result.value * (100 if "score_percent" in published else 1) == close(value)
    if "substitution_rate" in published:
        # The source divides these by the pieces between single spaces.
        pieces = len(result.reference.split(" "))
        for kind in ("substitution", "deletion", "insertion"):
            assert getattr(counts, f"{kind}s") / pieces == close(published[f"{kind}_rate"])


@pytest.mark.parametrize("name", FILES)
def test_a_corpus(name):
    rule, results = compare(name, golden(name)["cases"])
    expected = golden(name)["corpus"]
    value = rule.corpus(results)
    scored = [result.value for result in results if result.value is not None]
    checked = 0
    for key, want in expected.items():
        if key == "over":
            continue
        got = {
            "scored": len(scored),
            "raised": len(results) - len(scored),
            "mean_wer_percent_rounded_3": round(100 * value, 3),
            "mean_percent": 100 * value,
            "wer_percent": 100 * value,
            "wer": value,
            "distance": sum(result.counts.errors for result in results),
            "reference_length": sum(result.counts.reference_length for result in results),
            "higher_than_0.5": sum(rate > 0.5 for rate in scored),
            "mean_percent_of_those_not_above_0.5_rounded_3": round(
                100 * math.fsum(rate for rate in scored if rate <= 0.5) / max(1, sum(rate <= 0.5 for rate in scored)), 3
            ),
        }[key]
        assert got == close(want), key
        checked += 1
    assert checked


@pytest.mark.parametrize("name", LONG_TTS)
@of_every_case
def test_a_long_text(name, case):
    options, expected = case["input"], case["expected"]
    rule = get_rule(f"{ULTRAEVAL}/long-tts")
    for field in ("text", "text_norm", "hypothesis"):
        assert rule.trace(options[field], LONG_TTS[name])[-1][1] == expected[f"{field}_normalized"]
    (result,) = rule.compare(
        reference=[options["text"]],
        spoken=[options["text_norm"]],
        estimate=[options["hypothesis"]],
        language=[LONG_TTS[name]],
    )
    if "raises" in expected["result"]:
        assert (result.value, bool(result.note)) == (None, True)
    else:
        assert result.value == close(expected["result"]["wer"])
        assert result.weight == expected["result"]["word_count"]


@pytest.mark.parametrize("name", LONG_TTS)
def test_a_corpus_of_long_texts(name):
    cases = golden(name)["cases"]
    rule = get_rule(f"{ULTRAEVAL}/long-tts")
    results = rule.compare(
        reference=[case["input"]["text"] for case in cases],
        spoken=[case["input"]["text_norm"] for case in cases],
        estimate=[case["input"]["hypothesis"] for case in cases],
        language=[LONG_TTS[name]] * len(cases),
    )
    expected = golden(name)["corpus"]
    assert sum(result.value is not None for result in results) == expected["scored"]
    assert 100 * rule.corpus(results) == close(expected["wer_percent"])


@pytest.mark.parametrize("name", NORMALISERS)
@of_every_case
def test_a_normaliser(name, case):
    assert get_normaliser(NORMALISERS[name])(case["input"]["text"]) == case["expected"]["normalized"]


@pytest.mark.parametrize("name", ["ultraeval_agg_wer"])
@of_every_case
def test_the_aggregator_of_error_rates(name, case):
    rows = case["input"]["rows"]
    language = case["input"]["aggregator"].partition("-")[2] or "en"
    rule = get_rule(f"{ULTRAEVAL}/wer")
    value = rule.corpus(
        rule.compare(
            reference=[str(row["ref"]) for row in rows],
            estimate=[str(row["pred"]) for row in rows],
            language=[language] * len(rows),
        )
    )
    if "error" in case["expected"]:
        assert value is None
    else:
        assert 100 * value == close(case["expected"]["wer(%)"])


@pytest.mark.parametrize("name", ["ultraeval_agg_long_tts_wer"])
@of_every_case
def test_the_weighted_aggregator(name, case):
    rows = case["input"]["rows"]
    expected = case["expected"]
    key = "wer%" if "wer%" in rows[0] else "wer"
    value = weighted_mean([row[key] for row in rows], [row.get("word_count") for row in rows])
    if "error" in expected or isinstance(next(iter(expected.values())), dict):
        assert value is None
    else:
        assert value * (1 if key == "wer%" else 100) == close(next(iter(expected.values())))


def test_what_counts_as_chinese_punctuation_is_zhons():
    from codec_bench.text.published_steps import CHINESE_PUNCTUATION

    assert pytest.importorskip("zhon.hanzi").punctuation == CHINESE_PUNCTUATION


def test_thai_words_leave_nothing_in_the_home_folder(tmp_path, monkeypatch):
    import pythainlp.tools

    for name in ("PYTHAINLP_READ_ONLY", "PYTHAINLP_READ_MODE", "PYTHAINLP_DATA", "PYTHAINLP_DATA_DIR"):
        monkeypatch.setenv(name, "")  # restores what the step sets
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert published_steps.STEPS["newmm"]()("ผมรักคุณ") == "ผม รัก คุณ"
    pythainlp.tools.get_pythainlp_data_path()
    assert not list(tmp_path.iterdir())
