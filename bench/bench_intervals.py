"""Counts how often intervals contain the truth and tests cry wolf, over simulated runs whose truth is known.

    python bench/bench_intervals.py [--repetitions 1000]

Each repetition draws speakers and items of equal variance, and two systems that do not differ. Drawn are
    mean          one number per item, normal
    bounded mean  one number per item between 0 and 1, 0.9 on average, as of a similarity (beta)
    ratio         the same normal numbers as errors per word, over 3 to 40 words an item
    difference    of two systems' error rates: Poisson errors over 3 to 40 words, and one item in twenty wrong as a whole
    share         items that are right or wrong, nine in ten right
    error rate    of one such system; no method holds below a few hundred items, and the package marks these intervals
Counted too is how many of the package's intervals carry a note. Beside the package's own method stand those that are in use
elsewhere: the percentile bootstrap, the paired bootstrap's p, and the sign test over items.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from common import append_rows, asked
from scipy import stats

from codec_bench.stats.intervals import interval_of, ratios, unit_sums
from codec_bench.stats.paired import paired_parts

KINDS = ("mean", "bounded mean", "ratio", "difference", "share", "error rate")
DESIGNS = ((2, 20), (3, 20), (5, 10), (10, 10), (20, 5), (6, 1), (30, 1), (300, 1))
# What each kind is drawn from; the numbers stay when a kind is added.
SEEDS = {"mean": 0, "ratio": 1, "difference": 2, "share": 3, "error rate": 4, "bounded mean": 5}
RESAMPLES = 400
# Other methods are known from elsewhere; a quarter of the repetitions shows where they stand.
FEWER = 4
LEVEL = 0.95


class Case:
    """One simulated run: the items' parts of one or two systems, the units, and the truth."""

    def __init__(self, kind: str, speakers: int, each: int, rng: np.random.Generator) -> None:
        shape = (speakers, each)
        self.codes = np.repeat(np.arange(speakers), each) if each > 1 else None
        words = rng.integers(3, 41, shape).astype(float)
        ones = np.ones(shape)
        self.b: np.ndarray | None = None
        self.truth = 0.0
        if kind in ("mean", "ratio"):
            below = ones if kind == "mean" else words
            self.a = self._table(_spoken(speakers, each, rng) * below, below)
            self.b = self._table(_spoken(speakers, each, rng) * below, below)
        elif kind == "bounded mean":
            self.a = self._table(_bounded(0.9, speakers, each, rng), ones)
            self.truth = 0.9
        elif kind == "share":
            chance = _shares(0.9, speakers, each, rng)
            self.a = self._table((rng.random(shape) < chance).astype(float), ones)
            self.truth = 0.9
        else:
            self.a = self._table(_errors(words, speakers, rng, each), words)
            self.b = self._table(_errors(words, speakers, rng, each), words) if kind == "difference" else None
            self.truth = 0.0 if kind == "difference" else 0.05 * 0.95 + 0.05

    @staticmethod
    def _table(above: np.ndarray, below: np.ndarray) -> np.ndarray:
        return np.stack([above.ravel(), below.ravel()], axis=1)


def _spoken(speakers: int, each: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of one system: speakers and items of equal variance; independent items if a speaker has one."""
    speaker = rng.normal(size=(speakers, 1)) if each > 1 else np.zeros((speakers, 1))
    return speaker + rng.normal(size=(speakers, each))


def _errors(words: np.ndarray, speakers: int, rng: np.random.Generator, each: int) -> np.ndarray:
    """Errors of one system: one in twenty words, more for some speakers, and every twentieth item wrong as a whole."""
    harder = rng.gamma(4, 0.25, (speakers, 1)) if each > 1 else np.ones((speakers, 1))
    whole = rng.random(words.shape) < 0.05
    return np.where(whole, words, np.minimum(rng.poisson(0.05 * words * harder), words)).astype(float)


def _bounded(mean: float, speakers: int, each: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers between 0 and 1; speakers and items vary alike if a speaker has several."""
    if each == 1:
        return rng.beta(20 * mean, 20 * (1 - mean), (speakers, 1))
    speaker = rng.beta(40 * mean, 40 * (1 - mean), (speakers, 1)).clip(1e-6, 1 - 1e-6)
    return rng.beta(40 * speaker, 40 * (1 - speaker), (speakers, each))


def _shares(mean: float, speakers: int, each: int, rng: np.random.Generator) -> np.ndarray:
    """Each speaker's chance to be right; all the same if a speaker has one item."""
    return rng.beta(20 * mean, 20 * (1 - mean), (speakers, 1)) if each > 1 else np.full((speakers, 1), mean)


Ends = tuple[float, float] | None


def own(case: Case, marked: list[bool] | None = None) -> tuple[Ends, float | None]:
    """The package's interval and p; whether the interval is marked is added to `marked`."""
    if case.b is None:
        found = interval_of(ratios, case.a, case.codes, share=True)
        if found.low is None or found.high is None:
            return None, None
        if marked is not None:
            marked.append(found.note is not None)
        return (found.low, found.high), None
    test = paired_parts(ratios, case.a, case.b, case.codes, seed=1)
    return (None if test.low is None or test.high is None else (test.low, test.high)), test.p


def percentile(case: Case, rng: np.random.Generator) -> tuple[Ends, float | None]:
    """The percentile bootstrap over units; p is twice the smaller share on either side of 0."""
    sides = [unit_sums(table, case.codes) for table in (case.a, case.b) if table is not None]
    count = len(sides[0])
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(float)
    parts = [ratios(weights @ side) for side in sides]
    drawn = parts[0] - parts[1] if len(parts) > 1 else parts[0]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    p = min(1.0, 2 * (1 + min((drawn <= 0).sum(), (drawn >= 0).sum())) / (1 + RESAMPLES))
    return (float(low), float(high)), float(p)


def signs_of_items(case: Case) -> tuple[Ends, float | None]:
    """The sign test over items, whoever spoke them; it gives a p alone."""
    if case.b is None:
        return None, None
    apart = np.sign(case.a[:, 0] - case.b[:, 0])
    wins, losses = int((apart > 0).sum()), int((apart < 0).sum())
    return None, float(stats.binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def study(
    repetitions: int,
    designs: tuple[tuple[int, int], ...] = DESIGNS,
    others: bool = True,
    kinds: tuple[str, ...] = KINDS,
) -> Iterator[dict[str, object]]:
    """One row per design, kind and method: how often the interval held the truth, and how often p was below 0.05.

    The rows of the package's own method also hold how many intervals are marked.
    """
    for number, (speakers, each) in enumerate(designs):
        for kind in kinds:
            place = SEEDS[kind]
            rng, draws = np.random.default_rng([number, place]), np.random.default_rng([7, number, place])
            marked: list[bool] = []
            mine = partial(own, marked=marked)
            methods: dict[str, Callable[[Case], tuple[Ends, float | None]]] = {"codec-bench": mine}
            if others:
                methods |= {
                    "percentile bootstrap": partial(percentile, rng=draws),
                    "sign test of items": signs_of_items,
                }
            counts = {name: np.zeros(4) for name in methods}  # intervals, that held the truth, ps, below 0.05
            single = kind in ("mean", "ratio")
            for repetition in range(repetitions):
                case = Case(kind, speakers, each, rng)
                # Means and ratios of one system for the coverage, their differences for the test.
                sides = (_alone(case), case) if single else (case,)
                for name, method in methods.items():
                    if name != "codec-bench" and repetition % FEWER:
                        continue
                    for side, which in zip(sides, ((True, False), (False, True)) if single else ((True, True),)):
                        ends, p = method(side)
                        if which[0] and ends is not None:
                            counts[name][0] += 1
                            counts[name][1] += ends[0] - 1e-12 <= case.truth <= ends[1] + 1e-12
                        if which[1] and p is not None:
                            counts[name][2] += 1
                            counts[name][3] += p < 0.05
            for name, (given, held, tested, alarms) in counts.items():
                yield {
                    "design": f"{speakers} x {each}", "kind": kind, "method": name,
                    "coverage": held / given if given else None, "alarms": alarms / tested if tested else None,
                    "repetitions": int(max(given, tested)),
                    "marked": sum(marked) / len(marked) if name == "codec-bench" and marked else None,
                }  # fmt: skip


def _alone(case: Case) -> Case:
    other = Case.__new__(Case)
    other.a, other.b, other.codes, other.truth = case.a, None, case.codes, case.truth
    return other


UNITS = {"coverage": "share of intervals with the truth", "alarms": "share of p below 0.05", "marked": "share of marked intervals"}  # fmt: skip


def main() -> None:
    """Runs the study and appends its rows."""
    options = asked(__doc__, repetitions=1000)
    rows: list[dict[str, object]] = []
    for found in study(options.repetitions):
        sys.stdout.write("{design:>9} {kind:>12} {method:>21}  {coverage}  {alarms}  {marked}\n".format_map(found))
        about = {"case": f"{found['kind']}, {found['design']}", "variant": found["method"], "n": found["repetitions"]}
        note = "speakers x items; no difference between the systems"
        values = {unit: found[name] for name, unit in UNITS.items() if found[name] is not None}
        rows += [{**about, "unit": unit, "p50": f"{value:.4f}", "note": note} for unit, value in values.items()]
    append_rows("intervals", rows)


if __name__ == "__main__":
    main()
