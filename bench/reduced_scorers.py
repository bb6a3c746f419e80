"""Similarity and UTMOS with seeded noise for weights, reduced or full.

Reduced architectures have fewer and narrower layers. The engine runs their metrics as custom code
(`reduced_scorers.py:ReducedSim`).
"""

from __future__ import annotations

from typing import Any

import torch

from codec_bench.features.encoder_feature import EncoderFeature
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision
from codec_bench.features.speakers.wavlm_sv import WavlmLargeSv
from codec_bench.features.utmos import Utmos
from codec_bench.metrics import REGISTRY
from codec_bench.metrics.sim import Sim
from codec_bench.networks.ecapa import SpeakerNet
from codec_bench.networks.speech_config import WAV2VEC2_BASE, WAVLM_LARGE, EncoderConfig
from codec_bench.networks.utmos import UtmosNet

CONVOLUTIONS = ((128, 10, 5), *((128, 3, 2),) * 4, *((128, 2, 2),) * 2)
SPEAKER = EncoderConfig("layer_norm", 256, 6, 4, 1024, pre_norm=True, conv_layers=CONVOLUTIONS, relative_buckets=320)
"""WavLM-large's architecture in small."""
UTMOS = EncoderConfig("group_norm", 256, 4, 4, 1024, pre_norm=False, conv_layers=CONVOLUTIONS)
"""The architecture of wav2vec 2.0 base in small."""


class _Random:
    """A feature with random weights, at the published size and drawn on its device if `full`."""

    _path: Any = None

    def __init__(self, device: str = "cpu", weights: Any = None, point: str | None = None, full: bool = False) -> None:
        self.full = full
        EncoderFeature.__init__(self, device, weights, parse_precision(self.name, point, BY_WEIGHTS))

    def _network(self) -> Any:
        with torch.random.fork_rng(devices=[]), torch.device(self.device if self.full else "cpu"):
            torch.manual_seed(0)
            return self._drawn().eval()


class RandomSpeaker(_Random, WavlmLargeSv):
    """The speaker embedding."""

    name = protocol = "reduced-speaker"

    def _drawn(self) -> Any:
        return SpeakerNet(WAVLM_LARGE) if self.full else SpeakerNet(SPEAKER, 128, 384, 256)


class RandomUtmos(_Random, Utmos):
    """The predicted opinion score."""

    name = protocol = "reduced-utmos"

    def _drawn(self) -> Any:
        net = UtmosNet(WAV2VEC2_BASE) if self.full else UtmosNet(UTMOS, 128, 512)
        for constant in (net.domain_emb, net.judge_emb):
            torch.nn.init.normal_(constant)
        return net


class ReducedSim(Sim):
    """The cosine of the reduced speaker embeddings."""

    def __init__(self) -> None:
        self.name, self.protocol = "sim[reduced]", "sim/reduced"
        self._feature = f"{__file__}:RandomSpeaker"
        self.estimate_features = self.reference_features = (self._feature,)


class ReducedOpinion(REGISTRY.resolve("utmos")):
    """The reduced network's opinion score."""

    def __init__(self) -> None:
        self.name, self.protocol, self.languages = "utmos[reduced]", "utmos/reduced", ("en",)
        self.estimate_features = (f"{__file__}:RandomUtmos",)
