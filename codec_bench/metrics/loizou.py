"""Measures of enhanced speech as in Loizou's book: spectral distances, composite ratings and intelligibility indices."""

from __future__ import annotations

import math
from functools import cache
from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.metrics.pesq import PesqWb
from codec_bench.metrics.snr import EPS, SnrSeg
from codec_bench.types import Score

RATE_HZ = 16_000
WINDOW, HOP, FFT = 480, 120, 1024
BINS = FFT // 2
ORDER = 16
LOWEST_SHARE = 0.95
HANN = np.hanning(WINDOW + 2)[1:-1]
BOOK = "Loizou: Speech Enhancement: Theory and Practice, 2nd edition, CRC Press 2013"
SOURCE = "pysepm at 7ef88aff, to 1e-6"

_CENTRES_HZ = np.array([
    50.0, 120.0, 190.0, 260.0, 330.0, 400.0, 470.0, 540.0, 617.372, 703.378, 798.717, 904.128, 1020.38,
    1148.30, 1288.72, 1442.54, 1610.70, 1794.16, 1993.93, 2211.08, 2446.71, 2701.97, 2978.04, 3276.17, 3597.63,
])  # fmt: skip
_WIDTHS_HZ = np.array([
    70.0, 70.0, 70.0, 70.0, 70.0, 70.0, 70.0, 77.3724, 86.0056, 95.3398, 105.411, 116.256, 127.914,
    140.423, 153.823, 168.154, 183.457, 199.776, 217.153, 235.631, 255.255, 276.072, 298.126, 321.465, 346.136,
])  # fmt: skip
_SII_CENTRES_HZ = np.array([
    150, 250, 350, 450, 570, 700, 840, 1000, 1170, 1370, 1600, 1850, 2150, 2500, 2900, 3400,
    4000, 4800, 5800, 7000, 8500,
])  # fmt: skip
_SII_WIDTHS_HZ = np.array([100, 100, 100, 110, 120, 140, 150, 160, 190, 210, 240, 280, 320, 380, 450, 550])
_SII_IMPORTANCE = np.array([
    0.0192, 0.0312, 0.0926, 0.1031, 0.0735, 0.0611, 0.0495, 0.0440, 0.0440, 0.0490, 0.0486,
    0.0493, 0.0490, 0.0547, 0.0555, 0.0493, 0.0359, 0.0387, 0.0256, 0.0219, 0.0043,
])  # fmt: skip


def _frames(signal: np.ndarray) -> np.ndarray:
    """Frames of 30 ms at every 7.5 ms; the last whole one is dropped, as in the reference implementation."""
    return np.lib.stride_tricks.sliding_window_view(signal, WINDOW)[::HOP][: (signal.size - WINDOW) // HOP]


def _spectra(signal: np.ndarray) -> np.ndarray:
    """Complex spectra `(frames, 512)` of Hann-windowed frames."""
    return np.fft.rfft(_frames(signal) * HANN, FFT)[:, :BINS]


@cache
def _critical_bands() -> np.ndarray:
    """Gaussian critical-band filters `(25, 512)` of equal area, zero below -30 dB."""
    centres, widths = (values[:, None] / (RATE_HZ / 2) * BINS for values in (_CENTRES_HZ, _WIDTHS_HZ))
    filters = np.exp(-11.0 * ((np.arange(BINS) - np.floor(centres)) / widths) ** 2) * widths[0] / widths
    return np.where(filters > math.exp(-30.0 / (2.0 * 2.303)), filters, 0.0)


def _lowest_mean(values: np.ndarray) -> float:
    """The mean of the lowest 95 % of the frames."""
    return float(np.sort(values)[: round(values.size * LOWEST_SHARE)].mean())


def fwsegsnr_db(reference: np.ndarray, estimate: np.ndarray) -> float:
    """The frequency-weighted segmental SNR."""
    bands = []
    for signal in (reference, estimate):
        magnitudes = np.abs(_spectra(signal + EPS))
        bands.append(magnitudes / magnitudes.sum(axis=1, keepdims=True) @ _critical_bands().T)
    ratio_db = 10.0 * np.log10(bands[0] ** 2 / np.maximum((bands[0] - bands[1]) ** 2, EPS))
    weights = bands[0] ** 0.2
    return float(np.clip((weights * ratio_db).sum(axis=1) / weights.sum(axis=1), -10.0, 35.0).mean())


def _linear_prediction(signal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prediction polynomials and autocorrelations `(frames, 17)` of windowed frames, by Levinson's recursion."""
    frames = _frames(signal) * HANN
    lags = np.stack([(frames[:, : WINDOW - lag] * frames[:, lag:]).sum(axis=1) for lag in range(ORDER + 1)], axis=1)
    polynomial = np.zeros_like(lags)
    polynomial[:, 0] = 1.0
    error = lags[:, 0].copy()
    for order in range(1, ORDER + 1):
        reflection = -(polynomial[:, :order] * lags[:, order:0:-1]).sum(axis=1) / error
        polynomial[:, 1 : order + 1] += reflection[:, None] * polynomial[:, order - 1 :: -1][:, :order]
        error *= 1.0 - reflection**2
    return polynomial, lags


def frame_llrs(reference: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """The log-likelihood ratio of each frame, without an upper limit."""
    ours, lags = _linear_prediction(reference + EPS)
    theirs, _ = _linear_prediction(estimate + EPS)
    distance = np.abs(np.arange(ORDER + 1)[:, None] - np.arange(ORDER + 1))
    covariance = lags[:, distance]
    theirs_error, ours_error = (np.einsum("fi,fij,fj->f", one, covariance, one) for one in (theirs, ours))
    ratio = theirs_error / ours_error
    return np.log(np.where(np.isnan(ratio), np.inf, np.where(ratio <= 0.0, 1000.0, ratio)))


def _cepstra(polynomial: np.ndarray) -> np.ndarray:
    """Cepstral coefficients 1 to 16 of prediction polynomials."""
    cepstra = np.zeros((len(polynomial), ORDER))
    for n in range(1, ORDER + 1):
        k = np.arange(1, n)
        cepstra[:, n - 1] = -polynomial[:, n] - (k * cepstra[:, : n - 1] * polynomial[:, n - k]).sum(axis=1) / n
    return cepstra


def cepstral_distance(reference: np.ndarray, estimate: np.ndarray) -> float:
    """The cepstral distance in dB; a frame that is digitally silent on one side counts with its limit, 10."""
    difference = np.subtract(*(_cepstra(_linear_prediction(signal)[0]) for signal in (reference, estimate)))
    distance = 10.0 * math.sqrt(2.0) / math.log(10.0) * np.linalg.norm(difference, axis=1)
    return _lowest_mean(np.where(distance < 10.0, distance, 10.0))


def _peaks(levels: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The level near the peak that each slope leads to, as the book's program indexes it."""
    bands = np.arange(slopes.shape[1])
    falls = slopes <= 0
    next_fall = np.minimum.accumulate(np.where(falls, bands, slopes.shape[1])[:, ::-1], axis=1)[:, ::-1]
    last_rise = np.maximum.accumulate(np.where(falls, -1, bands), axis=1)
    return np.take_along_axis(levels, np.where(falls, last_rise + 1, next_fall - 1), axis=1)


def weighted_spectral_slope(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Klatt's distance between the slopes of critical-band spectra."""
    slopes, weights = [], []
    for signal in (reference, estimate):
        with np.errstate(divide="ignore"):
            levels = 10.0 * np.log10(np.abs(_spectra(signal + EPS)) ** 2 @ _critical_bands().T)
        levels = np.maximum(levels, -100.0)
        slope = np.diff(levels, axis=1)
        below_peak = _peaks(levels, slope) - levels[:, :-1]
        below_maximum = levels.max(axis=1, keepdims=True) - levels[:, :-1]
        slopes.append(slope)
        weights.append(20.0 / (20.0 + below_maximum) / (1.0 + below_peak))
    weight = (weights[0] + weights[1]) / 2.0
    return _lowest_mean((weight * (slopes[0] - slopes[1]) ** 2).sum(axis=1) / weight.sum(axis=1))


@cache
def _rounded_exponentials() -> np.ndarray:
    """The 16 auditory filters `(16, 512)` of the coherence index."""
    centres, widths = (values[:16, None] for values in (_SII_CENTRES_HZ, _SII_WIDTHS_HZ))
    steep = 4.0 * centres / widths * np.abs(1.0 - np.arange(BINS) * (RATE_HZ / FFT) / centres)
    return (1.0 + steep) * np.exp(-steep)


def coherence_index(reference: np.ndarray, estimate: np.ndarray, lowest_db: float, highest_db: float) -> float | None:
    """The coherence speech intelligibility index over the reference's frames in a range of levels.

    Args:
        reference, estimate: float64 `(samples,)` at 16 kHz. lowest_db, highest_db: of a frame, against the reference's
            root mean square.

    Returns:
        The index between 0 and 1, or None if fewer than two frames with sound on both sides are in the range: the
        coherence of one frame is always 1.
    """
    powers = (_frames(reference) ** 2).mean(axis=1)
    mean_power = (reference**2).mean()
    of_class = (powers >= mean_power * 10 ** (lowest_db / 10)) & (powers < mean_power * 10 ** (highest_db / 10))
    ours, theirs = (_spectra(signal)[of_class] for signal in (reference, estimate))
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = np.abs((ours * theirs.conj()).sum(axis=0)) ** 2
        coherence = cross / ((np.abs(ours) ** 2).sum(axis=0) * (np.abs(theirs) ** 2).sum(axis=0))
        coherence = np.minimum(coherence, 1.0)  # Rounding takes that of a copy beyond.
        power = np.abs(theirs) ** 2
        signal, noise = (power * share @ _rounded_exponentials().T for share in (coherence, 1.0 - coherence))
        ratio_db = np.clip(10.0 * np.log10(signal / noise), -15.0, 15.0)
    weights = _SII_IMPORTANCE[:16]
    index = (ratio_db + 15.0) / 30.0 @ weights / weights.sum()
    index = index[~np.isnan(index)]
    return float(index.mean()) if index.size > 1 else None


@cache
def _envelope_bands() -> tuple[tuple[tuple[np.ndarray, np.ndarray], ...], np.ndarray, np.ndarray]:
    """The 20 band-pass filters of the covariance measure, the importance of each, and the low-pass of envelopes."""
    from scipy.signal import butter

    def position(frequency_hz: float) -> float:
        return 35.0 / 2.1 * math.log10(frequency_hz / 165.0 + 1.0)

    first, last = position(300.0), position(RATE_HZ / 2 - 600.0)
    edges_hz = 165.0 * (10.0 ** ((first + (last - first) * np.arange(21) / 20.0) * 2.1 / 35.0) - 1.0)
    filters = tuple(butter(4, edges_hz[band : band + 2], "bandpass", fs=RATE_HZ) for band in range(20))
    importance = np.interp((edges_hz[:-1] + edges_hz[1:]) / 2.0, _SII_CENTRES_HZ, _SII_IMPORTANCE)
    low_pass = np.sinc(np.arange(-5000, 5001) / 500.0) * np.kaiser(10001, 5.0)
    return filters, importance, low_pass / low_pass.sum()


def normalized_covariance(reference: np.ndarray, estimate: np.ndarray) -> float:
    """The normalised covariance measure of 20 band envelopes at 32 Hz."""
    from scipy.signal import hilbert, lfilter, resample_poly

    filters, importance, low_pass = _envelope_bands()
    transmitted = []
    for numerator, denominator in filters:
        ours, theirs = (
            resample_poly(np.abs(hilbert(lfilter(numerator, denominator, signal))), 1, 500, window=low_pass)
            for signal in (reference, estimate)
        )
        ours, theirs = ours - ours.mean(), theirs - theirs.mean()
        energy = (ours**2).sum() * (theirs**2).sum()
        shared = (ours * theirs).sum() ** 2 / energy if energy else 0.0
        ratio_db = 10.0 * math.log10((shared + 1e-20) / (max(0.0, 1.0 - shared) + 1e-20))
        transmitted.append((min(15.0, max(-15.0, ratio_db)) + 15.0) / 30.0)
    return float(importance @ transmitted / importance.sum())


class _Loizou(ItemMetric):
    """The common part: signals at 16 kHz in float64, and when there is no value."""

    kind = "pair"
    rate_hz = RATE_HZ
    paper = BOOK
    source = SOURCE

    def _score(self, item: Inputs) -> Score:
        reference, estimate = (np.asarray(signal, np.float64) for signal in item.pair)
        if reference.size < WINDOW + HOP:
            reason = Diagnostic("few_samples_for_frames", samples=reference.size, rate_hz=RATE_HZ, needed=WINDOW + HOP)
            return Score.undefined(reason, self.protocol)
        if not reference.any():
            return Score.undefined(Diagnostic("reference_silent"), self.protocol)
        if not estimate.any():
            return Score.undefined(Diagnostic("estimate_is_silent"), self.protocol)
        return self._measure(item, reference, estimate)

    def _measure(self, item: Inputs, reference: np.ndarray, estimate: np.ndarray) -> Score:
        """The score of an item with sound on both sides."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return Score.ok(self._value(reference, estimate), self.protocol)

    def _value(self, reference: np.ndarray, estimate: np.ndarray) -> float:
        raise NotImplementedError


class FwSegSnr(_Loizou):
    """The frequency-weighted segmental SNR in dB, between -10 and 35. Higher is better.

    Each frame of 30 ms is normalised by the sum of its magnitudes, so a gain does not matter. 25 critical bands up to
    3.8 kHz count by the reference's magnitude to the power 0.2.

    Book: P. C. Loizou, "Speech Enhancement: Theory and Practice", 2nd edition, 2013. Reference implementation: pysepm's
    `fwSNRseg` at 7ef88aff, to 1e-6 dB.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("fwsegsnr")(reference=[clip], estimate=[coarse])[0]["fwsegsnr"].value, 1)
        11.0
    """

    name = "fwsegsnr"
    unit = "dB"
    range = (-10.0, 35.0)
    protocol = "fwsegsnr/loizou-16k"
    _value = staticmethod(fwsegsnr_db)


class Llr(_Loizou):
    """The log-likelihood ratio of linear predictions of order 16, between 0 and 2. Lower is better; a copy has 0.

    It compares spectral envelopes; a gain does not matter. The mean of the lowest 95 % of the frames, each at most 2.

    Book and reference implementation as for `fwsegsnr`: pysepm's `llr`, to 1e-6.
    """

    name = "llr"
    higher_is_better = False
    range = (0.0, 2.0)
    protocol = "llr/loizou-16k"

    def _value(self, reference: np.ndarray, estimate: np.ndarray) -> float:
        return max(0.0, _lowest_mean(np.minimum(frame_llrs(reference, estimate), 2.0)))


class Wss(_Loizou):
    """The weighted spectral slope distance (Klatt). Lower is better; a copy has 0.

    It compares the slopes of levels in 25 critical bands up to 3.8 kHz. The mean of the lowest 95 % of the frames.

    Book and reference implementation as for `fwsegsnr`: pysepm's `wss`, to 1e-6.
    """

    name = "wss"
    higher_is_better = False
    range = (0.0, None)
    protocol = "wss/loizou-16k"
    _value = staticmethod(weighted_spectral_slope)


class CepstralDistance(_Loizou):
    """The distance of cepstra of linear prediction in dB, between 0 and 10. Lower is better; a copy has 0.

    The mean of the lowest 95 % of the frames, each at most 10. `mcd` compares mel-cepstra.

    Book and reference implementation as for `fwsegsnr`: pysepm's `cepstrum_distance`, to 1e-6 dB.
    """

    name = "cd"
    higher_is_better = False
    unit = "dB"
    range = (0.0, 10.0)
    protocol = "cd/loizou-16k"
    _value = staticmethod(cepstral_distance)


class _Composite(_Loizou):
    """The common part of Hu and Loizou's ratings: a weighted sum of wide-band PESQ, LLR, WSS and segmental SNR."""

    unit = "MOS"
    range = (1.0, 5.0)
    paper = "Hu, Loizou: Evaluation of Objective Quality Measures for Speech Enhancement, IEEE TASLP 16(1), 2008"
    weights: ClassVar[tuple[float, float, float, float, float]]
    """Of the constant, PESQ, LLR, WSS and segmental SNR."""

    def _measure(self, item: Inputs, reference: np.ndarray, estimate: np.ndarray) -> Score:
        pesq, segmental = (metric._score(item) for metric in (PesqWb(), SnrSeg()))
        if pesq.value is None or segmental.value is None:
            return Score(None, pesq.status, pesq.reason, self.protocol)
        constant, of_pesq, of_llr, of_wss, of_segmental = self.weights
        value = constant + of_pesq * pesq.value + of_segmental * segmental.value
        with np.errstate(divide="ignore", invalid="ignore"):
            if of_llr:
                value += of_llr * _lowest_mean(frame_llrs(reference, estimate))
            value += of_wss * weighted_spectral_slope(reference, estimate)
        return Score.ok(min(5.0, max(1.0, value)), self.protocol)


class Csig(_Composite):
    """The composite rating of signal distortion (Hu, Loizou), between 1 and 5. Higher is better.

    Fitted to ratings of enhanced noisy speech; no claim for codecs. Undefined or refused where `pesq_wb` is.

    Paper: Y. Hu, P. C. Loizou, IEEE TASLP 16(1), 2008. Reference implementation: pysepm's `composite` at 16 kHz, to
    1e-6.
    """

    name = "csig"
    protocol = "csig/hu-loizou-pesq-wb"
    weights = (3.093, 0.603, -1.029, -0.009, 0.0)


class Cbak(_Composite):
    """The composite rating of background noise (Hu, Loizou), between 1 and 5. Higher is better; see `csig`."""

    name = "cbak"
    protocol = "cbak/hu-loizou-pesq-wb"
    weights = (1.634, 0.478, 0.0, -0.007, 0.063)


class Covl(_Composite):
    """The composite rating of overall quality (Hu, Loizou), between 1 and 5. Higher is better; see `csig`."""

    name = "covl"
    protocol = "covl/hu-loizou-pesq-wb"
    weights = (1.594, 0.805, -0.512, -0.007, 0.0)


class _Csii(_Loizou):
    """The common part of the three coherence indices: the levels of the reference's frames that count."""

    range = (0.0, 1.0)
    paper = "Kates, Arehart: Coherence and the Speech Intelligibility Index, JASA 117(4), 2005"
    levels_db: ClassVar[tuple[float, float]]

    def _measure(self, item: Inputs, reference: np.ndarray, estimate: np.ndarray) -> Score:
        value = coherence_index(reference, estimate, *self.levels_db)
        if value is None:
            return Score.undefined(Diagnostic("no_frames_at_level"), self.protocol)
        return Score.ok(value, self.protocol)


class CsiiHigh(_Csii):
    """The coherence speech intelligibility index of loud frames, between 0 and 1. Higher is better.

    Frames at or above the reference's root mean square; `csii_mid` takes those up to 10 dB below, `csii_low` the rest.
    Frames that are digitally silent on either side do not count.

    Paper: J. M. Kates, K. H. Arehart, JASA 117(4), 2005. Reference implementation: pysepm's `csii` at 7ef88aff, to
    1e-6.
    """

    name = "csii_high"
    protocol = "csii_high/loizou-16k"
    levels_db = (0.0, math.inf)


class CsiiMid(_Csii):
    """The coherence index of frames up to 10 dB below the reference's level; see `csii_high`."""

    name = "csii_mid"
    protocol = "csii_mid/loizou-16k"
    levels_db = (-10.0, 0.0)


class CsiiLow(_Csii):
    """The coherence index of frames more than 10 dB below the reference's level; see `csii_high`."""

    name = "csii_low"
    protocol = "csii_low/loizou-16k"
    levels_db = (-math.inf, -10.0)


class Ncm(_Loizou):
    """The normalised covariance measure of envelopes, between 0 and 1. Higher is better: more intelligible.

    It correlates the envelopes of 20 bands (300 Hz to 7.4 kHz), sampled at 32 Hz; a gain does not matter.

    Paper: J. Ma, Y. Hu, P. C. Loizou, JASA 125(5), 2009. Reference implementation: pysepm's `ncm` at 7ef88aff, to 1e-6.
    """

    name = "ncm"
    range = (0.0, 1.0)
    paper = "Ma, Hu, Loizou: Objective Measures for Predicting Speech Intelligibility in Noisy Conditions, JASA 125(5), 2009"
    protocol = "ncm/loizou-16k"
    _value = staticmethod(normalized_covariance)
