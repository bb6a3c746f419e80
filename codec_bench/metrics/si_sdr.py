"""SI-SDR and SDR: the energy that the reference explains, over the rest."""

from __future__ import annotations

import math

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import Inputs, ItemMetric
from codec_bench.types import Score

CEILING_DB = 20.0 * math.log10(2.0**24)
"""The least SI-SDR of any scaled copy rounded to float32: 144.49 dB.

A float32 lies within 2^-24 of a number, relative to it, so the errors have at most 2^-48 of the energy. They commonly
measure 149 to 155 dB.
"""
VERSA = "versa"
FILTER_TAPS = 512
_BLOCK = 4096
_SAFE_RATIO = 1e-6


class SiSdr(ItemMetric):
    """Scale-invariant SDR in dB. Higher is better; at most 144.49 dB.

    `10 log10(|a r|^2 / |a r - e|^2)` with `a = <e, r> / <r, r>`, at the reference's own rate, in float64, without
    torchmetrics' epsilons. Means are not removed. It compares waveforms: one sample of delay costs about 10 dB, so it
    says little about codecs that do not preserve the phase. Signals are not cut to full scale.

    Undefined where only an epsilon or rounding would give a value: for silence on either side, a scaled copy (no
    bound), and an orthogonal estimate. Above 144.49 dB (`CEILING_DB`) an estimate cannot be distinguished from a
    rounded copy.

    Args:
        variant: None, or `versa` for VERSA's: both signals are cut to full scale, as integer files are, and no ceiling.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("si_sdr")(reference=[clip], estimate=[coarse])[0]["si_sdr"].value)
        21
    """

    kind = "pair"
    waveform = True
    implausible = -20.0
    rate_hz = None
    unit = "dB"
    paper = "Le Roux, Wisdom, Erdogan, Hershey: SDR - Half-baked or Well Done?, ICASSP 2019"
    source = "torchmetrics scale_invariant_signal_distortion_ratio in float64, to 1e-4 dB"

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, VERSA):
            raise UserError("no_variant", variant=variant, name="si_sdr", hint=f"use si_sdr or si_sdr[{VERSA}]")
        self.scale_invariant = variant is None
        self.name = "si_sdr" if variant is None else f"si_sdr[{VERSA}]"
        self.protocol = "si_sdr/no-zero-mean" + ("/uncut/float32-ceiling" if variant is None else "")
        self._ceiling = 10.0 ** (CEILING_DB / 10.0) if variant is None else math.inf

    def _score(self, item: Inputs) -> Score:
        """Split the estimate into scaled reference and distortion: their ratio in dB."""
        reference = np.asarray(item.reference, np.float64)
        estimate = np.asarray(item.estimate, np.float64)
        energy = _dot(reference, reference)
        if energy == 0.0:
            return Score.undefined(Diagnostic("reference_silent"), self.protocol)
        estimate_energy = _dot(estimate, estimate)
        if estimate_energy == 0.0 and not estimate.any():
            return Score.undefined(Diagnostic("estimate_is_silent"), self.protocol)
        cross = _dot(reference, estimate)
        gain = cross / energy
        target_energy = gain * cross
        distortion_energy = estimate_energy - target_energy
        # A small difference of large energies is lost to rounding, so there the samples are subtracted.
        if not _SAFE_RATIO * estimate_energy < distortion_energy < (1 - _SAFE_RATIO) * estimate_energy:
            target = reference * gain
            target_energy = _dot(target, target)
            target -= estimate
            distortion_energy = _dot(target, target)
        if distortion_energy == 0.0:
            return Score.undefined(Diagnostic("scaled_copy"), self.protocol)
        if target_energy == 0.0:
            return Score.undefined(Diagnostic("nothing_of_reference"), self.protocol)
        if target_energy >= self._ceiling * distortion_energy:
            return Score.undefined(Diagnostic("scaled_copy_rounded"), self.protocol)
        return Score.ok(10.0 * math.log10(target_energy / distortion_energy), self.protocol)


def _dot(x: np.ndarray, y: np.ndarray) -> float:
    """Sum products in blocks that BLAS computes on one thread.

    So the number of threads cannot change the rounding.
    """
    size = x.size // _BLOCK * _BLOCK
    blocks = np.matmul(x[:size].reshape(-1, 1, _BLOCK), y[:size].reshape(-1, _BLOCK, 1))
    return float(blocks.sum()) + float(np.dot(x[size:], y[size:]))


class Sdr(ItemMetric):
    """BSS Eval's SDR in dB after a filter of 512 taps. Higher is better.

    The estimate is compared with the best-filtered reference, so a gain, a delay and an equaliser cost little. With one
    source, SAR and the convolution-invariant SDR are the same number, and SIR is infinite. At the reference's own rate;
    means are not removed. Undefined for a silent signal, and for a filtered copy but for rounding.
    """

    name = "sdr"
    kind = "pair"
    waveform = True
    scale_invariant = True
    unit = "dB"
    protocol = "sdr/bss-eval-512-taps"
    paper = "Vincent et al.: Performance Measurement in Blind Audio Source Separation, IEEE TASLP 14(4), 2006"
    source = "mir_eval bss_eval_sources (SDR, SAR) and ci_sdr, to 1e-6 dB"

    def _score(self, item: Inputs) -> Score:
        """Find the best filter of 512 taps, and its output's ratio to the rest in dB."""
        from scipy.fft import irfft, next_fast_len, rfft
        from scipy.linalg import LinAlgError, solve, toeplitz

        reference, estimate = (np.asarray(signal, np.float64) for signal in item.pair)
        if not reference.any():
            return Score.undefined(Diagnostic("reference_silent"), self.protocol)
        energy = float((estimate**2).sum())
        if energy == 0.0:
            return Score.undefined(Diagnostic("estimate_is_silent"), self.protocol)
        size = next_fast_len(reference.size + FILTER_TAPS, real=True)
        spectrum = rfft(reference, size)
        lags = irfft(np.abs(spectrum) ** 2, size)[:FILTER_TAPS]
        cross = irfft(spectrum.conj() * rfft(estimate, size), size)[:FILTER_TAPS]
        try:
            taps = solve(toeplitz(lags), cross)
        except LinAlgError:
            taps = np.linalg.lstsq(toeplitz(lags), cross, rcond=None)[0]
        target = irfft(spectrum * rfft(taps, size), size)
        target_energy = float((target**2).sum())
        target[: estimate.size] -= estimate
        distortion_energy = float((target**2).sum())
        if distortion_energy * 10.0 ** (CEILING_DB / 10.0) <= target_energy:
            return Score.undefined(Diagnostic("scaled_copy_rounded"), self.protocol)
        if target_energy == 0.0:
            return Score.undefined(Diagnostic("nothing_of_reference"), self.protocol)
        return Score.ok(10.0 * math.log10(target_energy / distortion_energy), self.protocol)
