"""SNR, segmental SNR and logWMSE: the energy of the difference from the reference."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Score

FRAME_S, OVERLAP = 0.03, 0.75
LOWEST_DB, HIGHEST_DB = -10.0, 35.0
EPS = float(np.finfo(np.float64).eps)


class Snr(ItemMetric):
    """Signal-to-noise ratio in dB. Higher is better.

    `10 log10(|r|^2 / |r - e|^2)` at the reference's own rate, in float64, without torchmetrics' epsilons. Means are not
    removed. The level counts: an estimate at half the level has 6 dB. Like `si_sdr` it compares waveforms, so it says
    little about codecs that do not preserve the phase. Undefined for a silent reference and for an exact copy.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("snr")(reference=[clip], estimate=[coarse])[0]["snr"].value)
        21
    """

    name = "snr"
    kind = "pair"
    waveform = True
    implausible = -20.0
    unit = "dB"
    protocol = "snr/no-zero-mean"
    source = "torchmetrics signal_noise_ratio in float64, to 1e-4 dB"

    def _score(self, item: Inputs) -> Score:
        """Return the ratio of the reference's energy to the difference's energy in dB."""
        reference, estimate = (np.asarray(signal, np.float64) for signal in item.pair)
        # Sums of products and not BLAS dots, because their rounding does not depend on the number of threads.
        energy, noise = float((reference**2).sum()), float(((reference - estimate) ** 2).sum())
        if energy == 0.0:
            return Score.undefined(Diagnostic("reference_silent"), self.protocol)
        if noise == 0.0:
            return Score.undefined(Diagnostic("exact_copy"), self.protocol)
        return Score.ok(10.0 * math.log10(energy / noise), self.protocol)


class SnrSeg(ItemMetric):
    """Segmental SNR: mean of frames, each -10 to 35 dB. Higher is better.

    Hann windows of 30 ms with a hop of a quarter (Loizou's section 11.1): quiet frames count as much as loud ones.
    Frames with a silent reference count -10 dB, exact copies of other frames 35 dB. The last frame is omitted, as in
    the reference implementation. At the reference's own rate. Undefined below two frames (37.5 ms) and for a silent
    reference.
    """

    name = "snr_seg"
    kind = "pair"
    waveform = True
    unit = "dB"
    range = (LOWEST_DB, HIGHEST_DB)
    protocol = "snr_seg/loizou-30ms-hann-75%/-10-to-35db"
    paper = "Loizou: Speech Enhancement: Theory and Practice, 2nd edition, CRC Press 2013"
    source = "pysepm SNRseg at 7ef88aff, to 1e-6 dB"

    def _score(self, item: Inputs) -> Score:
        return item.once(type(self).score_pair)

    @classmethod
    def score_pair(cls, item: Inputs) -> Score:
        """Score an item; ratings that combine several measures call it too."""
        reference, estimate = (np.asarray(signal, np.float64) for signal in item.pair)
        window, hop = round(FRAME_S * item.rate_hz), int((1 - OVERLAP) * FRAME_S * item.rate_hz)
        frames = (reference.size - (window - hop)) // hop - 1
        if frames < 1:
            facts = {"samples": reference.size, "rate_hz": item.rate_hz, "needed": window + hop}
            return Score.undefined(Diagnostic("few_samples_for_frames", **facts), cls.protocol)
        if not reference.any():
            return Score.undefined(Diagnostic("reference_silent"), cls.protocol)
        weights = 0.5 * (1 - np.cos(2 * np.pi * np.arange(1, window + 1) / (window + 1)))
        # The energy of a windowed frame is a sum of squares weighted with the window's squares.
        energy, noise = (
            np.lib.stride_tricks.sliding_window_view(squares, window)[::hop][:frames] @ weights**2
            for squares in (reference**2, (reference - estimate) ** 2)
        )
        each = np.clip(10.0 * np.log10(energy / (noise + EPS) + EPS), LOWEST_DB, HIGHEST_DB)
        return Score.ok(float(each.mean()), cls.protocol, detail={"frames": frames})


class LogWmse(ItemMetric):
    """logWMSE: log energy of the error, filtered as the ear. Higher is better.

    `-4 ln(E(e - r) / E(r) + 1e-8)`, where `E` is the energy after the filter. 73.68 is a copy, 0 an error as loud as
    the reference. The reference serves as the unprocessed signal that gives the scale. Signals at 44.1 kHz. Like `snr`
    it compares waveforms. Undefined for a silent reference. By github.com/nomonosound/log-wmse-audio-quality.
    """

    name = "log_wmse"
    kind = "pair"
    waveform = True
    rate_hz = 44_100
    range = (None, -4.0 * math.log(1e-8))
    protocol = "log_wmse/torch-log-wmse-1/reference-unprocessed"
    source = "torch-log-wmse 1.1.0 LogWMSE with the reference as the unprocessed signal, to 1e-4"

    def _score(self, item: Inputs) -> Score:
        """Return the log ratio of the error's and the reference's filtered energy."""
        reference, estimate = (np.asarray(signal, np.float64) for signal in item.pair)
        if not reference.any():
            return Score.undefined(Diagnostic("reference_silent"), self.protocol)
        error = _audible_energy(estimate - reference) / max(_audible_energy(reference), 1e-16 * reference.size)
        return Score.ok(-4.0 * math.log(error + 1e-8), self.protocol)


@cache
def _sensitivity() -> np.ndarray:
    return np.load(Path(__file__).with_name("log_wmse_filter.npy"), allow_pickle=False).astype(np.float64)


def _audible_energy(signal: np.ndarray) -> float:
    """Return a 44.1 kHz signal's energy after the hearing filter, its tail included."""
    from scipy.signal import oaconvolve

    return float((oaconvolve(signal, _sensitivity()) ** 2).sum())
