"""Estimates that hold something else than their reference are found by their levels; coded, noisy and quiet speech is not."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.audio.following import MISSING, NOT_FOLLOWING, unlike
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
    assert unlike(speech, prepare(item.estimate, RATE), RATE) is None


def test_level_noise_and_a_constant_do_not_matter(speech):
    rng = np.random.default_rng(0)
    noise = speech.std() * 10 ** (-5 / 20) * rng.standard_normal(speech.size).astype(np.float32)
    coarse = np.round((speech + 1) / 2 * 15).astype(np.float32) / 15 * 2 - 1  # 4 bits, without a step for zero
    for estimate in (coarse, speech, 0.01 * speech, speech + 0.2, speech + noise, -speech):
        assert unlike(speech, estimate, RATE) is None


def test_what_is_missing_and_what_is_another_sound(speech):
    first, rng = np.arange(speech.size) < speech.size // 2, np.random.default_rng(0)
    for half in (first, ~first):
        assert unlike(speech, speech * half, RATE) == MISSING
        assert unlike(speech, speech * half + rng.integers(-1, 2, speech.size) / 32768, RATE) == MISSING
    for other in (0.05 * rng.standard_normal(speech.size), speech[::-1], np.roll(speech, RATE)):
        assert unlike(speech, other.astype(np.float32), RATE) == NOT_FOLLOWING


@pytest.mark.parametrize("name", ["opus-6k", "g722"])
def test_a_short_sound_is_looked_at_for_missing_speech_alone(speech, name):
    """Its constant part is not well known, so that a half that is missing is not found in every one."""
    rng, length = np.random.default_rng(0), RATE // 4
    loud = [speech[at : at + length] for at in range(0, speech.size - length, length)]
    loud = [one for one in loud if min(half.std() for half in np.split(one, 2)) > 0.05]
    coded = reconstruct(load_codec(name), [Audio(one, RATE) for one in loud]).items
    assert not any(unlike(one, prepare(item.estimate, RATE), RATE) for one, item in zip(loud, coded))
    assert not any(unlike(one, rng.normal(0, 0.1, length).astype(np.float32), RATE) for one in loud)
    halves = [unlike(one, one * (np.arange(length) < length // 2), RATE) for one in loud]
    assert halves.count(MISSING) >= 0.6 * len(halves)


def test_what_says_nothing_of_a_codec(speech):
    tone = np.sin(np.arange(RATE) * 0.1).astype(np.float32)
    assert unlike(tone, 0.5 * tone, RATE) is None  # steady
    assert unlike(speech[:2500], np.zeros(2500, np.float32), RATE) is None  # short
    assert unlike(speech[:0], speech[:0], RATE) is None
