"""EnCodec 24 kHz piece by piece: the codes and waves of the whole signal, with the state carried from piece to piece.

What is carried
    Every convolution keeps the end of what it has seen, every transposed convolution its last input, which still adds to
    the next outputs, and the LSTMs their states. Wherever a strided convolution meets the end of a signal that is no
    multiple of its stride, that end is reflected, as in the whole signal.

What the start of a signal costs
    The model reflects the first samples of a signal, and of every layer's input, in front of it. The widest reflection, at
    the frame rate, needs seven frames: the first codes come with sample 2240 (93 ms), seven frames at once. From there on
    every 320 samples (13.3 ms) give a frame.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecStream
from codec_bench.codecs.bitstream import check_input
from codec_bench.codecs.encodec import _piece
from codec_bench.codecs.network import check_stream, full_float32, one_stream
from codec_bench.errors import UserError
from codec_bench.types import Audio, Codes

_HOP = 320
_CARDINALITY = 1024
_FIRST_FRAMES = 7  # the last convolution of the encoder and the first of the decoder reflect six frames


class EncodecStream(CodecStream):
    """Both ends of one stream of EnCodec 24 kHz.

    The first pieces are held back until there are 2240 samples: their codes have no frames, and `num_samples` of 0. A
    signal ends with a piece that is no multiple of 320 samples; one that is a multiple, and shorter than 2240 samples, with
    a piece without samples.

    Args:
        net: transformers' `EncodecModel` of the 24 kHz model in eval mode.
        info: of the codec whose stream this is.
        codebooks: how many are sent.
        device: where the network is.
    """

    step_samples = _HOP

    def __init__(self, net: Any, info: Any, codebooks: int, device: str) -> None:
        from codec_bench.kernels.rvq.dispatch import adopt

        self._info, self._codebooks, self._device = info, codebooks, device
        self._quantiser = adopt(net.quantizer)
        self._encoder, self._decoder = _Half(net.encoder), _Half(net.decoder)
        self._held = np.zeros((1, 0), np.float32)

    def encode(self, piece: Audio) -> Codes:
        """The codes that this piece completes, for `num_samples` samples; none while the first 2240 samples come in.

        Args:
            piece: a multiple of 320 samples; any other number of them, none included, ends the signal.

        Raises:
            UserError: a rate or channel count that the model does not take, a piece after the last, or an end without any
                samples before it.
        """
        import torch

        from codec_bench.kernels.rvq.dispatch import search

        if piece.num_samples or not self._held.shape[1]:
            check_input(piece, self._info)
        self._encoder.refuse_more(self._info.name)
        last = piece.num_samples % _HOP > 0 or piece.num_samples == 0
        wave = np.concatenate([self._held, piece.samples], axis=1)
        if not last and not self._encoder.started and wave.shape[1] < _FIRST_FRAMES * _HOP:
            self._held = wave
            return self._codes(np.zeros((self._codebooks, 0), np.int64), 0)
        self._held = wave[:, :0]
        with full_float32(self._device):
            latents = self._encoder.step(torch.from_numpy(wave)[None].to(self._device), last=last)
            values = search(latents, self._quantiser, self._codebooks).value.cpu().numpy()[0]
        return self._codes(values, wave.shape[1])

    def decode(self, codes: Codes) -> Audio:
        """The samples of these codes, `codes.num_samples` of them.

        Args:
            codes: as `encode` gives them, or several of those in one; the first ones with frames have at least seven, or
                are the whole signal.

        Raises:
            UserError: codes of another shape than that many samples have, or codes after the last.
        """
        import torch

        from codec_bench.kernels.rvq.dispatch import lookup

        frames = -(-codes.num_samples // _HOP)
        if frames == 0:
            return Audio(np.zeros((1, 0)), codes.sample_rate_hz)
        check_stream(codes, self._info, (self._codebooks, frames), _CARDINALITY)
        self._decoder.refuse_more(self._info.name)
        last = codes.num_samples % _HOP > 0 or (not self._decoder.started and frames < _FIRST_FRAMES)
        with full_float32(self._device):
            values = torch.from_numpy(np.ascontiguousarray(codes.streams[0].values, np.int64))[None].to(self._device)
            wave = self._decoder.step(lookup(values, self._quantiser).value, last=last).cpu().numpy()[0]
        return Audio(wave[:, : codes.num_samples], codes.sample_rate_hz)

    def _codes(self, values: np.ndarray, num_samples: int) -> Codes:
        rate_hz = self._info.sample_rates_hz[0]
        return one_stream(values, Audio(np.zeros((1, num_samples)), rate_hz), self._info, _CARDINALITY)


class _Half:
    """An encoder or decoder with what its layers keep from one piece to the next."""

    def __init__(self, side: Any) -> None:
        from torch.nn.utils import parametrize

        side = copy.deepcopy(side)
        for module in side.modules():  # a step of one frame must not form 15 million normalised weights again
            if parametrize.is_parametrized(module):
                parametrize.remove_parametrizations(module, "weight")
        layers = list(side.layers)
        at = next(k for k, layer in enumerate(layers) if hasattr(layer, "lstm"))
        self._before, self._lstm, self._behind = layers[:at], layers[at].lstm, layers[at + 1 :]
        self._ends: dict[Any, Any] = {}
        self._state: Any = None
        self.started = self._ended = False

    def step(self, hidden: Any, *, last: bool) -> Any:
        self.started, self._ended = True, last
        hidden = _piece(self._before, hidden, self._ends, last=last).permute(2, 0, 1)
        out, self._state = self._lstm(hidden, self._state)
        return _piece(self._behind, (out + hidden).permute(1, 2, 0), self._ends, last=last)

    def refuse_more(self, name: str) -> None:
        if self._ended:
            raise UserError(f"{name}: the stream has ended with what came before, of which its last frame was completed")
