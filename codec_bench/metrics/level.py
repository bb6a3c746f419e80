"""Level metrics: loudness error, true peak and clipped samples."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from codec_bench.audio.loudness import PROTOCOL, loudness_lufs
from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Audio, Score

FULL_SCALE = 32767 / 32768
"""The highest level of 16-bit samples with either sign."""
RUN_SAMPLES = 3
PEAK_RATE_HZ = 192_000
"""BS.1770 measures the peak at four times 48 kHz."""


class LoudnessError(ItemMetric):
    """The absolute difference of integrated loudness in LU. Lower is better.

    Gated BS.1770 loudness of each side at the reference's own rate. A gain of x dB counts x. `detail["louder_lu"]` is
    positive where the estimate is louder. Undefined where a side is shorter than 0.4 s or nowhere above -70 LUFS.

    Examples:
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> quiet = Audio(clip.samples / 2, clip.sample_rate_hz)
        >>> round(load_metric("loudness_error")(reference=[clip], estimate=[quiet])[0]["loudness_error"].value, 2)
        6.02
    """

    name = "loudness_error"
    kind = "pair"
    unit = "LU"
    higher_is_better = False
    range = (0.0, None)
    protocol = f"loudness_error/{PROTOCOL}"
    paper = "ITU-R BS.1770-4, annex 1"
    source = "FFmpeg's ebur128, to 0.1 LU"

    def _score(self, item: Inputs) -> Score:
        """Compare the integrated loudness of estimate and reference."""
        reference, estimate = (loudness_lufs(Audio(signal, item.rate_hz)) for signal in item.pair)
        if reference is None or estimate is None:
            role = "reference" if reference is None else "estimate"
            return Score.undefined(Diagnostic("too_quiet", side=role), self.protocol)
        louder = estimate - reference
        return Score.ok(abs(louder), self.protocol, detail={"louder_lu": round(louder, 4)})


class _Uncut(ItemMetric):
    """Base class of metrics that read the estimate beyond full scale."""

    kind = "single"
    higher_is_better = False

    def prepare_signal(self, signal: np.ndarray) -> np.ndarray:
        """Return the signal uncut."""
        return signal


class TruePeak(_Uncut):
    """The highest level, also between samples, in dBTP. Lower is better.

    Above 0 a player or the next encoder will clip; broadcasters require -1 at most (EBU R 128). The estimate is
    resampled from the reference's rate to 192 kHz, and the largest magnitude counts. A clip of full scale that a codec
    coded is often above 0. Undefined for digital silence.

    Examples:
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> round(load_metric("true_peak")(estimate=[clip])[0]["true_peak"].value, 1)
        -2.9
    """

    name = "true_peak"
    unit = "dB"
    protocol = "true_peak/bs1770-4-192khz"
    paper = "ITU-R BS.1770-4, annex 2"
    source = "FFmpeg's ebur128 with peak=true, to 0.1 dB for speech (white noise: 0.5 dB); EBU Tech 3341's signals"

    def _score(self, item: Inputs) -> Score:
        """Resample the estimate to 192 kHz and take its largest magnitude in dB."""
        from codec_bench.audio.resample import resample

        signal = np.asarray(item.estimate, np.float32)
        above = resample(signal, item.rate_hz, PEAK_RATE_HZ) if item.rate_hz < PEAK_RATE_HZ else signal
        peak = max((float(np.abs(waveform).max()) for waveform in (signal, above) if waveform.size), default=0.0)
        if peak == 0.0:
            return Score.undefined(Diagnostic("digital_silence"), self.protocol)
        return Score.ok(20 * math.log10(peak), self.protocol)


class ClippedShare(_Uncut):
    """The share of the estimate's samples that are clipped, 0 to 1. Lower is better.

    Clipped samples are at least three in a row at or beyond full scale (32767/32768) with one sign. A single one is a
    peak brought to full scale. An estimate at another rate is resampled to the reference's first, where runs may end.

    Examples:
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> loud = Audio((8 * clip.samples).clip(-1, 1), clip.sample_rate_hz)
        >>> load_metric("clipped_share")(estimate=[clip])[0]["clipped_share"].value
        0.0
        >>> load_metric("clipped_share")(estimate=[loud])[0]["clipped_share"].value > 0.01
        True
    """

    name = "clipped_share"
    range: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    protocol = f"clipped_share/{RUN_SAMPLES}-in-a-row"
    source = "the rule of Audacity's Find Clipping, counted by hand"

    def _score(self, item: Inputs) -> Score:
        """Count the samples in runs at full scale, positive and negative."""
        signal = np.asarray(item.estimate)
        if not signal.size:
            return Score.undefined(Diagnostic("no_samples"), self.protocol)
        clipped = sum(_in_runs(waveform >= FULL_SCALE) for waveform in (signal, -signal))
        return Score.ok(clipped / signal.size, self.protocol)


def _in_runs(high: np.ndarray) -> int:
    """Count the True samples in runs of at least `RUN_SAMPLES`."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], high, [False])).astype(np.int8)))
    lengths = edges[1::2] - edges[::2]
    return int(lengths[lengths >= RUN_SAMPLES].sum())
