"""BigCodec, one codebook at 80 frames a second at 16 kHz, in batches that equal the reference one item at a time.

Where padding would leak, and what is done about it
    The convolutions look both ways and the activations repeat an item's last sample: both are masked layer by layer
    (`bigcodec_net.py`). The LSTMs run forwards only.
    As in the reference, zeros fill the last frame of an item, and an item of whole frames gets one more: an item of n
    samples has n // 200 + 1 frames, from one sample on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codec_bench.audio.passes import passes
from codec_bench.codecs.base import Codec, CodecInfo
from codec_bench.codecs.bitstream import check_input
from codec_bench.codecs.network import (
    RANDOM,
    RANDOM_FULL,
    check_stream,
    fill_with_noise,
    full_float32,
    one_stream,
    seeded,
    stack,
    weights_folder,
)
from codec_bench.types import Audio, Codes

_RATE_HZ = 16000
_HOP = 200
_CARDINALITY = 8192
_BITS_PER_CODE = 13
_SMALL = {"filters": 4, "latent_dim": 32}


class BigCodec(Codec):
    """BigCodec.

    Codes: one stream of one codebook of 8192 entries at 80 frames a second.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a file in the published layout, a folder that holds it, or a hub id; None for the published one; `random`
            for small networks of seeded noise, `random-full` for those of the published size, both for tests and benches
            only.

    Raises:
        WeightsError: the weights are not on this machine, or are another model's.
    """

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        self._device = device
        self._encoder, self._decoder, used = _load(weights)
        self._encoder.to(device)
        self._decoder.to(device)
        self._quantiser = _quantiser(self._decoder)
        self.info = replace(self.describe(), weights=used)

    @classmethod
    def describe(cls) -> CodecInfo:
        """The facts, without loading anything."""
        return CodecInfo(
            name="bigcodec",
            sample_rates_hz=(_RATE_HZ,),
            frame_rate_hz=_RATE_HZ / _HOP,
            nominal_bitrate_bps=_RATE_HZ / _HOP * _BITS_PER_CODE,
            causal=False,
        )

    @classmethod
    def find_weights(cls, **_: Any) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        return weights_folder("bigcodec")

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as the reference gives them for that item alone.

        Raises:
            UserError: a rate or channel count that it does not take, or no samples.
        """
        from codec_bench.kernels.rvq import dispatch

        for audio in batch:
            check_input(audio, self.info)
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        with full_float32(self._device):
            for group in passes([audio.num_samples for audio in batch], self._device):
                frames = [_frames(batch[k].num_samples) for k in group]
                waves = self._tensor([batch[k].samples for k in group], _HOP * max(frames))
                latents = self._encoder(waves, [_HOP * count for count in frames])
                codes = dispatch.search(latents, self._quantiser).value.cpu().numpy()
                for k, count, item in zip(group, frames, codes):
                    values[k] = item[:, :count]
        return [one_stream(value, audio, self.info, _CARDINALITY) for value, audio in zip(values, batch)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes of another shape than the item's length has, or out of range.
        """
        from codec_bench.kernels.rvq import dispatch

        for item in codes:
            check_stream(item, self.info, (1, _frames(item.num_samples)), _CARDINALITY)
        values = [item.streams[0].values.astype(np.int64, copy=False) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with full_float32(self._device):
            for group in passes([value.shape[1] for value in values], self._device):
                frames = [values[k].shape[1] for k in group]
                given = self._tensor([values[k] for k in group], max(frames))
                decoded = self._decoder(dispatch.lookup(given, self._quantiser).value, frames).cpu().numpy()
                for k, wave in zip(group, decoded):
                    waves[k] = wave[:, : codes[k].num_samples]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _tensor(self, items: Sequence[np.ndarray], length: int) -> Any:
        import torch

        return torch.from_numpy(stack(items, length)).to(self._device)


def _frames(num_samples: int) -> int:
    return num_samples // _HOP + 1


def _quantiser(decoder: Any) -> Any:
    from codec_bench.kernels.rvq import dispatch

    layer = decoder.quantizer["layers"][0]
    return dispatch.Factorised(
        layer._codebook.weight[None],
        layer.in_proj.weight[None],
        layer.in_proj.bias[None],
        layer.out_proj.weight[None],
        layer.out_proj.bias[None],
    )


def _load(weights: str | None) -> tuple[Any, Any, str]:
    """Encoder and decoder in eval mode on the CPU, and which weights they have."""
    from codec_bench.codecs.bigcodec_net import BigCodecDecoder, BigCodecEncoder, Shape
    from codec_bench.codecs.weight_norm import fold_weight_norm
    from codec_bench.weights import find, load_into, load_state

    if weights in (RANDOM, RANDOM_FULL):
        return *_random_nets(Shape(**(_SMALL if weights == RANDOM else {}))), weights
    found = find("bigcodec", weights)
    encoder, decoder = BigCodecEncoder(Shape()), BigCodecDecoder(Shape())
    for net, key in ((encoder, "CodecEnc"), (decoder, "generator")):
        load_into(net, fold_weight_norm(load_state(found.path, key=key)), path=found.path)
    return encoder, decoder, found.used


def _random_nets(shape: Any) -> tuple[Any, Any]:
    """Networks of seeded noise whose latents follow their input and whose codewords point wherever latents do."""
    import torch

    from codec_bench.codecs.bigcodec_net import BigCodecDecoder, BigCodecEncoder

    with seeded():
        encoder, decoder = BigCodecEncoder(shape).eval(), BigCodecDecoder(shape).eval()
        for net in (encoder, decoder):
            fill_with_noise(net)
            for name, parameter in net.named_parameters():
                if name.endswith(".block.3.weight"):  # of a residual unit: fifteen of them must not add up
                    parameter.mul_(0.3)
        layer = decoder.quantizer["layers"][0]
        latents = encoder(0.1 * torch.randn(1, 1, _RATE_HZ), [_RATE_HZ])
        projected = layer.in_proj(latents[0].T)
        layer._codebook.weight.copy_(projected.mean(0) + projected.std(0) * torch.randn_like(layer._codebook.weight))
    return encoder, decoder
