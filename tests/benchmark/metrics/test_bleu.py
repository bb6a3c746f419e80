"""BLEU is sacreBLEU's: of an item, of a corpus from summed counts, by language, and in its published older form."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from published_folds import aggregate
from refusals import refuses

from codec_bench.benchmark.metrics import Answer, load_answer_metric
from codec_bench.messages.errors import UnknownName
from codec_bench.stats.corpus import FOLDS

sacrebleu = pytest.importorskip("sacrebleu")

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
FILES = {"ultraeval_bleu": "bleu", "ultraeval_bleu_zh": "bleu-zh"}
TEXTS = {
    "13a": ["The cat sat.", "the cat sat on the mat", "a dog, barking; loudly", "it's 5.5% of it all", "", "hello",
        "on the mat the cat sat down"],
    "zh": ["我爱北京天安门", "今天天气很好", "你好，世界！", "我用 iPhone 打电话", "", "好"],
    "ja-mecab": ["今日は良い天気です", "犬が庭で吠えている", "日本語のテキスト", "テキスト"],
    "char": ["abc def", "abd cef", "一二三四五"],
}  # fmt: skip


def every_case():
    return [
        pytest.param(name, case["input"], case["expected"], id=f"{name}-{i}")
        for name in FILES
        for i, case in enumerate(json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"])
    ]


def total(scores):
    return np.sum([score.detail["counts"] for score in scores if score.status == "ok"], axis=0)


@pytest.mark.parametrize(("name", "options", "expected"), every_case())
def test_an_item_as_published(name, options, expected):
    metric = load_answer_metric(f"bleu[official/ultraeval-audio/{FILES[name]}]")
    (score,) = metric.compute([Answer("x", options["prediction"], (options["reference"],))])
    if "raises" in expected:
        assert (score.status, bool(score.reason)) == ("undefined", True)
    else:
        # The tolerance of the fixture for BLEU; sacreBLEU rounds nothing here, and the difference stays below 1e-12.
        assert score.value == pytest.approx(expected["bleu"], abs=1e-6)
        assert float(FOLDS[metric.aggregate](np.asarray(score.detail["counts"]))) == pytest.approx(
            expected["bleu"], abs=1e-6
        )


@pytest.mark.parametrize("name", FILES)
def test_a_corpus_as_published(name):
    golden = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    rows = [{"pred": case["input"]["prediction"], "ref": case["input"]["reference"]} for case in golden["cases"]]
    result = aggregate(f"official/ultraeval-audio/{FILES[name]}", rows)
    assert result.values["bleu"] == pytest.approx(golden["corpus"]["bleu"], abs=1e-6)


@pytest.mark.parametrize("tokeniser", TEXTS)
def test_a_corpus_is_sacrebleus(tokeniser):
    if tokeniser == "ja-mecab":
        pytest.importorskip("MeCab")
    draw = random.Random(3)
    texts = TEXTS[tokeniser]
    metric = load_answer_metric(f"bleu[{tokeniser}]")
    # Made once: sacreBLEU's functions load MeCab's dictionary at each call, which took gigabytes.
    theirs, alone = sacrebleu.BLEU(tokenize=tokeniser), sacrebleu.BLEU(tokenize=tokeniser, effective_order=True)
    for _ in range(20):
        message = [draw.choice(texts) for _ in range(12)]
        references = [[draw.choice([t for t in texts if t]) for _ in range(2)] for _ in message]
        scores = metric.compute([Answer(str(i), s, tuple(r)) for i, (s, r) in enumerate(zip(message, references))])
        expected = theirs.corpus_score(message, [list(column) for column in zip(*references)]).score
        assert float(FOLDS["bleu"](total(scores))) == pytest.approx(expected, rel=1e-12)
        for text, several, score in zip(message, references, scores):
            requested = alone.sentence_score(text, several).score
            assert score.value == pytest.approx(requested, rel=1e-12)


def test_the_tokeniser_follows_the_language():
    pytest.importorskip("MeCab")
    metric = load_answer_metric("bleu")
    text = "今日は良い天気です"
    for language, tokeniser in (("zh-CN", "zh"), ("yue", "zh"), ("Japanese", "ja-mecab"), ("de", "13a"), (None, "13a")):
        (score,) = metric.compute([Answer("x", text, (text,), {}, language)])
        assert score.detail["tokeniser"] == tokeniser
    assert "by-language" in metric.protocol and sacrebleu.__version__ in metric.protocol


def test_what_has_no_bleu():
    metric = load_answer_metric("bleu[13a]")
    assert [s.status for s in metric.compute([Answer("x", "a", ()), Answer("y", "a", (" ",))])] == ["undefined"] * 2
    assert metric.worst(Answer("x", "a b c d", ("a b c d",))).value == 0
    with pytest.raises(UnknownName):
        load_answer_metric("bleu[14a]")


def test_without_sacrebleu_the_extra_is_named(monkeypatch):
    import sys

    from codec_bench.benchmark.metrics import bleu

    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    bleu._load_bleu.cache_clear()
    with refuses("package_not_installed", package="sacrebleu"):
        load_answer_metric("bleu[13a]")
