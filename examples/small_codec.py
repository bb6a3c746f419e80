"""A codec somebody has just written: the lowest coefficients of an MDCT, companded to 4 bits each, at four bitrates."""

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream

HOP, LEVELS = 256, 16
t, k = np.arange(2 * HOP), np.arange(HOP)
WINDOW = np.sin(np.pi * (t + 0.5) / (2 * HOP))
BASIS = np.sqrt(2 / HOP) * np.cos(np.pi / HOP * (t[:, None] + 0.5 + HOP / 2) * (k + 0.5)) * WINDOW[:, None]


class Small:
    """One operating point; its subclasses are others."""

    bands, frame_rate_hz = 64, 16000 / HOP

    def __init__(self):
        bps = self.bands * np.log2(LEVELS) * self.frame_rate_hz
        self.info = CodecInfo(
            f"small@{bps / 1000:g}", (16000,), frame_rate_hz=self.frame_rate_hz, nominal_bitrate_bps=bps
        )

    def encode(self, batch):
        """Codes of each item."""
        return [Codes((self._quantise(a.samples[0]),), a.num_samples, a.sample_rate_hz) for a in batch]

    def _quantise(self, x):
        padded = np.pad(x, (HOP, 2 * HOP - len(x) % HOP))
        c = np.lib.stride_tricks.sliding_window_view(padded, 2 * HOP)[::HOP] @ BASIS[:, : self.bands]
        values = np.round(7 * np.sign(c) * np.abs(c) ** 0.4) + LEVELS // 2
        return CodeStream(np.clip(values, 0, LEVELS - 1).astype(int).T, LEVELS, self.frame_rate_hz)

    def decode(self, codes):
        """Audio of each item, as long as it was."""
        return [Audio(self._synthesise(c.streams[0].values.T)[: c.num_samples], c.sample_rate_hz) for c in codes]

    def _synthesise(self, values):
        c = (values - LEVELS // 2) / 7.0
        frames = np.sign(c) * np.abs(c) ** 2.5 @ BASIS[:, : self.bands].T
        return (frames[:-1, HOP:] + frames[1:, :HOP]).ravel()  # each half meets the other half of its neighbour


Small8, Small16, Small24, Small32 = (type(f"Small{n // 4}", (Small,), {"bands": n}) for n in (32, 64, 96, 128))
