"""The spectrograms equal torch's and the mel filters librosa's. Processing in blocks does not change the result."""

from __future__ import annotations

from functools import partial

import librosa
import numpy as np
import pytest

from codec_bench.kernels.spectrum import ref


def noise(seed, samples):
    return 0.1 * np.random.default_rng(seed).standard_normal(samples)


@pytest.mark.parametrize(
    ("rate_hz", "window", "mels"), [(16_000, 2048, 150), (16_000, 512, 80), (24_000, 1024, 80), (1_600, 512, 20)]
)
def test_mel_filters_are_librosas(rate_hz, window, mels):
    expected = librosa.filters.mel(sr=rate_hz, n_fft=window, n_mels=mels, dtype=np.float64).T
    np.testing.assert_allclose(ref.mel_filters(rate_hz, window, mels), expected, atol=1e-12 * expected.max())


@pytest.mark.parametrize("window", [512, 2048])
@pytest.mark.parametrize("samples", [1_025, 1_536, 16_000, 200_001])
def test_magnitudes_are_torchs(window, samples, monkeypatch):
    import torch

    monkeypatch.setattr(ref, "BLOCK_SAMPLES", 1 << 16)
    signal = noise(1, samples)
    result = np.concatenate(list(ref.magnitudes(signal, ref.Frames(window))))
    expected = torch.stft(
        torch.from_numpy(signal), window, window // 4, window=torch.hann_window(window, dtype=torch.float64),
        return_complex=True,
    )  # fmt: skip
    np.testing.assert_allclose(result, expected.abs().numpy().T, atol=1e-10)


@pytest.mark.parametrize("mels", [False, True])
def test_the_size_of_a_block_does_not_matter(mels, monkeypatch):
    x, y = noise(2, 50_000), noise(3, 50_000)
    filters = (ref.mel_filters(16_000, 512, 80) if mels else None,)
    options = {"windows": (512,), "filters": filters, "weights": ref.SpectrumWeights(linear=1.0, log=2.0)}
    complete = ref.distance(partial(ref.pairs, x, y), **options)
    monkeypatch.setattr(ref, "BLOCK_SAMPLES", 512 * 7)
    assert ref.distance(partial(ref.pairs, x, y), **options) == pytest.approx(complete, rel=1e-12)


def test_mel_filters_end_at_their_declared_limit():
    expected = librosa.filters.mel(sr=16_000, n_fft=1024, n_mels=128, fmax=5_000, dtype=np.float64).T
    np.testing.assert_allclose(ref.mel_filters(16_000, 1024, 128, 5_000.0), expected, atol=1e-12 * expected.max())


@pytest.mark.parametrize("frames", [ref.Frames(512, 64, 1024, "constant"), ref.Frames(743, 160, 0, "constant")])
def test_magnitudes_between_zeros_are_librosas(frames):
    signal = noise(4, 5_000)
    result = np.concatenate(list(ref.magnitudes(signal, frames)))
    fft = frames.fft_samples or frames.window_samples
    expected = librosa.stft(signal, n_fft=fft, hop_length=frames.hop_samples, win_length=frames.window_samples)
    np.testing.assert_allclose(result, np.abs(expected).T, atol=1e-10)
