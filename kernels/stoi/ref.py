"""The specification of STOI and ESTOI, in plain NumPy and float64.

Both are means over segments of 30 frames, in which the envelopes of 15 third-octave bands of a clean signal are
correlated with those of a processed one, at 10 kHz, on frames of 256 samples every 128. Frames in which the clean
signal is silent are cut out of both before.

Papers: C. H. Taal, R. C. Hendriks, R. Heusdens, J. Jensen, "An Algorithm for Intelligibility Prediction of
Time-Frequency Weighted Noisy Speech", IEEE TASLP 19(7), 2011. J. Jensen, C. H. Taal, "An Algorithm for Predicting the
Intelligibility of Speech Masked by Modulated Noise Maskers", IEEE/ACM TASLP 24(11), 2016 (ESTOI). Reference
implementation: pystoi 0.4.1: STOI to 1e-6, ESTOI to 1e-4: pystoi adds noise of one machine epsilon before it
normalises, so a constant band gets a random direction; here it gets the zero vector, the average contribution of a
random one. Equal inputs always give equal bits.
"""

from __future__ import annotations

import math

import numpy as np

RATE_HZ = 10_000
FRAME = 256
HOP = 128
NFFT = 512
BANDS = 15
LOWEST_CENTRE_HZ = 150.0
SEGMENT_FRAMES = 30
DYNAMIC_RANGE_DB = 40.0
CLIP_DB = -15.0
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 16
"""A row's variation, in epsilons of its mean, that rounding alone can cause."""


def window() -> np.ndarray:
    """The Hann window of 256 points, none of them zero."""
    return np.hanning(FRAME + 2)[1:-1]


def resampling_filter(rate_hz: int) -> tuple[np.ndarray, int, int]:
    """Design the low-pass filter from `rate_hz` to 10 kHz, as Octave's `resample`.

    A sinc under a Kaiser window, with 60 dB of rejection, a transition of a tenth of the cut-off, and unit gain.

    Returns:
        float64 `(2 half + 1,)` taps at the common multiple of both rates, and the factors `up` and `down`.
    """
    divisor = math.gcd(RATE_HZ, rate_hz)
    up, down = RATE_HZ // divisor, rate_hz // divisor
    cutoff = 1.0 / (2 * max(up, down))
    rejection_db = 60.0
    half = math.ceil((rejection_db - 8.0) / (28.714 * cutoff / 10.0))
    taps = np.sinc(2.0 * cutoff * np.arange(-half, half + 1)) * np.kaiser(2 * half + 1, 0.1102 * (rejection_db - 8.7))
    return up * taps / taps.sum(), up, down


def resample(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """`(samples,)` at 10 kHz: float64 `(ceil(samples * 10000 / rate_hz),)`."""
    signal = np.asarray(signal, dtype=np.float64)
    if rate_hz == RATE_HZ:
        return signal
    taps, up, down = resampling_filter(rate_hz)
    half = (taps.size - 1) // 2
    out = np.empty(-(-signal.size * up // down))
    for index in range(out.size):
        centre = index * down
        first, last = max(0, -((half - centre) // up)), min(signal.size - 1, (centre + half) // up)
        inputs = np.arange(first, last + 1)
        out[index] = taps[centre + half - inputs * up] @ signal[inputs]
    return out


def band_edges() -> np.ndarray:
    """First and one-past-last bin of each third-octave band, int64 `(15, 2)`."""
    bins_hz = np.linspace(0, RATE_HZ, NFFT + 1)[: NFFT // 2 + 1]
    sixths = 2 * np.arange(BANDS)[:, None] + np.array([-1.0, 1.0])
    edges_hz = LOWEST_CENTRE_HZ * 2.0 ** (sixths / 6.0)
    return np.abs(bins_hz - edges_hz[:, :, None]).argmin(axis=2)


def frames(signal: np.ndarray) -> np.ndarray:
    """Windowed frames `(frames, 256)`, without one that ends at the end."""
    starts = range(0, signal.size - FRAME, HOP)
    return np.array([signal[start : start + FRAME] for start in starts]).reshape(-1, FRAME) * window()


def without_silence(reference: np.ndarray, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove frames 40 dB or more under the reference's loudest."""
    clean, processed = frames(reference), frames(estimate)
    if not len(clean):
        return np.zeros(0), np.zeros(0)
    level_db = 20 * np.log10(np.sqrt((clean**2).sum(axis=1)) + EPS)
    active = level_db.max() - DYNAMIC_RANGE_DB - level_db < 0

    def overlap_add(pieces: np.ndarray) -> np.ndarray:
        joined = np.zeros((len(pieces) + 1) * HOP)
        for index, segment in enumerate(pieces):
            joined[index * HOP : index * HOP + FRAME] += segment
        return joined

    return overlap_add(clean[active]), overlap_add(processed[active])


def envelopes(signal: np.ndarray) -> np.ndarray:
    """Compute band magnitudes over time, float64 `(15, frames)`."""
    power = np.abs(np.fft.rfft(frames(signal), NFFT)) ** 2
    return np.sqrt([power[:, first:last].sum(axis=1) for first, last in band_edges()])


def segments(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Every run of 30 frames of both envelopes, `(segments, 15, 30)`, or None."""
    pair = without_silence(resample(reference, rate_hz), resample(estimate, rate_hz))
    clean, processed = envelopes(pair[0]), envelopes(pair[1])
    if clean.shape[1] < SEGMENT_FRAMES:
        return None
    slide = np.lib.stride_tricks.sliding_window_view
    return (
        slide(clean, SEGMENT_FRAMES, axis=1).transpose(1, 0, 2),
        slide(processed, SEGMENT_FRAMES, axis=1).transpose(1, 0, 2),
    )


def no_direction(size: int, level: np.ndarray | float) -> np.ndarray | float:
    """The squared norm up to which `size` values around `level` are constant."""
    return size * (EPS * (1 + ROUNDING * level)) ** 2


def stoi(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float | None:
    """STOI: the mean correlation per band and segment, estimate clipped.

    The estimate is scaled and clipped to the reference.

    Args:
        reference, estimate: `(samples,)` each, of one length.

    Returns:
        At most 1; higher is better. None if fewer than 30 frames are not silent.
    """
    pair = segments(reference, estimate, rate_hz)
    if pair is None:
        return None
    clean, processed = pair

    def norm(rows: np.ndarray) -> np.ndarray:
        return np.sqrt((rows**2).sum(axis=2, keepdims=True))

    scaled = processed * (norm(clean) / (norm(processed) + EPS))
    clipped = np.minimum(scaled, clean * (1 + 10 ** (-CLIP_DB / 20)))
    x = clean - clean.mean(axis=2, keepdims=True)
    y = clipped - clipped.mean(axis=2, keepdims=True)
    return float((x / (norm(x) + EPS) * (y / (norm(y) + EPS))).sum(axis=2).mean())


def estoi(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float | None:
    """ESTOI: the mean correlation of segments' normalised spectra.

    Arguments and result are those of `stoi`.
    """
    pair = segments(reference, estimate, rate_hz)
    if pair is None:
        return None

    def unit(values: np.ndarray, axis: int, level: np.ndarray | float) -> np.ndarray:
        centred = values - values.mean(axis=axis, keepdims=True)
        power = (centred**2).sum(axis=axis, keepdims=True)
        floor = no_direction(values.shape[axis], level)
        return centred * np.where(power > floor, 1 / np.sqrt(np.maximum(power, floor)), 0.0)

    x, y = (unit(unit(rows, 2, np.abs(rows.mean(axis=2, keepdims=True))), 1, 1.0) for rows in pair)
    return float((x * y).sum() / SEGMENT_FRAMES / len(x))
