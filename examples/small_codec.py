"""A new codec: the lowest coefficients of an MDCT at 4 bits each.

They are companded. There are four bitrates.

Two variants follow: the same transform as a continuous codec, and with entropy-coded packets.
"""

import zlib
from contextlib import contextmanager

import numpy as np

from codec_bench import Audio, CodecInfo, CodecStream, Codes, CodeStream, LatentCodec, Latents

HOP, LEVELS = 256, 16
t, k = np.arange(2 * HOP), np.arange(HOP)
WINDOW = np.sin(np.pi * (t + 0.5) / (2 * HOP))
BASIS = np.sqrt(2 / HOP) * np.cos(np.pi / HOP * (t[:, None] + 0.5 + HOP / 2) * (k + 0.5)) * WINDOW[:, None]


def analyse(x, bands):
    """The lowest coefficients of every frame of a signal."""
    padded = np.pad(x, (HOP, HOP + -len(x) % HOP))
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * HOP)[::HOP] @ BASIS[:, :bands]


def synthesise(c):
    """The signal of frames of coefficients, by overlap-add of half frames."""
    frames = c @ BASIS[:, : c.shape[1]].T
    return (frames[:-1, HOP:] + frames[1:, :HOP]).ravel()


class Small:
    """One operating point; its subclasses are others."""

    bands, frame_rate_hz = 64, 16000 / HOP

    def __init__(self):
        tokens_per_s = self.bands * self.frame_rate_hz
        bps = tokens_per_s * np.log2(LEVELS)
        self.info = CodecInfo(
            f"small@{bps / 1000:g}",
            (16000,),
            frame_rate_hz=self.frame_rate_hz,
            nominal_bitrate_bps=bps,
            tokens_per_s=tokens_per_s,
        )

    def encode(self, batch):
        """Codes of each item."""
        frames = [self.quantise(analyse(a.samples[0], self.bands)) for a in batch]
        return [Codes((codes,), a.num_samples, a.sample_rate_hz) for codes, a in zip(frames, batch)]

    def quantise(self, c):
        """A code for every coefficient."""
        values = np.round(7 * np.sign(c) * np.abs(c) ** 0.4) + LEVELS // 2
        return CodeStream(np.clip(values, 0, LEVELS - 1).astype(int).T, LEVELS, self.frame_rate_hz)

    def restore(self, stream):
        """Decode codes to coefficients."""
        c = (stream.values.T - LEVELS // 2) / 7.0
        return np.sign(c) * np.abs(c) ** 2.5

    def decode(self, codes):
        """Audio of each item, as long as it was."""
        waves = [synthesise(self.restore(c.streams[0])) for c in codes]
        return [Audio(wave[: c.num_samples], c.sample_rate_hz) for wave, c in zip(waves, codes)]

    @contextmanager
    def streaming(self):
        """Encoder and decoder of one signal, piece by piece."""
        yield SmallStream(self)


class SmallStream(CodecStream):
    """Holds the overlap with the next frame: a hop of input, half a frame of output."""

    step_samples = HOP

    def __init__(self, codec):
        self.codec, self.before, self.half = codec, np.zeros(HOP), None

    def encode(self, audio):
        """The frame that ends with this piece."""
        frame = np.concatenate([self.before, np.pad(audio.samples[0], (0, HOP - audio.num_samples))])
        self.before = frame[HOP:]
        codes = self.codec.quantise(frame[None] @ BASIS[:, : self.codec.bands])
        return Codes((codes,), audio.num_samples, audio.sample_rate_hz)

    def decode(self, codes):
        """Return the previous hop: the first frame completes nothing."""
        c = self.codec.restore(codes.streams[0])
        frame = (c @ BASIS[:, : c.shape[1]].T)[0]
        out = np.zeros((1, 0)) if self.half is None else (self.half + frame[:HOP])[None]
        self.half = frame[HOP:]
        return Audio(out, codes.sample_rate_hz)


Small8, Small16, Small24, Small32 = (type(f"Small{n // 4}", (Small,), {"bands": n}) for n in (32, 64, 96, 128))


class Packed(Small):
    """The same codes as one entropy-coded packet an item.

    Frequent values take fewer bits.

    Its bitrate follows from the packets.
    """

    def __init__(self):
        self.info = CodecInfo("packed", (16000,))

    def encode(self, batch):
        """A packet of each item."""
        packets = [zlib.compress(c.streams[0].values.astype(np.uint8).tobytes(), 9) for c in super().encode(batch)]
        return [Codes((), a.num_samples, a.sample_rate_hz, packets=(sent,)) for sent, a in zip(packets, batch)]

    def decode(self, codes):
        """Audio of each item."""
        return super().decode([Codes((self.unpacked(c.packets[0]),), c.num_samples, c.sample_rate_hz) for c in codes])

    def unpacked(self, packet):
        """The codes that a packet holds."""
        values = np.frombuffer(zlib.decompress(packet), np.uint8).reshape(self.bands, -1)
        return CodeStream(values.astype(int), LEVELS, self.frame_rate_hz)

    streaming = None  # a packet needs the whole item


class Continuous(LatentCodec):
    """The coefficients as they are: 64 real numbers a frame, and no bitrate."""

    info = CodecInfo("continuous", (16000,), frame_rate_hz=16000 / HOP, latents=64)

    def encode(self, batch):
        """Latents of each item."""
        latents = [analyse(a.samples[0], self.info.latents).T for a in batch]
        return [Latents(values, 16000 / HOP, a.num_samples, a.sample_rate_hz) for values, a in zip(latents, batch)]

    def decode(self, latents):
        """Audio of each item, as long as it was."""
        return [Audio(synthesise(item.values.T)[: item.num_samples], item.sample_rate_hz) for item in latents]
