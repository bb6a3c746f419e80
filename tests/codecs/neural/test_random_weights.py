"""Networks of seeded noise: the same every time, and their codes carry what they are given."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from glides import glide
from random_codecs import built

from codec_bench.codecs import load_codec


@pytest.mark.parametrize("name", ["dac-16khz", "encodec-24khz@6", "mimi-8cb"])
def test_the_random_network_is_the_same_every_time_and_leaves_the_generator_alone(name):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    again = load_codec(name, weights="random")
    assert torch.equal(torch.rand(3), expected)
    for item, tensor in built(name)._net.state_dict().items():
        assert torch.equal(tensor, again._net.state_dict()[item]), item
    assert again.info.weights == "random" and again.info.weights_licence is None


@pytest.mark.parametrize(
    ("name", "seconds", "entries", "share"),
    [
        ("bigcodec", 1, 30, 0.5),
        ("chattts-dvae", 2, 20, 0.3),
        ("dac-16khz", 2, 20, 0.5),
        ("encodec-24khz@6", 1, 40, 0.5),
        ("mimi-8cb", 4, 5, 0.5),
        ("neucodec", 1.4, 10, 0.3),
        ("wavtokenizer-large-speech-75token", 1, 30, 0.4),
        ("xcodec-wavlm-mls", 2, 5, 0.5),
        ("xcodec2", 2, 10, 0.3),
    ],
)
def test_codes_carry_what_they_receive(name, seconds, entries, share):
    codec = built(name)
    rate_hz = codec.info.sample_rates_hz[0]
    first, second = codec.encode([glide(int(seconds * rate_hz), seed, rate_hz) for seed in (1, 2)])
    assert min(len(np.unique(row)) for row in first.streams[0].values) > entries
    assert (first.streams[0].values != second.streams[0].values).mean() > share
