"""Mimi by transformers: whole, or frame by frame with equal results.

The convolutions and both transformers (a window of 250 positions, 10 s) are causal. Every item is first followed by
zeros to a multiple of 1920 samples, as in Kyutai's code and as frame-by-frame coding needs; transformers pads layer by
layer instead, so the last frame differs for other lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from codec_bench.codecs.base import CodecInfo, CodecStream, check_input
from codec_bench.codecs.neural.base import (
    NeuralCodec,
    check_codebooks,
    check_stream,
    code_info,
    of_transformers,
    one_stream,
    stack,
)
from codec_bench.codecs.neural.random_weights import fill_with_noise, raise_layer_scales, seeded
from codec_bench.messages.errors import UserError
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Codes

_RATE_HZ = 24000
_FRAME = 1920
_CARDINALITY = 2048
_CODEBOOKS = 32
_FACTS: dict[str, Any] = {
    "sampling_rate": _RATE_HZ,
    "audio_channels": 1,
    "upsampling_ratios": [8, 6, 5, 4],
    "codebook_size": _CARDINALITY,
    "num_quantizers": _CODEBOOKS,
    "num_semantic_quantizers": 1,
    "use_causal_conv": True,
    "sliding_window": 250,
}
_REDUCED = {
    "hidden_size": 64,
    "num_filters": 4,
    "codebook_dim": 48,
    "vector_quantization_hidden_dimension": 48,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "upsample_groups": 64,
}


class Mimi(NeuralCodec):
    """Mimi (Kyutai).

    Codes: one stream of codebooks of 2048 entries at 12.5 frames a second; the first codebook is the semantic one.

    Args:
        codebooks: how many of the 32 are sent, the first ones; None for all. Moshi uses 8.
        stream: whether `encode` and `decode` go frame by frame with carried state, as `streaming` does, so that
            streaming can be evaluated like any codec. The results are the same.
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.

    Raises:
        UserError: it does not have so many codebooks.
    """

    cardinality = _CARDINALITY
    _hop = _FRAME
    residual = True
    checkpoints = ("mimi",)

    def __init__(
        self, codebooks: int | None = None, stream: bool = False, device: str = "cpu", weights: str | None = None
    ) -> None:
        info = self.describe(codebooks, stream)  # before the weights are loaded: a wrong number is found at once
        self._codebooks = check_codebooks("mimi", codebooks, _CODEBOOKS)
        self._stream = stream
        from codec_bench.networks.transfer import sizes_on_host

        self._install(info, device, *of_transformers(weights, "mimi", "MimiModel", _FACTS, _random_net))
        sizes_on_host(self._net)

    @classmethod
    def describe(cls, codebooks: int | None = None, stream: bool = False) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        count = check_codebooks("mimi", codebooks, _CODEBOOKS)
        name = f"mimi-{count}cb" + ("-streaming" if stream else "")
        return code_info(name, _RATE_HZ, _FRAME, _CARDINALITY, count, causal=True, lookahead_s=0.0)

    def _input_samples(self, num_samples: int) -> int:
        return _frames(num_samples) * _FRAME

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        return self._nearest(self._latents(waves))

    # Frame by frame nothing is filled up: the cache of the transformer has another shape in every step.
    def _encoded(self, inputs: Sequence[Any], samples: Sequence[int]) -> Any:
        return self._search(inputs[0], samples) if self._stream else super()._encoded(inputs, samples)

    def _decoded(self, inputs: Sequence[Any], frames: Sequence[int]) -> Any:
        return self._waves(inputs[0], frames) if self._stream else super()._decoded(inputs, frames)

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        """Decode codes to waves; with `stream` frame by frame, carrying state."""
        import torch

        latents = self._lookup(values)
        if not self._stream:
            return self._parts().waves(latents)
        state = self._state()
        return torch.cat([state.waves(segment) for segment in latents.split(1, dim=-1)], dim=-1)

    @contextmanager
    def streaming(self) -> Iterator[CodecStream]:
        """Code a signal frame by frame with state: 1920 samples a frame."""
        yield _MimiStream(self)

    def _latents(self, waves: Any) -> Any:
        """Encode waves to latents; with `stream` frame by frame, carrying state."""
        import torch

        if not self._stream:
            return self._parts().latents(waves)
        state = self._state()
        return torch.cat([state.latents(segment) for segment in waves.split(_FRAME, dim=-1)], dim=-1)

    def _parts(self) -> Any:
        from codec_bench.networks.mimi import MimiParts

        return MimiParts(self._net)

    def _state(self) -> Any:
        from codec_bench.networks.mimi import MimiState

        return MimiState(self._net)


class _MimiStream(CodecStream):
    step_samples = _FRAME

    def __init__(self, codec: Mimi) -> None:
        self._codec = codec
        self._encoder, self._decoder = codec._state(), codec._state()
        self._ended = False

    def encode(self, segment: Audio) -> Codes:
        """Encode the next frames with carried state. An incomplete frame ends the stream."""
        codec = self._codec
        check_input(segment, codec.info)
        if self._ended:
            raise UserError("stream_ended", codec=codec.info.name)
        self._ended = segment.num_samples % _FRAME > 0
        with computing(codec._device, "float32"):
            wave = stack([segment.samples], _frames(segment.num_samples) * _FRAME)
            (values,) = codec._computed([(wave,)], [lambda there: codec._nearest(self._encoder.latents(there[0]))[0]])
        return one_stream(values, segment, codec.info, _CARDINALITY)

    def decode(self, codes: Codes) -> Audio:
        """Decode the next codes with carried state, to `codes.num_samples` samples."""
        codec = self._codec
        check_stream(codes, codec.info, (codec._codebooks, _frames(codes.num_samples)), _CARDINALITY)
        with computing(codec._device, "float32"):
            inputs = (codes.streams[0].values[None],)
            (wave,) = codec._computed([inputs], [lambda there: self._decoder.waves(codec._lookup(there[0]))])
        return Audio(wave[0, :, : codes.num_samples], codes.sample_rate_hz)


def _frames(num_samples: int) -> int:
    return -(-num_samples // _FRAME)


def _random_net(*, reduced: bool) -> Any:
    """Build a network of noise, small if `reduced`, with codebooks as wide as latents."""
    import torch
    from transformers import MimiConfig, MimiModel

    from codec_bench.networks.mimi import MimiParts

    with seeded():
        net = MimiModel(MimiConfig(**{**_FACTS, **(_REDUCED if reduced else {})})).eval()
        fill_with_noise(net)
        parts = MimiParts(net)
        raise_layer_scales(parts.encoder_transformer, parts.decoder_transformer)
        latents = parts.latents(0.1 * torch.randn(1, 1, 25 * _FRAME))
        quantizer = net.quantizer
        for half in (quantizer.semantic_residual_vector_quantizer, quantizer.acoustic_residual_vector_quantizer):
            residual = half.input_proj(latents)
            half.output_proj.weight.copy_(torch.linalg.pinv(half.input_proj.weight[:, :, 0])[:, :, None])
            for layer in half.layers:
                noise = torch.randn_like(layer.codebook.embed_sum)
                # Words this long take off a fifth of the residual: 31 of them never reach the noise of float32.
                layer.codebook.embed_sum.copy_(0.5 * residual.std() * noise)
                residual = residual - layer.decode(layer.encode(residual))
                layer.codebook._embed = None  # the cache of `encode` would stay on this device, with these codewords
        parts.from_hidden.layers[-1].conv.weight.mul_(0.3 / parts.waves(latents).std())
    return net
