"""How much to trust the ranking of a leaderboard: by what is counted, by how it is scaled, and by which items were
drawn.

Conventions
    Points say how good a row is in a column: more is better, in the scale that enters the average (an error rate of 3 %
    is 97 points). The average of a row is the mean over the marks of the mean of the mark's columns, where a mark is a
    set of columns that count together as one. Ranks begin at 1. Rows with the same average share the better rank.
    Averages that differ by rounding alone are the same. A row without a cell of every mark has no rank, because an
    average over fewer marks is another average. Within a mark the cells that are there count, as the authors of the
    boards do it.

References: Shi et al. 2026, "UltraEval-Audio" (ranks without one benchmark, without one group of tasks, and under
z-scores and min-max scaling); Marshall and Spiegelhalter 1998, "Reliability of league tables of in vitro fertilisation
clinics", BMJ 316 (the distribution of ranks by drawing); Goldstein and Spiegelhalter 1996, "League tables and their
limitations".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.stats.intervals import FEWEST_UNITS, LEVEL, too_few

DRAWS = 10_000
_SAME = 1e-9
"""Averages that differ by less than this share of the largest one are the same."""


@dataclass(frozen=True, slots=True)
class Points:
    """The cells of a ranking.

    Args:
        values: more is better, float64 `(rows, columns)`; NaN where there is no cell.
        benchmarks: the benchmark of each column. A benchmark is left out with all its columns.
        groups: the group of tasks of each column.
        marks: the mark of each column: columns of one mark enter the average as one value.
        columns: the name of each column, for notes; its number without one.
    """

    values: np.ndarray
    benchmarks: Sequence[str]
    groups: Sequence[str]
    marks: Sequence[str]
    columns: Sequence[str] = ()

    @property
    def complete(self) -> np.ndarray:
        """Which rows have a cell of every mark, bool `(rows,)`."""
        return np.isfinite(self.averages())

    def weights(self, row: int) -> np.ndarray:
        """How much each column weighs in the average of a row, `(columns,)`; 0 for a column without a cell."""
        present = np.isfinite(self.values[row])
        counts = Counter(mark for mark, there in zip(self.marks, present, strict=True) if there)
        return np.asarray(
            [
                1 / (len(counts) * counts[mark]) if there else 0.0
                for mark, there in zip(self.marks, present, strict=True)
            ]
        )

    def named(self, columns: Sequence[int]) -> list[str]:
        """The names of some columns, by their numbers."""
        return [self.columns[column] if self.columns else str(column) for column in columns]

    def averages(self, included: np.ndarray | None = None) -> np.ndarray:
        """The average of each row over the columns that are kept, `(rows,)`; NaN for a row without a cell of one of the
        marks.
        """
        return _averages(self.values, self.marks, np.ones(len(self.marks), bool) if included is None else included)


def _averages(values: np.ndarray, marks: Sequence[str], included: np.ndarray) -> np.ndarray:
    """The mean over the marks of the mean of the mark's cells, `(rows, columns)` to `(rows,)`."""
    of = np.asarray(list(marks))
    means = []
    for mark in dict.fromkeys(of[included].tolist()):
        cells = values[:, included & (of == mark)]
        present = np.isfinite(cells)
        with np.errstate(invalid="ignore"):
            means.append(np.where(present, cells, 0.0).sum(axis=1) / present.sum(axis=1))
    return np.mean(means, axis=0) if means else np.full(len(values), np.nan)


OTHER_RULES = {
    "leave_one_benchmark_out": "without one benchmark",
    "leave_one_group_out": "without one group",
    "other_normalisations": "other normalisations",
}
"""The rules by which rows are ranked beside the leaderboard's own: fields of `Robustness`, each with the head of its
column.
"""


@dataclass(frozen=True, slots=True)
class Robustness:
    """The ranks of one row when the rule of the leaderboard is changed. Each pair is the best and the worst rank.

    Args:
        rank: by the rule of the leaderboard; None if the row is not complete.
        leave_one_benchmark_out: over all ways to leave out one benchmark.
        leave_one_group_out: over all ways to leave out one group of tasks.
        other_normalisations: over z-scores and min-max scaling of each column.
        notes: why one of the pairs is None, and which columns could not be scaled.
    """

    rank: int | None
    leave_one_benchmark_out: tuple[int, int] | None
    leave_one_group_out: tuple[int, int] | None
    other_normalisations: tuple[int, int] | None
    notes: tuple[str, ...] = ()

    @property
    def spans(self) -> dict[str, tuple[int, int] | None]:
        """The best and the worst rank by each of `OTHER_RULES`."""
        return {rule: getattr(self, rule) for rule in OTHER_RULES}


def ranks(averages: np.ndarray) -> np.ndarray:
    """The rank of each row, int64 `(..., rows)` as the averages; 0 for a row whose average is NaN.

    The best average has rank 1, and equal averages share the better rank.
    """
    tolerance = _SAME * np.nanmax(np.abs(averages), initial=1.0)
    better = averages[..., None, :] > averages[..., :, None] + tolerance
    return np.where(np.isnan(averages), 0, 1 + better.sum(axis=-1))


def robustness(points: Points) -> list[Robustness]:
    """The ranks of every row under the rule of the leaderboard and under changed rules.

    z-scores and min-max scaling are taken over the complete rows. A column in which these rows are all equal tells none
    of them apart, so it counts nothing there and is named.
    """
    if not len(points.values):
        return []
    rule = ranks(points.averages())
    benchmarks = _without_each(points, points.benchmarks)
    groups = _without_each(points, points.groups)
    scaled, constant = _scaled(points)
    notes = [
        *([] if benchmarks is not None else ["there is one benchmark only, so none can be left out"]),
        *([] if groups is not None else ["there is one group of tasks only, so none can be left out"]),
        *([] if scaled is not None else ["fewer than two rows are complete, so columns cannot be scaled over the rows"]),
        *([f"the rows are all equal in column {', '.join(points.named(constant))}, which counts nothing when columns are scaled"] if constant else []),
    ]  # fmt: skip
    by_benchmark, by_group, by_scale = (_span(table, len(rule)) for table in (benchmarks, groups, scaled))
    return [
        Robustness(int(rank), by_benchmark[row], by_group[row], by_scale[row], tuple(notes))
        if rank
        else Robustness(None, None, None, None, ("a cell is missing, so the row has no rank",))
        for row, rank in enumerate(rule)
    ]


def _without_each(points: Points, labels: Sequence[str]) -> np.ndarray | None:
    """The ranks without each of the labels' columns, `(labels, rows)`; None if nothing would be left."""
    different = list(dict.fromkeys(labels))
    if len(different) < 2:
        return None
    of = np.asarray(list(labels))
    every = np.stack([points.averages(of != label) for label in different])
    # A row that lacks cells may be complete without a benchmark, and would then move the rows that have ranks.
    return ranks(np.where(points.complete, every, np.nan))


def _scaled(points: Points) -> tuple[np.ndarray | None, list[int]]:
    """The ranks under z-scores and min-max scaling, `(2, rows)`, and the numbers of the columns that are constant."""
    complete = points.complete
    if complete.sum() < 2:
        return None, []
    among = np.where(complete[:, None], points.values, np.nan)
    there = np.isfinite(among).any(axis=0)
    among = np.where(there, among, 0.0)  # a column without any cell is constant, and has no cell below either
    low, high = np.nanmin(among, axis=0), np.nanmax(among, axis=0)
    constant = high - low <= _SAME * np.maximum(1.0, np.abs(high))
    scales = ((np.nanmean(among, axis=0), np.nanstd(among, axis=0)), (low, high - low))
    columns = []
    for middle, scale in scales:
        scaled = np.where(constant, 0.0, (among - middle) / np.where(constant, 1.0, scale))
        scaled = np.where(np.isfinite(points.values), scaled, np.nan)
        averages = _averages(scaled, points.marks, np.ones(len(points.marks), bool))
        columns.append(np.where(complete, averages, np.nan))
    return ranks(np.stack(columns)), np.flatnonzero(constant & there).tolist()


def _span(table: np.ndarray | None, rows: int) -> list[tuple[int, int] | None]:
    """The best and the worst rank of each row, over the ways in which it has one."""
    if table is None:
        return [None] * rows
    placed = [column[column > 0] for column in table.T]
    return [(int(column.min()), int(column.max())) if len(column) else None for column in placed]


@dataclass(frozen=True, slots=True)
class RankDraws:
    """How the ranks fall when other items had been drawn.

    Args:
        intervals: of each row the ranks that hold the middle 95 % of the draws; None for a row without items.
        shares: the share of draws in which a row has each rank, `(rows, rows)`; column 0 is rank 1.
        above: the share of draws in which a row is above another, `(rows, rows)`; a tie counts half.
        tied: of each row the rows that it cannot be told from, adjusted over all pairs (see `_told_apart`).
        notes: of each row, why the interval is missing, or None.
    """

    intervals: tuple[tuple[int, int] | None, ...]
    shares: np.ndarray
    above: np.ndarray
    tied: tuple[tuple[int, ...], ...]
    notes: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class UnitEffects:
    """What one benchmark adds to the average of each row, with each of its units left out.

    Args:
        rows: the numbers of the rows that have items of this benchmark.
        added: with each unit (a speaker, or an item of unknown speaker) left out, `(units, rows)`.
    """

    rows: Sequence[int]
    added: np.ndarray

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.added)

    def covariance(self) -> np.ndarray:
        """The jackknife's covariance of the rows, `(rows, rows)`."""
        from_mean = self.added - self.added.mean(axis=0)
        return (self.units - 1) / self.units * (from_mean.T @ from_mean)


def rank_draws(
    averages: np.ndarray, parts: Sequence[UnitEffects], *, seed: int = 0, draws: int = DRAWS, level: float = LEVEL
) -> RankDraws:
    """Draws averages as they could have been with other items, and ranks each draw.

    The averages are drawn around those that were found. Their covariance is the jackknife's over the units that the
    rows share, so that an item that is hard for every row moves no rank. Each benchmark is drawn with Student's t for
    its number of units, as the intervals of this package are. A row without items (a published one) stays where it is.

    Args:
        averages: of each row, `(rows,)`, without NaN.
        parts: of each benchmark for which rows have items.
        seed: of the draws. draws: how many. level: of the intervals.
    """
    rows = len(averages)
    drawn = drawn_values(averages, parts, seed=seed, draws=draws)
    small_samples = {
        row: sample_part.units for sample_part in parts for row in sample_part.rows if sample_part.units < FEWEST_UNITS
    }
    moving = {row for sample_part in parts for row in sample_part.rows} - set(small_samples)
    placed, above = _placed(drawn)
    shares = np.stack([np.bincount(placed[:, row], minlength=rows + 1)[1:] for row in range(rows)]) / draws
    ends = np.quantile(placed, [(1 - level) / 2, (1 + level) / 2], axis=0, method="nearest").astype(int)
    notes = [
        None
        if row in moving
        else too_few(small_samples[row], FEWEST_UNITS, "a rank interval")
        if row in small_samples
        else "there are no items of this row, so the interval of its rank is unknown"
        for row in range(rows)
    ]
    unsure = ~_are_distinguishable(np.asarray(averages, np.float64), drawn, level)
    return RankDraws(
        tuple((int(ends[0, row]), int(ends[1, row])) if row in moving else None for row in range(rows)),
        shares,
        above,
        tuple(
            tuple(int(other) for other in np.flatnonzero(unsure[row]) if other != row and (row in moving or other in moving))
            for row in range(rows)
        ),
        tuple(notes),
    )  # fmt: skip


def _are_distinguishable(averages: np.ndarray, drawn: np.ndarray, level: float) -> np.ndarray:
    """Which rows can be told apart, bool `(rows, rows)`: of rows that are all equal, some pair is so in at most 5 % of
    the data sets.

    Each difference is divided by its standard deviation over the draws. The largest that chance gives over all pairs is
    what a difference must exceed; then the pairs that are told apart are left out, and the rest is held against the
    largest among themselves, as in Holm's procedure. Source: Romano and Wolf 2005, JASA 100 (stepdown by resampling).
    """
    centred = drawn - averages
    covariance = centred.T @ centred / len(drawn)
    spread = np.diag(covariance)
    sd = np.sqrt(np.maximum(spread[:, None] + spread[None, :] - 2 * covariance, 0))
    least = _SAME * max(1.0, float(np.abs(drawn).max()))
    differences = np.abs(averages[:, None] - averages[None, :])
    apart = (sd <= least) & (differences > least)
    first, second = np.nonzero(np.triu(sd > least))
    ratio = differences[first, second] / sd[first, second]
    left = np.ones(len(first), bool)
    while left.any():
        a, b, of = first[left], second[left], sd[first[left], second[left]]
        at_once = max(1, 4_000_000 // len(a))
        largest = [
            (np.abs(some[:, a] - some[:, b]) / of).max(axis=1)
            for some in (centred[begin : begin + at_once] for begin in range(0, len(centred), at_once))
        ]
        over = left & (ratio > np.quantile(np.concatenate(largest), level))
        if not over.any():
            break
        apart[first[over], second[over]] = apart[second[over], first[over]] = True
        left &= ~over
    return apart


def drawn_values(averages: np.ndarray, parts: Sequence[UnitEffects], *, seed: int, draws: int) -> np.ndarray:
    """Averages as they could have been with other items, `(draws, rows)`; see `rank_draws`."""
    rng = np.random.default_rng(seed)
    drawn = np.tile(np.asarray(averages, np.float64), (draws, 1))
    for sample_part in parts:
        if sample_part.units < FEWEST_UNITS:
            continue
        values, vectors = np.linalg.eigh(sample_part.covariance())
        normal = rng.standard_normal((draws, len(sample_part.rows))) @ (vectors * np.sqrt(np.maximum(values, 0))).T
        freedom = sample_part.units - 1
        drawn[:, list(sample_part.rows)] += normal * np.sqrt(freedom / rng.chisquare(freedom, (draws, 1)))
    return drawn


def _placed(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ranks of each draw, `(draws, rows)`, and the share of draws in which a row is above another, `(rows, rows)`."""
    at_once = max(1, 4_000_000 // drawn.shape[1] ** 2)
    placed = np.empty(drawn.shape, np.int64)
    above = np.zeros((drawn.shape[1],) * 2)
    tolerance = _SAME * max(1.0, float(np.abs(drawn).max()))
    for begin in range(0, len(drawn), at_once):
        some = drawn[begin : begin + at_once]
        better = some[:, None, :] > some[:, :, None] + tolerance
        placed[begin : begin + at_once] = 1 + better.sum(axis=2)
        above += better.sum(axis=0).T + 0.5 * (~better & ~better.transpose(0, 2, 1)).sum(axis=0)
    return placed, above / len(drawn)


def redundancy(points: Points) -> list[tuple[int, float]]:
    """Leaves out one column after another, each time the one without which the ranking stays most like the full one.

    Of columns that are equally dispensable the last one is left out. Rows that are not complete do not count.

    Returns:
        The columns in the order in which they were left out, each with Kendall's tau-b between the full ranking and the
        one without it and those before it. Nothing with fewer than three complete rows, because two rows have one order
        only.
    """
    from scipy.stats import kendalltau

    complete = points.complete
    if complete.sum() < 3:
        return []
    full = points.averages()[complete]
    included = np.ones(len(points.marks), bool)
    order: list[tuple[int, float]] = []
    while included.sum() > 1:
        best: tuple[float, int] | None = None
        for column in np.flatnonzero(included):
            trial = included.copy()
            trial[column] = False
            tau = float(kendalltau(full, points.averages(trial)[complete]).statistic)
            if np.isfinite(tau) and (best is None or tau >= best[0]):
                best = (tau, int(column))
        if best is None:
            break
        included[best[1]] = False
        order.append((best[1], best[0]))
    return order
