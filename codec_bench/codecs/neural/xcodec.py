"""X-codec by transformers, exact in batches.

The encoder's HuBERT or WavLM has no mask, so items are followed by zeros to a multiple of 320 samples, and only equal
lengths share a pass. In the decoder everything beyond an item is zeroed before each convolution (`networks/dac.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info, group_by_length, of_transformers
from codec_bench.codecs.neural.random_weights import REDUCED_HUBERT, calm_residual_units, fill_with_noise, seeded
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.networks.batch_shapes import in_rows

_RATE_HZ = 16000
_HOP = 320
_CARDINALITY = 1024
_CODEBOOKS = (1, 2, 3, 4, 8)  # those of the bandwidths it was trained with
_KBPS_PER_CODEBOOK = 0.5
_FACTS: dict[str, Any] = {
    "sample_rate": _RATE_HZ,
    "codebook_size": _CARDINALITY,
    "target_bandwidths": [count * _KBPS_PER_CODEBOOK for count in _CODEBOOKS],
}
# The published checkpoints and the semantic model that each has inside.
_MODELS = {
    "hubert-librispeech": "hubert",
    "hubert-general": "hubert",
    "hubert-general-balanced": "hubert",
    "wavlm-mls": "wavlm",
    "wavlm-more-data": "wavlm",
}
_REDUCED_ACOUSTIC = {"encoder_hidden_size": 8, "decoder_hidden_size": 64, "hidden_size": 32}


class Xcodec(NeuralCodec):
    """X-codec.

    Codes: one stream of codebooks of 1024 entries at 50 frames a second.

    Args:
        model: `hubert-librispeech`, `hubert-general`, `hubert-general-balanced`, `wavlm-mls` or `wavlm-more-data`.
        codebooks: 1, 2, 3, 4 or 8 of them, at 0.5 kbps each; None for all.
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.

    Raises:
        UserError: there is no such model, or not that number of codebooks.
    """

    cardinality = _CARDINALITY
    _hop = _HOP
    checkpoints = ("xcodec-{model}",)

    def __init__(
        self,
        model: Literal[
            "hubert-librispeech", "hubert-general", "hubert-general-balanced", "wavlm-mls", "wavlm-more-data"
        ],
        codebooks: int | None = None,
        device: str = "cpu",
        weights: str | None = None,
    ) -> None:
        info = self.describe(model, codebooks)  # before the weights are loaded: a wrong number is found at once
        self._codebooks = codebooks or _CODEBOOKS[-1]
        self._install(info, device, *_load(model, weights))

    @classmethod
    def describe(cls, model: str, codebooks: int | None = None) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        if model not in _MODELS:
            raise UserError("no_variant", variant=model, name="X-codec", hint=f"it has {', '.join(_MODELS)}")
        count = _CODEBOOKS[-1] if codebooks is None else codebooks
        if isinstance(count, bool) or count not in _CODEBOOKS:
            known = ", ".join(map(str, _CODEBOOKS))
            raise UserError("codebook_count", codec="X-codec", codebooks=count, hint=f"it runs with {known}")
        name = f"xcodec-{model}" if count == _CODEBOOKS[-1] else f"xcodec-{model}-{count}cb"
        return code_info(name, _RATE_HZ, _HOP, _CARDINALITY, count)

    def _encoder_passes(self, lengths: Sequence[int]) -> Iterable[list[int]]:
        return group_by_length(lengths)

    def _input_samples(self, num_samples: int) -> int:
        return self._frames(num_samples) * _HOP

    def _encoded(self, inputs: Sequence[Any], samples: Sequence[int]) -> Any:
        # Of no other length, since padding would change codes.
        return in_rows(lambda waves: self._nearest(_latents(self._net, waves)), inputs)

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        """Look up the latents of padded codes, and run the acoustic decoder."""
        from codec_bench.networks.dac import decode_latents
        from codec_bench.networks.ragged import on_device

        latents = self._net.fc2(self._lookup(values).transpose(1, 2)).transpose(1, 2)
        return decode_latents(self._net.acoustic_decoder, latents, on_device(frames, self._device))


def _load(model: str, weights: str | None) -> tuple[Any, str]:
    """Load the network on the CPU; return it and the name of its weights for records.

    Args:
        weights: as for `PublishedCodec`.
    """
    semantic = _MODELS[model]
    random_net = partial(_random_net, semantic)
    net, used = of_transformers(weights, f"xcodec-{model}", "XcodecModel", _FACTS, random_net)
    kind = net.config.semantic_model_config.model_type
    if kind != semantic:
        raise WeightsError(
            "weights_of_another_model",
            folder=net.name_or_path,
            difference=Diagnostic("semantic_model_differs", kind=kind, expected=semantic),
        )
    return net, used


def _random_net(semantic: str, *, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, with codebooks as wide as latents."""
    import torch
    from transformers import XcodecConfig, XcodecModel

    parts: dict[str, Any] = {
        "acoustic_model_config": {"model_type": "dac", **(_REDUCED_ACOUSTIC if reduced else {})},
        "semantic_model_config": {"model_type": semantic, **(REDUCED_HUBERT if reduced else {})},
    }
    with seeded():
        net = XcodecModel(XcodecConfig(**_FACTS, **parts)).eval()
        fill_with_noise(net)
        calm_residual_units(net.acoustic_encoder, net.acoustic_decoder)
        residual = latents = _latents(net, 0.1 * torch.randn(1, 1, 100 * _HOP))
        for layer in net.quantizer.quantizers:
            # Words this long take off a part of the residual: eight of them never reach the noise of float32.
            layer.codebook.embed.copy_(0.5 * residual.std() * torch.randn_like(layer.codebook.embed))
            residual = residual - layer.decode(layer.encode(residual))
        wave = net.acoustic_decoder(net.fc2((latents - residual).transpose(1, 2)).transpose(1, 2))
        net.acoustic_decoder.conv2.weight.mul_(0.3 / wave.std())
    return net


def _latents(net: Any, waves: Any) -> Any:
    """Compute the latents `(items, hidden, frames)` of waves before quantisation.

    Waves of a multiple of 320 samples; both branches then have one frame every 320 samples. They equal the latents in
    `XcodecModel.encode`, whose acoustic branch transformers pads for other lengths.
    """
    import torch

    semantic = net.encoder_semantic(net._extract_semantic_features(waves).transpose(1, 2))
    both = torch.cat([net.acoustic_encoder(waves), semantic], dim=1)
    return net.fc(both.transpose(1, 2)).transpose(1, 2)
