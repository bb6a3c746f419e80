"""One metric in one file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench import Inputs, Metric, Score


class CrossingDistance(Metric):
    """How far apart the rates of zero crossings are, in crossings per second. Lower is better."""

    name = "crossing_distance"
    kind = "pair"
    rate_hz = 16_000
    unit = "1/s"
    higher_is_better = False
    range = (0.0, None)
    protocol = "crossing_distance/1"

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item."""
        scores = []
        for item in batch:
            crossings = [int(np.sum((x[:-1] < 0) != (x[1:] < 0))) for x in (item.reference, item.estimate)]
            seconds = len(item.reference) / item.rate_hz
            scores.append(Score.ok(abs(crossings[0] - crossings[1]) / seconds, self.protocol))
        return scores
