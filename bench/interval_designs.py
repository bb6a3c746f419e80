"""What the second study of `bench_intervals.py` draws: ordinary, unequal runs whose truth is known."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from codec_bench.metrics.pesq import PesqWb
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import interval_of, ratios
from codec_bench.stats.paired import paired_parts

Rng = np.random.Generator
Drawn = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, float]
"""The parts of one or two systems' items, the units, and the truth."""
Draw = Callable[[Rng], Drawn]
Fold = Callable[[np.ndarray], np.ndarray]
Bounds = tuple[float, float | None] | None
LEVEL = 0.95
OWN = "codec-bench"
"""The package's own method."""
SYSTEMS_AT_ONCE = 50


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


def in_places(
    name: str,
    repetitions: int,
    through: Callable[[int, int, Path], tuple[float, dict[str, list[Any]]]],
    *,
    alone: bool = False,
) -> Iterator[dict[str, object]]:
    """One row for each place where a run tells its intervals: how often there is one, and how often it holds the truth.

    Args:
        name: of the design. repetitions: how often it is drawn. alone: whether a run has one system and not several.
        through: given a seed, a number of systems and an empty folder, makes a run; the truth, and the ends that each
            place tells.
    """
    counts: dict[str, list[int]] = {}
    at_once = 1 if alone else SYSTEMS_AT_ONCE
    for begin in range(0, repetitions, at_once):
        with tempfile.TemporaryDirectory() as folder:
            truth, told = through(begin, min(at_once, repetitions - begin), Path(folder))
        for place, ends in told.items():
            count, known = counts.setdefault(place, [0, 0]), [one for one in ends if one is not None]
            count[0] += len(known)
            count[1] += sum(low - 1e-5 <= truth <= high + 1e-5 for low, high in known)
    for place, (given, held) in counts.items():
        yield {"design": name, "place": place, "coverage": held / given if given else None, "given": given / repetitions, "repetitions": repetitions}  # fmt: skip


def parts(
    sides: Sequence[np.ndarray],
    codes: np.ndarray | None,
    truth: float,
    words: np.ndarray | None = None,
    *,
    macro: bool = False,
) -> Drawn:
    """A run of one system or of two, each a number per item; with `words` over these, item by item if `macro`."""
    if macro:
        sides, words = [side / words for side in sides], None
    below = np.ones(len(sides[0])) if words is None else words
    tables = [np.stack([side, below], axis=1).astype(float) for side in sides]
    return tables[0], tables[1] if tables[1:] else None, codes, truth


def sizes_of(speakers: str) -> tuple[int, ...]:
    """How many items each speaker has:

    `2 x 40, 8 x 2` are two with 40 items and eight with 2, and `20, 10` two with 20 and 10.
    """
    groups = re.findall(r"(?:(\d+) x )?(\d+)", speakers)
    return tuple(int(items) for count, items in groups for _ in range(int(count or 1)))


def spoken(speakers: int, each: int, rng: Rng) -> np.ndarray:
    """Numbers of one system: speakers and items of equal variance; independent items if a speaker has one."""
    speaker = rng.normal(size=(speakers, 1)) if each > 1 else np.zeros((speakers, 1))
    return speaker + rng.normal(size=(speakers, each))


def _unequal(rng: Rng, speakers: str, alike: float, *, two: bool = False) -> Drawn:
    """Items of whose variance a share is between speakers; one system, or two that are equal."""
    sizes = sizes_of(speakers)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    sides = [
        rng.normal(0, alike**0.5, len(sizes))[codes] + rng.normal(0, (1 - alike) ** 0.5, len(codes))
        for _ in range(1 + two)
    ]
    return parts(sides, codes, 0.0)


def _ceiling(rng: Rng, items: int, below: float) -> Drawn:
    """PESQ of 4.644, but for a share of items between 1.5 and 4.5."""
    values = np.where(rng.random(items) < below, rng.uniform(1.5, 4.5, items), 4.644)
    return parts([values], None, 4.644 - below * 1.644)


@cache
def _mean_near_1(spread: float) -> float:
    """The truth of `_deficit`."""
    grid = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    return float((1 - np.minimum(1, 0.01 * np.exp(spread * grid))).mean())


def _deficit(rng: Rng, items: int, spread: float) -> Drawn:
    """STOI near 1: what is missing is lognormal, 0.01 in the middle."""
    values = 1 - np.minimum(1, 0.01 * np.exp(spread * rng.normal(size=items)))
    return parts([values], None, _mean_near_1(spread))


def _rare(
    rng: Rng, items: int, usual: float, rare: float, times: float = 1, *, macro: bool = False, two: bool = False
) -> Drawn:
    """Error rates of which rare items have as many errors as words, or many times as many; of two systems the first
    alone.
    """
    words = rng.integers(3, 41, items).astype(float)
    usually = [np.minimum(rng.poisson(usual * words), words).astype(float) for _ in range(1 + two)]
    errors = np.where(rng.random(items) < rare, times * words, usually[0])
    truth = rare * (times - usual) + (0 if two else usual)
    return parts([errors, *usually[1:]], None, truth, words, macro=macro)


def _of_speakers(sizes: Sequence[int], mean: float, alike: float, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """The units, and for each item the chance of its speaker; chances are alike within speakers as an ICC of `alike`
    says.
    """
    codes, apart = np.repeat(np.arange(len(sizes)), sizes), 1 / alike - 1
    return codes, rng.beta(mean * apart, (1 - mean) * apart, len(sizes))[codes]


def _ceiling_of_speakers(rng: Rng, speakers: str, below: float, alike: float = 0.3, *, two: bool = False) -> Drawn:
    """PESQ as `_ceiling`, but speakers differ in how often they are below; of two systems both are so, one by one."""
    sides = []
    for _ in range(1 + two):
        codes, chance = _of_speakers(sizes_of(speakers), below, alike, rng)
        sides.append(np.where(rng.random(len(codes)) < chance, rng.uniform(1.5, 4.5, len(codes)), 4.644))
    return parts(sides, codes, 0.0 if two else 4.644 - below * 1.644)


def _rare_of_speakers(
    rng: Rng, speakers: str, lost: float, alike: float = 0.1, *, macro: bool = False, two: bool = False
) -> Drawn:
    """Error rates of 2 % of which rare items are lost, more of some speakers than of others; of two systems by the
    first alone.
    """
    codes, chance = _of_speakers(sizes_of(speakers), lost, alike, rng)
    words = rng.integers(3, 41, len(codes)).astype(float)
    usually = [rng.binomial(words.astype(int), 0.02) for _ in range(1 + two)]
    errors = np.where(rng.random(len(codes)) < chance, words, usually[0])
    return parts([errors, *usually[1:]], codes, lost * 0.98 + (0 if two else 0.02), words, macro=macro)


def _missing(rng: Rng, speakers: str, gone: float) -> Drawn:
    """Two systems that do not differ, of which each lacks a share of items; left are those that both have."""
    sizes = sizes_of(speakers)
    sides = [spoken(len(sizes), sizes[0], rng).ravel() for _ in range(2)]
    both = (rng.random((2, sum(sizes))) >= gone).all(axis=0)
    _, codes = np.unique(np.repeat(np.arange(len(sizes)), sizes)[both], return_inverse=True)
    return parts([side[both] for side in sides], codes, 0.0)


# The constants for few units were chosen on the first two; the others show how they do elsewhere.
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


def _drawn_of_few(rng: Rng, items: int, law: str, *, two: bool = False) -> Drawn:
    """A mean of few items; of two systems the other one is even and scatters a tenth as much."""
    sides = [_LAWS[law](rng, items), 0.1 * rng.normal(size=items)]
    return parts(sides[: 1 + two], None, 0.0)


def _ties(rng: Rng, items: int, chances: Sequence[float]) -> Drawn:
    """Ratings of 1 to 5 of which most are equal."""
    return parts([rng.choice(5, items, p=chances) + 1.0], None, float(np.dot(np.arange(1, 6), chances)))


def _unequal_shares(rng: Rng, speakers: int, most: int, right: float, alike: float, fewest: int) -> Drawn:
    """Answers of speakers with so many questions each, whose chances to be right differ."""
    codes, chance = _of_speakers(rng.integers(fewest, most + 1, speakers).tolist(), right, alike, rng)
    return parts([rng.random(len(codes)) < chance], codes, right)


def _shares_apart(rng: Rng, items: int, first: float, second: float) -> Drawn:
    """The answers of two models to the same questions, of which some are harder for both."""
    limits = stats.norm.ppf([first, second])
    hard = rng.normal(0, 0.6**0.5, items)
    right = [hard + rng.normal(0, 0.4**0.5, items) < limit for limit in limits]
    return parts(right, None, first - second)


def _nearly_alike(rng: Rng, items: int, rate: float, alike: float) -> Drawn:
    """Error rates of two recognisers that make the same errors in a share of items."""
    words = rng.integers(3, 41, items).astype(float)
    first, again = (np.minimum(rng.poisson(rate * words), words).astype(float) for _ in range(2))
    return parts([first, np.where(rng.random(items) < 1 - alike, again, first)], None, 0.0, words)


def _floor_and_ceiling(rng: Rng, items: int, best: float, worst: float) -> Drawn:
    """PESQ of which many items are at the ceiling and few at the floor; the others lie between 2.5 and 4.5."""
    low, high = PesqWb.range
    which = rng.random(items)
    values = np.where(which < worst, low, np.where(which < worst + best, high, rng.uniform(2.5, 4.5, items)))
    return parts([values], None, worst * low + best * high + (1 - worst - best) * 3.5)


def _ordinary_share(rng: Rng, items: int, right: float) -> Drawn:
    """Answers to questions of which each is a unit."""
    return parts([rng.random(items) < right], None, right)


_MOST_WORDS = 34
"""More than any simulated answer has."""


def _counts(right: np.ndarray, rng: Rng) -> np.ndarray:
    """The counts that BLEU adds up, `(items, 10)`, of answers whose words are right with these chances, in runs of
    words.
    """
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


def _corpus(rng: Rng, fold: str, who: str, right: float, other: float | None = None) -> Drawn:
    """A value of a corpus such as BLEU, of one system or of two of which so many words are right; of speakers, or of so
    many items.
    """
    clustered = who.startswith("speakers")
    sizes = sizes_of(who) if clustered else (1,) * int(who.split()[0])
    codes = np.repeat(np.arange(len(sizes)), sizes) if clustered else None
    rates = [right] if other is None else [right, other]
    sides = [_answers(sizes, rate, rng) for rate in rates]
    truth = [_true(fold, clustered, rate) for rate in rates]
    return sides[0], sides[1] if sides[1:] else None, codes, truth[0] - sum(truth[1:])


def fold_of(name: str) -> Fold:
    """The fold of a design."""
    kind = name.partition(",")[0].removeprefix("difference of ")
    return FOLDS[CORPUS[kind]] if kind in CORPUS else ratios


CORPUS = {"BLEU": "bleu", "caption BLEU-4": "coco-bleu-4"}
_RATE, _LOST = (0.0, None), (0.0, 1.0)
Row = dict[str, Any]


def grid(rows: Iterable[Row] = ({},), /, **choices: Sequence[Any]) -> list[Row]:
    """Each row with every combination of some choices."""
    return [{**row, **dict(zip(choices, one))} for row in rows for one in product(*choices.values())]


def listed(names: str, *rows: Sequence[Any]) -> list[Row]:
    """Rows of a table with these columns."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def designs(
    name: str, draw: Callable[..., Drawn], bounds: Bounds, rows: Iterable[Row], **fixed: Any
) -> dict[str, tuple[Draw, Bounds]]:
    """What draws a run of each row and the bounds that are declared, by a name that tells the row."""
    return {name.format(**row): (partial(draw, **row, **fixed), bounds) for row in rows}


_ALIKE, _ITEMS = (0.1, 0.5, 0.95), (20, 50, 100, 300, 500, 1000, 2000, 3000, 5000)
_MANY = ("2 x 40, 8 x 2", "1 x 40, 7 x 1", "3 x 40, 12 x 2", "4 x 40, 16 x 2", "1 x 40, 39 x 1", "32, 16, 8, 4, 2, 1")
_FALLING = "with 80, 53, 36, 24, 16, 11, 7, 5, 3, 2, 1, 1 items"
# How many items are lost together was chosen on the first seven of these differences.
_LOSSES_OF_ONE = listed(
    "speakers lost alike",
    ("20 x 50", 0.01, 0.1), ("40 x 65", 0.01, 0.1), ("10 x 30", 0.02, 0.2), ("20 x 50", 0.03, 0.2), ("30 x 100", 0.007, 0.15), ("15 x 20", 0.02, 0.3),
    ("50 x 20", 0.01, 0.3), ("12 x 60", 0.02, 0.1), ("25 x 40", 0.02, 0.2), ("60 x 30", 0.005, 0.1), ("8 x 25", 0.02, 0.2), ("24 x 80", 0.01, 0.15),
    ("6 x 60", 0.03, 0.2), ("20 x 50", 0.05, 0.3), ("20 x 50", 0.03, 0.95),
)  # fmt: skip
_LOSSES = listed(
    "speakers lost alike",
    ("20 x 50", 0.02, 0.2), ("40 x 65", 0.01, 0.1), ("40 x 65", 0.01, 0.2), ("10 x 30", 0.03, 0.2), ("15 x 20", 0.015, 0.15), ("30 x 100", 0.007, 0.15),
    ("12 x 60", 0.04, 0.1), ("8 x 25", 0.02, 0.2), ("60 x 30", 0.005, 0.2), ("25 x 40", 0.03, 0.15), ("20 x 50", 0.05, 0.2), ("40 x 65", 0.03, 0.2),
    ("20 x 50", 0.08, 0.3), ("10 x 30", 0.1, 0.2), ("40 x 65", 0.05, 0.3), ("6 x 20", 0.05, 0.2), ("60 x 30", 0.02, 0.5), ("20 x 50", 0.05, 0.3),
    ("20 x 50", 0.03, 0.95), ("40 x 65", 0.03, 0.95), ("10 x 30", 0.04, 0.5), ("80 x 20", 0.03, 0.95),
)  # fmt: skip
_LOST_OF = grid(lost=(0.002, 0.01), speakers=("10 x 30", "20 x 50", "4 x 40, 16 x 2"))
_WORDS = grid(right=(0.02, 0.05, 0.1, 0.2, 0.5, 0.9), who=[f"{items} items" for items in (8, 20, 50, 100, 300)])
ORDINARY: dict[str, tuple[Draw, Bounds]] = {
    **designs("mean, speakers {speakers}, {alike:g} between them", _unequal, None, grid(speakers=(*_MANY, "40, 20, 10, 5", _FALLING), alike=_ALIKE)),
    **designs("difference, speakers {speakers}, {alike:g} between them", _unequal, None, grid(speakers=(*_MANY, _FALLING), alike=_ALIKE), two=True),
    **designs(
        "PESQ at the ceiling, {below:.0%} below, {items} items", _ceiling, PesqWb.range,
        grid(below=(0.01, 0.05, 0.2), items=(8, 20, 50, 100, 300, 1000)),
    ),
    **designs("STOI near 1, spread {spread:g}, {items} items", _deficit, (-1.0, 1.0), grid(spread=(1.0, 1.5), items=(20, 50, 100, 300))),
    **designs(
        "error rate, {usual:.1%}, {rare:.1%} lost, {items} items", _rare, _LOST,
        grid(listed("usual rare", (0.02, 0.002), (0.005, 0.001)), items=_ITEMS),
    ),
    **designs(
        "error rate, {usual:.1%}, {rare:.1%} looping {times:g}x, {items} items", _rare, _RATE,
        grid(listed("usual rare times", (0.03, 0.002, 20), (0.03, 0.005, 5), (0.02, 0.001, 10)), items=_ITEMS),
    ),
    **designs(
        "mean of error rates, {usual:.1%}, {rare:.1%} lost, {items} items", _rare, _LOST,
        grid(usual=(0.02,), rare=(0.002,), items=(20, 100, 300, 1000)), macro=True,
    ),
    **designs(
        "difference of error rates, one system {rare:.1%} lost, {items} items", _rare, _LOST,
        grid(rare=(0.01,), items=(50, 100, 300, 500, 1000, 3000)), usual=0.03, two=True,
    ),
    **designs(
        "difference of error rates, one system {rare:.1%} looping {times:g}x, {items} items", _rare, _RATE,
        grid(rare=(0.003,), times=(10,), items=(50, 100, 300, 500, 1000, 3000)), usual=0.03, two=True,
    ),
    **designs(
        "share, {speakers} speakers with {fewest} to {most} questions, {right:g} right, {alike:g} alike", _unequal_shares, None,
        listed(
            "speakers fewest most right alike",
            (10, 1, 80, 0.9, 0.8), (20, 1, 39, 0.98, 0.3), (10, 1, 80, 0.9, 0.3), (20, 1, 80, 0.9, 0.8), (40, 1, 80, 0.95, 0.5), (6, 1, 80, 0.7, 0.3),
            (10, 10, 10, 0.99, 0.3), (20, 20, 20, 0.02, 0.5), (6, 1, 80, 0.98, 0.1), (4, 5, 5, 0.7, 0.3), (40, 1, 5, 0.995, 0.1),
        ),
    ),
    **designs("share, {items} questions, {right:g} right", _ordinary_share, None, listed("items right", (3, 0.5), (5, 0.8), (8, 0.8), (8, 0.5))),
    **designs(
        "PESQ at the ceiling, {below:.0%} below, speakers {speakers}", _ceiling_of_speakers, PesqWb.range,
        grid(below=(0.05, 0.2), speakers=("2 x 40, 8 x 2", "4 x 40, 16 x 2", "40, 20, 10, 5")),
    ),
    **designs(
        "difference of PESQ at the ceiling, {below:.0%} below, speakers {speakers}", _ceiling_of_speakers, PesqWb.range,
        grid(below=(0.1,), speakers=("10 x 10", "4 x 40, 16 x 2")), two=True,
    ),
    **designs("error rate, 2.0%, {lost:.1%} lost, speakers {speakers}", _rare_of_speakers, _LOST, _LOST_OF),
    **designs("mean of error rates, 2.0%, {lost:.1%} lost, speakers {speakers}", _rare_of_speakers, _LOST, _LOST_OF, macro=True),
    **designs(
        "difference, {gone:.0%} of either system's items missing, speakers {speakers}", _missing, None,
        listed("speakers gone", ("10 x 10", 0.2), ("8 x 5", 0.4), ("20 x 3", 0.5)),
    ),
    **designs("error rate, 2.0%, {lost:.1%} lost, {alike:g} alike, speakers {speakers}", _rare_of_speakers, _LOST, _LOSSES),
    **designs(
        "mean of error rates, 2.0%, {lost:.1%} lost, {alike:g} alike, speakers {speakers}", _rare_of_speakers, _LOST, _LOSSES[-5:], macro=True
    ),
    **designs(
        "difference of error rates, 2.0%, {lost:.1%} lost by one system, {alike:g} alike, speakers {speakers}", _rare_of_speakers, _LOST,
        _LOSSES_OF_ONE, two=True,
    ),
    **designs(
        "PESQ at the ceiling, {below:.0%} below, {alike:g} alike, speakers {speakers}", _ceiling_of_speakers, PesqWb.range,
        listed(
            "speakers below alike",
            ("20 x 50", 0.03, 0.95), ("10 x 30", 0.05, 0.3), ("40 x 20", 0.02, 0.5), ("12 x 20", 0.1, 0.9), ("30 x 5", 0.05, 0.5),
        ),
    ),
    **designs("mean, {law}, {items} items", _drawn_of_few, None, grid(law=tuple(_LAWS), items=(3, 4, 5, 8, 12, 20))),
    **designs("difference, {law} and even, {items} items", _drawn_of_few, None, grid(law=("exponential",), items=(5, 8, 20)), two=True),
    **designs(
        "ratings of 1 to 5, {chances[3]:.0%} are 4, {items} items", _ties, (1.0, 5.0),
        grid(chances=((0.0, 0.02, 0.08, 0.85, 0.05), (0.02, 0.03, 0.05, 0.6, 0.3), (0.0, 0.0, 0.02, 0.96, 0.02)), items=(8, 20, 50)),
    ),
    **designs("BLEU, {right:.0%} of words right, {who}", _corpus, None, _WORDS, fold="bleu"),
    **designs("caption BLEU-4, {right:.0%} of words right, {who}", _corpus, None, _WORDS, fold="coco-bleu-4"),
    **designs(
        "BLEU, {right:.0%} of words right, {who}", _corpus, None,
        grid(
            right=(0.05, 0.2, 0.5, 0.9),
            who=[f"speakers {one}" for one in ("3 x 20", "10 x 10", "20 x 40", *_MANY, "40, 20, 10, 5", "6 x 40, 20 x 2", "8 x 40, 30 x 2", "2 x 40, 12 x 10")],
        ),
        fold="bleu",
    ),
    **designs(
        "difference of BLEU, {right:.0%} and {other:.0%} of words right, {who}", _corpus, None,
        grid(
            listed("right other", (0.05, 0.05), (0.05, 0.15), (0.05, 0.4), (0.4, 0.05), (0.2, 0.3), (0.7, 0.75)),
            who=("20 items", "50 items", "200 items", "speakers 10 x 10", "speakers 2 x 40, 8 x 2", "speakers 8 x 40, 30 x 2"),
        ),
        fold="bleu",
    ),
    **designs(
        "PESQ, {best:.0%} at the ceiling and {worst:.0%} at the floor, {items} items", _floor_and_ceiling, PesqWb.range,
        grid(best=(0.2, 0.6), worst=(0.02,), items=(20, 50, 300)),
    ),
    **designs(
        "difference of error rates, {rate:.0%} both, {alike:.0%} of items alike, {items} items", _nearly_alike, _LOST,
        grid(listed("rate alike", (0.02, 0.95), (0.1, 0.9)), items=(20, 50)),
    ),
    **designs(
        "difference of shares, {first:g} and {second:g} right, {items} questions", _shares_apart, None,
        grid(listed("first second", (0.9, 0.9), (0.95, 0.85), (0.5, 0.6)), items=(20, 50, 200)),
    ),
}  # fmt: skip
"""The designs of the second study."""
