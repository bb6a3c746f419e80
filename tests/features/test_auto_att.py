"""Auto-ATT against the steps of its published program, one signal at a time, with a small Qwen2-Audio of random
weights.
"""

from __future__ import annotations

import hashlib
import shutil

import numpy as np
import pytest
import tiny_audio_models
import torch
from glides import glide
from refusals import refuses

from codec_bench.features import Unavailable, load_feature
from codec_bench.features.auto_att import QUESTION, SYSTEM
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

LENGTHS = (9001, 52_000, 961, 490_000, 12_000, 480_000, 9001)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_audio_models.write_auto_att(tmp_path_factory.mktemp("auto-att"))


@pytest.fixture(scope="module")
def feature(folder):
    return load_feature("auto-att", device="cpu", weights=folder)


def noisy(samples):
    return (0.3 * glide(samples).samples[0] + np.random.default_rng(samples).normal(0.01, 0.05, samples)).astype(
        np.float32
    )


def theirs(folder, signals):
    """What the published program does: it has one token written, and keeps the logits of three at that place."""
    from transformers import AutoProcessor, Qwen2AudioForConditionalGeneration

    net = Qwen2AudioForConditionalGeneration.from_pretrained(folder).eval()
    processor = AutoProcessor.from_pretrained(folder, sampling_rate=16_000)
    parts = [{"type": "audio", "audio_url": "a.wav"}, {"type": "text", "text": QUESTION}]
    turns = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": parts}]
    text = processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    ids = [processor.tokenizer.convert_tokens_to_ids(word) for word in ("Good", "Fair", "Bad")]
    scores = []
    for signal in signals:
        inputs = processor(text=text, audio=signal, sampling_rate=16_000, return_tensors="pt", padding=True)
        generated = net.generate(
            **inputs, max_new_tokens=1, do_sample=False, temperature=None, top_p=None, top_k=None,
            repetition_penalty=1.0,
            output_logits=True, return_dict_in_generate=True,
        )  # fmt: skip
        shares = torch.softmax(generated.logits[0][0][torch.tensor(ids)], dim=-1)
        scores.append(torch.sum(shares * torch.tensor([3.0, 2.0, 1.0])).item())
    return scores


@pytest.mark.compares("auto-att", weights="stand-in")
def test_a_batch_gives_the_published_steps_scores_of_one_by_one(feature, folder):
    signals = [noisy(length) for length in LENGTHS]
    expected = theirs(folder, signals)
    assert np.ptp(expected) > 0.1
    result = feature.compute(signals)
    np.testing.assert_allclose([one["score"] for one in result], expected, atol=1e-5)
    assert result[0] == result[-1]
    for one in result:
        assert one["good"] + one["fair"] + one["bad"] == pytest.approx(1, abs=1e-6)
        assert one["score"] == pytest.approx(3 * one["good"] + 2 * one["fair"] + one["bad"], abs=1e-6)


def test_only_the_first_thirty_seconds_are_read_and_the_result_states_it(feature):
    long = noisy(600_000)
    complete, cut = feature.compute([long, long[:480_000]])
    assert complete["heard_s"] == cut["heard_s"] == 30
    assert complete["score"] == pytest.approx(cut["score"], abs=1e-6)
    assert feature.compute([long[:8000]])[0]["heard_s"] == 0.5


def test_the_question_is_the_published_one_to_the_letter():
    digest = "32af9bf0332d5f1d1b9c23624698d3470f58196ae46c2556785fe816648aa77e"  # of the text in inference.py (eff2e49)
    assert hashlib.sha256(QUESTION.encode()).hexdigest() == digest


def test_unusable_audio_is_unavailable_and_harms_nobody(feature):
    fine = noisy(4000)
    short, broken, usable = feature.compute([fine[:960], np.full(4000, np.nan, np.float32), fine])
    assert isinstance(short, Unavailable) and isinstance(broken, Unavailable)
    assert str(short) == Diagnostic("signal_short", samples=960, model="Auto-ATT", needed=961)
    assert usable["score"] == pytest.approx(feature.compute([fine])[0]["score"], abs=1e-6)


def test_the_metric_is_the_score_and_is_for_mandarin():
    metric, extra = build_metric("auto_att"), {"score": 2.25, "heard_s": 30.0}
    item = Inputs("a", 16_000, estimate_features={"auto-att": extra}, language="zh")
    (score,) = metric.compute([item])
    assert (score.value, score.protocol, score.detail) == (2.25, "auto-att/first-30s/1", {"heard_s": 30.0})
    (refused,) = metric.compute([Inputs("a", 16_000, estimate_features={"auto-att": extra}, language="en")])
    assert refused.status == "refused" and refused.reason.code == "trained_on_others"
    assert metric.range == (1, 3) and metric.higher_is_better
    assert build_metric("auto_att@bfloat16").protocol == "auto-att/first-30s/1/bfloat16-weights"
    with refuses("no_point_of_metric", point="float16"):
        build_metric("auto_att@float16")


def test_weights_in_half_precision_come_near(feature, folder):
    signals = [noisy(9001)]  # the encoder hears 30 s of every signal
    exact = [one["score"] for one in feature.compute(signals)]
    half = load_feature("auto-att@bfloat16", device="cpu", weights=folder)
    np.testing.assert_allclose([one["score"] for one in half.compute(signals)], exact, atol=0.1)


def test_weights_of_something_else_are_one_sentence(tmp_path, folder):
    other = tiny_audio_models.write_auto_att(tmp_path / "words", words=("Good", "Fair"))
    with refuses("tokens_unexpected", text="Bad", tokens=3):
        load_feature("auto-att", device="cpu", weights=other).load()
    shutil.copytree(folder, tmp_path / "kind")
    config = tmp_path / "kind" / "config.json"
    config.write_text(config.read_text().replace('"qwen2_audio"', '"qwen2"'))
    with refuses("weights_kind", folder="kind", kind="qwen2", expected="qwen2_audio"):
        load_feature("auto-att", device="cpu", weights=str(tmp_path / "kind")).load()
