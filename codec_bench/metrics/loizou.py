"""Loizou's measures of enhanced speech: distances, composites, intelligibility.

Written from the publications that the classes name. All read 16 kHz in Hann-windowed frames of 30 ms, a quarter apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.metrics.pesq import PesqWb
from codec_bench.metrics.snr import EPS, SnrSeg
from codec_bench.types import Score

RATE_HZ = 16_000
FRAME, STEP, FFT, BINS = 480, 120, 1024, 512
LPC_ORDER = 16
TRIMMED_SHARE = 0.95
SOURCE = "outputs of pysepm at 7ef88aff, to 1e-6"
HU_LOIZOU = "Hu, Loizou: Evaluation of Objective Quality Measures for Speech Enhancement, IEEE TASLP 16(1), 2008"

CRITICAL_BANDS = np.array([
    (50.0, 70.0), (120.0, 70.0), (190.0, 70.0), (260.0, 70.0), (330.0, 70.0), (400.0, 70.0), (470.0, 70.0),
    (540.0, 77.3724), (617.372, 86.0056), (703.378, 95.3398), (798.717, 105.411), (904.128, 116.256),
    (1020.38, 127.914), (1148.30, 140.423), (1288.72, 153.823), (1442.54, 168.154), (1610.70, 183.457),
    (1794.16, 199.776), (1993.93, 217.153), (2211.08, 235.631), (2446.71, 255.255), (2701.97, 276.072),
    (2978.04, 298.126), (3276.17, 321.465), (3597.63, 346.136),
])  # fmt: skip
"""Centres and widths in Hz (Loizou, table of the critical-band filters)."""
ANSI_BANDS = np.array([
    (150, 100, 0.0192), (250, 100, 0.0312), (350, 100, 0.0926), (450, 110, 0.1031), (570, 120, 0.0735),
    (700, 140, 0.0611), (840, 150, 0.0495), (1000, 160, 0.0440), (1170, 190, 0.0440), (1370, 210, 0.0490),
    (1600, 240, 0.0486), (1850, 280, 0.0493), (2150, 320, 0.0490), (2500, 380, 0.0547), (2900, 450, 0.0555),
    (3400, 550, 0.0493), (4000, 700, 0.0359), (4800, 900, 0.0387), (5800, 1100, 0.0256), (7000, 1300, 0.0219),
    (8500, 1800, 0.0043),
])  # fmt: skip
"""Centres and widths in Hz, and importance, of the critical bands of ANSI S3.5-1997."""
COHERENCE_BANDS = ANSI_BANDS[:16]
ENVELOPE_HZ, ENVELOPE_BANDS, ENVELOPE_RANGE_HZ = 32, 20, (300.0, 7400.0)


class _Frames:
    """The frames of a 16 kHz signal, less the last whole one, and their spectra."""

    def __init__(self, signal: np.ndarray) -> None:
        # The smallest step of float64 keeps frames of digital silence from being divided by 0.
        self.signal = np.asarray(signal, np.float64) + EPS
        count = (self.signal.size - FRAME) // STEP
        self.raw = np.lib.stride_tricks.sliding_window_view(self.signal, FRAME)[::STEP][:count]

    @cached_property
    def windowed(self) -> np.ndarray:
        return self.raw * np.hanning(FRAME + 2)[1:-1]

    @cached_property
    def spectrum(self) -> np.ndarray:
        """Complex, `(frames, 512)`."""
        return np.fft.rfft(self.windowed, FFT)[:, :BINS]

    @cached_property
    def magnitude(self) -> np.ndarray:
        """`(frames, 512)`."""
        return np.abs(self.spectrum)

    @cached_property
    def power(self) -> np.ndarray:
        """Mean squares `(frames,)` without the window."""
        return (self.raw**2).mean(axis=1)

    @cached_property
    def autocorrelation(self) -> np.ndarray:
        """`(frames, 17)`."""
        x = self.windowed
        return np.stack([(x[:, : FRAME - lag] * x[:, lag:]).sum(axis=1) for lag in range(LPC_ORDER + 1)], axis=1)

    @cached_property
    def predictor(self) -> np.ndarray:
        """Linear prediction polynomials `(frames, 17)` by the Levinson-Durbin recursion."""
        lags = self.autocorrelation
        polynomial = np.zeros_like(lags)
        polynomial[:, 0], error = 1.0, lags[:, 0]
        for order in range(1, LPC_ORDER + 1):
            reflection = -(polynomial[:, :order] * lags[:, order:0:-1]).sum(axis=1) / error
            polynomial[:, 1 : order + 1] += reflection[:, None] * polynomial[:, order - 1 :: -1][:, :order]
            error = error * (1.0 - reflection**2)
        return polynomial

    @cached_property
    def cepstrum(self) -> np.ndarray:
        """Cepstra of the linear predictions, `(frames, 16)`."""
        a = self.predictor
        cepstrum = np.zeros_like(a)
        for n in range(1, LPC_ORDER + 1):
            earlier = np.arange(1, n) * cepstrum[:, 1:n] * a[:, n - 1 : 0 : -1]
            cepstrum[:, n] = -a[:, n] - earlier.sum(axis=1) / n
        return cepstrum[:, 1:]


@cache
def _critical_band_filters() -> np.ndarray:
    """Return Gaussian filters `(25, 512)` of equal area, zero below -30 dB."""
    centre, width = (column[:, None] * BINS / (RATE_HZ / 2) for column in CRITICAL_BANDS.T)
    gain = (width[0] / width) * np.exp(-11.0 * ((np.arange(BINS) - np.floor(centre)) / width) ** 2)
    return np.where(gain > np.exp(-30.0 / (2.0 * 2.303)), gain, 0.0)


@cache
def _rounded_exponential_filters() -> np.ndarray:
    """Return filters `(16, 512)` of Moore and Glasberg, `(1 + p g) exp(-p g)`."""
    centre, width = COHERENCE_BANDS[:, 0, None], COHERENCE_BANDS[:, 1, None]
    slope = 4.0 * centre / width * np.abs(1.0 - np.arange(BINS) * (RATE_HZ / 2) / BINS / centre)
    return (1.0 + slope) * np.exp(-slope)


def _trimmed_mean(values: np.ndarray) -> float:
    return float(np.sort(values)[: round(TRIMMED_SHARE * values.size)].mean())


def _audibility(ratio: np.ndarray | np.float64) -> np.ndarray:
    """Map a band's level ratio to its audible share: 0 at -15 dB, 1 at 15 dB."""
    return np.asarray((np.clip(10.0 * np.log10(ratio), -15.0, 15.0) + 15.0) / 30.0)


def segmental_snr_db(reference: _Frames, estimate: _Frames) -> float:
    """Compute the mean frequency-weighted segmental SNR in critical bands, in dB."""
    bands = []
    for frames in (reference, estimate):
        magnitude = frames.magnitude
        bands.append(magnitude / magnitude.sum(axis=1, keepdims=True) @ _critical_band_filters().T)
    level, weight = bands[0], bands[0] ** 0.2
    ratio_db = 10.0 * np.log10(level**2 / np.maximum((level - bands[1]) ** 2, EPS))
    return float(np.clip((weight * ratio_db).sum(axis=1) / weight.sum(axis=1), -10.0, 35.0).mean())


def log_likelihood_ratios(reference: _Frames, estimate: _Frames) -> np.ndarray:
    """Compute the log-likelihood ratio (LLR) of linear predictions for each frame."""
    lags = np.abs(np.subtract.outer(np.arange(LPC_ORDER + 1), np.arange(LPC_ORDER + 1)))
    matrix = reference.autocorrelation[:, lags]
    errors = [np.einsum("fi,fij,fj->f", frames.predictor, matrix, frames.predictor) for frames in (estimate, reference)]
    return np.log(errors[0] / errors[1])


def cepstral_distance_db(reference: _Frames, estimate: _Frames) -> float:
    """Mean distance of linear-prediction cepstra over the 95 % closest frames, in dB.

    A frame counts at most 10 dB.
    """
    distances = np.sqrt(2.0 * ((reference.cepstrum - estimate.cepstrum) ** 2).sum(axis=1))
    return _trimmed_mean(np.minimum(10.0 / np.log(10.0) * distances, 10.0))


def spectral_slope_distance(reference: _Frames, estimate: _Frames) -> float:
    """Compute Klatt's weighted spectral slope distance (WSS) of two signals.

    It is the mean over the 95 % of frames with the smallest distances.
    """
    slopes, weights = [], []
    for frames in (reference, estimate):
        energy = frames.magnitude**2 @ _critical_band_filters().T
        level = 10.0 * np.log10(np.maximum(energy, 1e-10))
        below, slope = level[:, :-1], np.diff(level, axis=1)
        largest = level.max(axis=1, keepdims=True)
        weights.append(20.0 / (20.0 + largest - below) / (1.0 + _nearest_peaks(level, slope) - below))
        slopes.append(slope)
    weight = (weights[0] + weights[1]) / 2.0
    return _trimmed_mean((weight * (slopes[0] - slopes[1]) ** 2).sum(axis=1) / weight.sum(axis=1))


def _nearest_peaks(level: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the level of the spectral peak nearest to each band, as WSS defines it.

    The peak is searched upwards on a rising slope, else downwards. On a rising slope it is the band before the top.

    Args:
        level: `(frames, bands + 1)` in dB.
        slope: `(frames, bands)`, differences of `level`.
    """
    bands = slope.shape[1]
    top, foot = np.full_like(slope, bands, int), np.full_like(slope, -1, int)
    for band in range(bands):
        foot[:, band] = np.where(slope[:, band] > 0.0, band, foot[:, band - 1] if band else -1)
    for band in range(bands - 1, -1, -1):
        top[:, band] = np.where(slope[:, band] > 0.0, top[:, band + 1] if band + 1 < bands else bands, band)
    return np.take_along_axis(level, np.where(slope > 0.0, top - 1, foot + 1), axis=1)


def coherence_index(reference: _Frames, estimate: _Frames, range_db: tuple[float, float]) -> float | None:
    """Compute the coherence speech intelligibility index of frames in a level range.

    Digital silence of the estimate counts 0; frames of a silent reference have no level.

    Args:
        range_db: lower and upper end, relative to the reference's RMS; the upper end is excluded.

    Returns:
        None for less than two frames.
    """
    powers = [frames.power for frames in (reference, estimate)]
    level_db = 10.0 * np.log10(powers[0] / (reference.signal**2).mean())
    audible = [power > 4.0 * EPS**2 for power in powers]
    chosen = (level_db >= range_db[0]) & (level_db < range_db[1]) & audible[0]
    if np.count_nonzero(chosen) < 2:
        return None
    x, y = reference.spectrum[chosen], estimate.spectrum[chosen]
    power = np.abs(y) ** 2
    product = (np.abs(x) ** 2).sum(axis=0) * power.sum(axis=0)
    coherence = np.minimum(np.abs((x.conj() * y).sum(axis=0)) ** 2 / np.maximum(product, np.finfo(float).tiny), 1.0)
    filters = _rounded_exponential_filters().T
    signal, noise = (power * coherence) @ filters, (power * (1.0 - coherence)) @ filters
    ratio = np.maximum(signal, np.finfo(float).tiny) / np.maximum(noise, np.finfo(float).tiny)
    importance = COHERENCE_BANDS[:, 2]
    return float((_audibility(ratio) @ importance * audible[1][chosen]).mean() / importance.sum())


@cache
def _envelope_bands() -> tuple[list[np.ndarray], np.ndarray]:
    """Return band-pass filters of equal cochlear width, and the bands' importance.

    The widths follow Greenwood's function; the filters are second-order sections.
    """
    from scipy.signal import butter

    low, high = (np.log10(frequency / 165.0 + 1.0) for frequency in ENVELOPE_RANGE_HZ)
    edges = 165.0 * (10.0 ** np.linspace(low, high, ENVELOPE_BANDS + 1) - 1.0)
    filters = [butter(4, pair, "bandpass", output="sos", fs=RATE_HZ) for pair in pairwise(edges)]
    return filters, np.interp((edges[:-1] + edges[1:]) / 2.0, ANSI_BANDS[:, 0], ANSI_BANDS[:, 2])


@cache
def _envelope_lowpass() -> np.ndarray:
    """Return the filter that `scipy.signal.resample_poly` would design in every call."""
    from scipy.signal import firwin

    step = RATE_HZ // ENVELOPE_HZ
    return firwin(20 * step + 1, 1.0 / step, window=("kaiser", 5.0))


def covariance_index(reference: _Frames, estimate: _Frames) -> float:
    """Compute the normalised covariance metric (NCM) of band envelopes.

    Bands are weighted by their importance for speech.
    """
    from scipy.signal import hilbert, resample_poly, sosfilt

    filters, importance = _envelope_bands()
    shares, lowpass = [], _envelope_lowpass()
    for sos in filters:
        x, y = (
            resample_poly(np.abs(hilbert(sosfilt(sos, frames.signal))), ENVELOPE_HZ, RATE_HZ, window=lowpass)
            for frames in (reference, estimate)
        )
        x, y = x - x.mean(), y - y.mean()
        explained = min(1.0, float(x @ y) ** 2 / max(float(x @ x) * float(y @ y), np.finfo(float).tiny))
        shares.append(_audibility(np.float64(max(explained, EPS) / max(1.0 - explained, EPS))))
    return float(np.asarray(shares) @ importance / importance.sum())


def _frames(item: Inputs) -> tuple[_Frames, _Frames]:
    reference, estimate = item.pair
    return _Frames(reference), _Frames(estimate)


def _ratios(item: Inputs) -> np.ndarray:
    return log_likelihood_ratios(*item.once(_frames))


def _unlimited_llr(item: Inputs) -> float:
    return _trimmed_mean(item.once(_ratios))


def _slopes(item: Inputs) -> float:
    return spectral_slope_distance(*item.once(_frames))


class _Loizou(ItemMetric):
    """Base class that excludes short and silent pairs."""

    kind = "pair"
    rate_hz = RATE_HZ
    paper = "Loizou: Speech Enhancement: Theory and Practice, 2nd edition, CRC Press 2013"
    source = SOURCE

    def _score(self, item: Inputs) -> Score:
        """Measure a pair; undefined if it is short or silent."""
        reference, estimate = item.pair
        if reference.size < FRAME + STEP:
            reason = Diagnostic("few_samples_for_frames", samples=reference.size, rate_hz=RATE_HZ, needed=FRAME + STEP)
        elif not reference.any():
            reason = Diagnostic("reference_silent")
        elif not estimate.any():
            reason = Diagnostic("estimate_is_silent")
        else:
            return self._measure(item)
        return Score.undefined(reason, self.protocol)

    def _measure(self, item: Inputs) -> Score:
        return Score.ok(self._value(item), self.protocol)

    def _value(self, item: Inputs) -> float:
        raise NotImplementedError


class FwSegSnr(_Loizou):
    """Frequency-weighted segmental SNR in dB. Higher is better, -10 to 35.

    A frame's spectra are divided by their sums, so levels and phases do not matter. A band weighs as its magnitude to
    the power of 0.2. Bands end at 3.8 kHz.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> load_metric("fwsegsnr")(reference=[clip], estimate=[coarse])[0]["fwsegsnr"].value > 5.0
        True
    """

    name = "fwsegsnr"
    unit = "dB"
    range = (-10.0, 35.0)
    protocol = "fwsegsnr/loizou-16k"

    def _value(self, item: Inputs) -> float:
        return segmental_snr_db(*item.once(_frames))


class Llr(_Loizou):
    """Log-likelihood ratio of linear predictions. Lower is better, 0 to 2.

    The mean over the lowest 95 % of the frames, each at most 2. On band-limited signals the predictions amplify
    rounding, so other programs agree less exactly.
    """

    name = "llr"
    higher_is_better = False
    range = (0.0, 2.0)
    protocol = "llr/loizou-16k"

    def _value(self, item: Inputs) -> float:
        return _trimmed_mean(np.clip(item.once(_ratios), 0.0, 2.0))


class Wss(_Loizou):
    """Klatt's weighted spectral slope distance (ICASSP 1982). Lower is better.

    Slopes near a spectral peak weigh more. The mean over the lowest 95 % of the frames. It depends on the level.
    """

    name = "wss"
    higher_is_better = False
    range = (0.0, None)
    protocol = "wss/loizou-16k"

    def _value(self, item: Inputs) -> float:
        return item.once(_slopes)


class CepstralDistance(_Loizou):
    """Distance in dB of cepstra of linear prediction. Lower is better, 0 to 10.

    The mean over the lowest 95 % of the frames, each at most 10 dB. See `llr` for band-limited signals.
    """

    name = "cd"
    higher_is_better = False
    unit = "dB"
    range = (0.0, 10.0)
    protocol = "cd/loizou-16k/2"

    def _value(self, item: Inputs) -> float:
        return cepstral_distance_db(*item.once(_frames))


class _Composite(_Loizou):
    """A rating by linear regression on other measures, 1 to 5.

    Attributes
        regression: the constant, and the weights of `pesq_wb`, unlimited LLR, WSS and segmental SNR.
    """

    unit = "MOS"
    range = (1.0, 5.0)
    paper = HU_LOIZOU
    regression: ClassVar[tuple[float, float, float, float, float]]

    def _measure(self, item: Inputs) -> Score:
        """Combine PESQ, LLR, WSS and segmental SNR linearly, limited to 1 to 5."""
        pesq, snr = item.once(PesqWb.score_pair), item.once(SnrSeg.score_pair)
        for score in (pesq, snr):
            if score.value is None:
                return replace(score, protocol=self.protocol)
        constant, *weights = self.regression
        parts = (pesq.value, item.once(_unlimited_llr), item.once(_slopes), snr.value)
        rating = constant + sum(weight * float(value or 0.0) for weight, value in zip(weights, parts, strict=True))
        return Score.ok(min(max(rating, 1.0), 5.0), self.protocol)


class Csig(_Composite):
    """Composite rating of signal distortion. Higher is better, 1 to 5.

    The regression was fitted to noisy and enhanced telephone speech. It uses `pesq_wb`.
    """

    name = "csig"
    protocol = "csig/hu-loizou-pesq-wb"
    regression = (3.093, 0.603, -1.029, -0.009, 0.0)


class Cbak(_Composite):
    """Composite rating of noise; see `csig`. Higher is better, 1 to 5."""

    name = "cbak"
    protocol = "cbak/hu-loizou-pesq-wb"
    regression = (1.634, 0.478, 0.0, -0.007, 0.063)


class Covl(_Composite):
    """Composite rating of overall quality; see `csig`. Higher is better, 1 to 5."""

    name = "covl"
    protocol = "covl/hu-loizou-pesq-wb"
    regression = (1.594, 0.805, -0.512, -0.007, 0.0)


class _Csii(_Loizou):
    range = (0.0, 1.0)
    paper = "Kates, Arehart: Coherence and the Speech Intelligibility Index, JASA 117(4), 2005"
    range_db: ClassVar[tuple[float, float]]

    def _measure(self, item: Inputs) -> Score:
        """Compute the coherence index (CSII) of frames in this metric's range of levels."""
        value = coherence_index(*item.once(_frames), self.range_db)
        if value is None:
            return Score.undefined(Diagnostic("no_frames_at_level"), self.protocol)
        return Score.ok(value, self.protocol)


class CsiiHigh(_Csii):
    """Coherence intelligibility of loud frames, 0 to 1. Higher is better.

    Over frames at the reference's level or above. The magnitude-squared coherence divides the estimate's power into
    signal and distortion, in 16 bands up to 3.7 kHz weighted as in the speech intelligibility index (ANSI S3.5-1997).
    At least two frames are needed. Frames in which the estimate is digital silence count 0.
    """

    name = "csii_high"
    protocol = "csii_high/loizou-16k/2"
    range_db = (0.0, np.inf)


class CsiiMid(_Csii):
    """Coherence index of frames up to 10 dB below the level. Higher is better."""

    name = "csii_mid"
    protocol = "csii_mid/loizou-16k/2"
    range_db = (-10.0, 0.0)


class CsiiLow(_Csii):
    """Coherence index of frames over 10 dB below the level. Higher is better."""

    name = "csii_low"
    protocol = "csii_low/loizou-16k/2"
    range_db = (-np.inf, -10.0)


class Ncm(_Loizou):
    """Normalised covariance of 20 band envelopes, 0 to 1. Higher is better.

    Envelopes are sampled at 32 Hz. A band's squared correlation counts as a signal-to-noise ratio. Bands weigh as in
    the speech intelligibility index (ANSI S3.5-1997).
    """

    name = "ncm"
    range = (0.0, 1.0)
    paper = "Ma, Hu, Loizou: Objective Measures for Predicting Speech Intelligibility in Noise, JASA 125(5), 2009"
    protocol = "ncm/loizou-16k"
    source = "outputs of pysepm at 7ef88aff, to 1e-5"

    def _value(self, item: Inputs) -> float:
        return covariance_index(*item.once(_frames))
