"""Coverage, width, size and power of intervals and tests on known designs.

    python bench/bench_intervals.py [--repetitions 2000]

The reference is Student's t over units (speakers where a design has them): its width, and the size and power of the
paired t test. With unequal speakers that test rejects equal systems too often, so its power is taken at our size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from common import Cases, Options, bench, figures
from numpy.random import Generator
from scipy import stats

from codec_bench import interval, paired_test

UNITS = {
    "coverage": "share of intervals with the truth",
    "noted": "share of intervals with a note",
    "width": "width of Student's t over units",
    "size": "share of p below 0.05 of equal systems",
    "power": "share of p below 0.05 of a difference",
    "t_size": "share of p below 0.05 of equal systems by the paired t test over units",
    "t_power": "the share of a difference by that test at the same size",
}


class Drawn(NamedTuple):
    """One study: values, denominators, and clusters, or None without them."""

    values: np.ndarray
    denominators: np.ndarray | None = None
    clusters: np.ndarray | None = None


class Design(NamedTuple):
    """A study: `draw`, the true value without effect, and the effect for power."""

    draw: Callable[[Generator, float], Drawn]
    truth: float
    effect: float


def _mean(law: Callable[[Generator, int], np.ndarray], items: int, rng: Generator, effect: float) -> Drawn:
    return Drawn(law(rng, items) + effect)


def _speakers(sizes: list[int], rng: Generator, effect: float) -> Drawn:
    """Items of speakers, with an intraclass correlation of 0.3."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    values = np.sqrt(0.3) * rng.normal(size=len(sizes))[codes] + np.sqrt(1 - 0.3) * rng.normal(size=len(codes))
    return Drawn(values + effect, clusters=codes)


def _share(right: float, items: int, rng: Generator, effect: float) -> Drawn:
    return Drawn((rng.random(items) < right + effect).astype(float))


def _errors(items: int, looping: float, rng: Generator, effect: float) -> Drawn:
    """Word error rates of 6 %; an item that loops has one to three times as many errors as words."""
    words = np.random.default_rng(items).integers(3, 41, items).astype(float)
    errors = rng.binomial(words.astype(int), 0.06 + effect).astype(float)
    loops = rng.random(items) < looping
    return Drawn(np.where(loops, np.floor(words * rng.uniform(1, 3, items)), errors), words)


def _grid(rng: Generator, items: int) -> np.ndarray:
    return rng.choice([1.0, 2, 3, 4, 5], items, p=[0.05, 0.1, 0.2, 0.4, 0.25])


def _rare(rng: Generator, items: int) -> np.ndarray:
    return np.where(rng.random(items) < 0.03, -20.0, rng.normal(10, 2, items))


UNEQUAL = [2, 3, 4, 5, 8, 10, 12, 15, 20, 25, 30, 40]
DESIGNS = {
    "normal, 20 items": Design(partial(_mean, lambda rng, n: rng.normal(size=n), 20), 0.0, 0.7),
    "normal, 200 items": Design(partial(_mean, lambda rng, n: rng.normal(size=n), 200), 0.0, 0.2),
    "gamma of shape 2, 30 items": Design(partial(_mean, lambda rng, n: rng.gamma(2, size=n), 30), 2.0, 0.8),
    "gamma of shape 2, 300 items": Design(partial(_mean, lambda rng, n: rng.gamma(2, size=n), 300), 2.0, 0.25),
    "ratings 1 to 5, 40 items": Design(partial(_mean, _grid, 40), 3.7, 0.5),
    "10 speakers x 10, ICC 0.3": Design(partial(_speakers, [10] * 10), 0.0, 0.7),
    "12 unequal speakers, ICC 0.3": Design(partial(_speakers, UNEQUAL), 0.0, 0.8),
    "share 0.5, 100 items": Design(partial(_share, 0.5, 100), 0.5, 0.15),
    "share 0.9, 100 items": Design(partial(_share, 0.9, 100), 0.9, -0.12),
    "share 0.98, 1,000 items": Design(partial(_share, 0.98, 1000), 0.98, -0.02),
    "word error rate 6 %, 50 items": Design(partial(_errors, 50, 0.0), 0.06, 0.03),
    "word error rate 6 %, 1,088 items": Design(partial(_errors, 1088, 0.0), 0.06, 0.007),
    "word error rate 6 %, 3,000 items": Design(partial(_errors, 3000, 0.0), 0.06, 0.004),
    "the same, 1 % of the items loop": Design(partial(_errors, 1088, 0.01), float("nan"), 0.02),
    "SI-SDR, 3 % of the items at -20 dB, 30 items": Design(partial(_mean, _rare, 30), 9.1, 3.0),
}


def _truth(design: Design) -> float:
    """The true value, from a large draw where there is no formula."""
    if not np.isnan(design.truth):
        return design.truth
    rng = np.random.default_rng(0)
    drawn = [design.draw(rng, 0.0) for _ in range(4_000)]
    words = sum(d.denominators.sum() for d in drawn if d.denominators is not None)
    return float(sum(d.values.sum() for d in drawn) / words)


def _units(drawn: Drawn) -> np.ndarray:
    """One number per unit, for the plain t: an item's value, or the linearised part of an item or a speaker."""
    if drawn.denominators is not None:
        value = drawn.values.sum() / drawn.denominators.sum()
        return value + (drawn.values - value * drawn.denominators) / drawn.denominators.mean()
    if drawn.clusters is None:
        return drawn.values
    sums, sizes = np.bincount(drawn.clusters, drawn.values), np.bincount(drawn.clusters)
    value = sums.sum() / sizes.sum()
    return value + (sums - value * sizes) / sizes.mean()


def study(name: str, repetitions: int) -> dict[str, float]:
    """What is counted of a design, by the keys of `UNITS`."""
    design, rng = DESIGNS[name], np.random.default_rng(list(name.encode()))
    truth, held, noted, widths = _truth(design), 0, 0, []
    ours_p, t_p = np.empty((2, repetitions)), np.empty((2, repetitions))  # of equal systems, and of a difference
    for n in range(repetitions):
        one, other, better = (design.draw(rng, effect) for effect in (0.0, 0.0, design.effect))
        options = {"denominators": one.denominators, "clusters": one.clusters}
        ours, units = interval(one.values, **options), _units(one)
        held += ours.low <= truth <= ours.high
        noted += ours.note is not None
        spread = 2 * stats.t.ppf(0.975, len(units) - 1) * units.std(ddof=1) / np.sqrt(len(units))
        widths.append((ours.high - ours.low) / spread if spread else np.nan)
        for row, second in enumerate((other, better)):
            ours_p[row, n] = paired_test(one.values, second.values, **options).p
            t_p[row, n] = stats.ttest_1samp(_units(second) - units, 0).pvalue
    size, power = (ours_p <= 0.05).mean(axis=1)
    same_size = np.quantile(t_p[0], size)
    t_size, t_power = np.mean(t_p[0] <= 0.05), np.mean(t_p[1] <= same_size)
    shares = (held / repetitions, noted / repetitions, np.nanmean(widths), size, power, t_size, t_power)
    return {key: float(share) for key, share in zip(UNITS, shares, strict=True)}


@bench(repetitions=2000)
def main(options: Options) -> Cases:
    """One design after the other."""
    for name in DESIGNS:
        values = {UNITS[key]: value for key, value in study(name, options.repetitions).items()}
        yield figures(values, case=f"design: {name}", variant="codec-bench", n=options.repetitions, note="")
