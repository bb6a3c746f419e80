"""The CLAP score against transformers' whole model with the published front ends, each item alone, with stand-in
weights.
"""

from __future__ import annotations

import numpy as np
import pytest
import tiny_speech
import torch
import transformers
from refusals import refuses
from tokenizers import Tokenizer, models, pre_tokenizers

from codec_bench import Audio, load_metric
from codec_bench.features.clap import TextEncoder
from codec_bench.messages import Diagnostic

TEXTS = ["a dog barks", "rain on a roof and wind", "a", "a dog barks and barks and barks and barks"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A small CLAP where the published one is looked for, with tokens of whole words."""
    folder = tmp_path_factory.mktemp("weights")
    actual = folder / "clap-htsat-unfused"
    tiny_speech.write_clap(actual)
    words = ["<s>", "<pad>", "</s>", "<unk>", *dict.fromkeys(" ".join(TEXTS).split())]
    tokens = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokens,
        pad_token="<pad>",
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=9,
    ).save_pretrained(actual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODEC_BENCH_WEIGHTS", str(folder))
        yield actual


@pytest.fixture(scope="module")
def sounds():
    rng = np.random.default_rng(0)
    tones = [np.sin(np.arange(30_000) * (0.01 + 0.02 * index)) for index in range(len(TEXTS))]
    return [
        Audio((0.3 * t + rng.normal(0, 0.02 + 0.1 * k, t.size)).astype(np.float32), 48_000) for k, t in enumerate(tones)
    ]


def theirs(folder, sound, text):
    """The cosine of the two embeddings that transformers' model gives."""
    net = transformers.ClapModel.from_pretrained(folder).eval()
    front = transformers.ClapFeatureExtractor(
        truncation="rand_trunc", padding="pad", frequency_min=50, frequency_max=14_000
    )
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    output = (np.clip(sound.samples[0], -1, 1) * 32767).astype(np.int16) / np.float32(32767)
    mels = front(output, sampling_rate=48_000, return_tensors="pt").input_features.float()
    with torch.inference_mode():
        texts = net.get_text_features(input_ids=tokens.input_ids, attention_mask=tokens.attention_mask).pooler_output
        sounded = net.get_audio_features(input_features=mels).pooler_output
    return torch.nn.functional.cosine_similarity(texts, sounded).item()


@pytest.mark.compares("clap_score", weights="stand-in")
def test_scores_are_transformers_one_by_one(weights, sounds):
    results = [scores["clap_score"].value for scores in load_metric("clap_score")(estimate=sounds, text=TEXTS)]
    expected = [theirs(weights, sound, text) for sound, text in zip(sounds, TEXTS)]
    assert np.ptp(expected) > 1e-3
    np.testing.assert_allclose(results, expected, atol=1e-5)


def test_an_item_without_a_text_has_no_value(weights, sounds):
    metric = load_metric("clap_score")
    (empty,) = metric(estimate=sounds[:1], text=[" "])
    assert (empty["clap_score"].status, empty["clap_score"].reason) == ("undefined", Diagnostic("empty_text"))
    (none,) = metric(estimate=sounds[:1], text=[None])
    assert none["clap_score"].status == "refused"


def test_own_weights_and_missing_tokens_are_one_sentence(weights, sounds, tmp_path, monkeypatch):
    with refuses("custom_weights_unsupported", metric="clap_score"):
        load_metric("clap_score", weights=str(weights))
    tiny_speech.write_clap(tmp_path / "clap-htsat-unfused")
    monkeypatch.setenv("CODEC_BENCH_WEIGHTS", str(tmp_path))
    with refuses("no_tokeniser"):
        TextEncoder()
    (tmp_path / "clap-htsat-unfused" / "tokenizer.json").write_text("{")
    with refuses("weights_not_read"):
        TextEncoder()
