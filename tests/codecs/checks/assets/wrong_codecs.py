"""A codec that is right, and one for every way of being wrong that has passed for right."""

from __future__ import annotations

import os
import time
import zlib
from dataclasses import replace
from functools import cache

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream
from codec_bench.data import open_source

RATE = 16000
FRAME = 80
LEVELS = 256


class Right:
    """Samples of 8 bits, in frames with a scale each; a batch is padded to its longest item, and the padding is left
    out.
    """

    where = "cpu"

    def __init__(self):
        rate = RATE / FRAME
        bps = rate * 8 * (FRAME + 1)
        self.info = CodecInfo(type(self).__name__, (RATE,), frame_rate_hz=rate, nominal_bitrate_bps=bps, causal=True)

    def encode(self, batch):
        longest = max(audio.num_samples for audio in batch)
        padded = np.stack([np.pad(a.samples[0], (0, longest - a.num_samples)) for a in batch])
        return [self.encode_one(row, audio) for row, audio in zip(padded, batch)]

    def encode_one(self, row, audio):
        frames = -(-audio.num_samples // FRAME)
        blocks = np.pad(row[: audio.num_samples], (0, frames * FRAME - audio.num_samples)).reshape(frames, FRAME)
        return self.pack(self.change(blocks), self.change(blocks), audio)

    def pack(self, blocks, output, audio):
        """Codes of `blocks`, with the scales that `output` needs."""
        scale = np.ceil(np.clip(np.abs(output).max(axis=1), 1 / 255, 1) * 255)
        values = np.round(np.clip(blocks / scale[:, None] * 255, -1, 1) * 127) + 128
        rows = np.concatenate([scale[None], values.T]).astype(np.int64)
        return Codes((CodeStream(rows, LEVELS, RATE / FRAME),), audio.num_samples, RATE)

    def change(self, blocks):
        return blocks

    def decode(self, codes):
        return [Audio(self.decode_one(item), RATE) for item in codes]

    def decode_one(self, item):
        rows = item.streams[0].values.astype(np.float64)
        return ((rows[1:] - 128) / 127 * rows[0] / 255).T.ravel()[: item.num_samples]


class UsesUpCodes(Right):
    """Right: its decoder writes into the codes that it is given, which nobody needs any more."""

    def decode_one(self, item):
        built = super().decode_one(item)
        item.streams[0].values[:] = 0
        return built


@cache
def codebooks(hop):
    rng = np.random.default_rng(0)
    output = np.concatenate([Audio.read(sample.audio).samples[0] for sample in list(open_source("embedded"))[12:28]])
    rest = output[: len(output) // hop * hop].reshape(-1, hop)
    books = []
    for _ in range(8):
        books.append(rest[rng.choice(len(rest), 1024, replace=False)])
        rest = rest - books[-1][nearest(rest, books[-1])]
    return books


def nearest(rows, book):
    return ((book**2).sum(axis=1) - 2 * rows @ book.T).argmin(axis=1)


class FourKbps(Right):
    """Sends 20 ms as 8 numbers of 10 bits, each the nearest of 1,024 vectors to what those before it have left."""

    hop, by = 320, 0

    def __init__(self):
        rate = RATE / self.hop
        self.info = CodecInfo(type(self).__name__, (RATE,), frame_rate_hz=rate, nominal_bitrate_bps=rate * 80)
        self.books = codebooks(self.hop)

    def encode_one(self, row, audio):
        frames = -(-audio.num_samples // self.hop)
        rest = np.pad(row[: audio.num_samples], (0, frames * self.hop - audio.num_samples)).reshape(frames, self.hop)
        chosen = []
        for book in self.books:
            chosen.append(nearest(rest, book))
            rest = rest - book[chosen[-1]]
        return Codes((CodeStream(np.array(chosen), 1024, RATE / self.hop),), audio.num_samples, RATE)

    def decode_one(self, item):
        built = sum(book[chosen] for book, chosen in zip(self.books, item.streams[0].values)).ravel()
        return np.pad(built, (self.by, 0))[: item.num_samples]


class FourKbpsLate(FourKbps):
    """Late by 37 samples, which is 2.3 ms."""

    by = 37


class LevelAlone(Right):
    """Keeps the level of every frame, and makes it of noise from a seed."""

    def decode_one(self, item):
        noise = np.random.default_rng(0).standard_normal(item.num_samples)
        output = super().decode_one(item)
        level = np.convolve(np.abs(output), np.ones(FRAME) / FRAME, mode="full")[FRAME // 2 :][: item.num_samples]
        return level * noise


class WritesIntoItsInput(Right):
    """Scales what it is given in place; through torch, which heeds no array that is read-only."""

    def encode(self, batch):
        import torch

        for audio in batch:
            torch.from_numpy(audio.samples).mul_(0.9)
        return super().encode(batch)


class TurnedOver(Right):
    def decode_one(self, item):
        return -super().decode_one(item)


class Late(Right):
    """Late by 37 samples."""

    by = 37.0

    def decode_one(self, item):
        samples = super().decode_one(item)
        size = 2 * len(samples) + 200
        turn = np.exp(-2j * np.pi * self.by / size * np.arange(size // 2 + 1))
        return np.fft.irfft(np.fft.rfft(samples, size) * turn, size)[: len(samples)]


class LateByHalf(Late):
    """Late by half a sample."""

    by = 0.5


class SixTimes(Right):
    def decode_one(self, item):
        return 6 * super().decode_one(item)


class Silent(Right):
    def decode_one(self, item):
        return np.zeros(item.num_samples)


class Overspends(Right):
    """Declares 6 kbit/s and spends 130."""

    def __init__(self):
        super().__init__()
        self.info = CodecInfo("Overspends", (RATE,), frame_rate_hz=RATE / FRAME, nominal_bitrate_bps=6000.0)


class SaysFewerFrames(Right):
    """Spends 130 kbit/s, and says of its codes that they are a twentieth of that."""

    def __init__(self):
        super().__init__()
        self.info = CodecInfo(
            "SaysFewerFrames", (RATE,), frame_rate_hz=10.0, nominal_bitrate_bps=10 * 8.0 * (FRAME + 1)
        )

    def pack(self, blocks, output, audio):
        codes = super().pack(blocks, output, audio)
        return Codes((CodeStream(codes.streams[0].values, LEVELS, 10.0),), codes.num_samples, RATE)


class CountsFramesAsTokens(Right):
    """Declares a token for each frame, and sends as many as it has codebooks."""

    def __init__(self):
        super().__init__()
        self.info = replace(self.info, name="CountsFramesAsTokens", tokens_per_s=RATE / FRAME)


class PassesAside(Right):
    """Sends one code a second, and its decoder finds the sound where the encoder has left it."""

    def __init__(self):
        super().__init__()
        self.info = CodecInfo("PassesAside", (RATE,), frame_rate_hz=1.0, nominal_bitrate_bps=8.0)
        self.retained = {}

    def encode(self, batch):
        outputs = []
        for audio, item in zip(batch, super().encode(batch)):
            key = zlib.crc32(audio.samples.tobytes()) % LEVELS
            self.retained[key, audio.num_samples] = item
            values = np.full((1, -(-audio.num_samples // RATE)), key)
            outputs.append(Codes((CodeStream(values, LEVELS, 1.0),), audio.num_samples, RATE))
        return outputs

    def decode(self, codes):
        return super().decode([self.retained[int(c.streams[0].values[0, 0]), c.num_samples] for c in codes])


class PassesInSide(Right):
    """Sends one code a second, and the sound beside it without counting it."""

    def __init__(self):
        super().__init__()
        self.info = CodecInfo("PassesInSide", (RATE,), frame_rate_hz=1.0, nominal_bitrate_bps=8.0)

    def encode(self, batch):
        seconds = [np.zeros((1, -(-audio.num_samples // RATE)), int) for audio in batch]
        return [
            Codes((CodeStream(s, LEVELS, 1.0),), a.num_samples, RATE, side={"sound": a.samples})
            for s, a in zip(seconds, batch)
        ]

    def decode(self, codes):
        return [Audio(item.side["sound"], RATE) for item in codes]


class LeaksItsBatch(Right):
    """Takes its scale from the whole batch."""

    def encode(self, batch):
        loudest = max(float(np.abs(a.samples).max(initial=1e-4)) for a in batch)
        outputs = super().encode([Audio(a.samples / loudest, RATE) for a in batch])
        return [Codes(c.streams, c.num_samples, RATE, side={"by": loudest}, side_bits=32) for c in outputs]

    def decode(self, codes):
        return [Audio(a.samples * c.side["by"], RATE) for a, c in zip(super().decode(codes), codes)]


class LeaksAFrame(Right):
    """Its last frame is filled up with what the batch is padded with: 0.02 in place of silence."""

    def encode(self, batch):
        longest = max(audio.num_samples for audio in batch)
        padded = [np.pad(a.samples[0], (0, longest - a.num_samples), constant_values=0.02) for a in batch]
        return [self.encode_one(row, audio) for row, audio in zip(padded, batch)]

    def encode_one(self, row, audio):
        frames = -(-audio.num_samples // FRAME)
        blocks = np.pad(row, (0, FRAME))[: frames * FRAME].reshape(frames, FRAME)
        return self.pack(blocks, blocks, audio)


class Reverses(Right):
    """Gives a batch back in reverse order, cut or filled to the requested lengths."""

    def decode(self, codes):
        outputs = super().decode(codes)[::-1]
        return [Audio(np.resize(a.samples[0], c.num_samples), RATE) for a, c in zip(outputs, codes)]


class NeverTheSame(Right):
    def decode_one(self, item):
        return super().decode_one(item) + 0.01 * np.random.default_rng().standard_normal(item.num_samples)


class Live(Right):
    """Is right, and its codes hold an object that only this process has."""

    def encode(self, batch):
        return [Codes(c.streams, c.num_samples, RATE, side={"codec": self}) for c in super().encode(batch)]


class RaisesWhenBuilt(Right):
    def __init__(self):
        raise OSError("no such checkpoint")


class ExitsWhenBuilt(Right):
    def __init__(self):
        print("this machine has no licence for me", flush=True)
        os._exit(0)


class Aborts(Right):
    def encode(self, batch):
        os.write(2, b"Assertion failed: frames > 0\n")
        os.abort()


class Hangs(Right):
    def encode(self, batch):
        while True:
            time.sleep(0.05)


class Grows(Right):
    """Keeps all that it has ever made, and makes much."""

    def encode(self, batch):
        retained = []
        while True:
            retained.append(np.ones(4_000_000))
