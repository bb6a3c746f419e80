"""UTMOS22 strong: the mean opinion score by wav2vec 2.0 and a BiLSTM."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, EncoderFeature
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.weights import find, load_into, load_state, unfilled

WEIGHTS = "utmos22-strong"


class Utmos(EncoderFeature):
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
    batch_s = 240.0
    mib_per_s = 16.0  # it took 15.6 on an H200, in batches of 300 and 600 padded seconds

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights, parse_precision("utmos", point, BY_WEIGHTS))
        self.protocol = self.protocol_id(point)
        self._path = find(WEIGHTS, weights).path

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"utmos22-strong/speechmos-1.2{suffix(parse_precision('utmos', point, BY_WEIGHTS))}"

    def _network(self) -> Any:
        from codec_bench.networks.speech_config import WAV2VEC2_BASE
        from codec_bench.networks.utmos import UtmosNet

        net = unfilled(lambda: UtmosNet(WAV2VEC2_BASE))
        load_into(net, load_state(self._path), path=self._path)
        return net

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        least = self._net.wav2vec2.config.receptive_field
        if signal.size >= least:
            return None
        return Unavailable(Diagnostic("signal_short", samples=signal.size, model="UTMOS", needed=least))

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        score = float(row)
        if not math.isfinite(score):
            return Unavailable(NOT_FINITE)
        return {"utmos": score, "frames": self._net.wav2vec2.config.frames(length)}
