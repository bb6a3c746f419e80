"""WavTokenizer, one codebook at 75 or 40 frames a second, in batches that equal the reference one item at a time.

Where padding would leak, and what is done about it
    Encoder: reflecting convolutions; each item is reflected at its own end, layer by layer. The LSTM runs forwards only.
    Decoder: group normalisation and attention over time take an item's own frames alone, convolutions see zeros beyond it,
    and the overlap-add is normalised by its own windows.
    Any length from one sample on is coded; too short a one to be reflected is followed by zeros there, as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

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

_RATE_HZ = 24000
_CARDINALITY = 4096
_BITS_PER_CODE = 12
_RATIOS: dict[int, tuple[int, ...]] = {75: (8, 5, 4, 2), 40: (6, 5, 5, 4)}
_WINDOW_HOPS = 4
_SMALL = {"filters": 4, "latent_dim": 32, "dim": 256, "intermediate_dim": 256, "layers": 2}
# What the published files hold beside the codec: EnCodec's decoder, and the codebook's running averages.
_UNUSED = ("feature_extractor.encodec.decoder.",)
_UNUSED_ENDS = ("._codebook.inited", "._codebook.cluster_size", "._codebook.embed_avg")
_PARTS = ("feature_extractor.", "backbone.", "head.")


class WavTokenizer(Codec):
    """WavTokenizer.

    Codes: one stream of one codebook of 4096 entries, at 75 or 40 frames a second; ceil(samples / hop) frames, the last one
    of which is cut to the item's length when it is decoded.

    Args:
        frame_rate_hz: 75 or 40.
        checkpoint: the name of its published weights in the catalogue.
        device: `cpu` or `cuda:N`.
        weights: a file in the published layout (a checkpoint of Lightning), a folder that holds it, or a hub id; None for
            the published one; `random` for a small network of seeded noise, `random-full` for one of the published size,
            both for tests and benches only.

    Raises:
        WeightsError: the weights are not on this machine, or are another model's.
    """

    def __init__(
        self, frame_rate_hz: Literal[75, 40], checkpoint: str, device: str = "cpu", weights: str | None = None
    ) -> None:
        info = self.describe(frame_rate_hz, checkpoint)
        self._device = device
        self._net, used = _load(frame_rate_hz, checkpoint, weights)
        self._net.to(device)
        self._quantiser = _quantiser(self._net)
        self._hop = self._net.head.istft.hop_length
        self.info = replace(info, weights=used)

    @classmethod
    def describe(cls, frame_rate_hz: int, checkpoint: str) -> CodecInfo:
        """The facts of one variant, without loading anything.

        Raises:
            UserError: no such frame rate.
        """
        if frame_rate_hz not in _RATIOS:
            raise UserError(
                f"WavTokenizer does not run at {frame_rate_hz} frames a second", hint="it runs at 75 or at 40"
            )
        return CodecInfo(
            name=checkpoint,
            sample_rates_hz=(_RATE_HZ,),
            frame_rate_hz=float(frame_rate_hz),
            nominal_bitrate_bps=float(frame_rate_hz * _BITS_PER_CODE),
            causal=False,
        )

    @classmethod
    def find_weights(cls, checkpoint: str, **_: Any) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        return weights_folder(checkpoint)

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
                lengths = [batch[k].num_samples for k in group]
                latents = self._net.latents(self._tensor([batch[k].samples for k in group]), lengths)
                codes = dispatch.search(latents, self._quantiser).value.cpu().numpy()
                for k, length, item in zip(group, lengths, codes):
                    values[k] = item[:, : -(-length // self._hop)]
        return [one_stream(value, audio, self.info, _CARDINALITY) for value, audio in zip(values, batch)]

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item, cut to its length.

        Raises:
            UserError: codes of another shape than the item's length has, or out of range.
        """
        for item in codes:
            check_stream(item, self.info, (1, -(-item.num_samples // self._hop)), _CARDINALITY)
        values = [item.streams[0].values.astype(np.int64, copy=False) for item in codes]
        waves: list[np.ndarray] = [np.empty(0)] * len(codes)
        with full_float32(self._device):
            for group in passes([value.shape[1] for value in values], self._device):
                frames = [values[k].shape[1] for k in group]
                decoded = self._net.waves(self._tensor([values[k] for k in group])[:, 0], frames).cpu().numpy()
                for k, wave in zip(group, decoded):
                    waves[k] = wave[None, : codes[k].num_samples]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _tensor(self, items: Sequence[np.ndarray]) -> Any:
        import torch

        return torch.from_numpy(stack(items, max(item.shape[1] for item in items))).to(self._device)


def _quantiser(net: Any) -> Any:
    from codec_bench.kernels.rvq import dispatch

    return dispatch.Euclidean(net.embed[None])


def _load(frame_rate_hz: int, checkpoint: str, weights: str | None) -> tuple[Any, str]:
    """The network in eval mode on the CPU, and which weights it has."""
    from codec_bench.codecs.wavtokenizer_net import Shape, WavTokenizerNet
    from codec_bench.codecs.weight_norm import fold_weight_norm
    from codec_bench.weights import find, load_into, load_state

    ratios = _RATIOS[frame_rate_hz]
    window = _WINDOW_HOPS * _RATE_HZ // frame_rate_hz
    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(Shape(ratios, window, **(_SMALL if weights == RANDOM else {}))), weights
    found = find(checkpoint, weights)
    state = {
        name: value
        for name, value in load_state(found.path, key="state_dict").items()
        if name.startswith(_PARTS) and not name.startswith(_UNUSED) and not name.endswith(_UNUSED_ENDS)
    }
    net = WavTokenizerNet(Shape(ratios, window))
    load_into(net, fold_weight_norm(state), path=found.path)
    return net, found.used


def _random_net(shape: Any) -> Any:
    """A network of seeded noise whose latents follow its input and whose codewords are about as wide as they are."""
    import torch

    from codec_bench.codecs.wavtokenizer_net import WavTokenizerNet

    with seeded():
        net = WavTokenizerNet(shape).eval()
        fill_with_noise(net)
        net.head.out.bias[: len(net.head.out.bias) // 2] += 1.0  # magnitudes that make a wave of some 0.1
        latents = net.latents(0.1 * torch.randn(1, 1, _RATE_HZ), [_RATE_HZ])
        net.embed.copy_(latents.mean(dim=(0, 2)) + latents.std(dim=(0, 2)) * torch.randn_like(net.embed))
    return net
