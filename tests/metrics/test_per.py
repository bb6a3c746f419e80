"""Phones against transformers' own classes, one signal at a time, and the phone error rate against a plain edit
distance.
"""

from __future__ import annotations

import json

import jiwer
import numpy as np
import pytest
import torch
import transformers
from refusals import refuses
from tiny_speech import write_ctc

from codec_bench import Audio, load_metric
from codec_bench.features import load_feature
from codec_bench.metrics import build_metric

NAME = "phones-wav2vec2-lv60"
PHONES = ["<pad>", "<s>", "</s>", "<unk>", "n", "s", "tʃ", "iː", "ə", "aɪ", "tˤ", "ts.h", "œ̃", "r"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small network over phones, of which some have several letters."""
    folder = write_ctc(tmp_path_factory.mktemp("phones"), "wav2vec2", "layer", True, vocab_size=len(PHONES))
    (folder / "vocab.json").write_text(json.dumps({phone: index for index, phone in enumerate(PHONES)}), "utf-8")
    for name in ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"):
        (folder / name).unlink(missing_ok=True)
    return folder


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(4)
    return [(0.1 * rng.normal(0, 1, size)).astype(np.float32) for size in (16_000, 9001, 24_000, 400)]


def theirs(folder, signal):
    net = transformers.Wav2Vec2ForCTC.from_pretrained(folder).eval()
    front = transformers.Wav2Vec2FeatureExtractor.from_pretrained(folder)
    tokens = transformers.Wav2Vec2PhonemeCTCTokenizer.from_pretrained(folder, do_phonemize=False)
    with torch.inference_mode():
        logits = net(front(signal, sampling_rate=16_000, return_tensors="pt").input_values).logits
    return tokens.batch_decode(logits.argmax(-1))[0]


@pytest.mark.compares("phones-wav2vec2-lv60", "per", weights="stand-in")
def test_phones_are_transformers_and_errors_are_jiwers(weights, signals):
    results = [one["transcript"] for one in load_feature(NAME, weights=str(weights)).compute(signals)]
    assert results == [theirs(weights, signal) for signal in signals]
    assert len(set(" ".join(results).split())) > 4 and "ts.h" in PHONES
    estimates = [signals[0] + 0.05 * np.roll(signals[0], 7), signals[1][::-1].copy()]
    sides = {
        "reference": [Audio(one, 16_000) for one in signals[:2]],
        "estimate": [Audio(one, 16_000) for one in estimates],
    }
    scores = [row["per"] for row in load_metric("per", weights=str(weights))(**sides)]
    for score, reference, estimate in zip(scores, signals, estimates):
        text, output = theirs(weights, reference), theirs(weights, estimate)
        assert score.value == pytest.approx(jiwer.wer(text, output), abs=1e-12) and score.value > 0
        assert score.denominator == len(text.split())


def test_other_recognisers_and_rules_are_one_sentence():
    assert build_metric("per").protocol == f"per/{NAME}/greedy/whole-to-60s/none"
    assert build_metric(f"per[{NAME}@bfloat16]").name == f"per[{NAME}@bfloat16]"
    with refuses("no_variant", variant="whisper-tiny", name="per"):
        build_metric("per[whisper-tiny]")
    with refuses("no_point_of_metric", point="whisper-en", name="per"):
        build_metric("per@whisper-en")
    with refuses("not_a_recogniser"):
        build_metric(f"wer[{NAME}]")
