"""Watermarks: whether mark and message survive in the estimate."""

from __future__ import annotations

import numpy as np

from codec_bench.features.audioseal import AudioSeal
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import FeatureMetric, Inputs
from codec_bench.types import Score

DETECTED = 0.5
"""A signal carries the mark if this share of its samples does."""


class _Watermark(FeatureMetric):
    """Base class of both metrics."""

    kind = "pair"
    rate_hz = 16_000
    range = (0.0, 1.0)
    paper = "San Roman et al.: Proactive Detection of Voice Cloning with Localized Watermarking, ICML 2024"
    source = "audioseal 0.2 AudioSealDetector, to 1e-5"
    estimate_features = reference_features = (AudioSeal.name,)
    stem: str

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, AudioSeal.name):
            raise UserError("no_variant", name=self.stem, variant=variant, hint=f"use {self.stem}[{AudioSeal.name}]")
        self.name = self.stem + (f"[{variant}]" if variant else "")
        self.protocol = f"{self.stem}/{AudioSeal.protocol}"

    def _score(self, item: Inputs) -> Score:
        """Compare the watermark of the estimate with the reference's; refused without one."""
        reference, estimate = item.features(AudioSeal.name)
        if reference["share"] < DETECTED:
            return Score.refused(Diagnostic("no_watermark", share=reference["share"]), self.protocol)
        reference_bits, estimate_bits = (np.asarray(features["bits"]) > 0.5 for features in (reference, estimate))
        detail = {"share": estimate["share"], "share_of_reference": reference["share"]}
        return Score.ok(self._value(estimate["share"], reference_bits, estimate_bits), self.protocol, detail=detail)

    def _value(self, share: float, reference_bits: np.ndarray, estimate_bits: np.ndarray) -> float:
        raise NotImplementedError


class WatermarkRetention(_Watermark):
    """Whether the watermark is still detected: 1 or 0. Higher is better.

    References must be marked beforehand; unmarked ones are refused. A mark is detected in half of the samples or more;
    `detail` holds that share on both sides. The mean over items is the detection rate.

    Args:
        variant: the mark: `audioseal` (default).

    Examples:
        >>> from codec_bench.metrics import build_metric
        >>> found = [{"audioseal": {"share": share, "bits": np.eye(16)[0]}} for share in (1.0, 0.3)]
        >>> item = Inputs("a", 16000, reference_features=found[0], estimate_features=found[1])
        >>> build_metric("watermark_kept[audioseal]").compute([item])[0].value
        0.0
    """

    stem = "watermark_kept"

    def _value(self, share: float, reference_bits: np.ndarray, estimate_bits: np.ndarray) -> float:
        return float(share >= DETECTED)


class WatermarkBits(_Watermark):
    """The share of equal bits of the watermark's 16. Higher is better; chance 0.5.

    Measured whether or not the mark is still detected. See `watermark_kept`.
    """

    stem = "watermark_bits"

    def _value(self, share: float, reference_bits: np.ndarray, estimate_bits: np.ndarray) -> float:
        return float((reference_bits == estimate_bits).mean())
