"""SRMR: reverberation and noise of speech, by the speed of its loudness changes."""

from __future__ import annotations

from functools import cache

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Score

RATE_HZ, FFT, WINDOW, HOP = 16_000, 512, 160, 40
BANDS, LOWEST_HZ = 23, 125.0
ENVELOPE_RATE_HZ = RATE_HZ / HOP
MODULATIONS_HZ = 4.0 * 32.0 ** (np.arange(8) / 7.0)
QUALITY = 2.0
SEGMENT, SEGMENT_HOP = 103, 26
EAR_QUALITY, LEAST_WIDTH_HZ = 9.26449, 24.7


def _centres_hz() -> np.ndarray:
    """Return the centres of 23 gammatone filters, evenly spaced in ERB, rising."""
    offset = EAR_QUALITY * LEAST_WIDTH_HZ
    high, low = np.log(RATE_HZ / 2 + offset), np.log(LOWEST_HZ + offset)
    return np.exp(high + (low - high) * np.arange(BANDS, 0, -1) / BANDS) - offset


@cache
def _gammatone_magnitudes() -> np.ndarray:
    """Return the responses `(23, 257)` of Slaney's gammatone filters, 1 at the centre."""
    centres = _centres_hz()[:, None]
    radius = np.exp(-1.019 * 2.0 * np.pi * (centres / EAR_QUALITY + LEAST_WIDTH_HZ) / RATE_HZ)
    angle = 2.0 * np.pi * centres / RATE_HZ
    slopes = np.array([1, -1, 1, -1]) * np.sqrt(3.0 + np.array([1, 1, -1, -1]) * 2.0**1.5)
    zeros = radius * (np.cos(angle) + slopes * np.sin(angle))
    pole = radius * np.exp(1j * angle)

    def magnitude(points: np.ndarray) -> np.ndarray:
        numerator = np.prod(np.abs(points[:, None] - zeros[:, :, None]), axis=1)
        return numerator / np.abs((points - pole) * (points - pole.conj())) ** 4

    circle = np.broadcast_to(np.exp(2j * np.pi * np.arange(FFT // 2 + 1) / FFT), (BANDS, FFT // 2 + 1))
    return magnitude(circle) / magnitude(np.exp(1j * angle))


def srmr(signal: np.ndarray) -> float | None:
    """Compute the ratio of slow (4 to 14 Hz) to fast modulation energy of a signal.

    The energies are those of the envelopes of 23 gammatone bands.

    Args:
        signal: float64 `(samples,)` at 16 kHz, not silent.

    Returns:
        The ratio, or None for fewer than 4,592 samples.
    """
    from scipy.signal import lfilter

    columns = 1 + (signal.size - FFT) // HOP
    segments = 1 + (columns - SEGMENT) // SEGMENT_HOP
    if segments < 1:
        return None
    window = np.zeros(FFT)
    window[(FFT - WINDOW) // 2 : (FFT + WINDOW) // 2] = np.hanning(WINDOW + 1)[:-1]
    frames = np.lib.stride_tricks.sliding_window_view(signal, FFT)[: signal.size - FFT : HOP]
    envelopes = np.zeros((BANDS, columns))
    envelopes[:, : len(frames)] = _gammatone_magnitudes() @ np.abs(np.fft.rfft(frames * window, FFT)).T / FFT
    weights = np.hamming(SEGMENT + 1)[:-1] ** 2
    energy = np.zeros((BANDS, MODULATIONS_HZ.size))
    tangent = np.tan(np.pi * MODULATIONS_HZ / ENVELOPE_RATE_HZ)
    for number, (w, b) in enumerate(zip(tangent, tangent / QUALITY, strict=True)):
        modulated = lfilter([b, 0.0, -b], [1.0 + b + w**2, 2.0 * w**2 - 2.0, 1.0 - b + w**2], envelopes, axis=1)
        pieces = np.lib.stride_tricks.sliding_window_view(modulated**2, SEGMENT, axis=1)[:, ::SEGMENT_HOP]
        energy[:, number] = (pieces[:, :segments] @ weights).mean(axis=1)
    # SRMRpy's fast path adds up from the highest band, but reads the bandwidth from the lowest.
    shares = np.cumsum(energy.sum(axis=1)[::-1]) / energy.sum()
    width_hz = (_centres_hz() / EAR_QUALITY + LEAST_WIDTH_HZ)[int(np.argmax(shares > 0.9))]
    cutoffs_hz = MODULATIONS_HZ - tangent / QUALITY * ENVELOPE_RATE_HZ / (2.0 * np.pi)
    last = 5 + int((cutoffs_hz[5:] < width_hz).sum())
    return float(energy[:, :4].sum() / energy[:, 4:last].sum())


class Srmr(ItemMetric):
    """Speech-to-reverberation modulation energy ratio. Higher is better.

    Clean speech changes its loudness a few times a second; reverberation and noise add faster changes. It reads the
    estimate alone, so it depends on the voice and the text: compare means over the same texts. A gain does not matter.
    Undefined for digital silence and for less than 0.287 s.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("srmr")(estimate=[coarse])[0]["srmr"].value, 1)
        3.9
    """

    name = "srmr"
    kind = "single"
    rate_hz = RATE_HZ
    range = (0.0, None)
    protocol = "srmr/srmrpy-fast-16k"
    paper = "Falk, Zheng, Chan: A Non-Intrusive Quality and Intelligibility Measure, IEEE TASLP 18(7), 2010"
    source = "SRMRpy srmr(fast=True), to 1e-6 relative"

    def _score(self, item: Inputs) -> Score:
        """Compute the ratio; undefined for an estimate that is silent or too short."""
        estimate = np.asarray(item.estimate, np.float64)
        if not estimate.any():
            return Score.undefined(Diagnostic("digital_silence"), self.protocol)
        value = srmr(estimate)
        if value is None:
            return Score.undefined(Diagnostic("srmr_too_short"), self.protocol)
        return Score.ok(value, self.protocol)
