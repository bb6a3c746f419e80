"""DAC at 16, 24 and 44.1 kHz by transformers, exact in batches.

Every item is followed by zeros to its own multiple of the hop, as in DAC's preprocessing; everything beyond is zeroed
before every convolution (`networks/dac.py`). The whole signal is coded at once, as in transformers and the paper,
without the volume normalisation and one-second windows of the `dac` package's `compress`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, check_codebooks, code_info
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, calm_residual_units, fill_with_noise, seeded
from codec_bench.messages.errors import UserError
from codec_bench.types import Codes

_CARDINALITY = 1024
_REDUCED = {"encoder_hidden_size": 8, "decoder_hidden_size": 64}


@dataclass(frozen=True, slots=True)
class _DacModel:
    """One published model; `latent` is the channels of the latents if not 1024."""

    rate_hz: int
    strides: tuple[int, ...]
    codebooks: int
    latent: int | None = None

    @property
    def hop(self) -> int:
        return math.prod(self.strides)

    @property
    def config(self) -> dict[str, Any]:
        sizes = {"n_codebooks": self.codebooks, "codebook_size": _CARDINALITY, "codebook_dim": 8}
        return {"sampling_rate": self.rate_hz, "downsampling_ratios": list(self.strides), **sizes}


_MODELS = {
    "16khz": _DacModel(16000, (2, 4, 5, 8), 12),
    "24khz": _DacModel(24000, (2, 4, 5, 8), 32),
    "44khz": _DacModel(44100, (2, 4, 8, 8), 9),
    "44khz-16kbps": _DacModel(44100, (2, 4, 8, 8), 18, latent=128),
}


class Dac(NeuralCodec):
    """DAC (Descript Audio Codec).

    Codes: one stream of codebooks of 1024 entries at 50 (16 kHz), 75 (24 kHz) or 86.13 frames a second (44.1 kHz).

    Args:
        model: `16khz`, `24khz`, `44khz` (the published "8kbps"), or `44khz-16kbps`.
        codebooks: how many of its 12, 32, 9 or 18 codebooks are sent, the first ones; None for all. Training with
            quantiser dropout allows any number.
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers (of the
            original package for `44khz-16kbps`).

    Raises:
        UserError: there is no such model, or it does not have so many codebooks.
    """

    cardinality = _CARDINALITY
    residual = True
    checkpoints = ("dac-{model}",)

    def __init__(
        self,
        model: Literal["16khz", "24khz", "44khz", "44khz-16kbps"],
        codebooks: int | None = None,
        device: str = "cpu",
        weights: str | None = None,
    ) -> None:
        info = self.describe(model, codebooks)  # before the weights are loaded: a wrong number is found at once
        facts = _MODELS[model]
        self._hop = facts.hop
        self._codebooks = check_codebooks(info.name, codebooks, facts.codebooks)
        self._install(info, device, *_load(model, weights))

    @classmethod
    def describe(cls, model: str, codebooks: int | None = None) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        if model not in _MODELS:
            raise UserError("no_variant", variant=model, name="DAC", hint=f"it has {', '.join(_MODELS)}")
        facts = _MODELS[model]
        count = check_codebooks(f"dac-{model}", codebooks, facts.codebooks)
        name = f"dac-{model}" if count == facts.codebooks else f"dac-{model}-{count}cb"
        return code_info(name, facts.rate_hz, facts.hop, _CARDINALITY, count)

    def _input_samples(self, num_samples: int) -> int:
        return self._frames(num_samples) * self._hop

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        from codec_bench.networks.dac import encode_waves
        from codec_bench.networks.ragged import on_device

        return self._nearest(encode_waves(self._net.encoder, waves, on_device(samples, self._device)))

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        from codec_bench.networks.dac import decode_latents
        from codec_bench.networks.ragged import on_device

        return decode_latents(self._net.decoder, self._lookup(values), on_device(frames, self._device))

    def _cut(self, wave: np.ndarray, item: Codes) -> np.ndarray:
        """Cut a decoded wave to the item's length; append zeros if the decoder gave fewer."""
        from codec_bench.networks.dac import decoded_samples

        # The 16 and 24 kHz decoders make 8 samples fewer than the encoder took (their stride of 5 is odd): an item that
        # ends less than 8 samples before a multiple of the hop ends in up to 8 zeros.
        count = min(item.num_samples, decoded_samples(self._net.decoder, self._frames(item.num_samples)))
        samples = np.zeros((1, item.num_samples), np.float32)
        samples[:, :count] = wave[:, :count]
        return samples


def _load(model: str, weights: str | None) -> tuple[Any, str]:
    """Load the network on the CPU; also return which weights it has."""
    from transformers import DacModel

    from codec_bench.weights import find, unfilled
    from codec_bench.weights.pretrained import load_pretrained

    facts = _MODELS[model]
    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(facts, reduced=weights == RANDOM), weights
    checkpoint = find(f"dac-{model}", weights)
    if facts.latent is not None:
        from codec_bench.codecs.neural.dac_original import load_original

        return load_original(unfilled(lambda: _empty_net(facts)), checkpoint.path), checkpoint.used
    return load_pretrained(DacModel, str(checkpoint.folder), facts.config), checkpoint.used


def _empty_net(facts: _DacModel, **sizes: int) -> Any:
    """Build the network of a configuration, without trained weights."""
    from transformers import DacConfig, DacModel

    config = DacConfig(**{**facts.config, **sizes})
    if facts.latent is not None:
        config.hidden_size = facts.latent  # derived in the class: only this model has fewer channels than its encoder
    return DacModel(config)


def _random_net(facts: _DacModel, *, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, with codewords as long as latents."""
    import torch

    with seeded():
        net = _empty_net(facts, **(_REDUCED if reduced else {}))
        fill_with_noise(net)
        calm_residual_units(net.encoder, net.decoder)
        noise = 0.1 * torch.randn(1, 1, 100 * facts.hop)
        residual = latents = net.encoder(noise)
        for layer in net.quantizer.quantizers:
            layer.out_proj.weight.copy_(torch.linalg.pinv(layer.in_proj.weight[:, :, 0])[:, :, None])
            size = layer.in_proj(residual).norm(dim=1).mean() / layer.codebook.embedding_dim**0.5
            layer.codebook.weight.copy_(size * torch.randn_like(layer.codebook.weight))
            residual = residual - layer(residual)[0]
        wave = torch.atanh(net.decoder(latents - residual).double().clamp(-1 + 1e-7, 1 - 1e-7))
        net.decoder.conv2.weight.mul_(0.3 / wave.std())
    return net
