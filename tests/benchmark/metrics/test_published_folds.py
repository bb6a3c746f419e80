"""Published folds give, case by case, what their sources gave (tests/golden/text)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from published_folds import AGGREGATORS, aggregate

from codec_bench.messages.errors import UnknownName

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "text"
ULTRAEVAL = "official/ultraeval-audio"
FILES = {
    "ultraeval_agg_acc": "acc",
    "ultraeval_agg_airbench_chat": "airbench-chat",
    "ultraeval_agg_instruct_tts": "instruct-tts",
    "ultraeval_agg_long_tts_wer": "long-tts-wer",
    "ultraeval_agg_mean": "mean",
    "ultraeval_agg_wer": None,
}


def every_case():
    return [
        pytest.param(name, case["input"], case["expected"], id=f"{name}-{i}")
        for name in FILES
        for i, case in enumerate(json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))["cases"])
    ]


@pytest.mark.parametrize(("name", "options", "expected"), every_case())
def test_a_fold(name, options, expected):
    if name == "ultraeval_agg_wer":
        for package in ("zhconv", "sacrebleu", "MeCab", "ipadic"):
            pytest.importorskip(package)
    result = aggregate(f"{ULTRAEVAL}/{FILES[name] or options['aggregator']}", options["rows"])
    if expected.get("error") or any(isinstance(value, dict) for value in expected.values()):
        # Where the source raises an error or gives no number, there is a reason instead of a value.
        assert not result.values and result.reason
    else:
        assert result.reason is None
        assert dict(result.values) == pytest.approx(expected, rel=1e-9)


def test_restricted_means():
    rows = [{"acc": 1, "geval": 7}, {"acc": 0, "geval": None}]
    assert aggregate(f"{ULTRAEVAL}/naive-acc", rows).values == {"acc(%)": 50.0}
    assert aggregate(f"{ULTRAEVAL}/geval", rows).values == {"geval(%)": 700.0}


@pytest.mark.parametrize("name", AGGREGATORS)
def test_no_rows_are_no_number(name):
    result = aggregate(name, [])
    assert not result.values


def test_an_unknown_fold():
    with pytest.raises(UnknownName):
        aggregate("official/nobody/mean", [])
