"""Multiply-accumulates and parameters of networks small enough to count by hand."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench import Audio, CodecInfo, Codes, CodeStream
from codec_bench.apps.profiling import speed
from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable


def network():
    import torch
    from torch import nn

    class Small:
        """A strided convolution, an LSTM and a codebook; a transposed convolution back."""

        info = CodecInfo("small", (16000,), frame_rate_hz=100.0)

        def __init__(self):
            torch.manual_seed(0)
            self.parts = {"down": nn.utils.parametrizations.weight_norm(nn.Conv1d(1, 8, 160, stride=160))}
            self.lstm = nn.LSTM(8, 8)
            self.book = nn.Embedding(64, 8)
            self.up = nn.ConvTranspose1d(8, 1, 160, stride=160)
            self.spare = nn.Linear(5, 5)

        def encode(self, batch):
            return [self.one(audio) for audio in batch]

        @torch.inference_mode()
        def one(self, audio):
            hidden = self.parts["down"](torch.from_numpy(audio.samples)[None]).permute(2, 0, 1)
            hidden, _ = self.lstm(hidden)
            scores = hidden[:, 0] @ self.book.weight.T
            return Codes((CodeStream(scores.argmax(1).numpy()[None], 64, 100.0),), audio.num_samples, 16000)

        @torch.inference_mode()
        def decode(self, codes):
            return [
                Audio(self.up(self.book(torch.from_numpy(c.streams[0].values)).permute(0, 2, 1))[0].numpy(), 16000)
                for c in codes
            ]

    return Small()


def test_every_side_has_its_own(files):
    codec = network()
    measured = speed.measure_complexity(codec, ProfileClips(files, codec), Settings(clip_s=1.0))
    frames = 100
    convolution, lstm, search = 160 * 8, 2 * 4 * 8 * 8, 8 * 64
    assert measured["encoder"]["macs_per_s"] == pytest.approx(frames * (convolution + lstm + search))
    assert measured["decoder"]["macs_per_s"] == pytest.approx(frames * convolution)
    weight_norm, bias = 8 + 160 * 8, 8
    of_lstm = 2 * 4 * 8 * 8 + 2 * 4 * 8
    assert measured["encoder"]["parameters"] == weight_norm + bias + of_lstm + 64 * 8
    assert measured["decoder"]["parameters"] == 64 * 8 + 160 * 8 + 1
    assert measured["parameters"] == weight_norm + bias + of_lstm + 64 * 8 + 160 * 8 + 1 + 30
    assert measured["unused_parameters"] == 30
    assert "argmax" in measured["encoder"]["not_counted"]


def test_what_is_not_torch_is_not_counted(files, odd):
    from codec_bench.codecs import load_codec

    codec = load_codec(odd("Pcm"))
    with refuses("no_module", error=NotApplicable):
        speed.measure_complexity(codec, ProfileClips(files, codec), Settings(clip_s=0.5))


def test_attention_counts_its_two_products(files):
    import torch

    class Attending:
        info = CodecInfo("attending", (16000,))

        def __init__(self):
            self.net = torch.nn.Linear(4, 4, bias=False)

        @torch.inference_mode()
        def encode(self, batch):
            hidden = self.net(torch.zeros(1, 2, 50, 4))
            torch.nn.functional.scaled_dot_product_attention(hidden, hidden, hidden)
            return [Codes((CodeStream(np.zeros((1, 1), int), 2, 1.0),), a.num_samples, 16000) for a in batch]

        def decode(self, codes):
            return [Audio(np.zeros((1, c.num_samples)), 16000) for c in codes]

    codec = Attending()
    measured = speed.measure_complexity(codec, ProfileClips(files, codec), Settings(clip_s=1.0))
    assert measured["encoder"]["macs_per_s"] == pytest.approx(100 * 16 + 2 * 2 * 50 * 50 * 4)
    assert measured["decoder"]["macs_per_s"] == 0 and measured["decoder"]["parameters"] == 0


def test_encodec_has_the_published_networks_size(files):
    from codec_bench.codecs import load_codec

    pytest.importorskip("transformers")
    codec = load_codec("encodec-24khz@6", weights="random-full")
    measured = speed.measure_complexity(codec, ProfileClips(files, codec), Settings(clip_s=0.4))
    # SEANet with 32 filters and two LSTMs of 512 on each side. The LSTM runs as one fused operator.
    assert measured["parameters"] == 14851810
    lstm = 75 * 2 * 2 * 4 * 512 * 512
    assert measured["decoder"]["by_operator"]["mkldnn_rnn_layer"] == pytest.approx(lstm)


def test_products_in_place_and_with_vectors_count():
    import torch

    left, right, total = torch.ones(3, 4), torch.ones(4, 5), torch.zeros(3, 5)
    with speed._counting()([]) as counter:
        total.addmm_(left, right)
        left @ torch.ones(4)
        torch.addmv(torch.zeros(3), left, torch.ones(4))
        torch.zeros(2, 3, 5).baddbmm_(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    assert counter.macs == 60 + 12 + 12 + 120
