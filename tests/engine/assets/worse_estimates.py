"""Codecs that give back something else than speech: what no measure may prefer to coded speech without a word."""

from __future__ import annotations

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream
from codec_bench.data import open_source


class _Gives:
    where = "cpu"

    def __init__(self):
        self.info = CodecInfo(type(self).__name__.lower(), (16000,), (1,), frame_rate_hz=100)

    def encode(self, batch):
        # The sound itself goes aside: what is given back is made of it.
        return [
            Codes(
                (CodeStream(np.zeros((1, 1), int), 2, 100),), a.num_samples, 16000, side={"sound": a.samples[0].copy()}
            )
            for a in batch
        ]

    def decode(self, codes):
        return [Audio(self.of(item.side["sound"]).astype(np.float32), 16000) for item in codes]


class Silence(_Gives):
    def of(self, sound):
        return np.zeros_like(sound)


class Faint(_Gives):
    """One step of 16 bits, up and down."""

    def of(self, sound):
        return np.random.default_rng(0).integers(-1, 2, sound.size) / 32768


class Constant(_Gives):
    def of(self, sound):
        return np.full_like(sound, 0.1)


class Half(_Gives):
    def of(self, sound):
        return np.where(np.arange(sound.size) < sound.size // 2, sound, 0)


class Noise(_Gives):
    def of(self, sound):
        return sound.std() * np.random.default_rng(0).standard_normal(sound.size)


class Foreign(_Gives):
    """Another utterance."""

    def of(self, sound):
        from codec_bench.audio.resample import prepare

        other = max((Audio.read(s.audio) for s in open_source("embedded")), key=lambda audio: audio.duration_s)
        return np.resize(prepare(other, 16000)[4000:], sound.size)
