"""SI-SDR: the energy of the part of the estimate that equals the reference, over the energy of the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from codec_bench.metrics.base import Inputs, Metric
from codec_bench.types import Score


class SiSdr(Metric):
    """Scale-invariant signal-to-distortion ratio in dB. Higher is better; it has no bound.

    `10 log10(|a r|^2 / |a r - e|^2)` with `a = <e, r> / <r, r>`, at the reference's own rate; means are not removed. It
    compares waveforms: one sample of delay costs about 10 dB, so it says little about codecs that do not keep the phase.
    It is computed in float64, without the small numbers that torchmetrics adds to both energies. It is undefined where
    only those numbers would give a value: for a silent reference or estimate, for an estimate that is exactly a scaled
    copy of the reference (the value has no bound), and for one that is exactly orthogonal to it.

    Paper: J. Le Roux et al., "SDR - half-baked or well done?", ICASSP 2019. Reference implementation:
    `torchmetrics.functional.audio.scale_invariant_signal_distortion_ratio` in float64, to 1e-4 dB.
    """

    name = "si_sdr"
    kind = "pair"
    rate_hz = None
    unit = "dB"
    protocol = "si_sdr/no-zero-mean"
    paper = "Le Roux, Wisdom, Erdogan, Hershey: SDR - Half-baked or Well Done?, ICASSP 2019"
    source = "torchmetrics scale_invariant_signal_distortion_ratio in float64, to 1e-4 dB"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        reference = np.asarray(item.reference, np.float64)
        estimate = np.asarray(item.estimate, np.float64)
        # Sums of products and not BLAS dots, because their rounding does not depend on the number of threads.
        energy = float((reference * reference).sum())
        if energy == 0.0:
            return Score.undefined("the reference is silent", self.protocol)
        if not estimate.any():
            return Score.undefined("the estimate is silent", self.protocol)
        target = reference * (float((reference * estimate).sum()) / energy)
        target_energy = float((target * target).sum())
        distortion = target - estimate
        distortion_energy = float((distortion * distortion).sum())
        if distortion_energy == 0.0:
            return Score.undefined("the estimate is a scaled copy of the reference; SI-SDR is unbounded", self.protocol)
        if target_energy == 0.0:
            return Score.undefined("the estimate holds nothing of the reference; SI-SDR is unbounded", self.protocol)
        return Score.ok(10.0 * math.log10(target_energy / distortion_energy), self.protocol)
