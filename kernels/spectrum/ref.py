"""Magnitude spectrograms and their distances, linear and mel, float64.

A spectrogram is `torch.stft`'s with its defaults: a periodic Hann window, a hop of a quarter window, reflected ends,
frame `t` centred on sample `t * hop`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Pairs = Iterable[tuple[np.ndarray, np.ndarray]]
BLOCK_SAMPLES = 1 << 18  # samples of windowed frames in memory at once: 2 MB a signal


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of a spectrogram.

    Args:
        window_samples: of the periodic Hann window. hop_samples: 0 for a quarter window.
        fft_samples: length of the transform, in whose middle the window lies; 0 for the window's own.
        edges: whether both ends are extended by reflection, or by zeros.
    """

    window_samples: int
    hop_samples: int = 0
    fft_samples: int = 0
    edges: Literal["reflect", "constant"] = "reflect"


@functools.lru_cache(maxsize=32)
def mel_filters(rate_hz: int, window_samples: int, num_mels: int, top_hz: float | None = None) -> np.ndarray:
    """Slaney's mel filters of unit area, `(window_samples // 2 + 1, num_mels)`.

    Linear up to 1 kHz (15 mels), logarithmic above (27 mels for a factor of 6.4). Agrees with `librosa.filters.mel`
    (its defaults) to float32 precision.

    Args:
        window_samples: length of the transform. top_hz: the upper end of the last filter; None for half the rate.
    """
    break_hz, break_mel, step = 1000.0, 15.0, np.log(6.4) / 27.0
    top_hz = rate_hz / 2 if top_hz is None else top_hz
    top_mel = top_hz * break_mel / break_hz if top_hz < break_hz else break_mel + np.log(top_hz / break_hz) / step
    mels = np.linspace(0.0, top_mel, num_mels + 2)
    edges_hz = np.where(
        mels < break_mel, mels * break_hz / break_mel, break_hz * np.exp(step * np.maximum(mels - break_mel, 0.0))
    )
    bins_hz = np.fft.rfftfreq(window_samples, 1 / rate_hz)[:, None]
    rising = (bins_hz - edges_hz[:-2]) / (edges_hz[1:-1] - edges_hz[:-2])
    falling = (edges_hz[2:] - bins_hz) / (edges_hz[2:] - edges_hz[1:-1])
    return np.maximum(0.0, np.minimum(rising, falling)) * (2.0 / (edges_hz[2:] - edges_hz[:-2]))


def magnitudes(signal: np.ndarray, frames: Frames) -> Iterator[np.ndarray]:
    """Yield the magnitude spectrogram in blocks, float64 `(frames, fft // 2 + 1)`.

    There are `1 + (samples + 2 * (fft // 2) - fft) // hop` frames in all.

    Args:
        signal: `(samples,)`; with reflected edges, more than half as many samples as the transform has.
    """
    fft = frames.fft_samples or frames.window_samples
    weights = np.zeros(fft)
    before = (fft - frames.window_samples) // 2
    weights[before : before + frames.window_samples] = np.hanning(frames.window_samples + 1)[:-1]
    extended = np.pad(signal, fft // 2, mode=frames.edges)
    cut = np.lib.stride_tricks.sliding_window_view(extended, fft)[:: frames.hop_samples or frames.window_samples // 4]
    block = max(1, BLOCK_SAMPLES // fft)
    for first in range(0, len(cut), block):
        yield np.abs(np.fft.rfft(cut[first : first + block] * weights))


def pairs(reference: np.ndarray, estimate: np.ndarray, frames: Frames) -> Pairs:
    """Yield two signals' magnitude spectrograms, in blocks, side by side."""
    return zip(magnitudes(reference, frames), magnitudes(estimate, frames), strict=True)


@dataclass(frozen=True, slots=True)
class SpectrumWeights:
    """The weights of a distance's two mean absolute differences.

    Args:
        linear: of the magnitudes. log: of their base-10 logarithms; 2 is that of the powers.
        floor: smallest magnitude in the logarithm; smaller ones are raised to it.
    """

    linear: float
    log: float
    floor: float = 1e-5


def distance(
    spectra: Callable[[Frames], Pairs],
    *,
    windows: Sequence[int],
    filters: Sequence[np.ndarray | None],
    weights: SpectrumWeights,
) -> float:
    """Weighted mean differences of magnitudes and logarithms, summed.

    For each window, with `X` and `Y` the magnitude spectrograms (through the mel filters, if any) and means over all
    entries: `linear * mean |X - Y| + log * mean |log10 max(X, floor) - log10 max(Y, floor)|`. The result is 0 for equal
    signals, symmetric, and never NaN, even for silence.

    Args:
        spectra: gives the magnitudes of both signals in blocks, as `pairs`. They are longer than half the longest
            window.
        windows: window lengths in samples, powers of two.
        filters: for each window, `(bins, bands)` or None for the bins themselves.
    """
    total = 0.0
    for window_samples, mels in zip(windows, filters, strict=True):
        linear = logarithmic = 0.0
        entries = 0
        for x, y in spectra(Frames(window_samples)):
            x, y = (x, y) if mels is None else (x @ mels, y @ mels)
            linear += float(np.abs(x - y).sum())
            floored = np.maximum(x, weights.floor) / np.maximum(y, weights.floor)
            logarithmic += float(np.abs(np.log10(floored)).sum())
            entries += x.size
        total += (weights.linear * linear + weights.log * logarithmic) / entries
    return total


def convergence_distance(spectra: Callable[[Frames], Pairs], resolutions: Sequence[Frames], floor: float) -> float:
    """Mean of spectral convergence plus mean log difference.

    With `X` and `Y` the magnitude spectrograms of the reference and of the estimate, each magnitude at least `floor`,
    one resolution gives `|X - Y| / |X|` (Frobenius norms) plus `mean |ln X - ln Y|`.

    Args:
        spectra: as for `distance`.
    """
    total = 0.0
    for frames in resolutions:
        squared_difference = reference_power = logarithmic = 0.0
        entries = 0
        for x, y in spectra(frames):
            x, y = np.maximum(x, floor), np.maximum(y, floor)
            squared_difference += float(((x - y) ** 2).sum())
            reference_power += float((x**2).sum())
            logarithmic += float(np.abs(np.log(x / y)).sum())
            entries += x.size
        total += (squared_difference / reference_power) ** 0.5 + logarithmic / entries
    return total / len(resolutions)


def log_spectral_distance(spectra: Pairs, *, floor: float, added: bool) -> float:
    """Log-spectral distance: the mean RMS difference of log10 powers.

    Args:
        spectra: the magnitudes of both signals in blocks. floor: a small number.
        added: whether it is added to the estimate's magnitude and to the ratio of the powers, as in ssr_eval. If not,
            powers below it are raised to it, which treats both sides alike.
    """
    total, count = 0.0, 0
    for x, y in spectra:
        ratio = (x / (y + floor)) ** 2 + floor if added else np.maximum(x**2, floor) / np.maximum(y**2, floor)
        total += float(np.sqrt((np.log10(ratio) ** 2).mean(axis=1)).sum())
        count += len(x)
    return total / count
