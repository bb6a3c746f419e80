"""Mixing two sounds: what is measured of a mixture holds for it, and what cannot be mixed says why."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from codec_bench.apps.building.item import TryError
from codec_bench.apps.building.mixtures import excerpt, mix, place_sounds
from codec_bench.audio.loudness import loudness_lufs
from codec_bench.types import Audio

RATE_HZ = 16_000
RANDOM = np.random.default_rng(0)
LEVEL = {"mean_lufs": -26.0, "peak_dbfs": -1.0}


def noise(seconds, level=0.1):
    return (RANDOM.normal(0, level, round(seconds * RATE_HZ))).astype(np.float32)


@pytest.mark.parametrize("gap_db", [-12.0, 0.0, 7.5])
@pytest.mark.parametrize("offset", [-8_000, 0, 20_000])
def test_what_is_measured_is_what_was_requested(gap_db, offset):
    first, second = noise(1.0, 0.3), noise(1.5, 0.01)
    mixed = mix(first, second, RATE_HZ, gap_db=gap_db, offset_samples=offset, **LEVEL)
    assert mixed.gap_db == pytest.approx(gap_db, abs=1e-3)
    assert (mixed.first_lufs + mixed.second_lufs) / 2 == pytest.approx(-26, abs=1e-3)
    assert mixed.offset_s == offset / RATE_HZ
    # The mixture is the sum of the two sounds where they stand.
    begins = (max(0, -offset), max(0, offset))
    complete = np.zeros(mixed.samples.size, np.float32)
    complete[begins[0] : begins[0] + first.size] += mixed.first
    complete[begins[1] : begins[1] + second.size] += mixed.second
    np.testing.assert_allclose(mixed.samples, complete, atol=1e-6)
    np.testing.assert_allclose(mixed.first, first * 10 ** (mixed.gains_db[0] / 20), rtol=1e-4, atol=1e-7)


def test_a_peak_scales_both_sounds_together():
    click = noise(1.0, 0.001)
    click[5000] = 0.9
    mixed = mix(click, noise(1.0), RATE_HZ, gap_db=10.0, offset_samples=0, mean_lufs=-10.0, peak_dbfs=-3.0)
    assert 20 * np.log10(np.abs(mixed.samples).max()) == pytest.approx(-3.0, abs=1e-3)
    assert mixed.gap_db == pytest.approx(10.0, abs=0.01)
    assert loudness_lufs(Audio(mixed.first, RATE_HZ)) == pytest.approx(mixed.first_lufs)


@pytest.mark.parametrize(
    ("sound", "code"),
    [
        (np.zeros(RATE_HZ, np.float32), "no_loudness"),
        (noise(0.3), "no_loudness"),
        (noise(1.0, 0.0005), "too_quiet_to_raise"),
    ],
    ids=["silence", "shorter than a block", "below -60 LUFS"],
)
def test_a_sound_without_a_loudness_is_not_mixed(sound, code):
    for pair in ((sound, noise(1.0)), (noise(1.0), sound)):
        with pytest.raises(TryError) as caught:
            mix(*pair, RATE_HZ, gap_db=0, offset_samples=0, **LEVEL)
        assert caught.value.failure.reason.code == code


@settings(max_examples=60)
@given(
    lengths=st.tuples(st.integers(2, 5000), st.integers(2, 5000)),
    ahead=st.booleans(),
    seed=st.integers(0, 100),
    overlap=st.sampled_from(["none", "partial", "full"]),
)
def test_sounds_overlap_as_requested(lengths, ahead, seed, overlap):
    offset = place_sounds(overlap, lengths, ahead, np.random.default_rng(seed), 7)
    begins = (max(0, -offset), max(0, offset))
    ends = tuple(begin + length for begin, length in zip(begins, lengths))
    shared = min(ends) - max(begins)
    if overlap == "none":
        assert shared == -7 and (offset > 0) == ahead
    elif overlap == "full":
        assert shared == min(lengths)
    else:
        assert 0 < shared < min(lengths) and (offset > 0) == ahead


def test_sounds_of_one_sample_cannot_overlap_in_part():
    with refuses("too_short_to_overlap", error=TryError):
        place_sounds("partial", (1, 1), True, np.random.default_rng(0), 0)


def test_the_ends_of_an_excerpt_are_faded_and_the_rest_is_the_recording():
    signal = np.ones(1000, np.float32)
    item = excerpt(signal, 100, 400, 50)
    assert item.size == 400 and item[0] < 0.01 and item[-1] < 0.01
    assert (np.diff(item[:50]) > 0).all() and (item[50:350] == 1).all()
    assert (signal == 1).all(), "the recording itself is not changed"
