"""False alarms and found regressions of the quality gate, on runs whose truth is known; worst of five stands beside it.

    python bench/bench_gate.py [--repetitions 2000] [--only WORD]

A study draws the baseline's repeats, calibrates a margin, and checks a new run: of the same system, of one that is worse
by the margin, and of one that is worse by margin and detectable regression. Each is checked again with margin 0.
`worst of five`: the largest loss of five runs of the baseline is the threshold that a new run may not pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from common import Cases, Options, bench, figures

from codec_bench.apps.gating.repeats import PairedRuns, measure_spread
from codec_bench.stats.intervals import ratios

ALPHA, POWER = 0.01, 0.8
UNITS = {
    "alarm_zero": "false alarms",
    "worst_alarm": "false alarms, worst of five",
    "found_zero": "regressions found",
    "worst_found": "regressions found, worst of five",
    "alarm": "false alarms at the margin",
    "found": "regressions found beyond the margin",
    "same": "unchanged runs that are the same",
}
CHECKS = (("alarm_zero", 0, 0), ("found_zero", 1, 0), ("alarm", 1, 1), ("found", 2, 1), ("same", 0, 1))
"""What is counted, the loss and the margin, both in detectable regressions."""
WORST = {"alarm_zero": "worst_alarm", "found_zero": "worst_found"}


class Design(NamedTuple):
    """How a study is drawn: items, repeats of the baseline, spread of repeats in an item and of whole runs."""

    items: int
    repeats: int
    within: float
    shared: float = 0.0
    tail: float = 0.0


DESIGNS = {
    "50 items, 2 repeats": Design(50, 2, 0.5),
    "50 items, 5 repeats": Design(50, 5, 0.5),
    "300 items, 3 repeats": Design(300, 3, 0.5),
    "1,088 items, 3 repeats": Design(1088, 3, 0.5),
    "error rate, 200 items, 3 repeats, 1 % loop": Design(200, 3, 0.0, tail=0.01),
    "error rate, 1,088 items, 3 repeats, 1 % loop": Design(1088, 3, 0.0, tail=0.01),
    "error rate, 1,088 items, 5 repeats, 1 % loop": Design(1088, 5, 0.0, tail=0.01),
    "300 items, 3 repeats, runs that share a shift": Design(300, 3, 0.5, shared=0.05),
    "300 items, 5 repeats, runs that share a shift": Design(300, 5, 0.5, shared=0.05),
}


class Study:
    """The items of a study, of which runs are drawn: losses, or errors over words."""

    def __init__(self, design: Design, rng: np.random.Generator) -> None:
        self.design, self.rng = design, rng
        self.hard = rng.normal(size=design.items)
        self.words = rng.integers(3, 41, design.items)

    def run(self, loss: float = 0.0) -> np.ndarray:
        """The parts of a run that is worse by `loss`, `(items, 2)`."""
        design, rng = self.design, self.rng
        shift = loss + design.shared * rng.normal()
        if design.tail:
            rate = np.clip(0.05 * np.exp(0.5 * self.hard) + shift, 0, 1)
            errors = rng.binomial(self.words, rate).astype(float)
            loops = rng.random(design.items) < design.tail
            errors = np.where(loops, np.floor(self.words * rng.uniform(1, 3, design.items)), errors)
            return np.stack([errors, self.words.astype(float)], axis=1)
        values = self.hard + shift + design.within * rng.normal(size=design.items)
        return np.stack([values, np.ones(design.items)], axis=1)


def study(name: str, repetitions: int) -> dict[str, float]:
    """Shares of the studies of a design, by the keys of `UNITS`."""
    design, rng = DESIGNS[name], np.random.default_rng(list(name.encode()))
    counts = dict.fromkeys(UNITS, 0)
    for _ in range(repetitions):
        one = Study(design, rng)
        baseline = [one.run() for _ in range(design.repeats)]
        spread = measure_spread(ratios, baseline, None)
        assert spread is not None
        size = spread.detectable(1 - 2 * ALPHA, POWER) or 0.0
        five = [*baseline, *(one.run() for _ in range(5 - design.repeats))]
        threshold = max(_value(run) for run in five)
        for key, loss, margin in CHECKS:
            run = one.run(loss * size)
            measured_loss = PairedRuns(ratios, baseline, [run], None, higher_is_better=False).interval(1 - 2 * ALPHA)
            assert measured_loss is not None
            counts[key] += measured_loss.high <= margin * size if key == "same" else measured_loss.low > margin * size
            if worst := WORST.get(key):
                counts[worst] += _value(run) > threshold
    return {key: count / repetitions for key, count in counts.items()}


def _value(run: np.ndarray) -> float:
    return float(run[:, 0].sum() / run[:, 1].sum())


@bench(repetitions=2000, only="")
def main(options: Options) -> Cases:
    """A design after the other; `--only` those whose name holds a word."""
    for name in DESIGNS:
        if options.only in name:
            counts = study(name, options.repetitions)
            values = {UNITS[key]: value for key, value in counts.items()}
            yield figures(values, case=f"design: {name}", variant="codec-bench", n=options.repetitions, note="")
