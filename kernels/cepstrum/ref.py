"""Mel-cepstra of spectral envelopes, and MFCCs, in NumPy and float64."""

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
    """The all-pass matrix that warps a cepstrum's frequencies (SPTK `freqt`).

    Args:
        coefficients: of the cepstrum. order: of the warped one. alpha: of the all-pass.

    Returns:
        float64 `(coefficients, order + 1)`, to multiply a cepstrum by.
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
    """pysptk's `sp2mc`: mel-cepstrum of power spectra, `(frames, order + 1)`.

    Args:
        powers: positive, `(frames, fft // 2 + 1)`. order, alpha: as for `warping`.
    """
    cepstra = np.fft.irfft(np.log(powers))
    cepstra[:, 0] /= 2.0
    return np.asarray(cepstra @ warping(cepstra.shape[1], order, alpha))


def relative_power_db(powers: np.ndarray) -> np.ndarray:
    """Compute each frame's power over the mean power of all, in dB, `(frames,)`.

    Args:
        powers: power spectra, `(frames, fft // 2 + 1)`.
    """
    each = powers[:, 0] + powers[:, -1] + 2.0 * powers[:, 1:-1].sum(axis=1)
    return np.asarray(10.0 * np.log10(each / each.mean()))


def mfcc(
    signal: np.ndarray, rate_hz: int, frames: Frames, *, coefficients: int, top_hz: float, lifter: int
) -> np.ndarray:
    """`librosa.feature.mfcc` by default, float64 `(frames, coefficients)`.

    128 Slaney bands in dB, down to 80 dB below the signal's loudest, the orthonormal cosine transform, a sine lifter.

    Args:
        signal: `(samples,)`. top_hz: the upper end of the last mel band. lifter: its length.
    """
    filters = mel_filters(rate_hz, frames.fft_samples or frames.window_samples, NUM_MELS, top_hz)
    powers = np.concatenate([block**2 @ filters for block in magnitudes(signal, frames)])
    decibels = 10.0 * np.log10(np.maximum(powers, POWER_FLOOR))
    decibels = np.maximum(decibels, decibels.max() - TOP_DB)
    cepstra = dct(decibels, type=2, norm="ortho", axis=1)[:, :coefficients]
    return np.asarray(cepstra * (1 + (lifter / 2) * np.sin(np.pi * np.arange(1, coefficients + 1) / lifter)))


def normalised(features: np.ndarray, window: int) -> np.ndarray:
    """Normalise to mean 0 and variance 1 over a sliding window, as speechpy's `cmvnw`.

    The variance is that of features less their means. Both ends are mirrored. A constant coefficient becomes 0.

    Args:
        features: `(frames, coefficients)`. window: frames, odd.
    """
    local = functools.partial(uniform_filter1d, size=window, axis=0, mode="reflect")
    centred = features - local(features)
    variance = local(centred**2) - local(centred) ** 2
    return np.asarray(centred / (np.sqrt(np.maximum(variance, 0.0)) + EPS))
