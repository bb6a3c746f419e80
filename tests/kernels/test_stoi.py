"""The compiled STOI equals the specified one step by step, and filter and bands are those that pystoi uses."""

from __future__ import annotations

import numpy as np
import pytest
from pystoi import utils as pystoi_utils

from codec_bench.kernels.stoi import cpu, ref


def noise(seed, samples):
    return 0.1 * np.random.default_rng(seed).standard_normal(samples)


@pytest.mark.parametrize("rate_hz", [8_000, 9_600, 11_025, 12_500, 16_000, 20_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("samples", [1, 2, 257, 3_001])
def test_both_resample_as_octave_does(rate_hz, samples):
    x, y = noise(1, samples), noise(2, samples)
    pair = cpu._at_10_khz(x, y, rate_hz)
    for signal, ours in zip((x, y), pair, strict=True):
        expected = pystoi_utils.resample_oct(signal, ref.RATE_HZ, rate_hz)
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, atol=1e-13)
        np.testing.assert_allclose(ref.resample(signal, rate_hz), expected, atol=1e-13)


def test_the_bands_are_pystois():
    matrix, _ = pystoi_utils.thirdoct(ref.RATE_HZ, ref.NFFT, ref.BANDS, ref.LOWEST_CENTRE_HZ)
    edges = ref.band_edges()
    assert [row.nonzero()[0].tolist() for row in matrix] == [list(range(first, last)) for first, last in edges]


def test_silence_is_cut_as_pystoi_cuts_it():
    x, y = noise(3, 20_000), noise(4, 20_000)
    x[3_000:9_000] *= 1e-4
    x[15_000:15_900] = 0.0
    expected = pystoi_utils.remove_silent_frames(x, y, ref.DYNAMIC_RANGE_DB, ref.FRAME, ref.HOP)
    joined, retained = cpu._without_silence(np.array([x, y]), ref.window())
    for role, (specified, requested) in enumerate(zip(ref.without_silence(x, y), expected, strict=True)):
        np.testing.assert_allclose(specified, requested, atol=1e-15)
        np.testing.assert_allclose(joined[role, : (retained + 1) * ref.HOP], requested, atol=1e-15)
    assert retained < len(ref.frames(x))


# Lengths at 10 kHz that leave few frames, a full block of spectra (128) or of segments (64), and one more or less.
@pytest.mark.parametrize("frames", [0, 1, 29, 30, 31, 92, 93, 94, 127, 128, 129, 157, 158, 300])
@pytest.mark.parametrize("measure", ["stoi", "estoi"])
def test_compiled_equals_specified(frames, measure):
    samples = frames * ref.HOP + ref.FRAME + 1
    x, y = noise(5, samples), noise(6, samples)
    x[samples // 2 :] *= np.linspace(1, 0.01, samples - samples // 2)
    expected = getattr(ref, measure)(x, x + y, ref.RATE_HZ)
    measured = getattr(cpu, measure)(x, x + y, ref.RATE_HZ)
    assert (measured is None) == (expected is None) == (frames < ref.SEGMENT_FRAMES)
    if measured is not None:
        assert measured == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["stoi", "estoi"])
def test_compiled_equals_specified_where_a_signal_is_silent_for_long(measure):
    x, y = noise(7, 30_000), noise(8, 30_000)
    y[5_000:20_000] = 0.0
    for estimate in (y, np.zeros_like(y)):
        assert getattr(cpu, measure)(x, estimate, 10_000) == pytest.approx(
            getattr(ref, measure)(x, estimate, 10_000), abs=1e-12
        )


def test_the_compiled_code_keeps_float32_input_exact():
    """Inputs of half precision are converted first; nothing is computed in half precision."""
    x, y = noise(9, 12_000).astype(np.float32), noise(10, 12_000).astype(np.float32)
    assert cpu.stoi(x, y, 16_000) == cpu.stoi(x.astype(np.float64), y.astype(np.float64), 16_000)
