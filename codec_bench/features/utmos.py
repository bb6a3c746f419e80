"""UTMOS22 strong: the mean opinion score that listeners would give, predicted by wav2vec 2.0 and a BiLSTM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codec_bench.audio.passes import EIGHT_SECONDS, passes
from codec_bench.features.base import Feature, Result, Unavailable
from codec_bench.networks.precision import computing, parse_precision, suffix
from codec_bench.weights import find, load_into, load_state

if TYPE_CHECKING:
    import torch

    from codec_bench.networks.speech_encoder import EncoderConfig

RATE_HZ = 16_000
WEIGHTS = "utmos22-strong"
CONDITION = 128
"""The length of each of the two constant vectors that stand for a listening test and a listener."""
HIDDEN, PROJECTION = 512, 2048
SCALE, OFFSET = 2.0, 3.0
"""They turn the network's scale, in which listeners' ratings are in [-1, 1], into that of opinion scores."""


class Utmos(Feature):
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
        point: `tf32` or `bfloat16` for the encoder (the other layers stay in float32), or None for float32.

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
        self._precision = parse_precision("utmos", point)
        self._path = find(WEIGHTS, weights).path
        self._net: Any = None

    @classmethod
    def protocol_id(cls, point: str | None = None) -> str:
        """The id of the measurement. No weights are needed for it.

        Raises:
            UserError: no such precision.
        """
        return f"utmos22-strong/speechmos-1.2{suffix(parse_precision('utmos', point))}"

    def load(self) -> None:
        """Loads the network.

        Raises:
            WeightsError: the file is broken, or is that of another network.
        """
        if self._net is None:
            from codec_bench.networks.speech_encoder import WAV2VEC2_BASE

            net = network(WAV2VEC2_BASE, HIDDEN, PROJECTION)
            load_into(net, load_state(self._path), path=self._path)
            self._net = net.to(self.device)

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """One score per signal `(samples,)`, float32 at 16 kHz."""
        from codec_bench.networks.speech_encoder import padded

        self.load()
        config = self._net.wav2vec2.config
        results: list[Result | Unavailable] = [
            Unavailable(f"the signal has {signal.size} samples; UTMOS needs at least {config.receptive_field}")
            for signal in signals
        ]
        places = [place for place, signal in enumerate(signals) if signal.size >= config.receptive_field]
        for group in passes([signals[place].size for place in places], self.device, most_on_cpu=EIGHT_SECONDS):
            some = [places[index] for index in group]
            with computing(self.device, self._precision):
                waves, lengths = padded([signals[place] for place in some], self.device)
                scores = mean_opinions(self._net, waves, lengths).tolist()
            for place, score, length in zip(some, scores, lengths):
                results[place] = {"utmos": score, "frames": config.frames(length)}
        return results


def network(encoder: EncoderConfig, hidden: int, projection: int) -> Any:
    """The network with random weights. Its tensors have the names of the published file.

    Args:
        encoder: the architecture of the speech encoder.
        hidden: width of the BiLSTM in each direction.
        projection: width between the two linear layers.
    """
    from torch import nn, zeros

    from codec_bench.networks.speech_encoder import SpeechEncoder

    net = nn.Module()
    net.wav2vec2 = SpeechEncoder(encoder)
    net.domain_emb, net.judge_emb = (nn.Parameter(zeros(1, CONDITION)) for _ in range(2))
    net.blstm = nn.LSTM(encoder.width + 2 * CONDITION, hidden, batch_first=True, bidirectional=True)
    net.projection = nn.Sequential(nn.Linear(2 * hidden, projection), nn.ReLU(), nn.Linear(projection, 1))
    return net.eval()


def mean_opinions(net: Any, waves: torch.Tensor, lengths: Sequence[int]) -> torch.Tensor:
    """The score of each item of a padded batch.

    Args:
        net: from `network`. waves: float32 `(batch, samples)` at 16 kHz. lengths: the number of samples of each item.

    Returns:
        float32 `(batch,)`, on the device of the waves.
    """
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    frames, counts = net.wav2vec2(waves, lengths)
    # Half precision would save little time here, and a mean over hundreds of frames of a recurrent network needs float32.
    with torch.autocast(waves.device.type, enabled=False):
        frames = frames.float()
        conditions = torch.cat([net.domain_emb, net.judge_emb], 1).expand(*frames.shape[:2], -1)
        packed = pack_padded_sequence(
            torch.cat([frames, conditions], 2), counts, batch_first=True, enforce_sorted=False
        )
        heard, _ = pad_packed_sequence(net.blstm(packed)[0], batch_first=True)
        opinions = net.projection(heard)[..., 0]
        own = torch.tensor(counts).to(waves.device, non_blocking=True)
        beyond = torch.arange(opinions.shape[1], device=waves.device) >= own[:, None]
        return opinions.masked_fill(beyond, 0.0).sum(1) / own * SCALE + OFFSET
