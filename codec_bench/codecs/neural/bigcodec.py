"""BigCodec: one codebook, 80 frames a second, 16 kHz, exact in batches.

Convolutions look both ways and activations repeat an item's last sample: both are masked layer by layer
(`networks/bigcodec.py`). The LSTMs run only forwards. As in the reference, n samples have n // 200 + 1 frames: zeros
fill the last frame, and whole frames get one more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, calm_branches, fill_with_noise, seeded

_RATE_HZ = 16000
_HOP = 200
_CARDINALITY = 8192
_SMALL: dict[str, Any] = {"filters": 4, "latent_dim": 32}


class BigCodec(NeuralCodec):
    """BigCodec.

    Codes: one stream of one codebook of 8192 entries at 80 frames a second.

    Args:
        device, weights: as for `PublishedCodec`; own weights are a file in the published layout, or a folder with it.
    """

    cardinality = _CARDINALITY
    _hop = _HOP
    checkpoints = ("bigcodec",)

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        self._device = device
        self._encoder, self._decoder, used = _load(weights)
        self._encoder.to(device)
        self._decoder.to(device)
        self._quantiser = _quantiser(self._decoder)
        self.info = replace(self.describe(), weights=used)

    @classmethod
    def describe(cls) -> CodecInfo:
        """Return the codec's `CodecInfo`, without loading weights."""
        return code_info("bigcodec", _RATE_HZ, _HOP, _CARDINALITY)

    def _frames(self, num_samples: int) -> int:
        return num_samples // _HOP + 1

    def _input_samples(self, num_samples: int) -> int:
        return _HOP * self._frames(num_samples)

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        return self._nearest(self._encoder(waves, samples))

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        return self._decoder(self._lookup(values), frames)


def _quantiser(decoder: Any) -> Any:
    """Return the decoder's codebook with its projections, for the lookup kernels."""
    from codec_bench.kernels.rvq import dispatch

    layer = decoder.projected
    projections = (p[None] for proj in (layer.in_proj, layer.out_proj) for p in (proj.weight, proj.bias))
    return dispatch.Factorised(layer._codebook.weight[None], *projections)


def _load(weights: str | None) -> tuple[Any, Any, str]:
    """Load encoder and decoder on the CPU; also return which weights they have."""
    from codec_bench.networks.bigcodec import BigCodecDecoder, BigCodecEncoder, BigCodecShape
    from codec_bench.networks.weight_norm import fold_weight_norm
    from codec_bench.weights import convert_cached, find, load_into, load_state, unfilled

    if weights in (RANDOM, RANDOM_FULL):
        return *_random_nets(BigCodecShape(**(_SMALL if weights == RANDOM else {}))), weights
    checkpoint = find("bigcodec", weights)
    path = checkpoint.path

    def read(key: str) -> dict[str, Any]:
        return convert_cached(lambda: fold_weight_norm(load_state(path, key=key)), path, key)

    encoder, decoder = (unfilled(partial(half, BigCodecShape())) for half in (BigCodecEncoder, BigCodecDecoder))
    for net, key in ((encoder, "CodecEnc"), (decoder, "generator")):
        load_into(net, read(key), path=path)
    return encoder, decoder, checkpoint.used


def _random_nets(shape: Any) -> tuple[Any, Any]:
    """Build encoder and decoder of seeded noise, whose latents follow their input.

    Codewords are about as wide as the latents.
    """
    import torch

    from codec_bench.networks.bigcodec import BigCodecDecoder, BigCodecEncoder

    with seeded():
        encoder, decoder = BigCodecEncoder(shape).eval(), BigCodecDecoder(shape).eval()
        for net in (encoder, decoder):
            fill_with_noise(net)
            calm_branches(net, ".block.3.weight")
        layer = decoder.projected
        latents = encoder(0.1 * torch.randn(1, 1, _RATE_HZ), [_RATE_HZ])
        projected = layer.in_proj(latents[0].T)
        layer._codebook.weight.copy_(projected.mean(0) + projected.std(0) * torch.randn_like(layer._codebook.weight))
    return encoder, decoder
