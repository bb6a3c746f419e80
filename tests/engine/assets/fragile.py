"""A feature whose batches are made ready ahead, and which some signals and large batches break; and a metric of it."""

from __future__ import annotations

import os
import signal

import numpy as np

from codec_bench import Metric, Score
from codec_bench.features.base import PreparedFeature

KILLS, RAISES = 8001, 8002
AT_ONCE = 3


class Fragile(PreparedFeature):
    """The mean absolute value of a signal.

    A signal of `KILLS` samples ends the process, one of `RAISES` samples raises.
    """

    name, protocol, rate_hz, where, cached, batch_s = "fragile", "fragile-1", 16_000, "device", False, 60.0

    def prepare(self, signals):
        return [np.array(x) for x in signals]

    def compute_prepared(self, batch):
        sizes = {x.size for x in batch}
        if KILLS in sizes:
            os.kill(os.getpid(), signal.SIGKILL)
        if RAISES in sizes:
            raise ValueError("a signal that raises")
        if len(batch) > AT_ONCE:
            raise MemoryError
        return [{"value": float(np.abs(x).mean())} for x in batch]


class OfFragile(Metric):
    """The value of the feature."""

    name, kind, protocol, signals, where = "of_fragile", "single", "of_fragile-1", False, "inline"
    estimate_features = (f"{__file__}:Fragile",)

    def compute(self, batch):
        return [Score.ok(one.estimate_features[self.estimate_features[0]]["value"], self.protocol) for one in batch]
