"""emotion2vec+: an embedding, and probabilities of nine emotions."""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE
from codec_bench.features.speakers.speaker_encoder import SpeakerEncoder
from codec_bench.weights import load_into, load_state, unfilled

EMOTIONS = ("angry", "disgusted", "fearful", "happy", "neutral", "other", "sad", "surprised", "unknown")
"""In the order of the published classifier."""


class Emotion2vecPlusLarge(SpeakerEncoder):
    """The mean frame of emotion2vec+ large, and the probabilities of nine emotions.

    Protocol `emotion2vec-plus-large/funasr-1.4`: the wave standardised over its whole length; a data2vec 2.0 encoder of
    164 million parameters; the mean of its last frames; a linear layer and a softmax. Fine-tuned on 42,526 hours of
    speech with emotion labels of its own smaller versions. Padding is masked layer by layer: batches change a result by
    less than 1e-5 in float32.

    Result: `{"embedding": float32 (1024,), "probabilities": float32 (9,)}`, in the order angry, disgusted, fearful,
    happy, neutral, other, sad, surprised, unknown.

    Paper: Z. Ma et al., "emotion2vec: Self-Supervised Pre-Training for Speech Emotion Representation", Findings of ACL
    2024. Reference implementation: FunASR 1.4 `Emotion2vec`, signal by signal, to 1e-5.

    Args:
        weights: a file in the layout of the published `model.pt`, or a folder with it, or None.
        point: `float16`, `bfloat16` or `tf32` in place of float32, each a separate protocol.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    name = "emotion2vec-plus-large"
    protocol = "emotion2vec-plus-large/funasr-1.4"
    title = "emotion2vec"
    min_samples = 400

    def _network(self) -> Any:
        """Build the network, and load the published tensors."""
        from codec_bench.networks.emotion2vec import Emotion2vecNet

        net = unfilled(lambda: Emotion2vecNet(self._architecture()))
        load_into(net, load_state(self._path, key="model"), path=self._path)
        return net

    def _architecture(self) -> Any:
        from codec_bench.networks.emotion2vec import Emotion2vecConfig

        return Emotion2vecConfig()

    def _step(self) -> int:
        return int(self._net.step)

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        if not np.isfinite(row).all():
            return Unavailable(NOT_FINITE)
        return {"embedding": row[: -len(EMOTIONS)], "probabilities": row[-len(EMOTIONS) :]}
