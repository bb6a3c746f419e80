"""The best systems of one metric, and those not compared: for all reports.

The unprocessed audio is no rival. Not compared: systems with findings, with values for fewer than `MIN_SHARE` of the
samples of the fullest, or with more than 1 - `MIN_SHARE` speechless estimates. Others are indistinguishable from the
best if their paired test over common samples (Holm-adjusted) shows no difference; it needs `FEWEST_TO_COMPARE` units.
Values of whole sets are compared by intervals. None is best with fewer than two compared systems, with fewer than half
of the samples in common, or if all samples of a system contradict the order. Sample numbers are ordered by id.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.stats.breakdown import MetricParts, SetParts
from codec_bench.stats.intervals import LEVEL, unit_codes
from codec_bench.stats.paired import holm, paired_parts
from codec_bench.stats.summary_types import Standing

MIN_SHARE = 0.9
"""Least share of the samples of the fullest rival with values of a system."""
HALF = 0.5
FEWEST_TO_COMPARE = 6
"""Units for a comparison with the best."""
SUSPECT = Diagnostic("suspect")
LACKING = Diagnostic("few_samples")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class MetricVerdict(Generic[K]):
    """Standing of the systems in one metric.

    Args:
        common: samples with values of all compared systems.
        tied: indistinguishable from the best.
        excluded: systems that are not compared, with reasons.
        reason: why none is best.
    """

    common: np.ndarray
    best: frozenset[K] = frozenset()
    tied: frozenset[K] = frozenset()
    excluded: Mapping[K, Diagnostic] = field(default_factory=dict)
    reason: Diagnostic | None = None

    def standing(self, name: K) -> Standing:
        """Standing of one system."""
        if name in self.excluded:
            return Standing(False, False, self.excluded[name])
        return Standing(name in self.best, True, self.reason, name in self.tied)


def verdict(
    rivals: Mapping[K, MetricParts], suspects: Collection[K], higher_is_better: bool | None
) -> MetricVerdict[K]:
    """Decide which systems of one metric are the best.

    Args:
        rivals: results of each system but the unprocessed audio.
        suspects: systems with findings.
        higher_is_better: None finds the common samples only.
    """
    counts = {name: len(parts.numbers) for name, parts in rivals.items()}
    out = {name: why for name, parts in rivals.items() if (why := speechless(parts.speechless, counts[name]))}
    excluded = find_excluded(counts, out | dict.fromkeys(suspects, SUSPECT))
    compared = {name: parts for name, parts in rivals.items() if name not in excluded}
    most = max((len(parts.numbers) for parts in compared.values()), default=0)
    common = _common(list(compared.values()) or [parts for parts in rivals.values() if len(parts.numbers)])
    if higher_is_better is None:
        return MetricVerdict(common, excluded=excluded)
    if len(compared) < 2:
        return MetricVerdict(common, excluded=excluded, reason=Diagnostic("few_systems"))
    if len(common) < HALF * most:
        return MetricVerdict(common, excluded=excluded, reason=Diagnostic("few_common", common=len(common), most=most))
    within = {
        name: parts if len(parts.numbers) == len(common) else parts.at(np.flatnonzero(np.isin(parts.numbers, common)))
        for name, parts in compared.items()
    }
    values = {name: value for name, parts in within.items() if (value := parts.value) is not None}
    if len(values) < 2:
        return MetricVerdict(common, excluded=excluded, reason=Diagnostic("few_values"))
    sign = 1 if higher_is_better else -1
    top = max(values, key=lambda name: sign * values[name])
    best = {name for name, value in values.items() if value == values[top]}
    signed = {name: sign * value for name, parts in compared.items() if (value := parts.value) is not None}
    beaten = max((signed[name] for name in signed if name not in best), default=-np.inf)
    marked = frozenset(name for name in best if signed[name] >= beaten)
    if not marked:
        return MetricVerdict(common, excluded=excluded, reason=Diagnostic("beaten"))
    tied = _find_tied({name: within[name] for name in values}, top)
    if isinstance(tied, Diagnostic):
        return MetricVerdict(common, marked, excluded=excluded, reason=tied)
    return MetricVerdict(common, marked, frozenset(tied - best), excluded)


def speechless(count: int, n: int) -> Diagnostic | None:
    """Why a system with `count` speechless values among `n` is not compared, or None."""
    if n - count >= MIN_SHARE * n:
        return None
    return Diagnostic("speechless", speechless=count, n=n)


def find_excluded(counts: Mapping[K, int], reasons: Mapping[K, Diagnostic]) -> dict[K, Diagnostic]:
    """Why systems are not compared, by name: a reason in `reasons`, or too few values."""
    excluded = {
        name: reasons.get(name, LACKING) if n else LACKING for name, n in counts.items() if not n or name in reasons
    }
    most = max((n for name, n in counts.items() if name not in excluded), default=0)
    return excluded | {name: LACKING for name, n in counts.items() if name not in excluded and n < MIN_SHARE * most}


def _common(parts: Sequence[MetricParts]) -> np.ndarray:
    """Numbers of the samples with values of all, in rising order."""
    shared: np.ndarray | None = None
    for numbers in (np.asarray(of.numbers, np.int64) for of in parts):
        shared = np.sort(numbers) if shared is None else np.intersect1d(shared, numbers, assume_unique=True)
    return np.zeros(0, np.int64) if shared is None else shared


def _find_tied(within: Mapping[K, MetricParts], top: K) -> set[K] | Diagnostic:
    """The systems indistinguishable from the best, or a note if untestable."""
    best, others = within[top], [name for name in within if name != top]
    if isinstance(best, SetParts):  # no item adds a separate part, so only the intervals are informative
        ends = {name: parts.interval.ends for name, parts in within.items()}
        return {n for n in others if (a := ends[n]) and (b := ends[top]) and a[0] <= b[1] and b[0] <= a[1]}
    codes = unit_codes([unit or None for unit in best.units], len(best.units))
    units = len(best.numbers) if codes is None else len(np.unique(codes))
    if units < FEWEST_TO_COMPARE:
        return Diagnostic("too_few_to_compare", units=units, needed=FEWEST_TO_COMPARE)
    p = [paired_parts(best.fold, best.sums, within[name].sums, codes, seed=0, bounds=best.bounds).p for name in others]
    return {name for name, one in zip(others, holm(p)) if one is None or one > 1 - LEVEL}
