"""EnCodec at 24 and 48 kHz by transformers, exact in batches.

24 kHz: convolutions and LSTM are causal. Where a length is no multiple of a stride, each item's reflection is written
into the padding, layer by layer. Items of up to six frames reflect appended zeros: they share passes with equals only.
48 kHz: one-second chunks are scaled and normalised over time alone; only chunks of one length share a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from codec_bench.codecs.base import CodecInfo, CodecStream, check_input
from codec_bench.codecs.neural.base import PublishedCodec, check_stream, code_info, group_by_length, one_stream, stack
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, seeded
from codec_bench.messages.errors import UserError
from codec_bench.networks.batch_shapes import in_rows
from codec_bench.networks.encodec import meeting_in_lstm, overlap_add, reflect_ends
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Codes

_HOP = 320
_CARDINALITY = 1024
_BITS_PER_CODE = 10
_MODELS: dict[str, dict[str, Any]] = {
    "24khz": {"sampling_rate": 24000, "audio_channels": 1, "target_bandwidths": [1.5, 3.0, 6.0, 12.0, 24.0]},
    "48khz": {
        "sampling_rate": 48000,
        "audio_channels": 2,
        "target_bandwidths": [3.0, 6.0, 12.0, 24.0],
        "use_causal_conv": False,
        "norm_type": "time_group_norm",
        "normalize": True,
        "chunk_length_s": 1.0,
        "overlap": 0.01,
    },
}
_CHUNK, _STRIDE = 48000, 47520  # 48 kHz: one second, with 10 ms of overlap
_REDUCED = {"num_filters": 8, "hidden_size": 32, "codebook_dim": 32}
_SCALE_BITS = 32  # the reference writes one float a chunk
_SHORT_FRAMES = 6  # padding of the widest convolution at the frame rate: shorter items reflect appended zeros
_PIECE_FRAMES = 300  # 4 s on a CPU: longer pieces make every layer allocate memory, shorter ones cost overhead
_CHUNKS_AT_ONCE = 32  # bounds memory on long files: one pass holds about 12 MB of activations a chunk and layer


class Encodec(PublishedCodec):
    """EnCodec.

    Codes: one stream of `bitrate / (frame rate x 10 bits)` codebooks of 1024 entries, at 75 frames a second (24 kHz) or
    150 (48 kHz, where chunks overlap by 1 % and each adds 32 side bits for its scale).

    Args:
        model: `24khz` or `48khz`.
        bitrate_bps: 1500 (24 kHz only), 3000, 6000, 12000 or 24000.
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of transformers.
    """

    residual = True
    checkpoints = ("encodec-{model}",)

    def __init__(
        self, model: Literal["24khz", "48khz"], bitrate_bps: int, device: str = "cpu", weights: str | None = None
    ) -> None:
        info = self.describe(model, bitrate_bps)  # before the weights are loaded: a wrong bitrate is found at once
        self._chunked = model == "48khz"
        self._codebooks = _codebooks(model, bitrate_bps)
        self._device = device
        self._net, used = _load(model, weights, device)
        from codec_bench.kernels.rvq.dispatch import adopt

        self._quantiser = adopt(self._net.quantizer)
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, model: str, bitrate_bps: int) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        if model not in _MODELS:
            raise UserError("no_variant", variant=model, name="EnCodec", hint=f"it has {', '.join(_MODELS)}")
        facts = _MODELS[model]
        if bitrate_bps / 1000 not in facts["target_bandwidths"]:
            known = ", ".join(f"{kbps:g}" for kbps in facts["target_bandwidths"])
            raise UserError(
                "codec_bitrate", codec=f"EnCodec {model}", kbps=bitrate_bps / 1000, hint=f"it runs at {known} kbps"
            )
        return code_info(
            f"encodec-{model}@{bitrate_bps / 1000:g}", facts["sampling_rate"], _HOP, _CARDINALITY,
            _codebooks(model, bitrate_bps), channels=(facts["audio_channels"],), causal=model == "24khz",
            lookahead_s=0.0 if model == "24khz" else _CHUNK / facts["sampling_rate"],
        )  # fmt: skip

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode each item as the `encodec` package encodes it alone."""
        for audio in batch:
            check_input(audio, self.info)
        with computing(self._device, "float32"):
            if self._chunked:
                return self._encode_chunked(batch)
            return self._encode_apart(batch) if self._device == "cpu" else self._encode_causal(batch)

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode each item, and cut it to its length."""
        for item in codes:
            self._check(item)
        with computing(self._device, "float32"):
            if self._chunked:
                return self._decode_chunked(codes)
            return self._decode_apart(codes) if self._device == "cpu" else self._decode_causal(codes)

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """Return an encoder and decoder with state, in steps of 320 samples (24 kHz only).

        The first codes come once 2240 samples are known.
        """
        if self._chunked:
            raise UserError("chunks_not_streamed", codec=self.info.name)
        from codec_bench.codecs.neural.encodec_stream import EncodecStream

        return nullcontext(EncodecStream(self._net, self.info, self._codebooks, self._device))

    def _encode_causal(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode 24 kHz items in padded batches."""
        from codec_bench.networks.transfer import fetched, sent

        waves = [audio.samples for audio in batch]
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        lengths = [wave.shape[1] for wave in waves]
        groups = _groups(lengths, short=_SHORT_FRAMES * _HOP)
        there = sent([stack([waves[k] for k in g], max(lengths[k] for k in g)) for g in groups], self._device)
        outputs = [self._encoded(tensors, [lengths[k] for k in group]) for group, tensors in zip(groups, there)]
        for group, codes in zip(groups, fetched(outputs)):
            for k, item in zip(group, codes):
                values[k] = item[:, : _frames(lengths[k])]
        return [self._codes(item, audio) for item, audio in zip(values, batch)]

    def _encoded(self, waves: Any, lengths: Sequence[int]) -> Any:
        """Encode waves `(items, channels, samples)` to codes."""
        if max(lengths) <= _SHORT_FRAMES * _HOP:  # such items are reflected at their end, so nothing may follow them
            return self._nearest(self._net.encoder(waves))
        return self._in_shape_of_waves(self._search, waves, lengths, _HOP)

    def _search(self, waves: Any, lengths: Sequence[int]) -> Any:
        """Encode padded waves of these lengths to the codes that each has alone."""
        from torch.nn.functional import pad

        from codec_bench.networks.ragged import on_device

        hidden, valid = pad(waves, (0, -waves.shape[-1] % _HOP)), on_device(lengths, waves.device)
        for layer in self._net.encoder.layers:
            stride = layer.conv.stride[0] if hasattr(layer, "conv") else 1
            if stride > 1:
                hidden = reflect_ends(hidden, valid, stride)
                valid = -(-valid // stride)
            hidden = layer(hidden)
        return self._nearest(hidden)

    def _decode_causal(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode 24 kHz items in padded batches."""
        from codec_bench.networks.transfer import fetched, sent

        values = [item.streams[0].values for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        lengths = [value.shape[1] for value in values]
        groups = _groups(lengths, short=_SHORT_FRAMES)
        there = sent([stack([values[k] for k in g], max(lengths[k] for k in g)) for g in groups], self._device)
        decoded = [self._decoded(tensors, [lengths[k] for k in group]) for group, tensors in zip(groups, there)]
        for group, tensors in zip(groups, fetched(decoded)):
            for k, wave in zip(group, tensors):
                waves[k] = wave[:, : codes[k].num_samples]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _decoded(self, values: Any, frames: Sequence[int]) -> Any:
        """Decode codes `(items, codebooks, frames)`; padding does not change an item."""
        if max(frames) <= _SHORT_FRAMES:  # such items are reflected at their end, so nothing may follow them
            return self._net.decoder(self._lookup(values))
        return self._in_shape(lambda padded, _: self._net.decoder(self._lookup(padded)), [values], frames)

    def _encode_apart(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode 24 kHz items on a CPU: convolutions one by one, the LSTM as a batch."""
        import torch

        if not batch:
            return []
        waves = [torch.from_numpy(audio.samples)[None] for audio in batch]
        latents = meeting_in_lstm(self._net.encoder, waves, _PIECE_FRAMES * _HOP)
        values = self._nearest(torch.cat(latents, dim=-1))[0].split([item.shape[-1] for item in latents], dim=-1)
        return [self._codes(item.numpy(), audio) for item, audio in zip(values, batch)]

    def _decode_apart(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode 24 kHz items on a CPU: convolutions one by one, the LSTM as a batch."""
        import torch

        if not codes:
            return []
        joined = np.concatenate([item.streams[0].values for item in codes], axis=1)
        latents = self._lookup(torch.from_numpy(joined)[None])
        latent_pieces = latents.split([item.streams[0].values.shape[1] for item in codes], dim=-1)
        waves = meeting_in_lstm(self._net.decoder, latent_pieces, _PIECE_FRAMES)
        return [Audio(wave[0, :, : item.num_samples].numpy(), item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _encode_chunked(self, batch: Sequence[Audio]) -> list[Codes]:
        """Encode 48 kHz items in overlapping chunks, each normalised to its own level."""
        from codec_bench.networks.transfer import fetched, sent

        pieces = [audio.samples[:, o : o + _CHUNK] for audio in batch for o in range(0, audio.num_samples, _STRIDE)]
        values: list[np.ndarray] = [np.empty(0)] * len(pieces)
        scales = np.zeros(len(pieces), np.float32)
        groups = _equal([segment.shape[1] for segment in pieces], _CHUNKS_AT_ONCE)
        nearest, volumes = [], []
        for waves in sent([np.stack([pieces[k] for k in group]) for group in groups], self._device):
            volume = waves.mean(dim=1, keepdim=True).pow(2).mean(dim=2, keepdim=True).sqrt() + 1e-8
            nearest.append(in_rows(lambda pieces: self._nearest(self._net.encoder(pieces)), [waves / volume]))
            volumes.append(volume.flatten())
        here = fetched([*nearest, *volumes])
        for group, codes, levels in zip(groups, here, here[len(groups) :]):
            scales[group] = levels
            for k, item in zip(group, codes):
                values[k] = item
        out, start = [], 0
        for audio in batch:
            stop = start + len(_chunk_frames(audio.num_samples))
            out.append(self._codes(np.concatenate(values[start:stop], axis=1), audio, scales[start:stop]))
            start = stop
        return out

    def _decode_chunked(self, codes: Sequence[Codes]) -> list[Audio]:
        """Decode the chunks of 48 kHz items, and join them by overlap-add."""
        from codec_bench.networks.transfer import fetched, sent

        frames = [_chunk_frames(item.num_samples) for item in codes]
        pieces = [
            segment
            for item, counts in zip(codes, frames)
            for segment in np.split(item.streams[0].values, np.cumsum(counts)[:-1], axis=1)
        ]
        scales = np.concatenate([item.side["scales"] for item in codes])
        decoded: list[Any] = [None] * len(pieces)
        groups = _equal([segment.shape[1] for segment in pieces], _CHUNKS_AT_ONCE)
        there = sent([np.stack([pieces[k] for k in g]) for g in groups] + [scales[g] for g in groups], self._device)
        for group, rows, levels in zip(groups, there, there[len(groups) :]):
            for k, wave in zip(group, self._chunks(rows, levels)):
                decoded[k] = wave
        out, start = [], 0
        for item, counts in zip(codes, frames):
            out.append(overlap_add(decoded[start : start + len(counts)], _STRIDE)[:, : item.num_samples])
            start += len(counts)
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(fetched(out), codes)]

    def _chunks(self, values: Any, levels: Any) -> Any:
        """Decode chunks of one length, `(chunks, codebooks, frames)`, and scale them."""
        wave = lambda codes, scales: self._net.decoder(self._lookup(codes)) * scales[:, None, None]  # noqa: E731
        return in_rows(wave, [values, levels])

    def _codes(self, values: np.ndarray, audio: Audio, scales: np.ndarray | None = None) -> Codes:
        """Wrap codes `(codebooks, frames)`; the chunks' scales become side information."""
        codes = one_stream(values, audio, self.info, _CARDINALITY)
        side_info: dict[str, Any] = {} if scales is None else {"scales": scales.copy()}
        side_bits = 0.0 if scales is None else float(_SCALE_BITS * len(scales))
        return replace(codes, side_bits=side_bits, side=side_info)

    def _check(self, item: Codes) -> None:
        counts = _chunk_frames(item.num_samples) if self._chunked else [_frames(item.num_samples)]
        check_stream(item, self.info, (self._codebooks, sum(counts)), _CARDINALITY)
        if self._chunked and len(item.side.get("scales", ())) != len(counts):
            raise UserError("codes_without_scales", codec=self.info.name, chunks=len(counts))


def _codebooks(model: str, bitrate_bps: int) -> int:
    return int(bitrate_bps // (_MODELS[model]["sampling_rate"] / _HOP * _BITS_PER_CODE))


def _frames(num_samples: int) -> int:
    return -(-num_samples // _HOP)


def _chunk_frames(num_samples: int) -> list[int]:
    """Count the frames of each 48 kHz chunk of an item."""
    return [_frames(min(_CHUNK, num_samples - offset)) for offset in range(0, num_samples, _STRIDE)]


def _groups(lengths: Sequence[int], *, short: int) -> list[list[int]]:
    """Group items for batches: all above `short` together, others by equal length."""
    return group_by_length([length if length <= short else 0 for length in lengths])


def _equal(lengths: Sequence[int], at_once: int) -> list[list[int]]:
    """Group items of equal length, at most `at_once` in a group."""
    groups = group_by_length(lengths)
    return [group[k : k + at_once] for group in groups for k in range(0, len(group), at_once)]


def _load(model: str, weights: str | None, device: str) -> tuple[Any, str]:
    """Load the network in eval mode on its device; also return which weights it has."""
    from transformers import EncodecConfig, EncodecModel

    from codec_bench.networks.transfer import sizes_on_host
    from codec_bench.weights import find
    from codec_bench.weights.pretrained import load_pretrained

    if weights in (RANDOM, RANDOM_FULL):
        sizes: dict[str, Any] = _REDUCED if weights == RANDOM else {}
        net, used = _random_net(EncodecModel, EncodecConfig(**_MODELS[model], **sizes)), weights
    else:
        checkpoint = find(f"encodec-{model}", weights)
        net = load_pretrained(EncodecModel, str(checkpoint.folder), {**_MODELS[model], "codebook_size": _CARDINALITY})
        used = checkpoint.used
    # Weights with a gradient are what torch's counter of operations stumbles over: it wants to follow them, here
    # without one.
    net = net.eval().requires_grad_(False).to(device)
    sizes_on_host(net)
    return net, used


def _random_net(model_class: Any, config: Any) -> Any:
    """Build a network of seeded noise with codebooks about as wide as its latents."""
    import torch
    from torch import nn

    with seeded():
        net = model_class(config)
        for module in net.modules():
            if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)):
                taps: float = math.prod(module.weight.shape[1:])
                if isinstance(module, nn.ConvTranspose1d):
                    taps = module.weight.shape[0] * module.weight.shape[2] / module.stride[0]
                noise = torch.randn_like(module.weight) / math.sqrt(taps)
                module.weight = noise if nn.utils.parametrize.is_parametrized(module) else nn.Parameter(noise)
                if module.bias is not None:
                    module.bias.zero_()
        residual = net.encoder(0.1 * torch.randn(1, config.audio_channels, config.sampling_rate))
        for layer in net.quantizer.layers:
            layer.codebook.embed.copy_(0.5 * residual.std() * torch.randn_like(layer.codebook.embed))
            residual = residual - layer.decode(layer.encode(residual))
    return net
