"""UTMOS22 strong: the mean opinion score by wav2vec 2.0 and a BiLSTM."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, Wav2Vec2Feature
from codec_bench.weights import load_into, load_state, unfilled


class Utmos(Wav2Vec2Feature):
    """The naturalness of speech by UTMOS22's strong learner, 1 to 5. Higher is better.

    A wav2vec 2.0 base network gives 768 numbers every 20 ms. They and two constant vectors for the listening test and
    the listener pass a BiLSTM and two linear layers; the score is the mean over frames. The level of the signal is not
    normalised. Batches do not change the scores: every layer uses each signal's own samples and frames only.

    Result: `{"utmos": float, "frames": int}`.

    Paper: T. Saeki et al., "UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022", Interspeech 2022. Reference
    implementation: SpeechMOS 1.2.0 `utmos22_strong` at 16 kHz, to 2e-5.

    Args:
        weights: a file in the format of SpeechMOS in place of the published one, or None.
        point: `float16`, `bfloat16` or `tf32` for the encoder (the other layers stay in float32), or None for float32.

    Raises:
        WeightsError: the weights are missing. UserError: no such precision.
    """

    name = "utmos"
    title = "UTMOS"
    checkpoint = "utmos22-strong"
    stem = "utmos22-strong/speechmos-1.2"
    mib_per_s = 16.0  # it took 15.6 on an H200, in batches of 300 and 600 padded seconds

    def _network(self) -> Any:
        """Build the network, and load the published tensors."""
        from codec_bench.networks.utmos import UtmosNet

        net = unfilled(lambda: UtmosNet(self._architecture()))
        load_into(net, load_state(self._path), path=self._path)
        return net

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        score = float(row)
        if not math.isfinite(score):
            return Unavailable(NOT_FINITE)
        return {"utmos": score, "frames": self._net.wav2vec2.config.frames(length)}
