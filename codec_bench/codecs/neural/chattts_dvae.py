"""ChatTTS's audio codec: a quantised mel spectrogram at 46.875 frames a second, and Vocos to make a wave of it.

Where padding could change a result, and what prevents it
    Spectrograms are taken of each item alone; every convolution sees zeros beyond an item's end; the overlap-add is
    divided by the windows of the item's own frames.

What differs from coding an item with the original
    For items of 513 samples (21 ms) or more, the codes are equal. The original refuses shorter items; here silence
    extends them to 513 samples. The original returns the samples between the first and the last mel frame, up to 511
    fewer than it was given; here silence follows, up to the item's length.

The original code has the AGPL as its licence. None of it is used here (see `networks/chattts.py` for what this was
written from).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.audio.passes import passes
from codec_bench.codecs.base import Codec, CodecInfo, check_input
from codec_bench.codecs.neural.base import (
    RANDOM,
    check_stream,
    fill_with_noise,
    full_float32,
    one_stream,
    seeded,
    stack,
)
from codec_bench.errors import WeightsError
from codec_bench.types import Audio, Codes, CodeStream

_RATE_HZ, _HOP, _SHORTEST = 24_000, 256, 513
_CODEBOOKS, _ENTRIES = 4, 625


class ChatTtsDvae(Codec):
    """The DVAE of ChatTTS with its Vocos, for mono speech at 24 kHz.

    Codes: one stream of four codebooks with 625 entries at 46.875 frames a second: two halves of the channels, each
    coarse and then fine.

    Args:
        device: `cpu` or `cuda:N`.
        weights: a folder in the layout of 2Noise/ChatTTS or a hub id, optionally `@REVISION`; None for the published
            weights on this machine; `random` for a small network of seeded noise, which is for tests only.
        bound_first: whether the quantiser bounds its input once more, as the releases of vector_quantize_pytorch did
            with which the weights were trained and published; False for what releases from 1.18.5 to 1.25 do with them.

    Raises:
        WeightsError: the weights are not on this machine, or belong to another model.
    """

    def __init__(self, device: str = "cpu", weights: str | None = None, bound_first: bool = True) -> None:
        self._device = device
        self._net, self._vocos, used = _load(weights, device, bound_first)
        self.info = replace(self.describe(), weights=used)

    @classmethod
    def describe(cls) -> CodecInfo:
        """The facts of the codec. Nothing is loaded."""
        stream = CodeStream(np.zeros((_CODEBOOKS, 1), np.int64), _ENTRIES, _RATE_HZ / _HOP / 2)
        return CodecInfo(
            name="chattts-dvae",
            sample_rates_hz=(_RATE_HZ,),
            frame_rate_hz=stream.frame_rate_hz,
            nominal_bitrate_bps=stream.nominal_bitrate_bps,
            causal=False,
        )

    @classmethod
    def find_weights(cls) -> str | None:
        """The folder that holds the published weights on this machine, or None."""
        from codec_bench.weights import lookup

        dvae, vocos = lookup("chattts-dvae"), lookup("chattts-vocos")
        return str(dvae.folder) if dvae and vocos else None

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Codes of each item, as the original gives them for that item alone.

        Raises:
            UserError: a rate or channel count that the codec does not take, or no samples.
        """
        import torch

        for audio in batch:
            check_input(audio, self.info)
        out: list[Any] = [None] * len(batch)
        with full_float32(self._device):
            for group in passes([audio.num_samples for audio in batch], self._device):
                mels = [self._log_mel(batch[k].samples[0]) for k in group]
                frames = [mel.shape[1] for mel in mels]
                stacked = torch.nn.utils.rnn.pad_sequence([mel.T for mel in mels], batch_first=True).transpose(1, 2)
                codes = self._net.encode(stacked, self._lengths(frames)).cpu().numpy()
                for k, count, own in zip(group, frames, codes):
                    out[k] = one_stream(own[:, : count // 2], batch[k], self.info, _ENTRIES)
        return out

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Audio of each item: what the original decodes, then silence up to the item's length.

        Raises:
            UserError: codes whose shape does not fit the item's length, or out of range.
        """
        import torch

        for item in codes:
            check_stream(item, self.info, (_CODEBOOKS, _frames(item.num_samples)), _ENTRIES)
        waves: list[Any] = [None] * len(codes)
        with full_float32(self._device):
            for group in passes([item.num_samples for item in codes], self._device):
                values = [codes[k].streams[0].values for k in group]
                frames = [value.shape[1] for value in values]
                stacked = torch.from_numpy(stack(values, max(frames)).astype(np.int64)).to(self._device)
                mels = self._net.decode(stacked, self._lengths(frames))
                mel_frames = [2 * count for count in frames]
                decoded = self._vocos(mels, self._lengths(mel_frames)).cpu().numpy()
                for k, count, wave in zip(group, mel_frames, decoded):
                    own = wave[: min((count - 1) * _HOP, codes[k].num_samples)]
                    waves[k] = np.pad(own, (0, codes[k].num_samples - own.size))
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(waves, codes)]

    def _log_mel(self, wave: np.ndarray) -> Any:
        import torch

        return self._net.log_mel(torch.from_numpy(np.pad(wave, (0, max(0, _SHORTEST - wave.size)))).to(self._device))

    def _lengths(self, frames: Sequence[int]) -> Any:
        """Each item's frames as a tensor, or None where all are equal and nothing is to be masked."""
        import torch

        return None if len(set(frames)) == 1 else torch.tensor(frames).to(self._device)


def _frames(num_samples: int) -> int:
    return (1 + max(num_samples, _SHORTEST) // _HOP) // 2


def _load(weights: str | None, device: str, bound_first: bool) -> tuple[Any, Any, str]:
    """The networks in eval mode on their device, and which weights they have."""
    from codec_bench.networks import chattts as chattts_net
    from codec_bench.weights import find, load_into, load_state

    if weights == RANDOM:
        with seeded():
            small = chattts_net.SMALL
            nets = chattts_net.Dvae(small, bound_first=bound_first).eval(), chattts_net.Vocos(small).eval()
            for net in nets:
                fill_with_noise(net)
        return nets[0].to(device), nets[1].to(device), RANDOM
    if weights is not None and Path(weights).is_file():
        raise WeightsError(
            f"the weights '{weights}' are one file; ChatTTS's codec has two checkpoints",
            hint="give the folder that holds asset/DVAE_full.pt and asset/Vocos.pt",
        )
    loaded = []
    for name, net in (
        ("chattts-dvae", chattts_net.Dvae(bound_first=bound_first)),
        ("chattts-vocos", chattts_net.Vocos()),
    ):
        found = find(name, weights)
        load_into(net, chattts_net.renamed(load_state(found.path)), path=found.path)
        loaded.append((net.to(device), found.used))
    (dvae, used), (vocos, _) = loaded
    return dvae, vocos, used
