"""The tokenizer of Higgs Audio v2 by transformers, exact in batches.

The encoder's HuBERT has no mask, so items are followed by zeros to a multiple of 960 samples, and only equal lengths
share a pass. In the decoder everything beyond an item is zeroed before each convolution (`networks/dac.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, check_codebooks, code_info, group_by_length, of_transformers
from codec_bench.codecs.neural.random_weights import REDUCED_HUBERT, calm_residual_units, fill_with_noise, seeded
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.precision import computing

_RATE_HZ, _CARDINALITY, _CODEBOOKS = 24000, 1024, 8
_FACTS: dict[str, Any] = {"sample_rate": _RATE_HZ, "codebook_size": _CARDINALITY, "semantic_sample_rate": 16000}
# 960 samples are a frame; the first value of transformers' configuration, 320, is not the checkpoint's.
_RATIOS = [8, 5, 4, 2, 3]
_ACOUSTIC: dict[str, Any] = {"model_type": "dac", "downsampling_ratios": _RATIOS, "upsampling_ratios": _RATIOS}
_REDUCED_ACOUSTIC = {"encoder_hidden_size": 4, "decoder_hidden_size": 64, "hidden_size": 32}


class HiggsAudioV2(NeuralCodec):
    """The tokenizer of Higgs Audio v2.

    Codes: one stream of codebooks of 1024 entries at 25 frames a second.

    Args:
        codebooks: how many of the 8 are sent, the first ones, at 0.25 kbps each; None for all.
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.

    Raises:
        UserError: it does not have so many codebooks.
    """

    cardinality = _CARDINALITY
    checkpoints = ("higgs-audio-v2",)
    _hop = math.prod(_RATIOS)

    def __init__(self, codebooks: int | None = None, device: str = "cpu", weights: str | None = None) -> None:
        info = self.describe(codebooks)  # before the weights are loaded: a wrong number is found at once
        self._codebooks = check_codebooks("higgs-audio-v2", codebooks, _CODEBOOKS)
        net = of_transformers(weights, "higgs-audio-v2", "HiggsAudioV2TokenizerModel", _FACTS, _random_net)
        self._install(info, device, *net)
        self._latents = _Latents(self._net, device)

    @classmethod
    def describe(cls, codebooks: int | None = None) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        count = check_codebooks("higgs-audio-v2", codebooks, _CODEBOOKS)
        return code_info(f"higgs-audio-v2-{count}cb", _RATE_HZ, cls._hop, _CARDINALITY, count)

    def vectors(self, values: np.ndarray) -> np.ndarray:
        """Look up codes: float32 `(frames, dimensions)`, of all codebooks together."""
        import torch

        with computing(self._device, "float32"):
            there = torch.from_numpy(np.ascontiguousarray(values, np.int64))[:, None].to(self._device)
            return self._net.quantizer.decode(there)[0].T.float().cpu().numpy()

    def _encoder_passes(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        return group_by_length(lengths)

    def _input_samples(self, num_samples: int) -> int:
        return self._frames(num_samples) * self._hop

    def _encoded(self, inputs: Sequence[Any], samples: Sequence[int]) -> Any:
        return in_rows(self._codes, inputs)  # of no other length, since padding would change codes

    def _codes(self, waves: Any) -> Any:
        """Quantise the latents of waves: codes `(items, codebooks, frames)`."""
        quantizer, residual, codes = self._net.quantizer, self._latents(waves), []
        for layer in quantizer.quantizers[: self._codebooks]:
            codes.append(layer.encode(residual))
            residual = residual - layer.decode(codes[-1])
        import torch

        return torch.stack(codes, dim=1)

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        """As in the base class: look up latents, run the acoustic decoder."""
        from codec_bench.networks.dac import decode_latents
        from codec_bench.networks.ragged import on_device

        latents = self._net.quantizer.decode(values.transpose(0, 1))
        latents = self._net.fc2(latents.transpose(1, 2)).transpose(1, 2)
        return decode_latents(self._net.acoustic_decoder, latents, on_device(frames, self._device))

    def _read_quantiser(self, net: Any) -> Any:
        return None


def _random_net(*, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, with codebooks as wide as latents."""
    import torch

    from codec_bench.weights.pretrained import class_of

    parts: dict[str, Any] = {
        "acoustic_model_config": {**_ACOUSTIC, **(_REDUCED_ACOUSTIC if reduced else {})},
        "semantic_model_config": {"model_type": "hubert", "mask_time_prob": 0.0, **(REDUCED_HUBERT if reduced else {})},
        "target_bandwidths": [0.5, 1, 1.5, 2],
    }
    with seeded():
        net = class_of("HiggsAudioV2TokenizerModel")(class_of("HiggsAudioV2TokenizerConfig")(**_FACTS, **parts)).eval()
        fill_with_noise(net)
        calm_residual_units(net.acoustic_encoder, net.acoustic_decoder)
        residual = latents = _Latents(net, "cpu")(0.1 * torch.randn(1, 1, 40 * HiggsAudioV2._hop))
        for layer in net.quantizer.quantizers:
            inner = layer.project_in(residual.transpose(1, 2))
            layer.codebook.embed.copy_(0.5 * inner.std() * torch.randn_like(layer.codebook.embed))
            residual = residual - layer.decode(layer.encode(residual))
        wave = net.acoustic_decoder(net.fc2((latents - residual).transpose(1, 2)).transpose(1, 2))
        net.acoustic_decoder.conv2.weight.mul_(0.3 / wave.std())
    return net


class _Latents:
    """The latents `(items, hidden, frames)` that the model quantises, of waves of a multiple of 960 samples.

    Both branches then have one frame every 960 samples; transformers pads the acoustic one otherwise.
    """

    def __init__(self, net: Any, device: str) -> None:
        import torch
        from torchaudio.transforms import Resample

        self._net = net
        resample = Resample(net.config.sample_rate, net.config.semantic_sample_rate, dtype=torch.float32)
        self._resample = resample.to(device)

    def __call__(self, waves: Any) -> Any:
        import torch

        net = self._net
        padded = torch.nn.functional.pad(self._resample(waves)[:, 0], (160, 160))
        layers = net.semantic_model(padded, output_hidden_states=True).hidden_states
        features = torch.stack(layers, dim=1).mean(dim=1)[:, :: net.config.semantic_downsample_factor]
        both = torch.cat([net.acoustic_encoder(waves), net.encoder_semantic(features.transpose(1, 2))], dim=1)
        return net.fc(both.transpose(1, 2)).transpose(1, 2)
