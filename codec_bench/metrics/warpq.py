"""WARP-Q: the cost of aligning pieces with the reference by cepstra."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, Inputs, ItemMetric, variant_name
from codec_bench.types import Score

COEFFICIENTS = 13
LIFTER = 3
FRAME_S, HOP_S = 0.032, 0.004
NORMALISED_FRAMES = 201
_SILENT = 5 / 32768  # from the least sample to the greatest: two steps of 16 bits around a constant
VERSA = "versa"


@dataclass(frozen=True, slots=True)
class _Settings:
    """Settings of a variant.

    Args:
        top_hz: where the last mel band ends. patch_frames, step_frames: length of a piece of the estimate, and the
            step.
    """

    protocol: str
    rate_hz: int
    top_hz: float
    patch_frames: int
    step_frames: int


class WarpQ(ItemMetric):
    """The raw WARP-Q score: the median cost of aligning pieces. Lower is better.

    Both signals become 13 MFCCs every 4 ms, normalised over 0.8 s. Each piece of the estimate is aligned with its most
    similar part of the reference by subsequence dynamic time warping. So changes of timing cost little, and the order
    of words is not seen. A copy of speech commonly costs 0.6, not 0, because the warping never advances both sides at
    once.

    * None: the reference package's settings: 16 kHz, mel bands up to 5 kHz, pieces of 92 frames every 42.
    * `versa`: VERSA's: 8 kHz, up to 4 kHz, 125 frames every 62.

    No silence is removed first; the package does by default, VERSA does not. The package's mapping to a MOS is a
    pickled model and is not offered. Undefined where a signal is shorter than a piece or digital silence. In digital
    silence longer than 0.8 s the reference implementation normalises its own rounding.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("warpq")(reference=[clip], estimate=[coarse])[0]["warpq"].value, 1)
        2.3
    """

    name = "warpq"
    kind = "pair"
    silence_flags = (SILENT_ESTIMATE, SILENT_REFERENCE)
    rate_hz = 16_000
    higher_is_better = False
    range = (0.0, None)
    paper = "Jassim et al.: Speech quality assessment with WARP-Q, IET Signal Processing 16(9), 2022"
    source = "wjassim/WARP-Q at bdf8616d (versa: ftshijt/WARP-Q at c20a40a7) without voice activity detection, to 2e-3"
    variants: ClassVar[dict[str | None, _Settings]] = {
        None: _Settings("warpq/13-mfcc-5khz/patch-92-42/no-vad/raw-median-16k", 16_000, 5_000.0, 92, 42),
        VERSA: _Settings("warpq/13-mfcc-4khz/patch-125-62/no-vad/raw-median-8k", 8_000, 4_000.0, 125, 62),
    }

    def __init__(self, variant: str | None = None) -> None:
        self.name = variant_name("warpq", variant, self.variants)
        self._settings = self.variants[variant]
        self.protocol, self.rate_hz = self._settings.protocol, self._settings.rate_hz

    def _score(self, item: Inputs) -> Score:
        """Take the median cost of aligning segments of the estimate with the reference."""
        from codec_bench.kernels.dtw.cpu import subsequence_costs

        patch, step = self._settings.patch_frames, self._settings.step_frames
        sides = item.pair
        if min(signal.size for signal in sides) < 2:
            return Score.undefined(Diagnostic("no_signal_samples"), self.protocol)
        for role, signal in zip(("reference", "estimate"), sides):
            if np.ptp(signal) < _SILENT:
                return Score.undefined(Diagnostic("no_cepstra", side=role), self.protocol)
        reference, estimate = (self._features(signal, item.rate_hz) for signal in sides)
        if min(len(reference), len(estimate)) < patch:
            reason = Diagnostic("few_frames_for_piece", frames=len(estimate), patch=patch, hop_ms=1000 * HOP_S)
            return Score.undefined(reason, self.protocol)
        pieces = np.lib.stride_tricks.sliding_window_view(estimate, patch, axis=0)[::step].transpose(0, 2, 1)
        costs = subsequence_costs(np.ascontiguousarray(pieces), reference)
        return Score.ok(float(np.median(costs)), self.protocol, detail={"pieces": len(costs)})

    def _features(self, signal: np.ndarray, rate_hz: int) -> np.ndarray:
        """Compute MFCCs `(frames, 13)`, normalised in windows of 0.8 s."""
        from codec_bench.kernels.cepstrum.ref import mfcc, normalised
        from codec_bench.kernels.spectrum.ref import Frames

        window = round(FRAME_S * rate_hz)
        frames = Frames(window, round(HOP_S * rate_hz), 2 * window, edges="constant")
        top_hz = self._settings.top_hz
        mfccs = mfcc(signal, rate_hz, frames, coefficients=COEFFICIENTS, top_hz=top_hz, lifter=LIFTER)
        return normalised(mfccs, NORMALISED_FRAMES)
