"""Distances between magnitude spectrograms, linear and in mel bands, in NumPy and float64.

A spectrogram is computed as by `torch.stft` with its defaults: a periodic Hann window, a hop of a quarter window, and
the signal extended by reflection so that frame `t` is centred on sample `t * hop`. Long signals are processed in blocks
of frames, so the memory does not grow with their length.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import numpy as np

BLOCK_SAMPLES = 1 << 18  # samples of windowed frames in memory at once: 2 MB a signal


@functools.lru_cache(maxsize=16)
def mel_filters(rate_hz: int, window_samples: int, num_mels: int) -> np.ndarray:
    """Triangular mel filters of unit area from 0 Hz to half the rate, on Slaney's scale.

    The scale is linear up to 1 kHz (15 mels) and logarithmic above (27 mels for a factor of 6.4). Agrees with
    `librosa.filters.mel` (its defaults) to float32 precision.

    Returns:
        float64 `(window_samples // 2 + 1, num_mels)`.
    """
    break_hz, break_mel, step = 1000.0, 15.0, np.log(6.4) / 27.0
    top_hz = rate_hz / 2
    top_mel = top_hz * break_mel / break_hz if top_hz < break_hz else break_mel + np.log(top_hz / break_hz) / step
    mels = np.linspace(0.0, top_mel, num_mels + 2)
    edges_hz = np.where(
        mels < break_mel, mels * break_hz / break_mel, break_hz * np.exp(step * np.maximum(mels - break_mel, 0.0))
    )
    bins_hz = np.fft.rfftfreq(window_samples, 1 / rate_hz)[:, None]
    rising = (bins_hz - edges_hz[:-2]) / (edges_hz[1:-1] - edges_hz[:-2])
    falling = (edges_hz[2:] - bins_hz) / (edges_hz[2:] - edges_hz[1:-1])
    return np.maximum(0.0, np.minimum(rising, falling)) * (2.0 / (edges_hz[2:] - edges_hz[:-2]))


def magnitudes(signal: np.ndarray, window_samples: int) -> Iterator[np.ndarray]:
    """The magnitude spectrogram, block by block.

    Args:
        signal: `(samples,)` with more than `window_samples // 2` samples (reflection needs that many).

    Yields:
        float64 `(frames, window_samples // 2 + 1)`; in all, `1 + samples // hop` frames.
    """
    hop = window_samples // 4
    weights = np.hanning(window_samples + 1)[:-1]
    extended = np.pad(signal, window_samples // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(extended, window_samples)[::hop]
    block = max(1, BLOCK_SAMPLES // window_samples)
    for first in range(0, len(frames), block):
        yield np.abs(np.fft.rfft(frames[first : first + block] * weights))


def distance(
    reference: np.ndarray,
    estimate: np.ndarray,
    *,
    windows: Sequence[int],
    filters: Sequence[np.ndarray | None],
    floor: float,
) -> float:
    """Mean absolute difference of magnitudes plus that of their log powers, summed over resolutions.

    For each window, with `X` and `Y` the magnitude spectrograms (through the mel filters, where given) and means over
    all their entries: `mean |X - Y| + mean |log10 max(X, floor)^2 - log10 max(Y, floor)^2|`.

    Args:
        reference, estimate: `(samples,)` of one length, longer than half the longest window.
        windows: window lengths in samples, powers of two.
        filters: for each window, `(bins, bands)` or None for the bins themselves.
        floor: smallest magnitude that enters the logarithm; smaller ones are raised to it.

    Returns:
        0 for equal signals, and larger values for larger differences. The order of the signals does not matter, and the
        value is never NaN, even for silence.
    """
    total = 0.0
    for window_samples, mels in zip(windows, filters, strict=True):
        linear = logarithmic = 0.0
        entries = 0
        pair = zip(magnitudes(reference, window_samples), magnitudes(estimate, window_samples), strict=True)
        for x, y in pair:
            if mels is not None:
                x, y = x @ mels, y @ mels
            linear += float(np.abs(x - y).sum())
            logarithmic += 2.0 * float(np.abs(np.log10(np.maximum(x, floor) / np.maximum(y, floor))).sum())
            entries += x.size
        total += (linear + logarithmic) / entries
    return total
