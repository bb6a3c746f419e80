"""STOI and ESTOI: intelligibility by correlated envelopes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import Inputs, ItemMetric, variant_name
from codec_bench.types import Score

OWN_RATE = "own-rate"


def _envelopes(item: Inputs) -> np.ndarray | None:
    from codec_bench.kernels.stoi.cpu import envelopes

    return envelopes(*item.pair, item.rate_hz)


class _Intelligibility(ItemMetric):
    """Base class. The kernel has the metric's stem and gives None if too few frames are left without silence."""

    kind = "pair"
    rate_hz: int | None = 16_000
    range = (-1.0, 1.0)
    stem: ClassVar[str]
    variants: ClassVar[tuple[str | None, ...]] = (None, OWN_RATE)

    def __init__(self, variant: str | None = None) -> None:
        self.name = variant_name(self.stem, variant, self.variants)
        self.protocol = f"{self.stem}/pystoi-0.4"
        if variant == OWN_RATE:
            self.rate_hz, self.protocol = None, f"{self.protocol}/{OWN_RATE}"

    def _score(self, item: Inputs) -> Score:
        """Compute the index from both signals' band envelopes, limited to -1 to 1.

        Undefined for a silent reference, or if too few frames are left without silence.
        """
        from codec_bench.kernels.stoi import cpu

        reference, _ = item.pair
        if not reference.any():
            return Score.undefined(Diagnostic("reference_silent"), self.protocol)
        value = getattr(cpu, f"{self.stem}_of")(item.once(_envelopes))
        if value is None:
            return Score.undefined(Diagnostic("stoi_too_short"), self.protocol)
        # A mean of correlations is in [-1, 1]; only rounding can take it beyond.
        return Score.ok(min(1.0, max(-1.0, value)), self.protocol)


class Stoi(_Intelligibility):
    """Short-time objective intelligibility. Higher is better; a copy has 1.

    Both signals are resampled from 16 to 10 kHz by the filter of its definition. A gain does not matter; a delay of 10
    ms costs about 0.15. A silent estimate scores 0. Undefined for a silent reference and for fewer than 30 frames
    without silence, where pystoi returns 1e-5.

    Args:
        variant: None, or `own-rate` to resample from the reference's own rate straight to 10 kHz, as pystoi does with
            files.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("stoi")(reference=[clip], estimate=[coarse])[0]["stoi"].value, 2)
        0.99
    """

    stem = name = "stoi"
    implausible = 0.3
    protocol = "stoi/pystoi-0.4"
    paper = "Taal et al.: An Algorithm for Intelligibility Prediction of Noisy Speech, IEEE TASLP 19(7), 2011"
    source = "pystoi 0.4.1, to 1e-6 on signals at 16 kHz (files of 8 kHz: to 0.015); stoi[own-rate]: at the file's rate"


class Estoi(_Intelligibility):
    """Extended STOI, for modulated noise too. Higher is better; a copy has 1.

    Signals, variant and limits as for `stoi`. It is deterministic: pystoi adds noise of one machine epsilon before it
    normalises. A digitally silent band of a segment counts as uncorrelated, the average effect of that noise.
    """

    stem = name = "estoi"
    implausible = 0.15
    protocol = "estoi/pystoi-0.4"
    paper = "Jensen, Taal: Predicting the Intelligibility of Speech Masked by Modulated Noise, TASLP 24(11), 2016"
    source = "pystoi 0.4.1, to 1e-4 on signals at 16 kHz (files of 8 kHz: to 0.04); estoi[own-rate]: at the file's rate"
