"""The filter of the anchors keeps the mask of ITU-R BS.1534-3, and an anchor is in step with its reference."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from scipy.signal import freqz

from codec_bench.apps.listening.sound import anchor, low_pass
from codec_bench.types import Audio


@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("cutoff_hz", [3_500, 7_000])
def test_the_filter_keeps_the_mask(cutoff_hz, rate):
    hz, response = freqz(low_pass(cutoff_hz, rate), worN=1 << 13, fs=rate)
    db = 20 * np.log10(np.abs(response) + 1e-12)
    scale = cutoff_hz / 3_500
    assert np.abs(db[hz <= cutoff_hz]).max() <= 0.1
    for from_hz, least_db in ((4_000, 25), (4_500, 50)):
        beyond = db[hz >= from_hz * scale]
        assert beyond.size == 0 or beyond.max() <= -least_db


def test_an_anchor_is_in_step_and_lacks_what_is_above(rng):
    rate = 24_000
    time = np.arange(rate) / rate
    low, high = np.sin(2 * np.pi * 1_000 * time), np.sin(2 * np.pi * 5_000 * time)
    output = anchor(Audio((0.4 * np.stack([low, low + high])).astype(np.float32), rate), 3_500)
    assert output.samples.shape == (2, rate) and output.sample_rate_hz == rate
    inside = slice(1_000, -1_000)
    assert np.abs(output.samples[:, inside] - 0.4 * low[inside]).max() < 1e-3


def test_sound_without_anything_to_take_away_is_refused():
    with refuses("anchor_needs_rate", cutoff_khz=7.0, needed_hz=14000, rate_hz=14000):
        low_pass(7_000, 14_000)
