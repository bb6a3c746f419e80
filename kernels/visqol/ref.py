"""ViSQOL in NumPy: gammatone spectrograms, and similarity and matching of patches.

Paper: M. Chinen, F. S. C. Lim, J. Skoglund, N. Gureev, F. O'Gorman, A. Hines, "ViSQOL v3: An Open Source Production
Ready Objective Speech and Audio Metric", QoMEX 2020. Reference implementation: visqol-python 3.8.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

EAR_Q, MIN_BANDWIDTH_HZ = 9.26449, 24.7
STAGES = 4
WEIGHTS = (0.0113033910173052, 0.0838251475442633, 0.619485845753726)
"""Of the corners, the edges and the centre of the 3 x 3 window around a cell."""
C1, C3 = 0.01**2, 0.03**2 / 2
LOWEST_DB, RANGE_DB = -45.0, 45.0


@lru_cache(maxsize=8)
def filters(rate_hz: int, bands: int, low_hz: float, high_hz: float) -> np.ndarray:
    """Gammatone filters from `low_hz` to `high_hz`, lowest band first.

    Returns:
        float64 `(10, bands)`: for each of the four stages two coefficients of the samples, then two of the outputs.
    """
    shift = EAR_Q * MIN_BANDWIDTH_HZ
    step = (np.log(low_hz + shift) - np.log(high_hz + shift)) / bands
    centre = (-shift + np.exp(np.arange(1, bands + 1) * step) * (high_hz + shift))[::-1]
    t = 1.0 / rate_hz
    width = 1.019 * 2.0 * np.pi * (centre / EAR_Q + MIN_BANDWIDTH_HZ)
    angle = 2.0 * centre * np.pi * t
    decay = np.exp(width * t)
    cosine, sine = np.cos(angle), np.sin(angle)
    near, far = np.sqrt(3.0 - 2.0**1.5), np.sqrt(3.0 + 2.0**1.5)
    turns = (far, -far, near, -near)
    firsts = [-(2.0 * t * cosine / decay + 2.0 * t * turn * sine / decay) / 2.0 for turn in turns]
    turned = np.exp(2j * angle)
    damped = 2.0 * np.exp(-width * t + 1j * angle) * t
    poles = -2.0 / np.exp(2.0 * width * t) - 2.0 * turned + 2.0 * (1.0 + turned) / decay
    zeros = [-2.0 * turned * t + damped * (cosine + turn * sine) for turn in (-near, near, -far, far)]
    gain = np.abs(zeros[0] * zeros[1] * zeros[2] * zeros[3] / poles**4)
    rows = []
    for stage, first in enumerate(firsts):
        scale = gain if stage == 0 else 1.0
        rows += [np.full(bands, t) / scale, first / scale]
    return np.ascontiguousarray([*rows, -2.0 * cosine / decay, np.exp(-2.0 * width * t)])


def spectrogram(signal: np.ndarray, window: int, hop: int, coefficients: np.ndarray) -> np.ndarray:
    """Every band's RMS in every frame, `(bands, frames)`, filtered from rest.

    Args:
        signal: float64 `(samples,)`, more than a window. window, hop: in samples. coefficients: from `filters`.
    """
    from scipy.signal import lfilter

    frames = np.lib.stride_tricks.sliding_window_view(signal, window)[::hop] * hann(window)
    out = np.empty((coefficients.shape[1], len(frames)))
    for band, c in enumerate(coefficients.T):
        y = frames
        for stage in range(STAGES):
            y = lfilter([c[2 * stage], c[2 * stage + 1], 0.0], [1.0, c[8], c[9]], y, axis=1)
        out[band] = np.sqrt(np.mean(y**2, axis=1))
    return out


@lru_cache(maxsize=8)
def hann(window: int) -> np.ndarray:
    """The symmetric Hann window, float64 `(window,)`."""
    return 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(window) / (window - 1))


def levels(reference: np.ndarray, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two spectrograms in dB, at least 45 dB below the louder and -45 dB."""
    both = []
    for spectrum in (reference, estimate):
        level = 10.0 * np.log10(np.where(spectrum == 0, np.finfo(np.float64).eps, spectrum))
        both.append(np.maximum(level, LOWEST_DB))
    shared = min(level.shape[1] for level in both)
    floor = np.maximum(both[0][:, :shared].max(axis=0), both[1][:, :shared].max(axis=0)) - RANGE_DB
    for level in both:
        level[:, :shared] = np.maximum(level[:, :shared], floor)
    lowest = min(both[0].min(), both[1].min())
    return both[0] - lowest, both[1] - lowest


def similarity(reference: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """NSIM of two patches of one shape at every cell, `(bands, frames)`."""
    mean_r, mean_e = _smoothed(reference), _smoothed(estimate)
    spread_r = _smoothed(reference * reference) - mean_r * mean_r
    spread_e = _smoothed(estimate * estimate) - mean_e * mean_e
    together = _smoothed(reference * estimate) - mean_r * mean_e
    product = spread_r * spread_e
    below = np.where(product < 0, C3, np.sqrt(np.maximum(product, 0.0)) + C3)
    brightness = (2.0 * mean_r * mean_e + C1) / (mean_r * mean_r + mean_e * mean_e + C1)
    return np.asarray(brightness * ((together + C3) / below))


def similarities(patches: np.ndarray, levels: np.ndarray, places: np.ndarray, radius: int) -> np.ndarray:
    """Compute every patch's mean similarity with the estimate from every frame on.

    The estimate is zero beyond its end.

    Args:
        patches: float64 `(patches, bands, frames)`, of the reference. levels: float64 `(bands, frames)`, of the
            estimate.
        places: the patches' first frames in the reference. radius: of the search in frames; 0 beyond.

    Returns:
        float64 `(patches, frames of the estimate)`.
    """
    width = patches.shape[2]
    padded = np.pad(levels, ((0, 0), (0, width)))
    out = np.zeros((len(patches), levels.shape[1]))
    for row, patch, position in zip(out, patches, places, strict=True):
        for start in range(max(0, position - radius), min(levels.shape[1], position + radius + 1)):
            row[start] = similarity(patch, padded[:, start : start + width]).mean()
    return out


def best_path(similarities: np.ndarray, places: np.ndarray, radius: int) -> list[tuple[int, bool]]:
    """Choose a frame of the estimate per patch, for the largest similarity.

    A later patch begins at a later frame, unless it adds nothing and counts as lost.

    Args:
        similarities: float64 `(patches, frames)`, from `similarities`.
        places: the patches' first frames in the reference. radius: of the search in frames.

    Returns:
        For each patch the frame, and whether it is lost.
    """
    count, frames = similarities.shape
    total, before = np.zeros((count, frames)), np.full((count, frames), -1)
    windows = [slice(max(0, position - radius), min(frames, position + radius + 1)) for position in places]
    total[0, windows[0]] = similarities[0, windows[0]]
    for p in range(1, count):
        past, first = total[p - 1], windows[p - 1].start
        best, where = np.full(frames, -np.inf), np.full(frames, -1)
        best[first + 1 :] = np.maximum.accumulate(past[first : frames - 1])
        hits = np.where(past[first : frames - 1] == best[first + 1 :], np.arange(first, frames - 1), -1)
        where[first + 1 :] = np.maximum.accumulate(hits)
        score = similarities[p] + best
        dropped = past > score
        total[p, windows[p]] = np.where(dropped, past, score)[windows[p]]
        before[p, windows[p]] = np.where(dropped, np.arange(frames), where)[windows[p]]
    at = windows[-1].start + int(np.argmax(total[-1, windows[-1]]))
    out: list[tuple[int, bool]] = []
    for p in range(count - 1, -1, -1):
        out.append((at, bool(before[p, at] == at)))
        at = int(before[p, at])
    return out[::-1]


def _smoothed(x: np.ndarray) -> np.ndarray:
    corner, edge, centre = WEIGHTS
    kernel = ((corner, edge, corner), (edge, centre, edge), (corner, edge, corner))
    padded = np.pad(x, 1, mode="edge")
    out = np.zeros(x.shape)
    for row in range(3):
        for column in range(3):
            out += kernel[row][column] * padded[row : row + x.shape[0], column : column + x.shape[1]]
    return out
