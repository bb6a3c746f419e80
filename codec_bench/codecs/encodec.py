"""EnCodec 24 kHz and 48 kHz through transformers, in batches that equal the `encodec` package one item at a time.

Where padding would leak, and what is done about it
    24 kHz: causal convolutions and a causal LSTM, so silence after an item does not reach it. What does is the reference's
    reflection of an item's own last samples wherever a strided convolution meets a length that is no multiple of its
    stride: it is written into the padding, layer by layer, from each item's own length. Items of at most six frames
    reflect zeros that the reference appends; they are run with items of exactly their length.
    On a CPU, where a batch makes convolutions no faster and padding costs as much as signal, each item goes through them
    alone, and the items meet in the LSTM, which reads its 17 MB of weights once a step for all of them, and in the search.
    48 kHz: every chunk of one second is scaled, normalised over time and convolved in both directions by itself: only
    chunks of exactly equal length share a batch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from codec_bench.codecs.base import Codec, CodecInfo, CodecStream
from codec_bench.codecs.bitstream import check_input
from codec_bench.codecs.encodec_layers import meeting_in_lstm
from codec_bench.codecs.network import full_float32, stack, weights_folder
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes, CodeStream

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
_CHUNK, _STRIDE = 48000, 47520  # 48 kHz: one second, of which 10 ms overlap
_SCALE_BITS = 32  # the reference writes one float a chunk
_SHORT_FRAMES = 6  # the padding of the widest convolution at the frame rate: up to here it reflects appended zeros
_PIECE_FRAMES = 300  # 4 s on a CPU: longer, and every layer asks the system for fresh memory; shorter costs overhead
_CHUNKS_AT_ONCE = 32  # bounds memory on long files: one pass holds about 12 MB of activations a chunk and layer


class Encodec(Codec):
    """EnCodec.

    Codes: one stream of `bitrate / (frame rate x 10 bits)` codebooks of 1024 entries, at 75 frames a second (24 kHz) or
    150 (48 kHz, where the chunks overlap by 1 %, and each adds 32 side bits for its scale).

    Args:
        model: `24khz` or `48khz`.
        bitrate_bps: 1500 (24 kHz only), 3000, 6000, 12000 or 24000.
        device: `cpu` or `cuda:N`.
        weights: a folder in the layout of transformers or a hub id, optionally `@REVISION`; None for the published
            weights, facebook/encodec_24khz or facebook/encodec_48khz, from the local cache; `random` for seeded noise in
            place of weights, which is for tests only.

    Raises:
        WeightsError: the weights are not on this machine, or are another model's.
    """

    def __init__(
        self, model: Literal["24khz", "48khz"], bitrate_bps: int, device: str = "cpu", weights: str | None = None
    ) -> None:
        info = self.describe(model, bitrate_bps)  # first: a wrong bitrate needs no weights to be found out
        self._chunked = model == "48khz"
        self._codebooks = round(info.nominal_bitrate_bps / info.frame_rate_hz / _BITS_PER_CODE)
        self._device = device
        self._net, used = _load(model, weights, device)
        from codec_bench.kernels.rvq.dispatch import adopt

        self._quantiser = adopt(self._net.quantizer)
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, model: str, bitrate_bps: int) -> CodecInfo:
        """The facts of one operating point, without loading anything.

        Raises:
            UserError: no such model, or the model has no such bitrate.
        """
        if model not in _MODELS:
            raise UserError(f"EnCodec has no model '{model}'", hint=f"it has {', '.join(_MODELS)}")
        facts = _MODELS[model]
        if bitrate_bps / 1000 not in facts["target_bandwidths"]:
            known = ", ".join(f"{kbps:g}" for kbps in facts["target_bandwidths"])
            raise UserError(
                f"EnCodec {model} does not run at {bitrate_bps / 1000:g} kbps", hint=f"it runs at {known} kbps"
            )
        frame_rate_hz = facts["sampling_rate"] / _HOP
        codebooks = int(bitrate_bps // (frame_rate_hz * _BITS_PER_CODE))
        return CodecInfo(
            name=f"encodec-{model}@{bitrate_bps / 1000:g}",
            sample_rates_hz=(facts["sampling_rate"],),
            channels=(facts["audio_channels"],),
            frame_rate_hz=frame_rate_hz,
            nominal_bitrate_bps=codebooks * frame_rate_hz * _BITS_PER_CODE,
            causal=model == "24khz",
            lookahead_s=0.0 if model == "24khz" else _CHUNK / facts["sampling_rate"],
        )

    @classmethod
    def find_weights(cls, model: str, **_: Any) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        return weights_folder(f"encodec-{model}")

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as the `encodec` package gives them for that item alone.

        Raises:
            UserError: a rate or channel count that the model does not take, or no samples.
        """
        for audio in batch:
            check_input(audio, self.info)
        with full_float32(self._device):
            if self._chunked:
                return self._encode_chunked(batch)
            return self._encode_apart(batch) if self._device == "cpu" else self._encode_causal(batch)

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes of another shape than the item's length and this operating point have.
        """
        for item in codes:
            self._check(item)
        with full_float32(self._device):
            if self._chunked:
                return self._decode_chunked(codes)
            return self._decode_apart(codes) if self._device == "cpu" else self._decode_causal(codes)

    def streaming(self) -> AbstractContextManager[CodecStream]:
        """One signal coded 320 samples at a time with carried state (24 kHz); the first codes come with sample 2240.

        Raises:
            UserError: the 48 kHz model normalises every layer over whole chunks of a second.
        """
        if self._chunked:
            raise UserError(f"{self.info.name} normalises over whole chunks of a second: it cannot go frame by frame")
        from codec_bench.codecs.encodec_stream import EncodecStream

        return nullcontext(EncodecStream(self._net, self.info, self._codebooks, self._device))

    def _encode_causal(self, batch: Sequence[Audio]) -> list[Codes]:
        waves = [audio.samples for audio in batch]
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        lengths = [wave.shape[1] for wave in waves]
        for group in _groups(lengths, short=_SHORT_FRAMES * _HOP):
            longest = max(lengths[k] for k in group)
            if longest > _SHORT_FRAMES * _HOP:
                longest = _frames(longest) * _HOP
            latents = self._latents(
                self._tensor(stack([waves[k] for k in group], longest)), [lengths[k] for k in group]
            )
            codes = self._search(latents).cpu().numpy()
            for k, item in zip(group, codes):
                values[k] = item[:, : _frames(lengths[k])]
        return [self._codes(item, audio) for item, audio in zip(values, batch)]

    def _latents(self, waves: Any, lengths: Sequence[int]) -> Any:
        """The encoder over waves `(batch, channels, samples)`, each as if it ended at its own length."""
        import torch

        if len(set(lengths)) == 1 and lengths[0] == waves.shape[-1]:
            return self._net.encoder(waves)
        hidden, valid = waves, torch.as_tensor(lengths, device=waves.device)
        for layer in self._net.encoder.layers:
            stride = layer.conv.stride[0] if hasattr(layer, "conv") else 1
            if stride > 1:
                hidden = _reflect_ends(hidden, valid, stride)
                valid = -(-valid // stride)
            hidden = layer(hidden)
        return hidden

    def _decode_causal(self, codes: Sequence[Codes]) -> list[Audio]:
        values = [item.streams[0].values for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        lengths = [value.shape[1] for value in values]
        for group in _groups(lengths, short=_SHORT_FRAMES):
            stacked = stack([values[k] for k in group], max(lengths[k] for k in group))
            decoded = self._net.decoder(self._lookup(stacked)).cpu().numpy()
            for k, wave in zip(group, decoded):
                waves[k] = wave[:, : codes[k].num_samples]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _encode_apart(self, batch: Sequence[Audio]) -> list[Codes]:
        import torch

        if not batch:
            return []
        latents = meeting_in_lstm(
            self._net.encoder, [self._tensor(audio.samples)[None] for audio in batch], _PIECE_FRAMES * _HOP
        )
        values = self._search(torch.cat(latents, dim=-1))[0].split([item.shape[-1] for item in latents], dim=-1)
        return [self._codes(item.numpy(), audio) for item, audio in zip(values, batch)]

    def _decode_apart(self, codes: Sequence[Codes]) -> list[Audio]:
        if not codes:
            return []
        latents = self._lookup(np.concatenate([item.streams[0].values for item in codes], axis=1)[None])
        apart = latents.split([item.streams[0].values.shape[1] for item in codes], dim=-1)
        waves = meeting_in_lstm(self._net.decoder, apart, _PIECE_FRAMES)
        return [Audio(wave[0, :, : item.num_samples].numpy(), item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _encode_chunked(self, batch: Sequence[Audio]) -> list[Codes]:
        pieces = [audio.samples[:, o : o + _CHUNK] for audio in batch for o in range(0, audio.num_samples, _STRIDE)]
        values: list[np.ndarray] = [np.empty(0)] * len(pieces)
        scales = np.zeros(len(pieces), np.float32)
        for group in _equal([piece.shape[1] for piece in pieces], _CHUNKS_AT_ONCE):
            waves = self._tensor(np.stack([pieces[k] for k in group]))
            volume = waves.mean(dim=1, keepdim=True).pow(2).mean(dim=2, keepdim=True).sqrt() + 1e-8
            latents = self._net.encoder(waves / volume)
            codes = self._search(latents).cpu().numpy()
            scales[group] = volume.flatten().cpu().numpy()
            for k, item in zip(group, codes):
                values[k] = item
        out, start = [], 0
        for audio in batch:
            stop = start + len(_chunk_frames(audio.num_samples))
            out.append(self._codes(np.concatenate(values[start:stop], axis=1), audio, scales[start:stop]))
            start = stop
        return out

    def _decode_chunked(self, codes: Sequence[Codes]) -> list[Audio]:
        import torch

        frames = [_chunk_frames(item.num_samples) for item in codes]
        pieces = [
            piece
            for item, counts in zip(codes, frames)
            for piece in np.split(item.streams[0].values, np.cumsum(counts)[:-1], axis=1)
        ]
        scales = np.concatenate([item.side["scales"] for item in codes])
        decoded: list[Any] = [None] * len(pieces)
        for group in _equal([piece.shape[1] for piece in pieces], _CHUNKS_AT_ONCE):
            waves = self._net.decoder(self._lookup(np.stack([pieces[k] for k in group])))
            waves = waves * torch.as_tensor(scales[group], device=waves.device)[:, None, None]
            for k, wave in zip(group, waves):
                decoded[k] = wave
        out, start = [], 0
        for item, counts in zip(codes, frames):
            wave = _overlap_add(decoded[start : start + len(counts)])[:, : item.num_samples]
            out.append(Audio(wave.cpu().numpy(), item.sample_rate_hz))
            start += len(counts)
        return out

    def _search(self, latents: Any) -> Any:
        """Codes `(items, codebooks, frames)` of latents `(items, 128, frames)`."""
        from codec_bench.kernels.rvq.dispatch import search

        return search(latents, self._quantiser, self._codebooks).value

    def _lookup(self, values: np.ndarray) -> Any:
        """Latents `(items, 128, frames)` of codes `(items, codebooks, frames)`."""
        from codec_bench.kernels.rvq.dispatch import lookup

        return lookup(self._tensor(values), self._quantiser).value

    def _tensor(self, values: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(values).to(self._device)

    def _codes(self, values: np.ndarray, audio: Audio, scales: np.ndarray | None = None) -> Codes:
        stream = CodeStream(np.ascontiguousarray(values), _CARDINALITY, self.info.frame_rate_hz)
        side = {} if scales is None else {"scales": scales.copy()}
        side_bits = 0.0 if scales is None else float(_SCALE_BITS * len(scales))
        return Codes((stream,), audio.num_samples, audio.sample_rate_hz, side_bits=side_bits, side=side)

    def _check(self, item: Codes) -> None:
        counts = _chunk_frames(item.num_samples) if self._chunked else [_frames(item.num_samples)]
        expected = (self._codebooks, sum(counts))
        got = item.streams[0].values.shape if len(item.streams) == 1 else f"{len(item.streams)} streams"
        if got != expected:
            raise UserError(f"{self.info.name}: codes are {got}; {item.num_samples} samples have {expected}")
        values = item.streams[0].values
        if values.min() < 0 or values.max() >= _CARDINALITY:
            raise UserError(
                f"{self.info.name}: codes from {values.min()} to {values.max()}; expected 0 to {_CARDINALITY - 1}"
            )
        if self._chunked and len(item.side.get("scales", ())) != len(counts):
            raise UserError(f"{self.info.name}: the codes come without the scale of each of their {len(counts)} chunks")


def _frames(num_samples: int) -> int:
    return -(-num_samples // _HOP)


def _chunk_frames(num_samples: int) -> list[int]:
    """Frames of each chunk of the 48 kHz model: a chunk starts at every multiple of the stride below the length."""
    return [_frames(min(_CHUNK, num_samples - offset)) for offset in range(0, num_samples, _STRIDE)]


def _groups(lengths: Sequence[int], *, short: int) -> list[list[int]]:
    """Indices that may share a padded batch: all above `short` together, the others with their equals."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length if length <= short else 0].append(index)
    return list(groups.values())


def _equal(lengths: Sequence[int], at_once: int) -> list[list[int]]:
    """Indices of equal lengths, at most `at_once` together."""
    groups: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        groups[length].append(index)
    return [group[k : k + at_once] for group in groups.values() for k in range(0, len(group), at_once)]


def _reflect_ends(hidden: Any, valid: Any, stride: int) -> Any:
    """Extends each row of `(batch, channels, time)` by reflection from its own end to a multiple of the stride."""
    import torch

    steps = torch.arange(stride - 1, device=hidden.device)
    to = valid[:, None] + steps
    inside = to < (-(-valid // stride) * stride)[:, None]
    source = torch.where(inside, valid[:, None] - 2 - steps, 0)
    rows, columns = torch.nonzero(inside, as_tuple=True)
    hidden = hidden.clone()
    hidden[rows, :, to[rows, columns]] = hidden[rows, :, source[rows, columns]]
    return hidden


def _overlap_add(chunks: Sequence[Any]) -> Any:
    """Chunks `(channels, samples)` faded into each other with triangles as long as the first.

    The reference fails on lengths 161 to 320 samples above a multiple of the stride, where the last chunk ends before the
    one in front of it does; here the longer one keeps its end, most of which is cut off afterwards anyway.
    """
    import torch

    first = chunks[0]
    ramp = torch.linspace(0, 1, first.shape[-1] + 2, device=first.device)[1:-1]
    weight = 0.5 - (ramp - 0.5).abs()
    total = max(k * _STRIDE + chunk.shape[-1] for k, chunk in enumerate(chunks))
    out = torch.zeros(first.shape[0], total, device=first.device)
    weights = torch.zeros(total, device=first.device)
    for k, chunk in enumerate(chunks):
        span = slice(k * _STRIDE, k * _STRIDE + chunk.shape[-1])
        out[:, span] += weight[: chunk.shape[-1]] * chunk
        weights[span] += weight[: chunk.shape[-1]]
    return out / weights


def _load(model: str, weights: str | None, device: str) -> tuple[Any, str]:
    """The network in eval mode on its device, and which weights it has."""
    from transformers import EncodecConfig, EncodecModel

    from codec_bench.weights import find
    from codec_bench.weights.pretrained import load_pretrained

    if weights == "random":
        net, used = _random_net(EncodecModel, EncodecConfig(**_MODELS[model])), "random"
    else:
        found = find(f"encodec-{model}", weights)
        net = load_pretrained(EncodecModel, str(found.folder), {**_MODELS[model], "codebook_size": _CARDINALITY})
        used = found.used
    return net.eval().to(device), used


def _random_net(model_class: Any, config: Any) -> Any:
    """A network of seeded noise whose latents follow its input and whose codebooks are about as wide as they are."""
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        net = model_class(config)
        for module in net.modules():
            if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d)):
                taps = math.prod(module.weight.shape[1:])
                if isinstance(module, nn.ConvTranspose1d):
                    taps = module.weight.shape[0] * module.weight.shape[2] / module.stride[0]
                noise = torch.randn_like(module.weight) / math.sqrt(taps)
                module.weight = noise if nn.utils.parametrize.is_parametrized(module) else nn.Parameter(noise)
                module.bias.zero_()
        residual = net.encoder(0.1 * torch.randn(1, config.audio_channels, config.sampling_rate))
        for layer in net.quantizer.layers:
            layer.codebook.embed.copy_(0.5 * residual.std() * torch.randn_like(layer.codebook.embed))
            residual = residual - layer.decode(layer.encode(residual))
    return net
