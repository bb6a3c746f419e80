"""Which systems are the best in one metric, and which are not compared: for every table, page, board and figure.

The unprocessed audio is no rival. A system is not compared if its checks found something, if it has values for fewer
than `MIN_SHARE` of the samples of the fullest, or if more than 1 - `MIN_SHARE` of its values are of estimates without
speech.
The best has the best value over the common samples. Another one is not distinguishable from it if their paired test,
with p adjusted for all comparisons with the best (Holm), finds no difference; with fewer than `FEWEST_TO_COMPARE` units
only a note stands. Values of whole sets are compared by their intervals. Nobody is the best where fewer than two systems
are compared, where they share fewer than half of their samples, or where all samples of a system contradict the order.

Samples are numbers that mean the same sample for all rivals, in the order of the ids.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.stats.breakdown import Parts, SetParts
from codec_bench.stats.intervals import LEVEL, unit_codes
from codec_bench.stats.paired import holm, paired_parts
from codec_bench.stats.summary_types import Standing

MIN_SHARE = 0.9
"""The share of the samples of the fullest rival for which a system must have values."""
HALF = 0.5
FEWEST_TO_COMPARE = 6
"""Units, for a comparison with the best."""
SUSPECT = Diagnostic("suspect")
LACKING = Diagnostic("few_samples")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Verdict(Generic[K]):
    """How the systems stand in one metric.

    Args:
        common: the samples for which every compared system has a value. best, alike: the best and what is not
            distinguishable from it. barred: the systems that are not compared, with the reason. reason: why none is best.
    """

    common: np.ndarray
    best: frozenset[K] = frozenset()
    alike: frozenset[K] = frozenset()
    barred: Mapping[K, Diagnostic] = field(default_factory=dict)
    reason: Diagnostic | None = None

    def standing(self, name: K) -> Standing:
        """How one system stands."""
        if name in self.barred:
            return Standing(False, False, self.barred[name])
        return Standing(name in self.best, True, self.reason, name in self.alike)


def verdict(rivals: Mapping[K, Parts], suspects: Collection[K], higher_is_better: bool | None) -> Verdict[K]:
    """Decides over the systems of one metric.

    Args:
        rivals: the results of each system but the unprocessed audio. suspects: those whose checks found something.
        higher_is_better: the direction; None finds the common samples only.
    """
    counts = {name: len(parts.numbers) for name, parts in rivals.items()}
    out = {name: why for name, parts in rivals.items() if (why := speechless(parts.speechless, counts[name]))}
    excluded = barred(counts, out | dict.fromkeys(suspects, SUSPECT))
    compared = {name: parts for name, parts in rivals.items() if name not in excluded}
    most = max((len(parts.numbers) for parts in compared.values()), default=0)
    common = _common(list(compared.values()) or [parts for parts in rivals.values() if len(parts.numbers)])
    if higher_is_better is None:
        return Verdict(common, barred=excluded)
    if len(compared) < 2:
        return Verdict(common, barred=excluded, reason=Diagnostic("few_systems"))
    if len(common) < HALF * most:
        return Verdict(common, barred=excluded, reason=Diagnostic("few_common", common=len(common), most=most))
    within = {name: _among(parts, common) for name, parts in compared.items()}
    values = {name: value for name, parts in within.items() if (value := parts.value) is not None}
    if len(values) < 2:
        return Verdict(common, barred=excluded, reason=Diagnostic("few_values"))
    sign = 1 if higher_is_better else -1
    top = max(values, key=lambda name: sign * values[name])
    best = {name for name, value in values.items() if value == values[top]}
    signed = {name: sign * value for name, parts in compared.items() if (value := parts.value) is not None}
    beaten = max((signed[name] for name in signed if name not in best), default=-np.inf)
    marked = frozenset(name for name in best if signed[name] >= beaten)
    if not marked:
        return Verdict(common, barred=excluded, reason=Diagnostic("beaten"))
    alike = _alike({name: within[name] for name in values}, top)
    if isinstance(alike, Diagnostic):
        return Verdict(common, marked, barred=excluded, reason=alike)
    return Verdict(common, marked, frozenset(alike - best), excluded)


def speechless(count: int, n: int) -> Diagnostic | None:
    """Why a system with `count` values without speech among `n` is not compared; None if they are few."""
    if n - count >= MIN_SHARE * n:
        return None
    return Diagnostic("speechless", speechless=count, n=n)


def barred(counts: Mapping[K, int], out: Mapping[K, Diagnostic]) -> dict[K, Diagnostic]:
    """The systems that are not compared, each with the reason.

    Args:
        counts: for how many samples each system has a value. out: why some are not compared, whatever their counts.
    """
    excluded = {name: out.get(name, LACKING) if n else LACKING for name, n in counts.items() if not n or name in out}
    most = max((n for name, n in counts.items() if name not in excluded), default=0)
    return excluded | {name: LACKING for name, n in counts.items() if name not in excluded and n < MIN_SHARE * most}


def _common(parts: Sequence[Parts]) -> np.ndarray:
    """The numbers of the samples for which every one has a value, in rising order."""
    shared: np.ndarray | None = None
    for numbers in (np.asarray(of.numbers, np.int64) for of in parts):
        shared = np.sort(numbers) if shared is None else np.intersect1d(shared, numbers, assume_unique=True)
    return np.zeros(0, np.int64) if shared is None else shared


def _among(parts: Parts, common: np.ndarray) -> Parts:
    """The parts of the common samples."""
    if len(common) == len(parts.numbers):
        return parts
    return parts.at(np.flatnonzero(np.isin(np.asarray(parts.numbers, np.int64), common)))


def _alike(within: Mapping[K, Parts], top: K) -> set[K] | Diagnostic:
    """The systems that are not distinguishable from the one with the best value; a note where that cannot be asked."""
    best, others = within[top], [name for name in within if name != top]
    if isinstance(best, SetParts):  # no item adds a part of its own, so that only the intervals say something
        ends = {name: parts.interval.ends for name, parts in within.items()}
        return {n for n in others if (a := ends[n]) and (b := ends[top]) and a[0] <= b[1] and b[0] <= a[1]}
    codes = unit_codes([unit or None for unit in best.units], len(best.units))
    units = len(best.numbers) if codes is None else len(np.unique(codes))
    if units < FEWEST_TO_COMPARE:
        return Diagnostic("too_few_to_compare", units=units, needed=FEWEST_TO_COMPARE)
    p = [paired_parts(best.fold, best.sums, within[name].sums, codes, seed=0, bounds=best.bounds).p for name in others]
    return {name for name, one in zip(others, holm(p)) if one is None or one > 1 - LEVEL}
