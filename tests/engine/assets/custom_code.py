"""Codecs and metrics of a user's own: one that is right, and one for every way of being wrong."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream, Metric, Score
from codec_bench.features.base import Feature


class Quantiser:
    """Uniform quantisation to 4 bits: a codec in 20 lines."""

    info = CodecInfo("quantiser", (16000,), (1,), frame_rate_hz=16000)
    where = "cpu"

    def encode(self, batch):
        return [self._encode(audio) for audio in batch]

    def _encode(self, audio):
        values = np.round((np.clip(audio.samples, -1, 1) + 1) / 2 * 15).astype(int)
        return Codes((CodeStream(values, 16, 16000),), audio.num_samples, audio.sample_rate_hz)

    def decode(self, codes):
        return [Audio(c.streams[0].values / 15 * 2 - 1, c.sample_rate_hz) for c in codes]


class OutOfMemory(Quantiser):
    """Has room for two items at a time."""

    def encode(self, batch):
        if len(batch) > 2:
            raise MemoryError
        return super().encode(batch)


class Narrow(Quantiser):
    """Has no room for anything."""

    def encode(self, batch):
        raise MemoryError


class RaisesForLong(Quantiser):
    """Fails for items over three seconds, and so for every batch that holds one."""

    def encode(self, batch):
        for audio in batch:
            if audio.duration_s > 3:
                raise RuntimeError(f"cannot take {audio.duration_s:.2f} s")
        return super().encode(batch)


class FallsSilent(Quantiser):
    """Gives silence for items over three seconds."""

    def decode(self, codes):
        return [
            a if a.duration_s <= 3 else Audio(np.zeros_like(a.samples), a.sample_rate_hz) for a in super().decode(codes)
        ]


class KillsItsWorker(Quantiser):
    """Ends the process over an item of more than three and a half seconds."""

    def encode(self, batch):
        if any(audio.duration_s > 3.5 for audio in batch):
            os._exit(9)
        return super().encode(batch)


class DiesOnce(Quantiser):
    """Ends the process the first time it is used, as a machine short of memory would."""

    def encode(self, batch):
        marker = Path(os.environ["CODEC_BENCH_TEST_MARKER"])
        if not marker.exists():
            marker.touch()
            os._exit(1)
        return super().encode(batch)


def late():
    """Says to the test's clock that this process is beyond its time limit; returns the file that says so."""
    if "CODEC_BENCH_TEST_LATE" not in os.environ:
        return None
    mark = Path(os.environ["CODEC_BENCH_TEST_LATE"], str(os.getpid()))
    mark.touch()
    return mark


class HangsForLong(Quantiser):
    """Waits for a program that never ends over an item of more than three and a half seconds."""

    def encode(self, batch):
        if any(audio.duration_s > 3.5 for audio in batch):
            late()
            subprocess.run(["sleep", os.environ.get("CODEC_BENCH_TEST_SLEEP", "3600")])
        return super().encode(batch)


class HangsAlways(Quantiser):
    """Never gives anything back."""

    def encode(self, batch):
        late()
        while True:
            time.sleep(60)


class NeedsMarker(Quantiser):
    """Fails until a file is there."""

    def encode(self, batch):
        if not Path(os.environ["CODEC_BENCH_TEST_MARKER"]).exists():
            raise RuntimeError("not yet")
        return super().encode(batch)


class WrongLength(Quantiser):
    def decode(self, codes):
        return [Audio(a.samples[:, :-5], a.sample_rate_hz) for a in super().decode(codes)]


class NotFinite(Quantiser):
    def decode(self, codes):
        return [Audio(a.samples * np.nan, a.sample_rate_hz) for a in super().decode(codes)]


class OutOfRange(Quantiser):
    def _encode(self, audio):
        codes = super()._encode(audio)
        return Codes((CodeStream(codes.streams[0].values + 8, 16, 16000),), codes.num_samples, codes.sample_rate_hz)


class LosesItems(Quantiser):
    def encode(self, batch):
        return super().encode(batch)[:-1]


class LeaksItsBatch(Quantiser):
    """Its output depends on what else is in the batch."""

    def decode(self, codes):
        return [Audio(a.samples * (1 - 0.01 * len(codes)), a.sample_rate_hz) for a in super().decode(codes)]


class NoInfo:
    def encode(self, batch):
        return batch

    decode = encode


class Loudness(Metric):
    """Level of the estimate against the reference in dB; 0 is best."""

    name = "loudness"
    kind = "pair"
    protocol = "loudness/test-1"
    unit = "dB"

    def compute(self, batch):
        return [self._one(item) for item in batch]

    def _one(self, item):
        reference, estimate = np.square(item.reference).mean(), np.square(item.estimate).mean()
        if reference == 0:
            return Score.undefined("the reference is silent", self.protocol)
        return Score.ok(10 * np.log10(estimate / reference + 1e-12), self.protocol)


class WithDetail(Loudness):
    """Its detail holds arrays, a NaN and numpy's numbers."""

    def _one(self, item):
        detail = {"peak": np.float32(0.5), "counts": np.arange(3), "deep": {1: (np.int64(2), None, "x")}, "bad": np.nan}
        return Score.ok(1.0, self.protocol, detail=detail)


class WithObject(Loudness):
    """The detail of one item holds an object."""

    def _one(self, item):
        detail = {"held": object()} if item.id == os.environ["CODEC_BENCH_TEST_ITEM"] else {}
        return Score.ok(1.0, self.protocol, detail=detail)


class WithoutNumber(Loudness):
    """Builds scores that are ok and have no number."""

    def _one(self, item):
        value = None if item.id == os.environ["CODEC_BENCH_TEST_ITEM"] else float("nan")
        return Score(value, "ok", None, self.protocol)


class Median(Loudness):
    aggregate = "median"


class GivesOdd(Feature):
    """Its results hold a tensor, numpy's numbers and a lone surrogate."""

    name, protocol, rate_hz, where = "odd", "odd/1", 16000, "cpu"

    def compute(self, signals):
        import torch

        held = {"transcript": "one \ud800 two", "x": torch.ones(2), "n": np.float32(1), "l": [np.arange(2), (1,)], 3: 4}
        return [held for _ in signals]


class GivesObject(GivesOdd):
    def compute(self, signals):
        return [{"transcript": "one", "x": object()} for _ in signals]


class GivesText(GivesOdd):
    def compute(self, signals):
        return ["one two" for _ in signals]


class HangsForOne(Loudness):
    """Never ends over one item."""

    def _one(self, item):
        while item.id == os.environ["CODEC_BENCH_TEST_ITEM"]:
            late()
            time.sleep(60)
        return super()._one(item)


class SlowToLoad(Loudness):
    """Takes longer to be made than a batch may take."""

    def __init__(self):
        mark = late()
        time.sleep(1.3)  # the pool looks at its workers once a second
        mark.unlink()


class WaitsForEach(Loudness):
    """Waits over each item, so a run lasts as long on every machine."""

    def _one(self, item):
        time.sleep(0.15)
        return super()._one(item)


class RaisesForQuiet(Loudness):
    """Raises in the middle of a batch."""

    name = "raises"

    def _one(self, item):
        if np.abs(item.reference).max() < 0.5:
            raise ZeroDivisionError("too quiet for me")
        return super()._one(item)


class OneWordReader(Feature):
    """A recogniser that hears the word "the" in everything that is not silent."""

    name, rate_hz, where, protocol = "hears-one-word", 16_000, "cpu", "hears-one-word/1"

    def compute(self, signals):
        return [{"transcript": "the" if np.abs(signal).max() > 0 else ""} for signal in signals]
