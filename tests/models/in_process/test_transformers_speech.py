"""VITS speaks each text from a seed of its own, with the same result as transformers' own class."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tiny_questions import clip

from codec_bench.models.base import ModelInfo
from codec_bench.models.in_process.transformers_model import TransformersModel
from codec_bench.types import Request


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import torch
    from transformers import VitsConfig, VitsModel

    folder = tmp_path_factory.mktemp("vits") / "tiny"
    folder.mkdir()
    letters = {letter: index for index, letter in enumerate("_ abcdefghijklmnopqrstuvwxyz'")}
    (folder / "vocab.json").write_text(json.dumps(letters))
    names = {
        "tokenizer_class": "VitsTokenizer",
        "pad_token": "_",
        "unk_token": "_",
        "phonemize": False,
        "is_uroman": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps({**names, "add_blank": True, "normalize": True}))
    config = VitsConfig(
        vocab_size=len(letters), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=16, flow_size=16,
        spectrogram_bins=17, duration_predictor_filter_channels=16, upsample_initial_channel=16, upsample_rates=[4, 4],
        upsample_kernel_sizes=[8, 8], resblock_kernel_sizes=[3], resblock_dilation_sizes=[[1]],
        prior_encoder_num_flows=2, prior_encoder_num_wavenet_layers=1, posterior_encoder_num_wavenet_layers=1,
        duration_predictor_num_flows=2, depth_separable_num_layers=1,
    )  # fmt: skip
    torch.manual_seed(0)
    VitsModel(config).save_pretrained(folder)
    info = ModelInfo("tiny", inputs=("text",), outputs=("audio",), reads="fields")
    loaded = TransformersModel(info, weights=str(folder), device="cpu")
    loaded.load()
    return loaded


def spoken(model, text, **parameters):
    return model.answer([Request("a", fields={"text": text}, wants="audio", parameters=parameters)])[0]


def test_it_says_what_transformers_says(model):
    import torch
    from transformers import VitsModel, VitsTokenizer

    folder = model._find_checkpoint().folder
    net, tokenizer = VitsModel.from_pretrained(folder).eval(), VitsTokenizer.from_pretrained(folder)
    torch.manual_seed(4)
    with torch.inference_mode():
        expected = net(**tokenizer("good morning", return_tensors="pt")).waveform.numpy()
    answer = spoken(model, "good morning", seed=4)
    assert answer.audio.sample_rate_hz == net.config.sampling_rate
    assert np.array_equal(answer.audio.samples, expected)


def test_the_seed_decides_and_company_does_not(model):
    requests = [
        Request(str(k), fields={"text": text}, wants="audio") for k, text in enumerate(("one", "two words", "three"))
    ]
    together = model.answer(requests)
    for request, answer in zip(requests, together):
        assert np.array_equal(answer.audio.samples, model.answer([request])[0].audio.samples)
    assert not np.array_equal(spoken(model, "one", seed=1).audio.samples, spoken(model, "one", seed=2).audio.samples)


def test_what_it_cannot_speak_is_refused(model):
    requests = [{}, {"text": "  "}, {"text": "x", "prompt_audio": clip(1.0, 1)}, {"text": "fine"}]
    answers = model.answer([Request(str(k), fields=f, wants="audio") for k, f in enumerate(requests)])
    assert [a.status for a in answers] == ["refused", "refused", "refused", "ok"]
    assert [a.reason.code for a in answers[::2]] == ["no_text_to_speak", "single_voice"]
