"""The audio tokenizer of Pocket TTS (Kyutai): a Mimi without codebooks.

Convolutions and both transformers (a window of 250 positions) are causal. Every item is followed by zeros to a multiple
of 1920 samples, as transformers' extractor does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import of_transformers
from codec_bench.codecs.neural.latents import CausalLatents
from codec_bench.codecs.neural.random_weights import fill_with_noise, raise_layer_scales, seeded

_RATE_HZ, _DIMENSIONS = 24000, 32
_FACTS: dict[str, Any] = {
    "sampling_rate": _RATE_HZ, "upsampling_ratios": [6, 5, 4], "latent_stride": 16, "latent_dim": _DIMENSIONS,
    "use_causal_conv": True,
}  # fmt: skip
_REDUCED = {
    "hidden_size": 64,
    "num_filters": 4,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "upsample_groups": 64,
}


class PocketTtsCodec(CausalLatents):
    """The audio tokenizer of Pocket TTS.

    Latents: 32 real numbers 12.5 times a second.

    Args:
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.
    """

    checkpoints = ("pocket-tts",)
    _hop = 1920

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        from codec_bench.networks.transfer import sizes_on_host

        net = of_transformers(weights, "pocket-tts", "PocketTTSAudioTokenizerModel", _FACTS, _random_net)
        self._install(self.describe(), device, *net)
        sizes_on_host(self._net)

    @classmethod
    def describe(cls) -> CodecInfo:
        """Return the codec's `CodecInfo`, without loading weights."""
        rate_hz = _RATE_HZ / cls._hop
        return CodecInfo(
            "pocket-tts", (_RATE_HZ,), frame_rate_hz=rate_hz, causal=True, lookahead_s=0.0, latents=_DIMENSIONS
        )  # fmt: skip

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        return self._net.encoder(waves, use_streaming=False).latents

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        return self._net.decoder(self._net.latent_proj(values)).audio_values


def _random_net(*, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, whose latents follow its input."""
    import torch

    from codec_bench.weights.pretrained import class_of

    with seeded():
        net: Any = class_of("PocketTTSAudioTokenizerModel")(
            class_of("PocketTTSAudioTokenizerConfig")(**{**_FACTS, **(_REDUCED if reduced else {})})
        )
        fill_with_noise(net.eval())
        raise_layer_scales(net.encoder.encoder_transformer, net.decoder.decoder_transformer)
        latents = net.encoder(0.1 * torch.randn(1, 1, 25 * PocketTtsCodec._hop)).latents
        wave = net.decoder(net.latent_proj(latents)).audio_values
        net.decoder.decoder_seanet.layers[-1].conv.weight.mul_(0.3 / wave.std())
    return net
