"""Estimates that hold something else than their reference are found by their levels; coded, noisy and quiet speech is
not.
"""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.audio.level_checks import INCONCLUSIVE, MISSING, NOT_FOLLOWING, find_mismatch, is_silent, percentile
from codec_bench.audio.resample import prepare
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.types import Audio

RATE = 16_000


@pytest.fixture(scope="module")
def speech(embedded):
    signal = max((prepare(audio, RATE) for _, audio in embedded), key=len)
    return signal.astype(np.float32)


@pytest.mark.parametrize("name", ["opus-6k", "amr-nb-4.75k", "g723.1"])
def test_coded_speech_is_like_its_reference(speech, name):
    (item,) = reconstruct(load_codec(name), [Audio(speech, RATE)]).items
    assert find_mismatch(speech, prepare(item.estimate, RATE), RATE) is None


def test_level_noise_and_a_constant_do_not_matter(speech):
    rng = np.random.default_rng(0)
    noise = speech.std() * 10 ** (-5 / 20) * rng.standard_normal(speech.size).astype(np.float32)
    coarse = np.round((speech + 1) / 2 * 15).astype(np.float32) / 15 * 2 - 1  # 4 bits, without a step for zero
    for estimate in (coarse, speech, 0.01 * speech, speech + 0.2, speech + noise, -speech):
        assert find_mismatch(speech, estimate, RATE) is None


def test_what_is_missing_and_what_is_another_sound(speech):
    first, rng = np.arange(speech.size) < speech.size // 2, np.random.default_rng(0)
    for half in (first, ~first):
        assert find_mismatch(speech, speech * half, RATE) == MISSING
        assert find_mismatch(speech, speech * half + rng.integers(-1, 2, speech.size) / 32768, RATE) == MISSING
    for other in (0.05 * rng.standard_normal(speech.size), speech[::-1], np.roll(speech, RATE)):
        assert find_mismatch(speech, other.astype(np.float32), RATE) == NOT_FOLLOWING


def pieces(speech, length):
    """The pieces of speech that are loud throughout."""
    cut = [speech[at : at + length] for at in range(0, speech.size - length, length // 2)]
    return [one for one in cut if min(half.std() for half in np.array_split(one, 2)) > 0.03]


@pytest.mark.parametrize("name", ["opus-6k", "g722"])
@pytest.mark.parametrize("length", [RATE // 2, 35 * RATE // 100, RATE // 4, RATE // 10])
def test_a_short_sound_is_distinguished_from_another_one_or_reported_as_too_short(speech, name, length):
    """The constant part of a short sound is not well known, so that a half that is missing is not found as such in
    every one.
    """
    rng, loud = np.random.default_rng(0), pieces(speech, length)
    coded = reconstruct(load_codec(name), [Audio(one, RATE) for one in loud]).items
    details = [find_mismatch(one, prepare(item.estimate, RATE), RATE) for one, item in zip(loud, coded)]
    assert details.count(None) >= len(details) - 1 and NOT_FOLLOWING not in details and MISSING not in details
    for noise in (rng.normal(0, 0.1, length), rng.normal(0, 0.001, length)):
        assert all(find_mismatch(one, noise.astype(np.float32), RATE) == NOT_FOLLOWING for one in loud)
    foreign = [find_mismatch(one, other, RATE) for one, other in zip(loud, loud[5:] + loud[:5])]
    assert foreign.count(None) <= (0.15 if length < 0.3 * RATE else 0.01) * len(foreign) and foreign.count(
        NOT_FOLLOWING
    ) >= 0.5 * len(foreign)
    noisy = [find_mismatch(one, (one + rng.normal(0, one.std(), length)).astype(np.float32), RATE) for one in loud]
    assert length < 0.3 * RATE or noisy.count(None) == len(noisy)
    halves = [find_mismatch(one, one * (np.arange(length) < length // 2), RATE) for one in loud]
    assert halves.count(None) <= (0.5 if length == 35 * RATE // 100 else 0.3) * len(halves)


@pytest.mark.parametrize("rate", [800, 8000, 16000])
def test_a_sound_too_short_or_too_narrow_to_distinguish_is_reported(rate):
    rng = np.random.default_rng(0)
    short, other = rng.normal(0, 0.1, (2, rate // (30 if rate > 1400 else 5))).astype(np.float32)
    assert find_mismatch(short, other, rate) == INCONCLUSIVE
    assert find_mismatch(short, 0.5 * short, rate) is None


def test_huge_samples_are_not_silent(speech):
    for factor in (1.0, 1e3, 1e25, -1e30):
        assert not is_silent(Audio(speech * np.float32(factor), RATE))
    assert is_silent(Audio(np.full(RATE, 1e30, np.float32), RATE))


def test_what_says_nothing_of_a_codec(speech):
    tone = np.sin(np.arange(RATE) * 0.1).astype(np.float32)
    assert find_mismatch(tone, 0.5 * tone, RATE) is None  # steady
    assert find_mismatch(np.zeros(2500, np.float32), speech[:2500], RATE) is None
    assert find_mismatch(speech[:0], speech[:0], RATE) is None


@pytest.mark.parametrize("share", [5, 50, 90, 95])
def test_percentile_is_numpys(rng, share):
    for size in (1, 2, 3, 7, 20, 1000):
        values = 30 * rng.standard_normal(size)
        assert percentile(values, share) == np.percentile(values, share)
