"""SpeechTokenizer: eight codebooks, 50 frames a second, exact in batches.

Convolutions reflect each item at its own end. The encoder's LSTM runs backwards from each item's own last frame. Items
too short for a reflection are followed by zeros, as in the reference.
"""

from __future__ import annotations

from typing import Any

from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.neural.base import NeuralCodec, code_info
from codec_bench.codecs.neural.random_weights import RANDOM, RANDOM_FULL, fill_with_noise, seeded, spread_codewords
from codec_bench.messages.errors import UserError

_RATE_HZ = 16000
_HOP = 320
_CODEBOOKS = 8
_CARDINALITY = 1024
_BPS_PER_CODEBOOK = 500
_SMALL: dict[str, Any] = {"filters": 4, "dimension": 32}
# Tensors of the published file that are not part of the codec: the map to the teacher, and running averages of
# codebooks.
_UNUSED = ("transform.",)
_UNUSED_ENDS = ("._codebook.inited", "._codebook.cluster_size", "._codebook.embed_avg")


class SpeechTokenizer(NeuralCodec):
    """SpeechTokenizer.

    Codes: one stream of one to eight codebooks of 1024 entries at 50 frames a second, ceil(samples / 320) frames. The
    first was trained to follow a HuBERT.

    Args:
        bitrate_bps: 500 for each codebook, to 4000.
        device, weights: as for `PublishedCodec`; own weights are a file in the published layout, or a folder with it.
    """

    cardinality = _CARDINALITY
    _hop = _HOP
    residual = True
    checkpoints = ("speechtokenizer",)

    def __init__(self, bitrate_bps: int, device: str = "cpu", weights: str | None = None) -> None:
        info = self.describe(bitrate_bps)
        self._codebooks = bitrate_bps // _BPS_PER_CODEBOOK
        self._install(info, device, *_load(weights))

    @classmethod
    def describe(cls, bitrate_bps: int) -> CodecInfo:
        """Return `CodecInfo` of an operating point, without weights; UserError if unknown."""
        rates = [_BPS_PER_CODEBOOK * count for count in range(1, _CODEBOOKS + 1)]
        if bitrate_bps not in rates:
            known = ", ".join(f"{bps / 1000:g}" for bps in rates)
            raise UserError(
                "codec_bitrate", kbps=bitrate_bps / 1000, codec="SpeechTokenizer", hint=f"it runs at {known} kbps"
            )
        name, codebooks = f"speechtokenizer@{bitrate_bps / 1000:g}", bitrate_bps // _BPS_PER_CODEBOOK
        return code_info(name, _RATE_HZ, _HOP, _CARDINALITY, codebooks)

    def _read_quantiser(self, net: Any) -> Any:
        import torch

        from codec_bench.kernels.rvq.dispatch import Euclidean

        return Euclidean(torch.stack(net.codebooks))


def _load(weights: str | None) -> tuple[Any, str]:
    """Load the network in eval mode on the CPU; also return which weights it has."""
    from codec_bench.networks.speechtokenizer import SpeechTokenizerNet, SpeechTokenizerShape
    from codec_bench.networks.weight_norm import fold_weight_norm
    from codec_bench.weights import convert_cached, find, load_into, load_state, unfilled, without

    if weights in (RANDOM, RANDOM_FULL):
        return _random_net(SpeechTokenizerShape(**(_SMALL if weights == RANDOM else {}))), weights
    checkpoint = find("speechtokenizer", weights)
    net = unfilled(lambda: SpeechTokenizerNet(SpeechTokenizerShape()))

    def read() -> dict[str, Any]:
        return fold_weight_norm(without(load_state(checkpoint.path), starts=_UNUSED, ends=_UNUSED_ENDS))

    load_into(net, convert_cached(read, checkpoint.path), path=checkpoint.path)
    return net, checkpoint.used


def _random_net(shape: Any) -> Any:
    """Build a network of seeded noise with codewords about as wide as its latents."""
    import torch

    from codec_bench.networks.speechtokenizer import SpeechTokenizerNet

    with seeded():
        net = SpeechTokenizerNet(shape).eval()
        fill_with_noise(net)
        spread_codewords(net.codebooks, net.encoder(0.1 * torch.randn(1, 1, _RATE_HZ), [_RATE_HZ])[0].T)
    return net
