"""MOS against non-matching references: frames of SQUIM Subjective and NORESQA-MOS."""

from __future__ import annotations

from functools import partial

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.learned import Learned
from codec_bench.features.scorers import ScorerNetwork

_row = partial(ScorerNetwork, outputs=(), windows="windows", about="", least=400, batch_s=240.0, most_s=120.0)
SQUIM = _row(
    "codec_bench.networks.squim:SquimSubjectiveNet", weights="squim-subjective-bvcc-daps", key=None,
    protocol="squim-subjective/bvcc-daps", title="SQUIM",
)  # fmt: skip
NORESQA = _row(
    "codec_bench.networks.noresqa:NoresqaNet", weights="noresqa-mos", key="state_dict", protocol="noresqa-mos/8d56b95",
    title="NORESQA-MOS",
)  # fmt: skip


class SquimFrames(Learned):
    """Each frame's part in SQUIM Subjective, as reference and estimate.

    A wav2vec 2.0 base network, the last layer projected to 32 numbers, and the linear parts of the predictor. Each
    signal passes alone.

    Result: `{"frames": float32 (frames, 12)}`: the attention and five numbers of the reference, then of the estimate.

    Paper: A. Kumar et al., "TorchAudio-Squim", ICASSP 2023. Reference implementation: torchaudio 2.11
    `SQUIM_SUBJECTIVE`, to 1e-5 in the score.

    Args:
        weights: a file in the published layout, or None.

    Raises:
        WeightsError: the weights are missing.
    """

    name = "squim-frames"
    protocol = SQUIM.protocol
    row = SQUIM
    rate_hz = 16_000
    batch_s = SQUIM.batch_s

    def _score_windows(self, windows: np.ndarray) -> Result | Unavailable:
        (frames,) = windows.astype(np.float32)
        return {"frames": frames} if np.isfinite(frames).all() else Unavailable(NOT_FINITE)


class NoresqaFrames(SquimFrames):
    """Each frame's part in NORESQA-MOS, as reference and estimate.

    A wav2vec 2.0 base network, its frames projected to 32 numbers, and the linear parts of the predictor.

    Result: `{"frames": float32 (frames, 12)}`: the attention and five numbers of the reference, then of the estimate.

    Paper: P. Manocha, A. Kumar, "Speech Quality Assessment through MOS using Non-Matching References", Interspeech
    2022. Reference implementation: github.com/facebookresearch/Noresqa at 8d56b95, to 1e-5 in the score.

    Args:
        weights: a file in the published layout, or None.

    Raises:
        WeightsError: the weights are missing.
    """

    name = "noresqa-frames"
    protocol = NORESQA.protocol
    row = NORESQA
