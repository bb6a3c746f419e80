"""UTMOS22's network, small: a padded batch equals its items alone, and an item alone is what the definition says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_speech import small_utmos

from codec_bench.networks.speech_encoder import padded

FIELD = 400


@pytest.fixture(scope="module")
def small():
    """The same network, small."""
    return small_utmos()


def voices(rng, lengths):
    """Noise of changing level, with an offset, at levels far apart."""
    signals = []
    for length in lengths:
        knots = rng.random(length // 800 + 2)
        level = np.interp(np.arange(length) / 800, np.arange(knots.size), knots)
        signals.append((10 ** rng.uniform(-3, 0) * (rng.normal(0.1, 1, length) * level)).astype(np.float32))
    return signals


def opinions(net, signals):
    with torch.inference_mode():
        return net(*padded(signals, "cpu")).numpy()


def test_a_batch_equals_every_signal_alone(small):
    rng = np.random.default_rng(20)
    for _ in range(6):
        lengths = [FIELD, *rng.integers(FIELD, 30_000, 7)]
        rng.shuffle(lengths)
        signals = voices(rng, lengths)
        alone = np.concatenate([opinions(small, [signal]) for signal in signals])
        assert alone.std() > 1e-3  # otherwise equality would prove little
        np.testing.assert_allclose(opinions(small, signals), alone, rtol=1e-5)


def test_alone_it_is_the_mean_of_what_the_recurrent_network_says(small):
    """The definition, without packing or masks."""
    rng = np.random.default_rng(21)
    for signal in voices(rng, [FIELD, 719, 720, 16_000, 16_320]):
        with torch.inference_mode():
            frames, _ = small.wav2vec2(torch.from_numpy(signal)[None], [signal.size])
            constants = [value.expand(frames.shape[1], -1)[None] for value in (small.domain_emb, small.judge_emb)]
            expected = small.projection(small.blstm(torch.cat([frames, *constants], 2))[0]).mean() * 2 + 3
        assert opinions(small, [signal])[0] == pytest.approx(float(expected), rel=1e-6)


def test_zeros_appended_to_a_signal_change_its_score(small):
    """The masks are needed: without a length, the network takes the padding for a part of the signal."""
    rng = np.random.default_rng(22)
    (signal,) = voices(rng, [12_000])
    apart = opinions(small, [signal]) - opinions(small, [np.pad(signal, (0, 12_000))])
    assert abs(float(apart[0])) > 1e-3


def test_what_lies_beyond_an_end_does_not_count(small):
    rng = np.random.default_rng(23)
    (signal,) = voices(rng, [9_000])
    waves = torch.from_numpy(rng.normal(0, 10, (1, 20_000)).astype(np.float32))
    waves[0, :9_000] = torch.from_numpy(signal)
    with torch.inference_mode():
        result = small(waves, [9_000])
    np.testing.assert_allclose(result.numpy(), opinions(small, [signal]), rtol=1e-5)
