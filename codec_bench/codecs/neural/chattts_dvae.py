"""ChatTTS's codec: a quantised mel spectrogram (46.875 Hz) and Vocos.

Spectrograms are computed per item, convolutions see zeros beyond an item's end, and overlap-add uses its own windows.
Silence extends items to 513 samples (21 ms), which the original refuses, and fills up to 511 samples that it does not
return. From 513 samples on, codes are equal. The original has the AGPL: none of its code is used (`networks/chattts.py`
names the sources).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info
from codec_bench.codecs.neural.random_weights import RANDOM, fill_with_noise, seeded
from codec_bench.messages.errors import WeightsError
from codec_bench.types import Codes

_RATE_HZ, _HOP, _SHORTEST = 24_000, 256, 513
_CODEBOOKS, _ENTRIES = 4, 625


class ChatTtsDvae(NeuralCodec):
    """The DVAE of ChatTTS with its Vocos, for mono speech at 24 kHz.

    Codes: one stream of four codebooks with 625 entries at 46.875 frames a second: two halves of the channels, each
    coarse and then fine.

    Args:
        device, weights: as for `PublishedCodec`; own weights are a folder in the layout of 2Noise/ChatTTS.
        bound_first: whether the quantiser bounds its input once more, as the releases of vector_quantize_pytorch with
            which the weights were trained; False for releases from 1.18.5 to 1.25.
    """

    cardinality = _ENTRIES
    _hop = 2 * _HOP
    checkpoints = ("chattts-dvae", "chattts-vocos")
    _codebooks = _CODEBOOKS

    def __init__(self, device: str = "cpu", weights: str | None = None, bound_first: bool = True) -> None:
        self._device = device
        self._net, self._vocos, used = _load(weights, device, bound_first)
        self.info = replace(self.describe(), weights=used)

    @classmethod
    def describe(cls) -> CodecInfo:
        """Return the codec's `CodecInfo`, without loading weights."""
        return code_info("chattts-dvae", _RATE_HZ, 2 * _HOP, _ENTRIES, _CODEBOOKS)

    def _frames(self, num_samples: int) -> int:
        return (1 + max(num_samples, _SHORTEST) // _HOP) // 2

    def _input_samples(self, num_samples: int) -> int:
        return max(num_samples, _SHORTEST)

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        """Encode padded waves of these lengths to codes."""
        from codec_bench.networks.ragged import each, ragged_lengths, uploaded

        samples = uploaded(samples, self._device)
        frames = ragged_lengths(each(samples, lambda count: 1 + count // _HOP), self._device)
        return self._net.encode(self._net.log_mels(waves, samples), frames)

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        """Decode padded codes to mel spectrograms, and these to waves with Vocos."""
        from codec_bench.networks.ragged import ragged_lengths

        lengths = ragged_lengths(frames, self._device)
        mels = self._net.decode(values, lengths)
        return self._vocos(mels, None if lengths is None else 2 * lengths)[:, None]

    def _cut(self, wave: np.ndarray, item: Codes) -> np.ndarray:
        trimmed = super()._cut(wave, item)[:, : (2 * self._frames(item.num_samples) - 1) * _HOP]
        return np.pad(trimmed, ((0, 0), (0, item.num_samples - trimmed.shape[1])))


def _load(weights: str | None, device: str, bound_first: bool) -> tuple[Any, Any, str]:
    """Load DVAE and Vocos in eval mode; also return which weights they have."""
    from codec_bench.networks import chattts as chattts_net
    from codec_bench.weights import find, load_into, load_state, unfilled

    if weights == RANDOM:
        with seeded():
            small = chattts_net.SMALL
            nets = chattts_net.Dvae(small, bound_first=bound_first).eval(), chattts_net.Vocos(small).eval()
            for net in nets:
                fill_with_noise(net)
        return nets[0].to(device), nets[1].to(device), RANDOM
    if weights is not None and Path(weights).is_file():
        raise WeightsError(
            "weights_are_one_file",
            weights=weights,
            codec="ChatTTS's codec",
            hint="give the folder that holds asset/DVAE_full.pt and asset/Vocos.pt",
        )
    loaded = []
    dvae_net = partial(chattts_net.Dvae, bound_first=bound_first)
    for name, build in (("chattts-dvae", dvae_net), ("chattts-vocos", chattts_net.Vocos)):
        checkpoint = find(name, weights)
        net = unfilled(build)
        load_into(net, chattts_net.renamed(load_state(checkpoint.path)), path=checkpoint.path)
        loaded.append((net.to(device), checkpoint.used))
    (dvae, used), (vocos, _) = loaded
    return dvae, vocos, used
