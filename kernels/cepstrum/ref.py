"""Mel-cepstra of spectral envelopes, and MFCCs with their local normalisation, in NumPy and float64."""

from __future__ import annotations

import functools

import numpy as np
from scipy.fft import dct
from scipy.ndimage import uniform_filter1d

from ..spectrum.ref import Frames, magnitudes, mel_filters

POWER_FLOOR = 1e-10
TOP_DB = 80.0
NUM_MELS = 128
EPS = 2.0**-30


@functools.lru_cache(maxsize=4)
def warping(coefficients: int, order: int, alpha: float) -> np.ndarray:
    """The matrix that warps the frequencies of a cepstrum by an all-pass function, as SPTK's `freqt`.

    Args:
        coefficients: of the cepstrum. order: of the warped one, which has `order + 1` coefficients. alpha: of the
            all-pass.

    Returns:
        float64 `(coefficients, order + 1)`: the warped cepstrum is the cepstrum times this matrix.
    """
    out = np.zeros((order + 1, coefficients))
    for unit in np.eye(coefficients)[::-1]:
        before = out.copy()
        out[0] = unit + alpha * before[0]
        if order:
            out[1] = (1 - alpha**2) * before[0] + alpha * before[1]
        for m in range(2, order + 1):
            out[m] = before[m - 1] + alpha * (before[m] - out[m - 1])
    return out.T.copy()


def mel_cepstrum(powers: np.ndarray, order: int, alpha: float) -> np.ndarray:
    """The mel-cepstrum of power spectra, as pysptk's `sp2mc`.

    Args:
        powers: positive, `(frames, fft // 2 + 1)`. order, alpha: as for `warping`.

    Returns:
        float64 `(frames, order + 1)`.
    """
    cepstra = np.fft.irfft(np.log(powers))
    cepstra[:, 0] /= 2.0
    return np.asarray(cepstra @ warping(cepstra.shape[1], order, alpha))


def relative_power_db(powers: np.ndarray) -> np.ndarray:
    """The power of each frame over the mean power of all, in dB.

    Args:
        powers: power spectra, `(frames, fft // 2 + 1)`.

    Returns:
        float64 `(frames,)`.
    """
    each = powers[:, 0] + powers[:, -1] + 2.0 * powers[:, 1:-1].sum(axis=1)
    return np.asarray(10.0 * np.log10(each / each.mean()))


def mfcc(
    signal: np.ndarray, rate_hz: int, frames: Frames, *, coefficients: int, top_hz: float, lifter: int
) -> np.ndarray:
    """Mel-frequency cepstral coefficients, as `librosa.feature.mfcc` gives them with its other defaults.

    Powers in 128 Slaney mel bands, in dB down to 80 dB below the loudest band of the signal, by the orthonormal cosine
    transform, times a sine lifter.

    Args:
        signal: `(samples,)`. rate_hz: its rate. frames: how it is cut. coefficients: how many to keep.
        top_hz: where the last mel band ends. lifter: length of the lifter.

    Returns:
        float64 `(frames, coefficients)`.
    """
    filters = mel_filters(rate_hz, frames.fft_samples or frames.window_samples, NUM_MELS, top_hz)
    powers = np.concatenate([block**2 @ filters for block in magnitudes(signal, frames)])
    decibels = 10.0 * np.log10(np.maximum(powers, POWER_FLOOR))
    decibels = np.maximum(decibels, decibels.max() - TOP_DB)
    cepstra = dct(decibels, type=2, norm="ortho", axis=1)[:, :coefficients]
    return np.asarray(cepstra * (1 + (lifter / 2) * np.sin(np.pi * np.arange(1, coefficients + 1) / lifter)))


def normalised(features: np.ndarray, window: int) -> np.ndarray:
    """Mean 0 and variance 1 over a sliding window, as speechpy's `cmvnw` with variance normalisation.

    The means are taken away first, and the variance is that of what is left, over the same window. At both ends the
    features are continued by their mirror image. A coefficient that does not vary within the window becomes 0.

    Args:
        features: `(frames, coefficients)`. window: frames, odd.
    """
    local = functools.partial(uniform_filter1d, size=window, axis=0, mode="reflect")
    centred = features - local(features)
    variance = local(centred**2) - local(centred) ** 2
    return np.asarray(centred / (np.sqrt(np.maximum(variance, 0.0)) + EPS))
