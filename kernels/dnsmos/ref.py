"""The DNSMOS networks in NumPy and float64, for one window of 144160 samples.

P.835 (`sig_bak_ovr`): the log power spectrum of 900 frames by trained kernels, seven 3x3 convolutions with three 2x2
maxima between them, the maximum of each channel, and three dense layers. P.808 (`model_v8`): the same with five
convolutions, over mel levels relative to the window's loudest.

Papers: C. K. A. Reddy, V. Gopal, R. Cutler, "DNSMOS P.835", ICASSP 2022; "DNSMOS", ICASSP 2021. Reference
implementation: speechmos 0.0.1: onnxruntime on the published files, and librosa 0.11 for the mel levels; to 1e-5 of a
score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

WINDOW_SAMPLES = 144_160
FRAMES = 900
HOP_SAMPLES = 160
FRAME_SAMPLES = 320
MEL_SAMPLES = 321
BINS = 161
MELS = 120
FLOOR = 1e-12
LN_10 = np.float32(2.3025851)
MEL_FLOOR = 1e-10
RANGE_DB = 80.0
MIDDLE_DB = 40.0
P835_MAXIMA = (4, 5, 6)
P808_MAXIMA = (1, 2, 4)
"""The convolutions (counted from 1) before 2x2 maxima."""

Convolution = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class DnsmosWeights:
    """The weights of one network.

    Args:
        convolutions: `(weights (out, in, 3, 3), bias (out,))` per layer. dense: `(weights (in, out), bias (out,))`.
        front: `(real, imaginary)` kernels `(161, 320)` of P.835's front end, or None.
    """

    convolutions: Sequence[Convolution]
    dense: Sequence[tuple[np.ndarray, np.ndarray]]
    front: tuple[np.ndarray, np.ndarray] | None = None


def p835(window: np.ndarray, weights: DnsmosWeights) -> np.ndarray:
    """Compute raw SIG, BAK and OVRL of a window, before the polynomials."""
    frames = np.lib.stride_tricks.sliding_window_view(window.astype(np.float64), FRAME_SAMPLES)[::HOP_SAMPLES]
    assert weights.front is not None, "the P.835 network has a front end"
    real, imaginary = (frames @ kernel.T.astype(np.float64) for kernel in weights.front)
    return _network(np.log(np.maximum(real**2 + imaginary**2, FLOOR)) / LN_10, weights, P835_MAXIMA)


def p808(window: np.ndarray, weights: DnsmosWeights, reflect: bool = False) -> np.ndarray:
    """Compute the score of a window, `(1,)`. The window's last 160 samples are unused."""
    return _network(mel_levels(window[:-HOP_SAMPLES], reflect), weights, P808_MAXIMA)


def mel_levels(signal: np.ndarray, reflect: bool = False) -> np.ndarray:
    """Mel decibels below the loudest, `(900, 120)`: 0 dB is 1, -80 dB is -1.

    Both ends are extended by zeros (librosa from 0.10 on) or by the mirror image (librosa before).
    """
    padded = np.pad(signal.astype(np.float64), MEL_SAMPLES // 2, mode="reflect" if reflect else "constant")
    frames = np.lib.stride_tricks.sliding_window_view(padded, MEL_SAMPLES)[::HOP_SAMPLES]
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(MEL_SAMPLES) / MEL_SAMPLES)
    power = np.abs(np.fft.rfft(frames * window)) ** 2 @ mel_filters().T
    decibels = 10.0 * np.log10(np.maximum(power, MEL_FLOOR))
    return (np.maximum(decibels - decibels.max(), -RANGE_DB) + MIDDLE_DB) / MIDDLE_DB


@cache
def mel_filters() -> np.ndarray:
    """Slaney's filters `(120, 161)`: 0 to 8000 Hz, n_fft 321 at 16 kHz, unit area."""
    edges_hz = _mel_to_hz(np.linspace(0.0, 15.0 + np.log(8.0) * 27.0 / np.log(6.4), MELS + 2))
    ramps = edges_hz[:, None] - np.arange(BINS) * (16000.0 / MEL_SAMPLES)
    widths = np.diff(edges_hz)[:, None]
    filters = np.maximum(0.0, np.minimum(-ramps[:-2] / widths[:-1], ramps[2:] / widths[1:])).astype(np.float32)
    return (filters * (2.0 / (edges_hz[2:] - edges_hz[:-2]))[:, None]).astype(np.float32)


def _mel_to_hz(mel: np.ndarray) -> np.ndarray:
    """Convert mel: linear to 1000 Hz (200/3 Hz a mel), logarithmic above (27 mels per factor of 6.4)."""
    return np.where(mel < 15.0, mel * 200.0 / 3.0, 1000.0 * np.exp((mel - 15.0) * np.log(6.4) / 27.0))


def convolution(x: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Convolve a padded picture `(rows, columns, in)` by 3x3, add bias, rectify."""
    rows, columns = x.shape[:2]
    taps = weights.transpose(2, 3, 1, 0).reshape(-1, len(bias)).astype(x.dtype)
    y = np.empty((rows, columns, len(bias)), x.dtype)
    for row in range(rows):
        padded = np.pad(x[max(row - 1, 0) : row + 2], ((row == 0, row == rows - 1), (1, 1), (0, 0)))
        pieces = [padded[i, j : j + columns] for i in range(3) for j in range(3)]
        np.matmul(np.concatenate(pieces, axis=1), taps, out=y[row])
    y += bias
    return np.maximum(y, 0.0, out=y)


def maxima(x: np.ndarray) -> np.ndarray:
    """2x2 maxima of `(rows, columns, channels)`; odd last ones are dropped."""
    rows, columns = x.shape[0] // 2 * 2, x.shape[1] // 2 * 2
    x = np.maximum(x[0:rows:2], x[1:rows:2])
    return np.maximum(x[:, 0:columns:2], x[:, 1:columns:2])


def dense(features: np.ndarray, layers: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Apply dense layers to `(..., in)`, rectified between them."""
    for n, (weights, bias) in enumerate(layers):
        features = features @ weights + bias
        if n < len(layers) - 1:
            features = np.maximum(features, 0.0)
    return features


def _network(picture: np.ndarray, weights: DnsmosWeights, pooled: tuple[int, ...]) -> np.ndarray:
    x = picture[:, :, None]
    for number, layer in enumerate(weights.convolutions, start=1):
        x = convolution(x, *layer)
        x = maxima(x) if number in pooled else x
    return dense(x.max(axis=(0, 1)), weights.dense)
