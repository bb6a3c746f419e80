"""WV-MOS: the opinion score of a signal by wav2vec 2.0 and two linear layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, Wav2Vec2Feature
from codec_bench.weights import load_into, load_state, unfilled

PREFIX, ENCODER = "model.", "encoder."


class Wvmos(Wav2Vec2Feature):
    """WV-MOS's opinion score of a signal, 1 to 5. Higher is better.

    A wav2vec 2.0 base network from before its training on letters, over the signal at zero mean and unit variance; two
    linear layers, trained on the listening test of the Voice Conversion Challenge 2018; the mean over its 20 ms frames.
    Batches do not change the scores.

    Result: `{"mos": float}`.

    Paper: P. Andreev et al., "HiFi++: A Unified Framework for Bandwidth Extension and Speech Enhancement", ICASSP 2023.
    Reference implementation: github.com/AndreevP/wvmos at 16 kHz over transformers 5, signal by signal, to 2e-5.

    Args:
        weights: a file in the published layout, or None.
        point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.

    Raises:
        WeightsError: the weights are missing. UserError: no such precision.
    """

    name = "wvmos"
    title = "WV-MOS"
    checkpoint = "wvmos"
    stem = "wvmos/1"

    def _network(self) -> Any:
        """Build the network, and load the published tensors under new names."""
        from codec_bench.networks.speech_encoder import fairseq_name
        from codec_bench.networks.wvmos import WvmosNet

        config, state = self._architecture(), {}
        for name, value in load_state(self._path, key="state_dict").items():
            inner = name.removeprefix(PREFIX)
            encoder = inner.removeprefix(ENCODER)
            state[ENCODER + fairseq_name(encoder, config.extractor) if encoder != inner else inner] = value
        net = unfilled(lambda: WvmosNet(config))
        load_into(net, state, path=self._path)
        return net

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        score = float(row)
        return {"mos": score} if math.isfinite(score) else Unavailable(NOT_FINITE)
