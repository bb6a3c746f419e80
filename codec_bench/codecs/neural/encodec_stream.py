"""EnCodec 24 kHz in pieces: equal to the whole signal, with carried state.

Convolutions keep the end of their input, transposed ones their last input, LSTMs their states. Ends that are no
multiple of a stride are reflected, as in the whole signal. The model also reflects the first samples of every layer's
input in front of it; the widest reflection needs seven frames. So the first codes come with sample 2240 (93 ms), seven
frames at once; then every 320 samples (13.3 ms) give a frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecStream, check_input
from codec_bench.codecs.neural.base import check_stream, one_stream
from codec_bench.messages.errors import UserError
from codec_bench.networks.encodec import CarriedHalf
from codec_bench.networks.precision import computing
from codec_bench.types import Audio, Codes

_HOP = 320
_CARDINALITY = 1024
_FIRST_FRAMES = 7  # the last convolution of the encoder and the first of the decoder reflect six frames


class EncodecStream(CodecStream):
    """Encoder and decoder of one stream of EnCodec 24 kHz.

    Pieces are buffered until there are 2240 samples; until then codes have no frames and `num_samples` 0. A piece that
    is no multiple of 320 samples ends the signal; a signal below 2240 samples that is a multiple ends with an empty
    piece.

    Args:
        net: transformers' `EncodecModel` of the 24 kHz model in eval mode.
        info: of the codec. codebooks: how many are sent. device: where the network is.
    """

    step_samples = _HOP

    def __init__(self, net: Any, info: Any, codebooks: int, device: str) -> None:
        from codec_bench.kernels.rvq.dispatch import adopt

        self._info, self._codebooks, self._device = info, codebooks, device
        self._quantiser = adopt(net.quantizer)
        self._encoder, self._decoder = CarriedHalf(net.encoder), CarriedHalf(net.decoder)
        self._held = np.zeros((1, 0), np.float32)

    def encode(self, segment: Audio) -> Codes:
        """Return the codes that this segment completes, for `num_samples` samples.

        Args:
            segment: a multiple of 320 samples; any other number of samples, or none, ends the signal.
        """
        from codec_bench.kernels.rvq.dispatch import search
        from codec_bench.networks.transfer import sent

        is_started = self._encoder.started or self._held.shape[1] > 0
        if segment.num_samples or not is_started:
            check_input(segment, self._info)
        self._refuse_more(self._encoder)
        last = segment.num_samples % _HOP > 0 or segment.num_samples == 0
        wave = np.concatenate([self._held, segment.samples], axis=1)
        if not last and not self._encoder.started and wave.shape[1] < _FIRST_FRAMES * _HOP:
            self._held = wave
            return self._codes(np.zeros((self._codebooks, 0), np.int64), 0)
        if wave.shape[1] == 0:
            self._encoder.ended = True
            return self._codes(np.zeros((self._codebooks, 0), np.int64), 0)
        self._held = wave[:, :0]
        with computing(self._device, "float32"):
            latents = self._encoder.step(sent([wave[None]], self._device)[0], last=last)
            values = search(latents, self._quantiser, self._codebooks).value.cpu().numpy()[0]
        return self._codes(values, wave.shape[1])

    def decode(self, codes: Codes) -> Audio:
        """Decode the next codes of the stream to `codes.num_samples` samples.

        Args:
            codes: from `encode`, or several of those joined. The first ones with frames have at least seven, or are the
                whole signal.
        """
        from codec_bench.kernels.rvq.dispatch import lookup
        from codec_bench.networks.transfer import sent

        frames = -(-codes.num_samples // _HOP)
        if frames == 0:
            return Audio(np.zeros((1, 0)), codes.sample_rate_hz)
        check_stream(codes, self._info, (self._codebooks, frames), _CARDINALITY)
        self._refuse_more(self._decoder)
        last = codes.num_samples % _HOP > 0 or (not self._decoder.started and frames < _FIRST_FRAMES)
        with computing(self._device, "float32"):
            values = sent([np.ascontiguousarray(codes.streams[0].values, np.int64)[None]], self._device)[0]
            wave = self._decoder.step(lookup(values, self._quantiser).value, last=last).cpu().numpy()[0]
        return Audio(wave[:, : codes.num_samples], codes.sample_rate_hz)

    def _refuse_more(self, half: CarriedHalf) -> None:
        if half.ended:
            raise UserError("stream_ended", codec=self._info.name)

    def _codes(self, values: np.ndarray, num_samples: int) -> Codes:
        rate_hz = self._info.sample_rates_hz[0]
        return one_stream(values, Audio(np.zeros((1, num_samples)), rate_hz), self._info, _CARDINALITY)
