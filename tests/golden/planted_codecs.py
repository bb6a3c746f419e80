"""A codec of which it is known what is left of a sound: its level, and nothing else."""

from __future__ import annotations

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream

FRAMES_PER_S = 50


class Hiss:
    """Noise in place of every sound, at the level of each 20 ms."""

    where = "cpu"

    def __init__(self):
        self.info = CodecInfo("hiss", (16_000, 24_000, 48_000), frame_rate_hz=FRAMES_PER_S, nominal_bitrate_bps=350.0)

    def encode(self, batch):
        outputs = []
        for audio in batch:
            frame = audio.sample_rate_hz // FRAMES_PER_S
            power = np.square(np.pad(audio.samples[0], (0, -audio.num_samples % frame)).reshape(-1, frame)).mean(1)
            level = np.clip(np.round(10 * np.log10(power + 1e-12)) + 120, 0, 127).astype(int)
            outputs.append(
                Codes((CodeStream(level[None], 128, float(FRAMES_PER_S)),), audio.num_samples, audio.sample_rate_hz)
            )
        return outputs

    def decode(self, codes):
        return [self._noise(one) for one in codes]

    def _noise(self, one):
        level = 10 ** ((one.streams[0].values[0] - 120) / 20)
        noise = np.random.default_rng(0).normal(0, 1, one.num_samples)
        return Audio(
            (np.repeat(level, one.sample_rate_hz // FRAMES_PER_S)[: one.num_samples] * noise).clip(-1, 1),
            one.sample_rate_hz,
        )
