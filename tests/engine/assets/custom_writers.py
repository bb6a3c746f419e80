"""A codec, a metric, a feature and a metric of the feature that write into everything they are given, through torch."""

from __future__ import annotations

import numpy as np

from codec_bench import Audio, CodecInfo, Codes, CodeStream, Metric, Score
from codec_bench.features.base import Feature


def spoil(samples):
    """Writes into an array also where it is marked as read-only."""
    import torch

    torch.from_numpy(samples).mul_(-0.3).add_(0.1)


class Writer:
    """Codes 8 bits, and spoils its input."""

    info = CodecInfo("writer", (16000,), (1,), frame_rate_hz=16000)
    where = "cpu"

    def encode(self, batch):
        codes = []
        for audio in batch:
            values = np.round((np.clip(audio.samples, -1, 1) + 1) / 2 * 255).astype(int)
            codes.append(Codes((CodeStream(values, 256, 16000),), audio.num_samples, audio.sample_rate_hz))
            spoil(audio.samples)
        return codes

    def decode(self, codes):
        return [Audio(c.streams[0].values / 255 * 2 - 1, c.sample_rate_hz) for c in codes]


class WritingMetric(Metric):
    """The level of the estimate; spoils both signals."""

    name, kind, rate_hz, protocol = "writing", "pair", 16000, "writing"

    def compute(self, batch):
        scores = []
        for item in batch:
            scores.append(Score.ok(float(np.abs(item.estimate).mean()), self.protocol))
            spoil(item.estimate)
            spoil(item.reference)
        return scores


class WritingFeature(Feature):
    """The mean of a signal, which it spoils."""

    name, rate_hz, protocol = "writing-feature", 16000, "writing-feature"
    where = "cpu"

    def compute(self, signals):
        results = []
        for signal in signals:
            results.append({"level": np.abs(signal).mean(keepdims=True)})
            spoil(signal)
        return results


class WritesIntoFeatures(Metric):
    """The level that the features hold, which it spoils."""

    name, kind, rate_hz, protocol = "writes-features", "pair", 16000, "writes-features"
    signals, where = False, "inline"
    estimate_features = reference_features = ("ge2e",)

    def compute(self, batch):
        scores = []
        for item in batch:
            for role in (item.estimate_features, item.reference_features):
                (result,) = (v for v in role["ge2e"].values() if isinstance(v, np.ndarray))
                scores.append(Score.ok(float(np.abs(result).mean()), self.protocol))
                spoil(result)
            scores.pop()
        return scores
