"""MFCCs equal librosa's, the local normalisation its definition, and the warped cepstrum the warped spectrum."""

from __future__ import annotations

import librosa
import numpy as np
import pytest

from codec_bench.kernels.cepstrum import ref
from codec_bench.kernels.spectrum.ref import Frames


def noise(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def test_mfccs_are_librosas():
    signal = 0.1 * noise(1, 6_000) * np.linspace(0, 1, 6_000) ** 4  # so quiet at first that the floor of 80 dB shows
    result = ref.mfcc(signal, 16_000, Frames(512, 64, 1024, "constant"), coefficients=13, top_hz=5_000.0, lifter=3)
    expected = librosa.feature.mfcc(
        y=signal, sr=16_000, n_mfcc=13, fmax=5_000, n_fft=1024, win_length=512, hop_length=64, lifter=3
    ).T
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-3, rtol=1e-5)  # librosa's filters are float32


@pytest.mark.parametrize("frames", [30, 400])
def test_normalised_is_its_definition(frames):
    """The sliding window, written down as a loop."""
    features = noise(2, frames, 3) * [1.0, 5.0, 0.0] + [0.0, 9.0, 4.0]
    padded = np.pad(features, ((100, 100), (0, 0)), mode="symmetric")
    centred = features - np.stack([padded[i : i + 201].mean(axis=0) for i in range(frames)])
    padded = np.pad(centred, ((100, 100), (0, 0)), mode="symmetric")
    expected = centred / (np.stack([padded[i : i + 201].std(axis=0) for i in range(frames)]) + 2.0**-30)
    result = ref.normalised(features, 201)
    np.testing.assert_allclose(result[:, :2], expected[:, :2], atol=1e-9)
    assert np.abs(result[:, 2]).max() < 1e-3  # what does not vary is not blown up


def test_a_mel_cepstrum_is_the_cepstrum_on_a_warped_axis():
    """Its cosine series at a frequency gives the log power at the frequency that the all-pass maps there."""
    order, alpha, fft = 60, 0.466, 1024
    bins = np.linspace(0, np.pi, fft // 2 + 1)
    smooth = 1.0 + 0.5 * np.cos(bins) - 0.3 * np.cos(2 * bins) + 0.1 * np.cos(5 * bins)
    result = ref.mel_cepstrum(np.exp(smooth)[None], order, alpha)[0]
    warped = bins + 2 * np.arctan(alpha * np.sin(bins) / (1 - alpha * np.cos(bins)))
    # sp2mc halves c(0) only: the log power is 2 c(0) plus 2 times the sum of the cosines.
    series = 2 * result[0] + 2 * np.cos(warped[:, None] * np.arange(1, order + 1)) @ result[1:]
    np.testing.assert_allclose(series, smooth, atol=1e-6)


def test_without_warping_nothing_changes():
    np.testing.assert_allclose(ref.warping(8, 5, 0.0), np.eye(8)[:, :6], atol=0)


def test_relative_power():
    powers = np.ones((2, 5))
    powers[1] *= 3
    np.testing.assert_allclose(ref.relative_power_db(powers), 10 * np.log10([0.5, 1.5]))
