"""SSL-MOS: scored and averaged frames of an encoder (SHEET, SingMOS).

The mean follows s3prl: it counts one frame for each started 20 ms, and the last frame replaces those that the encoder
lacks. Papers: E. Cooper et al., "Generalization Ability of MOS Prediction Networks", ICASSP 2022; W.-C. Huang et al.,
"MOS-Bench", 2024; Y. Tang et al., "SingMOS-Pro", 2025. Reference implementations: unilight/sheet at v0.1.0 and 7ea80cc,
South-Twilight/SingMOS at 1554e86, both over s3prl 0.4.18.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from codec_bench.networks.ragged import WholeSignal, each, inside, on_device, uploaded
from codec_bench.networks.speech_config import WAV2VEC2_BASE, WAV2VEC2_LARGE, WAVLM_LARGE, EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, standardised

WAVE_EPS = 1e-5
HIDDEN = 64
DOMAINS, DOMAIN_WIDTH = 6, 128
HOP = 320
PRETRAINING = ("quantizer.", "project_q.", "final_proj.", "project_inp.", "target_glu.")
"""Tensors of wav2vec 2.0 for its training only."""


class SslMosNet(WholeSignal, nn.Module):
    """The base: the encoder, a head per frame, and the mean over frames.

    Args:
        encoder: the architecture of the speech encoder; None for the published one.
    """

    at_once = (16_000 * 30, 16_000 * 240)
    published: ClassVar[EncoderConfig]
    standardises: ClassVar[bool]
    prefixes: ClassVar[Mapping[str, str]]

    def __init__(self, encoder: EncoderConfig | None = None) -> None:
        super().__init__()
        self.encoder = SpeechEncoder(encoder or self.published)
        self.width = (encoder or self.published).width

    @classmethod
    def translated(cls, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Convert published tensors to this network's state dict, without training ones."""
        translated = {}
        for name, value in state.items():
            theirs = next((prefix for prefix in cls.prefixes if name.startswith(prefix)), "")
            inner = name.removeprefix(theirs)
            if not inner.startswith(PRETRAINING):
                translated[cls.prefixes.get(theirs, "") + inner] = value
        return translated

    def score(self, frames: Tensor) -> Tensor:
        """Score each frame, `(items, frames)`."""
        raise NotImplementedError

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> Tensor:
        """Score each item, float32 `(items, 1)`.

        Args:
            waves: float32 `(items, samples)` at 16 kHz. lengths: the number of samples of each item.
        """
        lengths = uploaded(lengths, waves.device)
        frames, counts = self.encoder(standardised(waves, lengths, WAVE_EPS) if self.standardises else waves, lengths)
        with torch.autocast(waves.device.type, enabled=False):
            scores = self.score(frames.float())
        available = on_device(counts, waves.device)
        total = scores.masked_fill(~inside(counts, scores.shape[1], waves.device), 0.0).sum(1)
        last = scores.gather(1, (available - 1).long()[:, None])[:, 0]
        steps = on_device(each(lengths, lambda samples: -(-samples // HOP)), waves.device)
        return ((total + (steps - available) * last) / steps)[:, None]


def _head(width: int) -> nn.Sequential:
    # The third layer was a dropout in training; it counts in the published names.
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Identity(), nn.Linear(HIDDEN, 1))


class SheetNet(SslMosNet):
    """SHEET's predictor over wav2vec 2.0 base, trained on seven sets of MOS-Bench."""

    published = WAV2VEC2_BASE
    standardises = False
    prefixes: ClassVar = {"ssl_model.upstream.model.": "encoder.", "mean_net_dnn.net.": "head."}

    def __init__(self, encoder: EncoderConfig | None = None) -> None:
        super().__init__(encoder)
        self.head = _head(self.width)

    def score(self, frames: Tensor) -> Tensor:
        """Between 1 and 5."""
        return torch.tanh(self.head(frames)[..., 0]) * 2.0 + 3.0


class SheetWavlmNet(SheetNet):
    """SHEET's predictor over WavLM large, trained on eight sets of MOS-Bench."""

    published = WAVLM_LARGE
    standardises = True


class SingMosNet(SslMosNet):
    """SingMOS of 2024: a linear layer over wav2vec 2.0 base."""

    published = WAV2VEC2_BASE
    standardises = False
    prefixes: ClassVar = {"ssl_model.ssl_model.upstream.model.": "encoder."}

    def __init__(self, encoder: EncoderConfig | None = None) -> None:
        super().__init__(encoder)
        self.linear = nn.Linear(self.width, 1)

    def score(self, frames: Tensor) -> Tensor:
        """Without a bound."""
        return self.linear(frames)[..., 0]


class SingMosProNet(SslMosNet):
    """SingMOS-Pro: wav2vec 2.0 large, a domain's embedding, two layers."""

    published = WAV2VEC2_LARGE
    standardises = True
    prefixes: ClassVar = {"ssl_model.ssl_model.upstream.model.": "encoder.", "decoder.net.": "head."}

    def __init__(self, encoder: EncoderConfig | None = None) -> None:
        super().__init__(encoder)
        self.domain_emb = nn.Embedding(DOMAINS, DOMAIN_WIDTH)
        self.head = _head(self.width + DOMAIN_WIDTH)

    def score(self, frames: Tensor) -> Tensor:
        """Between 1 and 5."""
        domain = self.domain_emb.weight[1].expand(*frames.shape[:2], DOMAIN_WIDTH)
        return torch.tanh(self.head(torch.cat((frames, domain), -1))[..., 0]) * 2.0 + 3.0
