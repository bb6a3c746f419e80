"""Changing rates: exact lengths, the right sound, nothing beyond full scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codec_bench.audio.hash import content_hash
from codec_bench.audio.resample import cut, fit_length, mono, prepare, resample, resampled_length, to_rate, to_signal
from codec_bench.types import Audio

RATES = [4000, 8000, 10000, 11025, 16000, 22050, 24000, 44100, 48000, 192000]


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 30000), st.sampled_from(RATES), st.sampled_from(RATES))
def test_the_length_is_the_nearest_one(length, source, target):
    out = resample(np.zeros(length, np.float32), source, target)
    assert out.shape == (resampled_length(length, source, target),)
    assert out.dtype == np.float32
    assert abs(len(out) - length * target / source) <= 0.5 or len(out) == 1


@pytest.mark.parametrize(
    "source, target", [(48000, 16000), (16000, 48000), (44100, 16000), (8000, 16000), (16000, 10000)]
)
def test_a_tone_stays_the_same_tone_at_the_same_time(source, target):
    tone = lambda rate: np.sin(2 * np.pi * 1000 * np.arange(rate) / rate + 0.3)  # noqa: E731
    out = resample(tone(source).astype(np.float32), source, target)
    middle = slice(len(out) // 4, 3 * len(out) // 4)
    np.testing.assert_allclose(out[middle], tone(target)[middle], atol=2e-4)


def test_channels_are_resampled_alike_and_averaged(rng):
    samples = rng.standard_normal((3, 4800)).astype(np.float32) / 10
    both = resample(samples, 48000, 16000)
    for k in range(3):
        np.testing.assert_allclose(both[k], resample(samples[k], 48000, 16000), atol=1e-6)
    np.testing.assert_allclose(mono(samples), samples.mean(0), atol=1e-7)


def test_prepared_signals_stay_within_full_scale():
    square = np.sign(np.sin(np.arange(16000) / 30)).astype(np.float32)
    out = prepare(Audio(1.5 * square, 16000), 24000)
    assert np.abs(out).max() == 1.0
    assert prepare(Audio(0.5 * square, 16000), None).max() == 0.5


def test_a_signal_has_the_level_of_its_audio_until_it_is_cut():
    loud = Audio(3 * np.sin(np.arange(16000) / 30, dtype=np.float32), 16000)
    assert np.abs(to_signal(loud, None)).max() == pytest.approx(3, abs=1e-3)
    np.testing.assert_array_equal(cut(to_signal(loud, 24000)), prepare(loud, 24000))
    within = to_signal(Audio(loud.samples / 4, 16000), None)
    assert cut(within) is within


def test_either_end_of_full_scale_is_cut():
    for sign in (1, -1):
        out = cut(sign * np.array([0.25, 1.5, -0.5], np.float32))
        assert out.tolist() == [sign * 0.25, sign, sign * -0.5]
    assert cut(np.zeros(0, np.float32)).size == 0


def test_audio_at_another_rate_keeps_its_channels_and_at_its_own_is_itself(rng):
    audio = Audio(rng.standard_normal((2, 4800)).astype(np.float32) / 10, 48000)
    assert to_rate(audio, 48000) is audio
    other = to_rate(audio, 16000)
    assert other.sample_rate_hz == 16000
    np.testing.assert_array_equal(other.samples, resample(audio.samples, 48000, 16000))


def test_fitting_cuts_or_adds_zeros():
    x = np.arange(5, dtype=np.float32)
    assert fit_length(x, 3).tolist() == [0, 1, 2]
    assert fit_length(x, 7).tolist() == [0, 1, 2, 3, 4, 0, 0]
    assert fit_length(x, 5) is x


def test_the_hash_sees_samples_rate_and_shape(rng):
    x = rng.standard_normal((1, 100)).astype(np.float32)
    y = x.copy()
    assert content_hash(x, 16000) == content_hash(y, 16000)
    assert content_hash(np.asfortranarray(np.vstack([x, x])), 16000) == content_hash(np.vstack([x, x]), 16000)
    y[0, 50] = np.nextafter(y[0, 50], 2, dtype=np.float32)
    assert (
        len(
            {
                content_hash(x, 16000),
                content_hash(y, 16000),
                content_hash(x, 8000),
                content_hash(x.reshape(2, 50), 16000),
            }
        )
        == 4
    )
