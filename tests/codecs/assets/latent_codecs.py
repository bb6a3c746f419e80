"""Continuous codecs whose numbers follow from a law: an orthonormal transform of each block, which loses nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager

import numpy as np
from scipy.fft import dct, idct

from codec_bench import Audio, CodecInfo, CodecStream, LatentCodec, Latents

RATE_HZ, HOP = 16000, 64


class Blocks(LatentCodec):
    """The DCT-II of every block of 64 samples, all 64 coefficients."""

    where = "cpu"

    def __init__(self) -> None:
        self.info = CodecInfo("blocks", (RATE_HZ,), frame_rate_hz=RATE_HZ / HOP, causal=True, latents=HOP)

    def encode(self, batch: Sequence[Audio]) -> list[Latents]:
        return list(map(self._one, batch))

    def decode(self, codes: Sequence[Latents]) -> list[Audio]:
        back = [idct(item.values, norm="ortho", axis=0).T.ravel()[: item.num_samples] for item in codes]
        return [Audio(wave, item.sample_rate_hz) for wave, item in zip(back, codes)]

    @contextmanager
    def streaming(self):
        yield _Stream(self)

    def _one(self, audio: Audio) -> Latents:
        blocks = np.pad(audio.samples[0], (0, -audio.num_samples % HOP)).reshape(-1, HOP)
        values = dct(blocks, norm="ortho", axis=1).T.astype(np.float32)
        return Latents(values, RATE_HZ / HOP, audio.num_samples, audio.sample_rate_hz)


class _Stream(CodecStream):
    step_samples = HOP

    def __init__(self, codec: Blocks) -> None:
        self._codec = codec

    def encode(self, segment: Audio) -> Latents:
        return self._codec._one(segment)

    def decode(self, codes: Latents) -> Audio:
        return self._codec.decode([codes])[0]


class Undeclared(Blocks):
    """Gives latents that it does not declare."""

    def __init__(self) -> None:
        self.info = CodecInfo("undeclared", (RATE_HZ,), frame_rate_hz=RATE_HZ / HOP)


class Rated(Blocks):
    """Declares latents and a bitrate."""

    def __init__(self) -> None:
        self.info = CodecInfo("rated", (RATE_HZ,), frame_rate_hz=250.0, nominal_bitrate_bps=6000.0, latents=HOP)


class Narrow(Blocks):
    """Declares other latents than it gives."""

    def __init__(self) -> None:
        self.info = CodecInfo("narrow", (RATE_HZ,), frame_rate_hz=250.0, latents=32)


class Infinite(Blocks):
    """Gives latents that are not finite."""

    def _one(self, audio: Audio) -> Latents:
        built = super()._one(audio)
        built.values[0, 0] = np.inf
        return built


class Leaking(Blocks):
    """Latents depend on the rest of the batch."""

    def encode(self, batch: Sequence[Audio]) -> list[Latents]:
        outputs = super().encode(batch)
        for item in outputs:
            item.values[...] *= 1 + 0.01 * len(batch)
        return outputs
