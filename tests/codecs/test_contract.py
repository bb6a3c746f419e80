"""Promises that every listed codec must keep."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from random_codecs import networks_once
from refusals import refuses

from codec_bench.codecs import codec_names, list_codecs, load_codec
from codec_bench.codecs.checks.batching import latent_flips
from codec_bench.codecs.neural import dac, encodec, funcodec, higgs_audio_v2, mimi, pocket_tts, vibevoice, xcodec
from codec_bench.types import Audio, Latents

NAMES = codec_names()
ROWS = list_codecs()
NEURAL = {row.name for row in ROWS if row.weights_here is not None}  # with weights, here or not
# One of each family and rate gets chunks of a second, or of a third where none of its chunks is as long; its other
# bitrates run through the same networks, and are tried with fewer lengths.
LONGEST = {
    (row.name.partition("-")[0].partition("@")[0], row.info.sample_rates_hz): row.name for row in ROWS[::-1] if row.info
}
FULL = {name for name in NAMES if name not in NEURAL} | set(LONGEST.values())


# All tests of a codec follow each other, so that its networks can be given back before those of the next are built.
of_each_codec = pytest.mark.parametrize("name", NAMES, scope="module")
of_each_network = pytest.mark.parametrize("name", [name for name in NAMES if name in FULL], scope="module")


@lru_cache(maxsize=1)
def built(name):
    return load_codec(name, weights="random") if name in NEURAL else load_codec(name)


@pytest.fixture(scope="module", autouse=True)
def _networks_once():
    with networks_once(encodec, dac, funcodec, higgs_audio_v2, mimi, pocket_tts, vibevoice, xcodec):
        yield


def sound(rate_hz, channels, length, seed=0):
    """A buzz like a voice, with noise, so that every codec spends bits on it."""
    rng = np.random.default_rng([seed, rate_hz, length])
    time = np.arange(length) / rate_hz
    pitch = 120 + 30 * np.sin(2 * np.pi * 1.5 * time)
    buzz = np.sign(np.sin(2 * np.pi * np.cumsum(pitch) / rate_hz)) * (0.3 + 0.2 * np.sin(2 * np.pi * 3 * time))
    wave = 0.5 * buzz + 0.02 * rng.standard_normal(length)
    return Audio(np.stack([wave, 0.6 * wave])[:channels], rate_hz)


def rates(info):
    return sorted({min(info.sample_rates_hz), max(info.sample_rates_hz)})


def alike(a, b):
    """Whether codes are equal; a latent on the edge between two levels may be rounded to either."""
    if a.name != "latents":
        return np.array_equal(a.values, b.values)
    return np.abs(a.values - b.values).max() <= 1 and np.mean(a.values != b.values) < 1e-3


def equal(a, b):
    return all(
        x.packets == y.packets
        and (not isinstance(x, Latents) or latent_flips(x.values, y.values)[0] == 0)
        and all(alike(s, t) for s, t in zip(x.streams, y.streams, strict=True))
        for x, y in zip(a, b, strict=True)
    )


@of_each_codec
def test_length_rate_and_channels_come_back(name):
    codec = built(name)
    for rate_hz in rates(codec.info):
        for channels in codec.info.channels:
            lengths = [1, 160, round(0.05 * rate_hz)]
            if name in FULL:
                lengths += [7, 4801 if rate_hz > 8000 else 801]
            if rate_hz == max(codec.info.sample_rates_hz) and name in LONGEST.values():
                lengths.append(rate_hz if name.startswith("encodec-48khz") or name not in NEURAL else rate_hz // 3)
            batch = [sound(rate_hz, channels, length) for length in lengths]
            codes = codec.encode(batch)
            out = codec.decode(codes)
            assert len(codes) == len(out) == len(batch)
            for audio, item, decoded in zip(batch, codes, out, strict=True):
                where = f"{rate_hz} Hz, {channels} channels, {audio.num_samples} samples"
                assert decoded.samples.shape == audio.samples.shape, where
                assert decoded.sample_rate_hz == rate_hz, where
                assert np.isfinite(decoded.samples).all(), where
                assert np.abs(decoded.samples).max() < 20, where  # loud, but not extreme
                if codec.info.latents is None:
                    assert item.bits > 0 and item.nominal_bitrate_bps > 0, where
                assert (item.num_samples, item.sample_rate_hz) == (audio.num_samples, rate_hz), where
                for stream in item.streams:
                    assert stream.values.min() >= 0 and stream.values.max() < stream.cardinality, where


@of_each_network
def test_an_item_does_not_depend_on_when_or_with_what_it_is_coded(name):
    codec = built(name)
    rate_hz = max(codec.info.sample_rates_hz)
    channels = codec.info.channels[0]
    batch = [sound(rate_hz, channels, n, seed) for seed, n in enumerate((2000, 5000, 3333))]
    together = codec.encode(batch)
    alone = [codec.encode([audio])[0] for audio in batch]
    assert equal(together, alone)
    waves = codec.decode(together)
    others = [[codec.decode([c])[0] for c in alone]]
    assert equal(together, codec.encode(batch[::-1])[::-1])
    others.append(codec.decode(together[::-1])[::-1])
    for k, other in enumerate(zip(*others)):
        for wave in other:
            np.testing.assert_allclose(wave.samples, waves[k].samples, rtol=0, atol=1e-4 if name in NEURAL else 0)


@of_each_codec
def test_what_a_codec_does_not_take_is_refused_with_what_it_takes(name):
    codec = built(name)
    with refuses("codec_rate", rate_hz=9999) as caught:
        codec.encode([sound(9999, codec.info.channels[0], 100)])
    assert str(codec.info.sample_rates_hz[0]) in str(caught.value)
    wrong = Audio(np.zeros((5, 100)), codec.info.sample_rates_hz[0])
    with refuses("codec_channels", channels=5):
        codec.encode([wrong])
    with refuses("codec_without_samples"):
        codec.encode([Audio(np.zeros((codec.info.channels[0], 0)), codec.info.sample_rates_hz[0])])


@of_each_network
def test_silence_and_full_scale_survive(name):
    codec = built(name)
    rate_hz, channels = codec.info.sample_rates_hz[0], codec.info.channels[0]
    silence = Audio(np.zeros((channels, rate_hz // 8)), rate_hz)
    loud = Audio(np.clip(sound(rate_hz, channels, rate_hz // 8).samples * 10, -1.5, 1.5), rate_hz)
    for out in codec.decode(codec.encode([silence, loud])):
        assert np.isfinite(out.samples).all()
