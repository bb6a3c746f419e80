"""SQUIM Subjective's opinion score with a reference."""

from __future__ import annotations

import numpy as np

from codec_bench.features.non_matching_mos import SQUIM, SquimFrames
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, FeatureMetric, Inputs, check_frame_counts
from codec_bench.types import Score

FRAME_S = 0.02


class SquimMos(FeatureMetric):
    """SQUIM's opinion score next to the reference. Higher is better, 1 to 5.

    An attention over the frames of both signals gives how far below 5 the estimate is. The frames are paired, so the
    signals need one length to 0.1 s; torchaudio cuts or repeats the reference.

    Examples:
        >>> from codec_bench.metrics.base import Inputs
        >>> frames = {"squim-frames": {"frames": np.zeros((50, 12), np.float32)}}  # every class is as likely as another
        >>> item = Inputs("a", 16000, estimate_features=frames, reference_features=frames)
        >>> SquimMos().compute([item])[0].value
        3.0
    """

    name = "squim_mos"
    kind = "pair"
    silence_flags = (SILENT_ESTIMATE, SILENT_REFERENCE)
    range = (1.0, 5.0)
    protocol = f"squim_mos/{SQUIM.protocol}"
    paper = "Kumar et al.: TorchAudio-Squim: Reference-less Speech Quality and Intelligibility Measures, ICASSP 2023"
    source = "torchaudio 2.11 SQUIM_SUBJECTIVE, to 1e-5 for signals of one length"
    estimate_features = reference_features = (SquimFrames.name,)

    def _score(self, item: Inputs) -> Score:
        """Pair the network's frames of both signals; pool them by attention to a score."""
        reference, estimate = (
            np.asarray(result["frames"], np.float64) for result in item.features(*self.estimate_features)
        )
        mismatch = check_frame_counts((len(estimate) - len(reference)) * FRAME_S)
        if mismatch is not None:
            return Score.refused(mismatch, self.protocol)
        count = min(len(reference), len(estimate))
        joined = reference[:count, :6] + estimate[:count, 6:]
        classes = _softmax(_softmax(joined[:, 0]) @ joined[:, 1:])
        return Score.ok(float(5.0 - classes @ np.arange(5.0)), self.protocol)


def _softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max())
    return np.asarray(powers / powers.sum())
