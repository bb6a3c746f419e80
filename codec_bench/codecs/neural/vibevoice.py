"""VibeVoice's acoustic tokenizer by transformers: 64 numbers at 7.5 Hz.

As in transformers' extractor, a clip is first brought to -25 dB of full scale (lower if it would clip). The factor is
sent next to the latents and undone by the decoder, so the codec is not causal, although its networks are. The encoder's
training noise (`sample`) is off. Every item is followed by zeros to a multiple of 3200 samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import of_transformers
from codec_bench.codecs.neural.latents import CausalLatents
from codec_bench.codecs.neural.random_weights import fill_with_noise, seeded
from codec_bench.types import Audio, Latents

_RATE_HZ, _DIMENSIONS = 24000, 64
_LEVEL, _EPS = np.float32(10 ** (-25 / 20)), np.float32(1e-6)
_FACTS: dict[str, Any] = {"channels": 1, "hidden_size": _DIMENSIONS, "downsampling_ratios": [2, 2, 4, 5, 5, 8]}
_REDUCED: dict[str, Any] = {"num_filters": 2, "depths": [1, 1, 1, 1, 1, 1, 2]}


class VibeVoiceCodec(CausalLatents):
    """The acoustic tokenizer of VibeVoice.

    Latents: 64 real numbers 7.5 times a second, and the clip's level once.

    Args:
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.
    """

    checkpoints = ("vibevoice",)
    _hop = 3200

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        net = of_transformers(weights, "vibevoice", "VibeVoiceAcousticTokenizerModel", _FACTS, _random_net)
        self._install(self.describe(), device, *net)

    @classmethod
    def describe(cls) -> CodecInfo:
        """Return the codec's `CodecInfo`, without loading weights."""
        return CodecInfo(
            "vibevoice", (_RATE_HZ,), frame_rate_hz=_RATE_HZ / cls._hop, causal=False, latents=_DIMENSIONS
        )  # fmt: skip

    def _inputs(self, waves: Sequence[np.ndarray], samples: Sequence[int]) -> Sequence[np.ndarray]:
        return super()._inputs([wave * _factor(wave) for wave in waves], samples)

    def _to_codes(self, values: np.ndarray, audio: Audio) -> Latents:
        return replace(super()._to_codes(values, audio), side={"factor": float(_factor(audio.samples))})

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        return self._net.encoder(waves).latents.transpose(1, 2)

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        return self._net.decoder(values).audio

    def _cut(self, wave: np.ndarray, item: Any) -> np.ndarray:
        return super()._cut(wave, item) / np.float32(item.side["factor"])


def _factor(samples: np.ndarray) -> np.float32:
    """Return the gain that brings a clip to the encoder's level."""
    factor = _LEVEL / (np.sqrt(np.mean(np.square(samples))) + _EPS)
    peak = np.abs(samples * factor).max()
    return np.float32(factor / (peak + _EPS) if peak > 1 else factor)


def _random_net(*, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, whose latents follow its input."""
    import torch

    from codec_bench.weights.pretrained import class_of

    with seeded():
        config = class_of("VibeVoiceAcousticTokenizerConfig")(**{**_FACTS, **(_REDUCED if reduced else {})})
        net: Any = class_of("VibeVoiceAcousticTokenizerModel")(config).eval()
        fill_with_noise(net)
        for name, scale in net.named_parameters():
            if name.endswith("gamma"):  # at the published first value, 1e-6, the blocks would have no effect
                scale.fill_(0.3)
        latents = net.encoder(0.1 * torch.randn(1, 1, 10 * VibeVoiceCodec._hop)).latents
        net.decoder.head.conv.weight.mul_(0.3 / net.decoder(latents.transpose(1, 2)).audio.std())
    return net
