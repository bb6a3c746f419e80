"""NORESQA-MOS: each frame's part, as reference and as estimate."""

from __future__ import annotations

from codec_bench.features.scorers import ScorerNetwork
from codec_bench.features.squim import SquimFrames

ROW = ScorerNetwork(
    "codec_bench.networks.noresqa:NoresqaNet", weights="noresqa-mos", key="state_dict", protocol="noresqa-mos/8d56b95",
    title="NORESQA-MOS", outputs=(), windows="windows", about="", least=400, batch_s=240.0, most_s=120.0,
)  # fmt: skip


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
    protocol = ROW.protocol
    row = ROW
