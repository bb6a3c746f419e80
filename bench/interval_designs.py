"""What the second study of `bench_intervals.py` draws: ordinary, unequal runs whose truth is known."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec

import numpy as np
from scipy import stats

from codec_bench.metrics.pesq import PesqWb
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import interval_of, ratios
from codec_bench.stats.paired import paired_parts

Rng = np.random.Generator
Told = ParamSpec("Told")
Drawn = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, float]
"""The parts of one or two systems' items, the units, and the truth."""
Draw = Callable[[Rng], Drawn]
Fold = Callable[[np.ndarray], np.ndarray]
Bounds = tuple[float, float | None] | None


LEVEL = 0.95
OWN = "codec-bench"
"""The package's own method."""


class Said(NamedTuple):
    """What a method says of a run: the ends of an interval, a p, and whether the interval has a note."""

    ends: tuple[float, float] | None
    p: float | None = None
    noted: bool = False

    def holds(self, truth: float) -> bool:
        """Whether the interval holds a number."""
        return self.ends is not None and self.ends[0] - 1e-12 <= truth <= self.ends[1] + 1e-12


def own(run: Drawn, fold: Fold = ratios, *, bounds: Bounds = None, share: bool = False) -> Said:
    """The package's interval of one system, or its test of two."""
    a, b, codes, _ = run
    found: Any
    if b is None:
        found, p = interval_of(fold, a, codes, share=share, bounds=bounds), None
    else:
        found = paired_parts(fold, a, b, codes, seed=1, bounds=bounds)
        p = found.p
    ends = None if found.low is None or found.high is None else (found.low, found.high)
    return Said(ends, p, found.note is not None)


SYSTEMS_AT_ONCE = 50


def in_places(
    name: str,
    repetitions: int,
    through: Callable[[int, int, Path], tuple[float, dict[str, list[Any]]]],
    at_once: int = SYSTEMS_AT_ONCE,
) -> Iterator[dict[str, object]]:
    """One row for each place where a run tells its intervals: how often there is one, and how often it holds the truth.

    Args:
        name: of the design. repetitions: how often it is drawn. at_once: how many systems a run has.
        through: given a seed, a number of systems and an empty folder, makes a run; the truth, and the ends that each place tells.
    """
    counts: dict[str, list[int]] = {}
    for begin in range(0, repetitions, at_once):
        with tempfile.TemporaryDirectory() as folder:
            truth, told = through(begin, min(at_once, repetitions - begin), Path(folder))
        for place, ends in told.items():
            count, known = counts.setdefault(place, [0, 0]), [one for one in ends if one is not None]
            count[0] += len(known)
            count[1] += sum(low - 1e-5 <= truth <= high + 1e-5 for low, high in known)
    for place, (given, held) in counts.items():
        yield {"design": name, "place": place, "coverage": held / given if given else None, "given": given / repetitions, "repetitions": repetitions}  # fmt: skip


def design(draw: Callable[Concatenate[Rng, Told], Drawn]) -> Callable[Told, Draw]:
    """Of a function of random numbers and of what a design says of its runs, one of the latter alone, which gives what draws a run."""
    return lambda *told, **named: lambda rng: draw(rng, *told, **named)


def spoken(speakers: int, each: int, rng: Rng) -> np.ndarray:
    """Numbers of one system: speakers and items of equal variance; independent items if a speaker has one."""
    speaker = rng.normal(size=(speakers, 1)) if each > 1 else np.zeros((speakers, 1))
    return speaker + rng.normal(size=(speakers, each))


@design
def _unequal(rng: Rng, sizes: Sequence[int], alike: float, *, two: bool = False) -> Drawn:
    """Speakers with these numbers of items, of whose variance a share is between speakers; one system, or two that are equal."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    sides = [
        rng.normal(0, alike**0.5, len(sizes))[codes] + rng.normal(0, (1 - alike) ** 0.5, len(codes))
        for _ in range(1 + two)
    ]
    tables = [np.stack([side, np.ones(len(codes))], axis=1) for side in sides]
    return tables[0], tables[1] if two else None, codes, 0.0


@design
def _ceiling(rng: Rng, items: int, below: float) -> Drawn:
    """PESQ of 4.644, but for a share of items between 1.5 and 4.5."""
    values = np.where(rng.random(items) < below, rng.uniform(1.5, 4.5, items), 4.644)
    return np.stack([values, np.ones(items)], axis=1), None, None, 4.644 - below * 1.644


@cache
def _mean_near_1(spread: float) -> float:
    """The truth of `_deficit`."""
    grid = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    return float((1 - np.minimum(1, 0.01 * np.exp(spread * grid))).mean())


@design
def _deficit(rng: Rng, items: int, spread: float) -> Drawn:
    """STOI near 1: what is missing is lognormal, 0.01 in the middle."""
    values = 1 - np.minimum(1, 0.01 * np.exp(spread * rng.normal(size=items)))
    return np.stack([values, np.ones(items)], axis=1), None, None, _mean_near_1(spread)


@design
def _rare(
    rng: Rng, items: int, usual: float, rare: float, times: float, *, macro: bool = False, two: bool = False
) -> Drawn:
    """Error rates of which rare items have as many errors as words, or many times as many; of two systems the first alone."""
    words = rng.integers(3, 41, items).astype(float)
    usually = [np.minimum(rng.poisson(usual * words), words).astype(float) for _ in range(1 + two)]
    errors = np.where(rng.random(items) < rare, times * words, usually[0])
    below = np.ones(items) if macro else words
    tables = [np.stack([side / words if macro else side, below], axis=1) for side in (errors, *usually[1:])]
    truth = rare * (times - usual) + (0 if two else usual)
    return tables[0], tables[1] if two else None, None, truth


def _of_speakers(sizes: Sequence[int], mean: float, alike: float, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """The units, and for each item the chance of its speaker; chances are alike within speakers as an ICC of `alike` says."""
    codes, apart = np.repeat(np.arange(len(sizes)), sizes), 1 / alike - 1
    return codes, rng.beta(mean * apart, (1 - mean) * apart, len(sizes))[codes]


@design
def _ceiling_of_speakers(
    rng: Rng, sizes: Sequence[int], below: float, alike: float = 0.3, *, two: bool = False
) -> Drawn:
    """PESQ as `_ceiling`, but speakers differ in how often they are below; of two systems both are so, one by one."""
    tables = []
    for _ in range(1 + two):
        codes, chance = _of_speakers(sizes, below, alike, rng)
        values = np.where(rng.random(len(codes)) < chance, rng.uniform(1.5, 4.5, len(codes)), 4.644)
        tables.append(np.stack([values, np.ones(len(codes))], axis=1))
    return tables[0], tables[1] if two else None, codes, 0.0 if two else 4.644 - below * 1.644


@design
def rare_of_speakers(
    rng: Rng, sizes: Sequence[int], lost: float, alike: float = 0.1, *, macro: bool = False, two: bool = False
) -> Drawn:
    """Error rates of 2 % of which rare items are lost, more of some speakers than of others; of two systems by the first alone."""
    codes, chance = _of_speakers(sizes, lost, alike, rng)
    words = rng.integers(3, 41, len(codes)).astype(float)
    usually = [rng.binomial(words.astype(int), 0.02) for _ in range(1 + two)]
    errors = np.where(rng.random(len(codes)) < chance, words, usually[0])
    below = np.ones(len(codes)) if macro else words
    tables = [np.stack([side / words if macro else side, below], axis=1) for side in (errors, *usually[1:])]
    return tables[0], tables[1] if two else None, codes, lost * 0.98 + (0 if two else 0.02)


@design
def _missing(rng: Rng, speakers: int, each: int, gone: float) -> Drawn:
    """Two systems that do not differ, of which each lacks a share of items; left are those that both have."""
    sides = [spoken(speakers, each, rng).ravel() for _ in range(2)]
    both = (rng.random((2, speakers * each)) >= gone).all(axis=0)
    tables = [np.stack([side, np.ones(len(side))], axis=1)[both] for side in sides]
    _, codes = np.unique(np.repeat(np.arange(speakers), each)[both], return_inverse=True)
    return tables[0], tables[1], codes, 0.0


CHOSEN_ON = ("normal", "exponential")
"""The laws on which the constants for few units were chosen; the others show how they do elsewhere."""
_LAWS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
    "heavy": lambda rng, n: rng.standard_t(3, n),
    "even": lambda rng, n: rng.random(n) - 0.5,
    "Gumbel (skewness 1.1)": lambda rng, n: rng.gumbel(size=n) - np.euler_gamma,
    "Weibull of shape 1.5 (skewness 1.1)": lambda rng, n: rng.weibull(1.5, n) - math.gamma(1 + 1 / 1.5),
    "gamma of shape 2 (skewness 1.4)": lambda rng, n: rng.gamma(2.0, size=n) - 2,
    "lognormal of spread 0.5 (skewness 1.8)": lambda rng, n: rng.lognormal(0, 0.5, n) - math.exp(0.125),
    "gamma of shape 0.5 (skewness 2.8)": lambda rng, n: rng.gamma(0.5, size=n) - 0.5,
    "lognormal of spread 1 (skewness 6.2)": lambda rng, n: rng.lognormal(0, 1, n) - math.exp(0.5),
}


@design
def drawn_of_few(rng: Rng, items: int, law: str, *, two: bool = False) -> Drawn:
    """A mean of few items; of two systems the other one is even and scatters a tenth as much."""
    sides = [_LAWS[law](rng, items), 0.1 * rng.normal(size=items)]
    tables = [np.stack([side, np.ones(items)], axis=1) for side in sides]
    return tables[0], tables[1] if two else None, None, 0.0


@design
def _ties(rng: Rng, items: int, chances: Sequence[float]) -> Drawn:
    """Ratings of 1 to 5 of which most are equal."""
    truth = float(np.dot(np.arange(1, 6), chances))
    return np.stack([rng.choice(5, items, p=chances) + 1.0, np.ones(items)], axis=1), None, None, truth


@design
def _unequal_shares(rng: Rng, speakers: int, most: int, right: float, alike: float, fewest: int) -> Drawn:
    """Answers of speakers with so many questions each, whose chances to be right differ."""
    codes, chance = _of_speakers(rng.integers(fewest, most + 1, speakers).tolist(), right, alike, rng)
    answers = (rng.random(len(codes)) < chance).astype(float)
    return np.stack([answers, np.ones(len(codes))], axis=1), None, codes, right


@design
def _shares_apart(rng: Rng, items: int, first: float, second: float) -> Drawn:
    """The answers of two models to the same questions, of which some are harder for both."""
    limits = stats.norm.ppf([first, second])
    hard = rng.normal(0, 0.6**0.5, items)
    right = [hard + rng.normal(0, 0.4**0.5, items) < limit for limit in limits]
    tables = [np.stack([side, np.ones(items)], axis=1).astype(float) for side in right]
    return tables[0], tables[1], None, first - second


@design
def _nearly_alike(rng: Rng, items: int, rate: float, other: float) -> Drawn:
    """Error rates of two recognisers that make the same errors in most items."""
    words = rng.integers(3, 41, items).astype(float)
    first, again = (np.minimum(rng.poisson(rate * words), words).astype(float) for _ in range(2))
    second = np.where(rng.random(items) < other, again, first)
    return np.stack([first, words], axis=1), np.stack([second, words], axis=1), None, 0.0


@design
def _floor_and_ceiling(rng: Rng, items: int, best: float, worst: float) -> Drawn:
    """PESQ of which many items are at the ceiling and few at the floor; the others lie between 2.5 and 4.5."""
    low, high = PesqWb.range
    which = rng.random(items)
    values = np.where(which < worst, low, np.where(which < worst + best, high, rng.uniform(2.5, 4.5, items)))
    truth = worst * low + best * high + (1 - worst - best) * 3.5
    return np.stack([values, np.ones(items)], axis=1), None, None, truth


@design
def _ordinary_share(rng: Rng, items: int, right: float) -> Drawn:
    """Answers to questions of which each is a unit."""
    return np.stack([rng.random(items) < right, np.ones(items)], axis=1).astype(float), None, None, right


_MOST_WORDS = 34
"""More than any simulated answer has."""


def _counts(right: np.ndarray, rng: Rng) -> np.ndarray:
    """The counts that BLEU adds up, `(items, 10)`, of answers whose words are right with these chances, in runs of words."""
    items = len(right)
    expected = rng.integers(5, 31, items)
    said = np.maximum(1, expected + rng.integers(-3, 3, items))
    matched = np.zeros((items, _MOST_WORDS), bool)
    matched[:, 0] = rng.random(items) < right
    for word in range(1, _MOST_WORDS):  # every second word goes as the one before
        goes = rng.random(items) < 0.5
        matched[:, word] = np.where(goes, matched[:, word - 1], rng.random(items) < right)
    matched &= np.arange(_MOST_WORDS) < said[:, None]
    grams, found = matched, [matched.sum(axis=1)]
    for order in range(1, 4):
        grams = grams[:, :-1] & matched[:, order:]
        found.append(grams.sum(axis=1))
    return np.stack([said, expected, *found, *(np.maximum(said - n, 0) for n in range(4))], axis=1).astype(float)


def _answers(sizes: Sequence[int], right: float, rng: Rng) -> np.ndarray:
    """The counts of answers about questions of speakers with so many each, who are understood unequally well."""
    if max(sizes) == 1:
        return _counts(rng.beta(4 * right, 4 * (1 - right), len(sizes)), rng)
    speaker = rng.beta(8 * right, 8 * (1 - right), len(sizes)).clip(0.01, 0.99)[np.repeat(np.arange(len(sizes)), sizes)]
    return _counts(rng.beta(8 * speaker, 8 * (1 - speaker)), rng)


@cache
def _true(fold: str, clustered: bool, right: float) -> float:
    """The value of a corpus of 120,000 answers."""
    sizes = (2,) * 60_000 if clustered else (1,) * 120_000
    return float(FOLDS[fold](_answers(sizes, right, np.random.default_rng(99)).sum(axis=0)))


@design
def _corpus(rng: Rng, fold: str, sizes: Sequence[int], *right: float) -> Drawn:
    """A value of a corpus such as BLEU, of one system or of two of which so many words are right."""
    clustered = max(sizes) > 1
    codes = np.repeat(np.arange(len(sizes)), sizes) if clustered else None
    sides = [_answers(sizes, of, rng) for of in right]
    truth = [_true(fold, clustered, of) for of in right]
    return sides[0], sides[1] if sides[1:] else None, codes, truth[0] - sum(truth[1:])


def fold_of(name: str) -> Fold:
    """The fold of a design."""
    kind = name.partition(",")[0].removeprefix("difference of ")
    return FOLDS[CORPUS[kind]] if kind in CORPUS else ratios


CORPUS = {"BLEU": "bleu", "caption BLEU-4": "coco-bleu-4"}
FEW = (3, 4, 5, 8, 12, 20)
CHOSEN_LOSSES = (
    (20, 50, 0.01, 0.1),
    (40, 65, 0.01, 0.1),
    (10, 30, 0.02, 0.2),
    (20, 50, 0.03, 0.2),
    (30, 100, 0.007, 0.15),
    (15, 20, 0.02, 0.3),
    (50, 20, 0.01, 0.3),
)
"""Speakers, items of each, the share that is lost, and how alike: the differences on which the constants for losses were chosen."""
_LOSSES_OF_ONE = (
    (12, 60, 0.02, 0.1),
    (25, 40, 0.02, 0.2),
    (60, 30, 0.005, 0.1),
    (8, 25, 0.02, 0.2),
    (24, 80, 0.01, 0.15),
    (6, 60, 0.03, 0.2),
    (20, 50, 0.05, 0.3),
    (20, 50, 0.03, 0.95),
)
_LOSSES = (
    (20, 50, 0.02, 0.2),
    (40, 65, 0.01, 0.1),
    (40, 65, 0.01, 0.2),
    (10, 30, 0.03, 0.2),
    (15, 20, 0.015, 0.15),
    (30, 100, 0.007, 0.15),
    (12, 60, 0.04, 0.1),
    (8, 25, 0.02, 0.2),
    (60, 30, 0.005, 0.2),
    (25, 40, 0.03, 0.15),
    (20, 50, 0.05, 0.2),
    (40, 65, 0.03, 0.2),
    (20, 50, 0.08, 0.3),
    (10, 30, 0.1, 0.2),
    (40, 65, 0.05, 0.3),
    (6, 20, 0.05, 0.2),
    (60, 30, 0.02, 0.5),
    (20, 50, 0.05, 0.3),
    (20, 50, 0.03, 0.95),
    (40, 65, 0.03, 0.95),
    (10, 30, 0.04, 0.5),
    (80, 20, 0.03, 0.95),
)
_RATE, _LOST = (0.0, None), (0.0, 1.0)
_SPEAKERS = {
    "2 x 40, 8 x 2": (40,) * 2 + (2,) * 8,
    "1 x 40, 7 x 1": (40,) + (1,) * 7,
    "3 x 40, 12 x 2": (40,) * 3 + (2,) * 12,
    "4 x 40, 16 x 2": (40,) * 4 + (2,) * 16,
    "1 x 40, 39 x 1": (40,) + (1,) * 39,
    "32, 16, 8, 4, 2, 1": (32, 16, 8, 4, 2, 1),
    "40, 20, 10, 5": (40, 20, 10, 5),
}
_FALLING = (80, 53, 36, 24, 16, 11, 7, 5, 3, 2, 1, 1)
ORDINARY: dict[str, tuple[Draw, Bounds]] = {
    **{
        f"{'difference' if two else 'mean'}, speakers {name}, {alike:g} between them": (_unequal(sizes, alike, two=two), None)
        for two in (False, True)
        for name, sizes in {**_SPEAKERS, f"with {', '.join(map(str, _FALLING))} items": _FALLING}.items()
        for alike in (0.1, 0.5, 0.95)
        if not two or len(sizes) >= 6
    },
    **{
        f"PESQ at the ceiling, {below:.0%} below, {items} items": (_ceiling(items, below), PesqWb.range)
        for below in (0.01, 0.05, 0.2)
        for items in (8, 20, 50, 100, 300, 1000)
    },
    **{
        f"STOI near 1, spread {spread:g}, {items} items": (_deficit(items, spread), (-1.0, 1.0))
        for spread in (1.0, 1.5)
        for items in (20, 50, 100, 300)
    },
    **{
        f"error rate, {usual:.1%}, {rare:.1%} {'lost' if times == 1 else f'looping {times:g}x'}, {items} items": (
            _rare(items, usual, rare, times),
            bounds,
        )
        for usual, rare, times, bounds in (
            (0.02, 0.002, 1, _LOST), (0.005, 0.001, 1, _LOST), (0.03, 0.002, 20, _RATE), (0.03, 0.005, 5, _RATE), (0.02, 0.001, 10, _RATE),
        )
        for items in (20, 50, 100, 300, 500, 1000, 2000, 3000, 5000)
    },
    **{
        f"mean of error rates, 2.0%, 0.2% lost, {items} items": (_rare(items, 0.02, 0.002, 1, macro=True), _LOST)
        for items in (20, 100, 300, 1000)
    },
    **{
        f"difference of error rates, one system {rare:.1%} {'lost' if times == 1 else f'looping {times:g}x'}, {items} items": (
            _rare(items, 0.03, rare, times, two=True),
            bounds,
        )
        for rare, times, bounds in ((0.01, 1, _LOST), (0.003, 10, _RATE))
        for items in (50, 100, 300, 500, 1000, 3000)
    },
    **{
        f"share, {speakers} speakers with {fewest} to {most} questions, {right:g} right, {alike:g} alike": (
            _unequal_shares(speakers, most, right, alike, fewest),
            None,
        )
        for speakers, fewest, most, right, alike in (
            (10, 1, 80, 0.9, 0.8), (20, 1, 39, 0.98, 0.3), (10, 1, 80, 0.9, 0.3), (20, 1, 80, 0.9, 0.8), (40, 1, 80, 0.95, 0.5), (6, 1, 80, 0.7, 0.3),
            (10, 10, 10, 0.99, 0.3), (20, 20, 20, 0.02, 0.5), (6, 1, 80, 0.98, 0.1), (4, 5, 5, 0.7, 0.3), (40, 1, 5, 0.995, 0.1),
        )
    },
    **{f"share, {items} questions, {right:g} right": (_ordinary_share(items, right), None) for items, right in ((3, 0.5), (5, 0.8), (8, 0.8), (8, 0.5))},
    **{
        f"PESQ at the ceiling, {below:.0%} below, speakers {name}": (_ceiling_of_speakers(_SPEAKERS[name], below), PesqWb.range)
        for below in (0.05, 0.2)
        for name in ("2 x 40, 8 x 2", "4 x 40, 16 x 2", "40, 20, 10, 5")
    },
    **{
        f"difference of PESQ at the ceiling, 10% below, speakers {name}": (_ceiling_of_speakers(sizes, 0.1, two=True), PesqWb.range)
        for name, sizes in {"10 x 10": (10,) * 10, "4 x 40, 16 x 2": _SPEAKERS["4 x 40, 16 x 2"]}.items()
    },
    **{
        f"{'mean of error rates' if macro else 'error rate'}, 2.0%, {lost:.1%} lost, speakers {name}": (rare_of_speakers(sizes, lost, macro=macro), _LOST)
        for macro in (False, True)
        for lost in (0.002, 0.01)
        for name, sizes in {"10 x 30": (30,) * 10, "20 x 50": (50,) * 20, "4 x 40, 16 x 2": _SPEAKERS["4 x 40, 16 x 2"]}.items()
    },
    **{
        f"difference, {gone:.0%} of either system's items missing, speakers {speakers} x {each}": (_missing(speakers, each, gone), None)
        for speakers, each, gone in ((10, 10, 0.2), (8, 5, 0.4), (20, 3, 0.5))
    },
    **{
        f"{kind}, 2.0%, {lost:.1%} lost, {alike:g} alike, speakers {speakers} x {each}": (
            rare_of_speakers((each,) * speakers, lost, alike, macro=kind.startswith("mean")),
            _LOST,
        )
        for kind, designs in {"error rate": _LOSSES, "mean of error rates": _LOSSES[-5:]}.items()
        for speakers, each, lost, alike in designs
    },
    **{
        f"difference of error rates, 2.0%, {lost:.1%} lost by one system, {alike:g} alike, speakers {speakers} x {each}": (
            rare_of_speakers((each,) * speakers, lost, alike, two=True),
            _LOST,
        )
        for speakers, each, lost, alike in (*CHOSEN_LOSSES, *_LOSSES_OF_ONE)
    },
    **{
        f"PESQ at the ceiling, {below:.0%} below, {alike:g} alike, speakers {speakers} x {each}": (
            _ceiling_of_speakers((each,) * speakers, below, alike),
            PesqWb.range,
        )
        for speakers, each, below, alike in (
            (20, 50, 0.03, 0.95), (10, 30, 0.05, 0.3), (40, 20, 0.02, 0.5), (12, 20, 0.1, 0.9), (30, 5, 0.05, 0.5),
        )
    },
    **{f"mean, {law}, {items} items": (drawn_of_few(items, law), None) for law in _LAWS for items in FEW},
    **{f"difference, exponential and even, {items} items": (drawn_of_few(items, "exponential", two=True), None) for items in (5, 8, 20)},
    **{
        f"ratings of 1 to 5, {chances[3]:.0%} are 4, {items} items": (_ties(items, chances), (1.0, 5.0))
        for chances in ((0.0, 0.02, 0.08, 0.85, 0.05), (0.02, 0.03, 0.05, 0.6, 0.3), (0.0, 0.0, 0.02, 0.96, 0.02))
        for items in (8, 20, 50)
    },
    **{
        f"{kind}, {right:.0%} of words right, {items} items": (_corpus(fold, (1,) * items, right), None)
        for kind, fold in CORPUS.items()
        for right in (0.02, 0.05, 0.1, 0.2, 0.5, 0.9)
        for items in (8, 20, 50, 100, 300)
    },
    **{
        f"BLEU, {right:.0%} of words right, speakers {name}": (_corpus("bleu", sizes, right), None)
        for right in (0.05, 0.2, 0.5, 0.9)
        for name, sizes in {
            "3 x 20": (20,) * 3, "10 x 10": (10,) * 10, "20 x 40": (40,) * 20, **_SPEAKERS, "6 x 40, 20 x 2": (40,) * 6 + (2,) * 20,
            "8 x 40, 30 x 2": (40,) * 8 + (2,) * 30, "2 x 40, 12 x 10": (40,) * 2 + (10,) * 12,
        }.items()
    },
    **{
        f"difference of BLEU, {a:.0%} and {b:.0%} of words right, {name}": (_corpus("bleu", sizes, a, b), None)
        for a, b in ((0.05, 0.05), (0.05, 0.15), (0.05, 0.4), (0.4, 0.05), (0.2, 0.3), (0.7, 0.75))
        for name, sizes in {
            "20 items": (1,) * 20, "50 items": (1,) * 50, "200 items": (1,) * 200, "speakers 10 x 10": (10,) * 10,
            "speakers 2 x 40, 8 x 2": (40,) * 2 + (2,) * 8, "speakers 8 x 40, 30 x 2": (40,) * 8 + (2,) * 30,
        }.items()
    },
    **{
        f"PESQ, {best:.0%} at the ceiling and 2% at the floor, {items} items": (_floor_and_ceiling(items, best, 0.02), PesqWb.range)
        for best in (0.2, 0.6)
        for items in (20, 50, 300)
    },
    **{
        f"difference of error rates, {rate:.0%} both, {1 - other:.0%} of items alike, {items} items": (_nearly_alike(items, rate, other), _LOST)
        for rate, other in ((0.02, 0.05), (0.1, 0.1))
        for items in (20, 50)
    },
    **{
        f"difference of shares, {first:g} and {second:g} right, {items} questions": (_shares_apart(items, first, second), None)
        for first, second in ((0.9, 0.9), (0.95, 0.85), (0.5, 0.6))
        for items in (20, 50, 200)
    },
}  # fmt: skip
"""The designs of the second study: what draws a run, and the bounds that are declared."""
