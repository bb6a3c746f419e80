"""Sound codecs of 600 and 800 bit/s: residual vector quantisers over MDCT frames and over mel frames."""

from __future__ import annotations

from functools import cache

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream
from codec_bench.data import open_source

RATE, HOP, MELS = 16000, 320, 40
WINDOW = np.sin(np.pi * (np.arange(2 * HOP) + 0.5) / (2 * HOP))
BASIS = np.sqrt(2 / HOP) * np.cos(
    np.pi / HOP * (np.arange(2 * HOP)[:, None] + 0.5 + HOP / 2) * (np.arange(HOP)[None] + 0.5)
)


def mdct(samples):
    """Coefficients (frames, HOP); the first frame begins one hop before the sound."""
    frames = -(-len(samples) // HOP) + 1
    padded = np.pad(samples, (HOP, (frames + 1) * HOP - HOP - len(samples)))
    return (np.lib.stride_tricks.sliding_window_view(padded, 2 * HOP)[::HOP] * WINDOW) @ BASIS


def inverse_mdct(rows, length):
    blocks = (rows @ BASIS.T) * WINDOW
    output = np.zeros((len(rows) + 1) * HOP)
    for k, block in enumerate(blocks):
        output[k * HOP : (k + 2) * HOP] += block
    return output[HOP : HOP + length]


@cache
def mel_bank():
    """Triangles (MELS, bins) that are equally wide on the mel scale."""
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    edges = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1)
    frequency = np.arange(HOP + 1) * RATE / (2 * HOP)
    rise = (frequency - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - frequency) / (edges[2:] - edges[1:-1])[:, None]
    return np.maximum(0, np.minimum(rise, fall))


def spectra(samples):
    frames = -(-len(samples) // HOP) + 1
    padded = np.pad(samples, (HOP, (frames + 1) * HOP - HOP - len(samples)))
    return np.fft.rfft(np.lib.stride_tricks.sliding_window_view(padded, 2 * HOP)[::HOP] * WINDOW)


def log_mels(samples):
    return np.log(np.maximum(np.abs(spectra(samples)) @ mel_bank().T, 1e-4))


def nearest(rows, book):
    return ((book**2).sum(axis=1) - 2 * rows @ book.T).argmin(axis=1)


@cache
def training():
    clips = [s for k, s in enumerate(open_source("embedded")) if k % 11]
    return [Audio.read(s.audio).samples[0].astype(np.float64) for s in clips[::2]]


TRAINED = {}
"""The gains of codecs that were made before."""


@cache
def codebooks(analyse, size, seed):
    rng, rest = np.random.default_rng(seed), np.concatenate([analyse(x) for x in training()])
    books = []
    for _ in range(2):
        book = rest[rng.choice(len(rest), size, replace=False)]
        for _ in range(6):
            chosen = nearest(rest, book)
            sums = np.zeros_like(book)
            np.add.at(sums, chosen, rest)
            counts = np.bincount(chosen, minlength=size)[:, None]
            book = np.where(counts > 0, sums / np.maximum(counts, 1), book)
        books.append(book)
        rest = rest - book[nearest(rest, book)]
    return books


class Rvq:
    """Two codebooks of 2^bits vectors, found by k-means from a seed.

    Args:
        bps: 600 or 800. seed: of the codebooks.
    """

    where = "cpu"

    def __init__(self, bps=600, seed=0):
        bits = bps * HOP // RATE // 2
        self.info = CodecInfo(
            f"{type(self).__name__}-{bps}-{seed}", (RATE,), frame_rate_hz=RATE / HOP, nominal_bitrate_bps=float(bps)
        )
        self.size = 2**bits
        self.books, self.gain = codebooks(self.analyse, self.size, seed), 1.0
        self.gain = TRAINED.get(self.info.name) or self.trained_gain()
        TRAINED[self.info.name] = self.gain

    def trained_gain(self):
        """The mean of logarithms lies below the logarithm of the mean."""
        voices = [Audio(x, RATE) for x in training()[:8]]
        powers = [
            sum(float((a.samples**2).sum()) for a in sounds) for sounds in (voices, self.decode(self.encode(voices)))
        ]
        return np.sqrt(powers[0] / powers[1])

    def encode(self, batch):
        outputs = []
        for audio in batch:
            rest, chosen = self.analyse(audio.samples[0].astype(np.float64)), []
            for book in self.books:
                chosen.append(nearest(rest, book))
                rest = rest - book[chosen[-1]]
            outputs.append(Codes((CodeStream(np.array(chosen), self.size, RATE / HOP),), audio.num_samples, RATE))
        return outputs

    def decode(self, codes):
        outputs = []
        for item in codes:
            rows = sum(book[chosen] for book, chosen in zip(self.books, item.streams[0].values))
            outputs.append(Audio(self.gain * self.synthesise(rows, item.num_samples), RATE))
        return outputs


class MdctRvq(Rvq):
    analyse, synthesise = staticmethod(mdct), staticmethod(inverse_mdct)


class MelRvq(Rvq):
    """The phases are those of noise from a seed."""

    analyse = staticmethod(log_mels)

    def synthesise(self, rows, length):
        noise = np.random.default_rng(1).standard_normal(length)
        carrier = spectra(noise)
        smooth = np.abs(carrier) @ mel_bank().T
        gains = (np.exp(rows) / np.maximum(smooth, 1e-6)) @ (mel_bank() / np.maximum(mel_bank().sum(axis=0), 1e-6))
        blocks = np.fft.irfft(carrier * gains, 2 * HOP) * WINDOW
        output = np.zeros((len(blocks) + 1) * HOP)
        for k, block in enumerate(blocks):
            output[k * HOP : (k + 2) * HOP] += block
        return output[HOP : HOP + length]
