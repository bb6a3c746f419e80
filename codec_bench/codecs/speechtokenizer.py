"""SpeechTokenizer, eight codebooks at 50 frames a second at 16 kHz, in batches that equal its package one item at a time.

Our own network over `seanet.py`: importing the package imports its trainer, and with it accelerate, matplotlib and more.

Where padding would leak, and what is done about it
    Convolutions reflect each item at its own end, layer by layer. The encoder's LSTM, which runs in both directions, starts
    backwards at each item's own last frame (packed sequences). The decoder's runs forwards only.
    Any length from one sample on is coded; too short a one to be reflected is followed by zeros there, as in the reference.
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
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes

_RATE_HZ = 16000
_HOP = 320
_CODEBOOKS = 8
_CARDINALITY = 1024
_BPS_PER_CODEBOOK = 500
_SMALL = {"filters": 4, "dimension": 32}
# What the published file holds beside the codec: the map to the teacher, and the codebooks' running averages.
_UNUSED = ("transform.",)
_UNUSED_ENDS = ("._codebook.inited", "._codebook.cluster_size", "._codebook.embed_avg")


class SpeechTokenizer(Codec):
    """SpeechTokenizer.

    Codes: one stream of one to eight codebooks of 1024 entries at 50 frames a second, the first of which follows a HuBERT;
    ceil(samples / 320) frames.

    Args:
        bitrate_bps: 500 for each codebook, to 4000.
        device: `cpu` or `cuda:N`.
        weights: a file in the published layout, a folder that holds it, or a hub id; None for the published one; `random`
            for a small network of seeded noise, `random-full` for one of the published size, both for tests and benches
            only.

    Raises:
        WeightsError: the weights are not on this machine, or are another model's.
    """

    def __init__(self, bitrate_bps: int, device: str = "cpu", weights: str | None = None) -> None:
        info = self.describe(bitrate_bps)
        self._codebooks = bitrate_bps // _BPS_PER_CODEBOOK
        self._device = device
        self._net, used = _load(weights)
        self._net.to(device)
        self._quantiser = _quantiser(self._net)
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, bitrate_bps: int) -> CodecInfo:
        """The facts of one operating point, without loading anything.

        Raises:
            UserError: no number of codebooks has this bitrate.
        """
        rates = [_BPS_PER_CODEBOOK * count for count in range(1, _CODEBOOKS + 1)]
        if bitrate_bps not in rates:
            known = ", ".join(f"{bps / 1000:g}" for bps in rates)
            raise UserError(
                f"SpeechTokenizer does not run at {bitrate_bps / 1000:g} kbps", hint=f"it runs at {known} kbps"
            )
        return CodecInfo(
            name=f"speechtokenizer@{bitrate_bps / 1000:g}",
            sample_rates_hz=(_RATE_HZ,),
            frame_rate_hz=_RATE_HZ / _HOP,
            nominal_bitrate_bps=float(bitrate_bps),
            causal=False,
        )

    @classmethod
    def find_weights(cls, **_: Any) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        return weights_folder("speechtokenizer")

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as the package gives them for that item alone.

        Raises:
            UserError: a rate or channel count that it does not take, or no samples.
        """
        from codec_bench.kernels.rvq import dispatch

        for audio in batch:
            check_input(audio, self.info)
        values: list[np.ndarray] = [np.empty(0)] * len(batch)
        with full_float32(self._device):
            for group in passes([audio.num_samples for audio in batch], self._device):
                lengths = [batch[k].num_samples for k in group]
                latents = self._net.encoder(self._tensor([batch[k].samples for k in group]), lengths)
                codes = dispatch.search(latents, self._quantiser, self._codebooks).value.cpu().numpy()
                for k, length, item in zip(group, lengths, codes):
                    values[k] = item[:, : _frames(length)]
        return [one_stream(value, audio, self.info, _CARDINALITY) for value, audio in zip(values, batch)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes of another shape than the item's length and this operating point have, or out of range.
        """
        from codec_bench.kernels.rvq import dispatch

        for item in codes:
            check_stream(item, self.info, (self._codebooks, _frames(item.num_samples)), _CARDINALITY)
        values = [item.streams[0].values.astype(np.int64, copy=False) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with full_float32(self._device):
            for group in passes([value.shape[1] for value in values], self._device):
                frames = [values[k].shape[1] for k in group]
                latents = dispatch.lookup(self._tensor([values[k] for k in group]), self._quantiser).value
                decoded = self._net.decoder(latents, frames).cpu().numpy()
                for k, wave in zip(group, decoded):
                    waves[k] = wave[:, : codes[k].num_samples]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _tensor(self, items: Sequence[np.ndarray]) -> Any:
        import torch

        return torch.from_numpy(stack(items, max(item.shape[1] for item in items))).to(self._device)


def _frames(num_samples: int) -> int:
    return -(-num_samples // _HOP)


def _quantiser(net: Any) -> Any:
    import torch

    from codec_bench.kernels.rvq import dispatch

    return dispatch.Euclidean(torch.stack(net.codebooks))


def _load(weights: str | None) -> tuple[Any, str]:
    """The network in eval mode on the CPU, and which weights it has."""
    from codec_bench.codecs.speechtokenizer_net import Shape, SpeechTokenizerNet
    from codec_bench.codecs.weight_norm import fold_weight_norm
    from codec_bench.weights import find, load_into, load_state

    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(Shape(**(_SMALL if weights == RANDOM else {}))), weights
    found = find("speechtokenizer", weights)
    state = {
        name: value
        for name, value in load_state(found.path).items()
        if not name.startswith(_UNUSED) and not name.endswith(_UNUSED_ENDS)
    }
    net = SpeechTokenizerNet(Shape())
    load_into(net, fold_weight_norm(state), path=found.path)
    return net, found.used


def _random_net(shape: Any) -> Any:
    """A network of seeded noise whose latents follow its input and whose codewords are about as wide as what they code."""
    import torch

    from codec_bench.codecs.speechtokenizer_net import SpeechTokenizerNet

    with seeded():
        net = SpeechTokenizerNet(shape).eval()
        fill_with_noise(net)
        residual = net.encoder(0.1 * torch.randn(1, 1, _RATE_HZ), [_RATE_HZ])[0].T
        for embed in net.codebooks:
            embed.copy_(residual.mean(0) + 0.7 * residual.std(0) * torch.randn_like(embed))
            residual = residual - embed[torch.cdist(residual, embed).argmin(1)]
    return net
