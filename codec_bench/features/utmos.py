"""UTMOS22 strong: the mean opinion score that listeners would give, predicted by wav2vec 2.0 and a BiLSTM."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.features.base import PreparedFeature, Result, Unavailable
from codec_bench.features.padded import PaddedBatch, padded_batch
from codec_bench.networks.precision import BY_WEIGHTS, computing, parse_precision, suffix
from codec_bench.weights import find, load_into, load_state

if TYPE_CHECKING:
    from codec_bench.networks.graphs import Graphs

RATE_HZ = 16_000
WEIGHTS = "utmos22-strong"


class Utmos(PreparedFeature):
    """The naturalness of speech as UTMOS22's strong learner rates it. Higher is better; it was trained on scores of 1 to 5.

    A wav2vec 2.0 base network gives 768 numbers every 20 ms. These numbers, and two constant vectors that stand for the
    listening test and the listener, go through a BiLSTM and two linear layers. The score of an utterance is the mean over
    its frames. The level of the signal is not normalised.

    The reference scores one signal at a time. Batches give the same scores here: the group norm, the positional
    convolution, attention, the BiLSTM and the mean use each signal's own samples and frames only.

    Result: `{"utmos": float, "frames": int}`.

    Paper: T. Saeki et al., "UTMOS: UTokyo-SaruLab System for VoiceMOS Challenge 2022", Interspeech 2022. Reference
    implementation: SpeechMOS 1.2.0 `utmos22_strong` at 16 kHz, to 2e-5.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a file in the format of SpeechMOS in place of the published one, or None.
        point: `float16`, `bfloat16` or `tf32` for the encoder (the other layers stay in float32), or None for float32.

    Raises:
        WeightsError: the weights are not on this machine. UserError: no such precision.
    """

    name = "utmos"
    rate_hz = RATE_HZ
    where = "device"
    batch_s = 240.0

    def __init__(self, device: str = "cpu", weights: str | None = None, point: str | None = None) -> None:
        super().__init__(device, weights)
        self.protocol = self.protocol_id(point)
        self._precision = parse_precision("utmos", point, BY_WEIGHTS)
        self._path = find(WEIGHTS, weights).path
        self._net: Any = None

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """The id of the measurement. No weights are needed for it.

        Raises:
            UserError: no such precision.
        """
        return f"utmos22-strong/speechmos-1.2{suffix(parse_precision('utmos', point, BY_WEIGHTS))}"

    def load(self) -> None:
        """Loads the network.

        Raises:
            WeightsError: the file is broken, or is that of another network.
        """
        if self._net is None:
            from codec_bench.networks.half import reduce_weights
            from codec_bench.networks.speech_config import WAV2VEC2_BASE
            from codec_bench.networks.utmos import UtmosNet

            net = UtmosNet(WAV2VEC2_BASE).eval()
            load_into(net, load_state(self._path), path=self._path)
            self._net = reduce_weights(net, self._precision).to(self.device)

    @cached_property
    def _graphs(self) -> Graphs:
        from codec_bench.networks.graphs import Graphs

        return Graphs("UTMOS", self._net.wav2vec2.step)

    def prepare(self, signals: Sequence[np.ndarray]) -> PaddedBatch:
        """The padded passes of the network."""
        return padded_batch(signals, self._obstacle, self.device)

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        least = self._net.wav2vec2.config.receptive_field
        if signal.size >= least:
            return None
        return Unavailable(f"the signal has {signal.size} samples; UTMOS needs at least {least}")

    def compute_prepared(self, batch: PaddedBatch) -> list[Result | Unavailable]:
        """One score per signal `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.transfer import fetched

        frames = self._net.wav2vec2.config.frames
        with computing(self.device, self._precision):
            scores = fetched(
                [self._graphs.run(self.graphs, self._net, [one.waves], one.lengths) for one in batch.passes]
            )
        return batch.results(scores, lambda score, length: _scored(float(score), frames(length)))


def _scored(score: float, frames: int) -> Result | Unavailable:
    if not math.isfinite(score):
        return Unavailable("the network's output is not a finite number")
    return {"utmos": score, "frames": frames}
