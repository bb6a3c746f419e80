"""WavTokenizer: one codebook at 75 or 40 frames a second, exact in batches.

Encoder: each item is reflected at its own end, layer by layer; the LSTM runs only forwards. Decoder: normalisation and
attention use an item's own frames, convolutions see zeros beyond it, and overlap-add its own windows. Items too short
for a reflection are followed by zeros, as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, fill_with_noise, seeded
from codec_bench.messages.errors import UserError

_RATE_HZ = 24000
_CARDINALITY = 4096
_RATIOS: dict[int, tuple[int, ...]] = {75: (8, 5, 4, 2), 40: (6, 5, 5, 4)}
_WINDOW_HOPS = 4
_SMALL = {"filters": 4, "latent_dim": 32, "dim": 256, "intermediate_dim": 256, "layers": 2}
# Tensors of the published files that are not part of the codec: EnCodec's decoder, and running averages of the
# codebook.
_UNUSED = ("feature_extractor.encodec.decoder.",)
_UNUSED_ENDS = ("._codebook.inited", "._codebook.cluster_size", "._codebook.embed_avg")
_PARTS = ("feature_extractor.", "backbone.", "head.")


class WavTokenizer(NeuralCodec):
    """WavTokenizer.

    Codes: one stream of one codebook of 4096 entries, at 75 or 40 frames a second; ceil(samples / hop) frames, the last
    cut to the item's length by the decoder.

    Args:
        frame_rate_hz: 75 or 40.
        checkpoint: the name of its published weights in the catalogue.
        device, weights: as for `PublishedCodec`; own weights are a file in the published layout (a Lightning
            checkpoint), or a folder with it.
    """

    cardinality = _CARDINALITY
    checkpoints = ("{checkpoint}",)

    def __init__(
        self, frame_rate_hz: Literal[75, 40], checkpoint: str, device: str = "cpu", weights: str | None = None
    ) -> None:
        info = self.describe(frame_rate_hz, checkpoint)
        self._install(info, device, *_load(frame_rate_hz, checkpoint, weights))
        self._hop = self._net.head.istft.hop_length

    @classmethod
    def describe(cls, frame_rate_hz: int, checkpoint: str) -> CodecInfo:
        """Return `CodecInfo` of a variant, without weights; UserError if unknown."""
        if frame_rate_hz not in _RATIOS:
            raise UserError("codec_frame_rate", frame_rate_hz=frame_rate_hz, hint="it runs at 75 or at 40")
        return code_info(checkpoint, _RATE_HZ, _RATE_HZ // frame_rate_hz, _CARDINALITY)

    def _read_quantiser(self, net: Any) -> Any:
        from codec_bench.kernels.rvq.dispatch import Euclidean

        return Euclidean(net.embed[None])

    def _search(self, waves: Any, samples: Sequence[int]) -> Any:
        return self._nearest(self._net.latents(waves, samples))

    def _waves(self, values: Any, frames: Sequence[int]) -> Any:
        return self._net.waves(values[:, 0], frames)[:, None]


def _load(frame_rate_hz: int, checkpoint: str, weights: str | None) -> tuple[Any, str]:
    """Load the network in eval mode on the CPU; also return which weights it has."""
    from codec_bench.networks.wavtokenizer import WavTokenizerNet, WavTokenizerShape
    from codec_bench.networks.weight_norm import fold_weight_norm
    from codec_bench.weights import convert_cached, find, load_into, load_state, unfilled, without

    ratios = _RATIOS[frame_rate_hz]
    window = _WINDOW_HOPS * _RATE_HZ // frame_rate_hz
    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(WavTokenizerShape(ratios, window, **(_SMALL if weights == RANDOM else {}))), weights
    stored = find(checkpoint, weights)
    net = unfilled(lambda: WavTokenizerNet(WavTokenizerShape(ratios, window)))

    def read() -> dict[str, Any]:
        state = without(load_state(stored.path, key="state_dict"), starts=_UNUSED, ends=_UNUSED_ENDS)
        return fold_weight_norm({name: value for name, value in state.items() if name.startswith(_PARTS)})

    load_into(net, convert_cached(read, stored.path), path=stored.path)
    return net, stored.used


def _random_net(shape: Any) -> Any:
    """Build a network of seeded noise with codewords about as wide as its latents."""
    import torch

    from codec_bench.networks.wavtokenizer import WavTokenizerNet

    with seeded():
        net = WavTokenizerNet(shape).eval()
        fill_with_noise(net)
        net.head.out.bias[: len(net.head.out.bias) // 2] += 1.0  # magnitudes that make a wave of some 0.1
        latents = net.latents(0.1 * torch.randn(1, 1, _RATE_HZ), [_RATE_HZ])
        net.embed.copy_(latents.mean(dim=(0, 2)) + latents.std(dim=(0, 2)) * torch.randn_like(net.embed))
    return net
