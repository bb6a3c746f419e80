"""WV-MOS: the opinion score of a signal by wav2vec 2.0 and two linear layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, EncoderFeature
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.weights import find, load_into, load_state, unfilled

PREFIX, ENCODER = "model.", "encoder."


class Wvmos(EncoderFeature):
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
    batch_s = 240.0

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights, parse_precision("wvmos", point, BY_WEIGHTS))
        self.protocol = self.protocol_id(point)
        self._path = find("wvmos", weights).path

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"wvmos/1{suffix(parse_precision('wvmos', point, BY_WEIGHTS))}"

    def _network(self) -> Any:
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

    def _architecture(self) -> Any:
        from codec_bench.networks.speech_config import WAV2VEC2_BASE

        return WAV2VEC2_BASE

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        least = self._architecture().receptive_field
        if signal.size >= least:
            return None
        return Unavailable(Diagnostic("signal_short", samples=signal.size, model="WV-MOS", needed=least))

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        score = float(row)
        return {"mos": score} if math.isfinite(score) else Unavailable(NOT_FINITE)
