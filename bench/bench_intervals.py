"""Counts how often intervals contain the truth and tests cry wolf, over simulated runs whose truth is known.

    python bench/bench_intervals.py [--repetitions 1000] [--recorded 200] [--only WORD]

The first study draws speakers with as many items each, of equal variance, and two systems that do not differ. Drawn are
    mean          one number per item, normal
    bounded mean  one number per item between 0 and 1, 0.9 on average, as of a similarity (beta)
    ratio         the same normal numbers as errors per word, over 3 to 40 words an item
    difference    of two systems' means per word, as the ratios
    share         items that are right or wrong, nine in ten right
    error rate    Poisson errors over 3 to 40 words, and one item in twenty lost; at worst an item is lost, as the bounds say
Beside the package's own method stand those that are in use elsewhere: the percentile bootstrap, the paired bootstrap's p, and
the sign test over items.

The second study draws what is ordinary and unequal (`ORDINARY`): few speakers with most of the items, scores at a ceiling, error
rates of which rare items are lost or looped, the mean of such rates, differences where one system alone fails,
shares of speakers of unequal size, and BLEU of answers of which few or most words are right. Counted is in how many runs there is an
interval, and how many of these hold the truth.

The third study (`RECORDED`) takes some of these designs the whole way: the scores are written into a record, one system for each repetition,
and the intervals are read from `summary.json` and from the page.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from common import append_rows, asked
from scipy import stats

from codec_bench.report.results import write_results
from codec_bench.stats.corpus import FOLDS
from codec_bench.stats.intervals import interval_of, ratios, unit_sums
from codec_bench.stats.paired import paired_parts
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

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
        self.bounds: tuple[float, float | None] | None = None
        if kind in ("mean", "ratio", "difference"):
            below = ones if kind == "mean" else words
            self.a = self._table(_spoken(speakers, each, rng) * below, below)
            self.b = self._table(_spoken(speakers, each, rng) * below, below)
        elif kind == "bounded mean":
            self.a = self._table(_bounded(0.9, speakers, each, rng), ones)
            self.truth = 0.9
            self.bounds = (0.0, 1.0)
        elif kind == "share":
            chance = _shares(0.9, speakers, each, rng)
            self.a = self._table((rng.random(shape) < chance).astype(float), ones)
            self.truth = 0.9
        else:
            self.a = self._table(_errors(words, speakers, rng, each), words)
            self.bounds = (0.0, 1.0)
            self.truth = 0.05 * 0.95 + 0.05

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
        found = interval_of(ratios, case.a, case.codes, share=True, bounds=case.bounds)
        if found.low is None or found.high is None:
            return None, None
        if marked is not None:
            marked.append(found.note is not None)
        return (found.low, found.high), None
    test = paired_parts(ratios, case.a, case.b, case.codes, seed=1, bounds=case.bounds)
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
    other.a, other.b, other.codes, other.truth, other.bounds = case.a, None, case.codes, case.truth, case.bounds
    return other


Drawn = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, float]
"""The parts of one or two systems' items, the units, and the truth."""


def _unequal(sizes: Sequence[int], alike: float, *, two: bool = False) -> Callable[[np.random.Generator], Drawn]:
    """Speakers with these numbers of items, of whose variance a share is between speakers; one system, or two that are equal."""
    codes = np.repeat(np.arange(len(sizes)), sizes)

    def draw(rng: np.random.Generator) -> Drawn:
        sides = [
            rng.normal(0, alike**0.5, len(sizes))[codes] + rng.normal(0, (1 - alike) ** 0.5, len(codes))
            for _ in range(1 + two)
        ]
        tables = [np.stack([side, np.ones(len(codes))], axis=1) for side in sides]
        return tables[0], tables[1] if two else None, codes, 0.0

    return draw


def _ceiling(items: int, below: float) -> Callable[[np.random.Generator], Drawn]:
    """PESQ of 4.644, but for a share of items between 1.5 and 4.5."""

    def draw(rng: np.random.Generator) -> Drawn:
        values = np.where(rng.random(items) < below, rng.uniform(1.5, 4.5, items), 4.644)
        return np.stack([values, np.ones(items)], axis=1), None, None, 4.644 - below * 1.644

    return draw


def _deficit(items: int, spread: float) -> Callable[[np.random.Generator], Drawn]:
    """STOI near 1: what is missing is lognormal, 0.01 in the middle."""
    grid = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    truth = float((1 - np.minimum(1, 0.01 * np.exp(spread * grid))).mean())

    def draw(rng: np.random.Generator) -> Drawn:
        values = 1 - np.minimum(1, 0.01 * np.exp(spread * rng.normal(size=items)))
        return np.stack([values, np.ones(items)], axis=1), None, None, truth

    return draw


def _rare(
    items: int, usual: float, rare: float, times: float, *, macro: bool = False, two: bool = False
) -> Callable[[np.random.Generator], Drawn]:
    """Error rates of which rare items have as many errors as words, or many times as many; of two systems the first alone."""

    def draw(rng: np.random.Generator) -> Drawn:
        words = rng.integers(3, 41, items).astype(float)
        usually = [np.minimum(rng.poisson(usual * words), words).astype(float) for _ in range(1 + two)]
        errors = np.where(rng.random(items) < rare, times * words, usually[0])
        below = np.ones(items) if macro else words
        tables = [np.stack([side / words if macro else side, below], axis=1) for side in (errors, *usually[1:])]
        truth = rare * (times - usual) + (0 if two else usual)
        return tables[0], tables[1] if two else None, None, truth

    return draw


def _unequal_shares(speakers: int, most: int, right: float, alike: float) -> Callable[[np.random.Generator], Drawn]:
    """Answers of speakers with 1 to `most` questions each, whose chances to be right differ."""

    def draw(rng: np.random.Generator) -> Drawn:
        codes = np.repeat(np.arange(speakers), rng.integers(1, most + 1, speakers))
        apart = 1 / alike - 1
        chance = rng.beta(right * apart, (1 - right) * apart, speakers)[codes]
        return (
            np.stack([rng.random(len(codes)) < chance, np.ones(len(codes))], axis=1).astype(float),
            None,
            codes,
            right,
        )

    return draw


_MOST_WORDS = 34
"""More than any simulated answer has."""


def _counts(right: np.ndarray, rng: np.random.Generator) -> np.ndarray:
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


def _answers(sizes: Sequence[int], right: float, rng: np.random.Generator) -> np.ndarray:
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


def _corpus(fold: str, sizes: Sequence[int], *right: float) -> Callable[[np.random.Generator], Drawn]:
    """A value of a corpus such as BLEU, of one system or of two of which so many words are right."""
    clustered = max(sizes) > 1
    codes = np.repeat(np.arange(len(sizes)), sizes) if clustered else None

    def draw(rng: np.random.Generator) -> Drawn:
        sides = [_answers(sizes, of, rng) for of in right]
        truth = [_true(fold, clustered, of) for of in right]
        return sides[0], sides[1] if sides[1:] else None, codes, truth[0] - sum(truth[1:])

    return draw


def _fold_of(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The fold of a design."""
    kind = name.partition(",")[0].removeprefix("difference of ")
    return FOLDS[_CORPUS[kind]] if kind in _CORPUS else ratios


_CORPUS = {"BLEU": "bleu", "caption BLEU-4": "coco-bleu-4"}
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
ORDINARY: dict[str, tuple[Callable[[np.random.Generator], Drawn], tuple[float, float | None] | None]] = {
    **{
        f"{'difference' if two else 'mean'}, speakers {name}, {alike:g} between them": (_unequal(sizes, alike, two=two), None)
        for two in (False, True)
        for name, sizes in _SPEAKERS.items()
        for alike in (0.1, 0.5, 0.95)
        if not two or len(sizes) >= 6
    },
    **{
        f"PESQ at the ceiling, {below:.0%} below, {items} items": (_ceiling(items, below), (1.0, 4.65))
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
        f"share, {speakers} speakers with 1 to {most} questions, {right:g} right, {alike:g} alike": (
            _unequal_shares(speakers, most, right, alike),
            None,
        )
        for speakers, most, right, alike in (
            (10, 80, 0.9, 0.8), (20, 39, 0.98, 0.3), (10, 80, 0.9, 0.3), (20, 80, 0.9, 0.8), (40, 80, 0.95, 0.5), (6, 80, 0.7, 0.3),
        )
    },
    **{
        f"{kind}, {right:.0%} of words right, {items} items": (_corpus(fold, (1,) * items, right), None)
        for kind, fold in _CORPUS.items()
        for right in (0.05, 0.2, 0.5, 0.9)
        for items in (20, 50, 100, 300)
    },
    **{
        f"BLEU, {right:.0%} of words right, speakers {name}": (_corpus("bleu", sizes, right), None)
        for right in (0.05, 0.2, 0.9)
        for name, sizes in {"10 x 10": (10,) * 10, **_SPEAKERS}.items()
    },
    **{
        f"difference of BLEU, {a:.0%} and {b:.0%} of words right, {name}": (_corpus("bleu", sizes, a, b), None)
        for a, b in ((0.05, 0.05), (0.05, 0.15), (0.2, 0.3), (0.7, 0.75))
        for name, sizes in {
            "20 items": (1,) * 20, "50 items": (1,) * 50, "200 items": (1,) * 200, "speakers 10 x 10": (10,) * 10,
            "speakers 2 x 40, 8 x 2": (40,) * 2 + (2,) * 8,
        }.items()
    },
}  # fmt: skip
"""The designs of the second study: what draws a run, and the bounds that are declared."""


def ordinary(repetitions: int, names: Iterable[str] = ORDINARY) -> Iterator[dict[str, object]]:
    """One row per design: in how many runs there is an interval, how many of these hold the truth, and how many are marked."""
    for name in names:
        draw, bounds = ORDINARY[name]
        rng = np.random.default_rng(list(name.encode()))
        given = held = marked = 0
        for _ in range(repetitions):
            a, b, codes, truth = draw(rng)
            if b is None:
                found = interval_of(_fold_of(name), a, codes, share=name.startswith("share"), bounds=bounds)
                ends, noted = found.ends, found.note is not None
            else:
                test = paired_parts(_fold_of(name), a, b, codes, seed=1, bounds=bounds)
                ends, noted = (None if test.low is None else [test.low, test.high]), False
            if ends is not None:
                given, marked = given + 1, marked + noted
                held += ends[0] - 1e-12 <= truth <= ends[1] + 1e-12
        coverage = held / given if given else None
        yield {"design": name, "coverage": coverage, "given": given / repetitions, "marked": marked / given if given else None, "repetitions": repetitions}  # fmt: skip


RECORDED = (
    "mean, speakers 2 x 40, 8 x 2, 0.5 between them",
    "mean, speakers 1 x 40, 39 x 1, 0.95 between them",
    "PESQ at the ceiling, 5% below, 100 items",
    "STOI near 1, spread 1.5, 50 items",
    "error rate, 2.0%, 0.2% lost, 300 items",
    "error rate, 3.0%, 0.2% looping 20x, 3000 items",
    "mean of error rates, 2.0%, 0.2% lost, 100 items",
    "share, 10 speakers with 1 to 80 questions, 0.9 right, 0.8 alike",
    "BLEU, 20% of words right, 50 items",
    "BLEU, 20% of words right, speakers 2 x 40, 8 x 2",
)
"""The designs that are taken the whole way."""
_SHOWN = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
SYSTEMS_AT_ONCE = 50


def recorded(repetitions: int, names: Iterable[str] = RECORDED) -> Iterator[dict[str, object]]:
    """One row per design: how often the interval that a run tells holds the truth, by `summary.json` and by the page.

    A record holds a system for each of some repetitions, or for one where the speakers are drawn too.
    """
    for name in names:
        at_once = 1 if name.startswith("share") else SYSTEMS_AT_ONCE
        counts = {"summary.json": [0, 0], "page": [0, 0]}
        for begin in range(0, repetitions, at_once):
            several = min(at_once, repetitions - begin)
            with tempfile.TemporaryDirectory() as folder:
                truth, told = _through_a_record(name, begin, several, Path(folder) / "run")
            for place, ends in told.items():
                given = [one for one in ends if one is not None]
                counts[place][0] += len(given)
                counts[place][1] += sum(low - 1e-5 <= truth <= high + 1e-5 for low, high in given)
        for place, (given, held) in counts.items():
            yield {"design": name, "place": place, "coverage": held / given if given else None, "given": given / repetitions, "repetitions": repetitions}  # fmt: skip


def _through_a_record(name: str, seed: int, several: int, folder: Path) -> tuple[float, dict[str, list[Ends]]]:
    """The truth of a design, and the ends of the intervals of some runs of it as they are told in each place."""
    draw, bounds = ORDINARY[name]
    fold = _fold_of(name)
    systems = [f"system-{n}" for n in range(several)]
    drawn = [draw(np.random.default_rng([seed, n, *name.encode()])) for n in range(several)]
    facts: dict[str, Any] = {
        "protocol": "simulated/1", "unit": "", "higher_is_better": True, "kind": "answer" if name.startswith("share") else "single",
        "aggregate": _CORPUS[name.partition(",")[0]] if fold is not ratios else "ratio",
        **({} if bounds is None else {"bounds": list(bounds)}),
    }  # fmt: skip
    codes = drawn[0][2]
    items = [
        Sample(f"item {n:05d}", None, speaker=None if codes is None else f"speaker {codes[n]}")
        for n in range(len(drawn[0][0]))
    ]
    writer = RunWriter(folder, {})
    writer.begin({system: {} for system in systems}, {"simulated": facts}, items)
    for n, item in enumerate(items):
        rows = []
        for system, (table, *_) in zip(systems, drawn):
            parts = table[n]
            if fold is ratios:
                score = Score.ok(parts[0] / parts[1], "simulated/1", numerator=parts[0], denominator=parts[1])
            else:
                score = Score.ok(0.0, "simulated/1", detail={"counts": parts.tolist()})
            rows.append((n, ItemRecord(system, item.id, "ok", None, {"simulated": score})))
        writer.write(rows)
    writer.set_meta(state="finished")
    writer.close()
    write_results(Run(folder))
    summary = json.loads((folder / "summary.json").read_text("utf-8"))["systems"]
    (found,) = _SHOWN.findall((folder / "report.html").read_text("utf-8"))
    page = json.loads(found)
    shown = {system["label"]: row[0] for system, row in zip(page["systems"], page["summary"])}
    return drawn[0][3], {
        "summary.json": [summary[system]["metrics"]["simulated"]["ci95"] for system in systems],
        "page": [None if shown[system][1] is None else (shown[system][1], shown[system][2]) for system in systems],
    }


GIVEN = "share of runs with an interval"
UNITS = {"coverage": "share of intervals with the truth", "alarms": "share of p below 0.05", "marked": "share of marked intervals"}  # fmt: skip


def main() -> None:
    """Runs the studies and appends their rows; `--only` takes the designs of the second and the third that hold a word."""
    options = asked(__doc__, repetitions=1000, recorded=200, only="")
    rows: list[dict[str, object]] = []
    for found in study(options.repetitions) if not options.only else ():
        sys.stdout.write("{design:>9} {kind:>12} {method:>21}  {coverage}  {alarms}  {marked}\n".format_map(found))
        about = {"case": f"{found['kind']}, {found['design']}", "variant": found["method"], "n": found["repetitions"]}
        note = "speakers x items; no difference between the systems"
        values = {unit: found[name] for name, unit in UNITS.items() if found[name] is not None}
        rows += [{**about, "unit": unit, "p50": f"{value:.4f}", "note": note} for unit, value in values.items()]
    chosen = [name for name in ORDINARY if options.only in name]
    for found in ordinary(options.repetitions, chosen):
        rows += _rows(found, f"ordinary: {found['design']}", "codec-bench")
    for found in recorded(options.recorded, [name for name in RECORDED if options.only in name]):
        rows += _rows(found, f"recorded: {found['design']}", f"codec-bench, {found['place']}")
    append_rows("intervals", rows)


def _rows(found: dict[str, object], case: str, variant: str) -> list[dict[str, object]]:
    """The rows of one design of the second or the third study, which are printed too."""
    sys.stdout.write(f"{case}  {variant}  {found['coverage']}  {found['given']}  {found.get('marked')}\n")
    sys.stdout.flush()
    values = {UNITS["coverage"]: found["coverage"], GIVEN: found["given"], UNITS["marked"]: found.get("marked")}
    about = {"case": case, "variant": variant, "n": found["repetitions"], "note": ""}
    return [{**about, "unit": unit, "p50": f"{value:.4f}"} for unit, value in values.items() if value is not None]


if __name__ == "__main__":
    main()
