"""The certainty of a ranking: by included columns, by scaling, and by drawn items.

Points are better when higher, in the scale of the average (an error rate of 3 % is 97 points). The average is the mean
over weight groups of the mean of their columns; the columns of a group count as one. Ranks begin at 1; equal averages
(up to rounding) share the better rank. Rows without a cell of every weight group have no rank.
References: Shi et al. 2026, "UltraEval-Audio" (leave-one-out ranks, z-scores and min-max); Marshall and Spiegelhalter
1998, BMJ 316 (ranks by drawing); Goldstein and Spiegelhalter 1996, "League tables and their limitations".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.stats.breakdown import MetricParts, SetParts, parts_of
from codec_bench.stats.intervals import FEWEST_UNITS, LEVEL, too_few, unit_codes, unit_sums
from codec_bench.stats.recorded import RecordedRun
from codec_bench.store.record import Run

DRAWS = 10_000
_SAME = 1e-9
"""Averages that differ by less than this share of the largest are equal."""
Changes = dict[str, float]
"""By unit, how a number changes without it."""


@dataclass(frozen=True, slots=True)
class Points:
    """The cells of a ranking.

    Args:
        values: more is better, float64 `(rows, columns)`; NaN where there is no cell.
        benchmarks: of each column; one is excluded with all its columns.
        groups: of tasks, by column.
        weight_groups: by column; columns of one weight group enter the average as one value.
        columns: names for notes; numbers without one.
    """

    values: np.ndarray
    benchmarks: Sequence[str]
    groups: Sequence[str]
    weight_groups: Sequence[str]
    columns: Sequence[str] = ()

    @property
    def complete(self) -> np.ndarray:
        """Rows with a cell of every weight group, bool `(rows,)`."""
        return np.isfinite(self.averages())

    def weights(self, row: int) -> np.ndarray:
        """Return the weights of the columns in one row's average, float64 `(columns,)`.

        Weight groups with a cell weigh the same, split equally over their columns with a cell. Other columns have 0.

        Args:
            row: position of the row in `values`.
        """
        present = np.isfinite(self.values[row])
        counts = Counter(group for group, there in zip(self.weight_groups, present, strict=True) if there)
        shares = [1 / (len(counts) * counts[group]) if group in counts else 0.0 for group in self.weight_groups]
        return np.where(present, shares, 0.0)

    def named(self, columns: Sequence[int]) -> list[str]:
        """Return the names of columns by their numbers."""
        return [self.columns[column] if self.columns else str(column) for column in columns]

    def averages(self, included: np.ndarray | None = None) -> np.ndarray:
        """Average each row over included columns, `(rows,)`; NaN for incomplete rows."""
        return _averages(
            self.values, self.weight_groups, np.ones(len(self.weight_groups), bool) if included is None else included
        )


def _averages(values: np.ndarray, weight_groups: Sequence[str], included: np.ndarray) -> np.ndarray:
    """Average each row over weight groups of columns; NaN if a group has no cell.

    Args:
        weight_groups: of each column.
        included: the columns to use, bool.
    """
    of = np.asarray(list(weight_groups))
    means = []
    for group in dict.fromkeys(of[included].tolist()):
        cells = values[:, included & (of == group)]
        present = np.isfinite(cells)
        with np.errstate(invalid="ignore"):
            means.append(np.where(present, cells, 0.0).sum(axis=1) / present.sum(axis=1))
    return np.mean(means, axis=0) if means else np.full(len(values), np.nan)


OTHER_RULES = {
    "leave_one_benchmark_out": "without one benchmark",
    "leave_one_group_out": "without one group",
    "other_normalisations": "other normalisations",
}
"""Alternative rules: fields of `Robustness`, with the head of their column."""


@dataclass(frozen=True, slots=True)
class Robustness:
    """The ranks of one row under changed rules, each as best and worst rank.

    Args:
        rank: by the leaderboard's rule; None if incomplete.
        leave_one_benchmark_out, leave_one_group_out: over all omissions.
        other_normalisations: over z-scores and min-max scaling of each column.
        notes: why a pair is None, and columns that could not be scaled.
    """

    rank: int | None
    leave_one_benchmark_out: tuple[int, int] | None
    leave_one_group_out: tuple[int, int] | None
    other_normalisations: tuple[int, int] | None
    notes: tuple[Diagnostic, ...] = ()

    @property
    def spans(self) -> dict[str, tuple[int, int] | None]:
        """The best and the worst rank by each of `OTHER_RULES`."""
        return {rule: getattr(self, rule) for rule in OTHER_RULES}


def ranks(averages: np.ndarray) -> np.ndarray:
    """Rank averages, int64 `(..., rows)`; equal ones share the better rank, NaN has 0."""
    tolerance = _SAME * np.nanmax(np.abs(averages), initial=1.0)
    better = averages[..., None, :] > averages[..., :, None] + tolerance
    return np.where(np.isnan(averages), 0, 1 + better.sum(axis=-1))


def robustness(points: Points) -> list[Robustness]:
    """Rank every row by the leaderboard's rule, and by each of `OTHER_RULES`.

    z-scores and min-max scaling use the complete rows. Columns with equal values in all of these rows are ignored, and
    named in the notes.

    Returns:
        One entry per row, in the order of `points`; an incomplete row has no ranks.
    """
    if not len(points.values):
        return []
    rule = ranks(points.averages())
    benchmarks = _without_each(points, points.benchmarks)
    groups = _without_each(points, points.groups)
    scaled, constant = _rank_scaled(points)
    notes = [
        *([] if benchmarks is not None else [Diagnostic("board_of_one_benchmark")]),
        *([] if groups is not None else [Diagnostic("board_of_one_group")]),
        *([] if scaled is not None else [Diagnostic("few_complete_rows")]),
        *([Diagnostic("constant_columns", columns=points.named(constant))] if constant else []),
    ]
    by_benchmark, by_group, by_scale = (_span(table, len(rule)) for table in (benchmarks, groups, scaled))
    return [
        Robustness(int(rank), by_benchmark[row], by_group[row], by_scale[row], tuple(notes))
        if rank
        else Robustness(None, None, None, None, (Diagnostic("row_incomplete"),))
        for row, rank in enumerate(rule)
    ]


def _without_each(points: Points, labels: Sequence[str]) -> np.ndarray | None:
    """Rank rows without the columns of each label, `(labels, rows)`; or None for one."""
    different = list(dict.fromkeys(labels))
    if len(different) < 2:
        return None
    of = np.asarray(list(labels))
    every = np.stack([points.averages(of != label) for label in different])
    # Exclude rows that are complete only without a benchmark.
    return ranks(np.where(points.complete, every, np.nan))


def _rank_scaled(points: Points) -> tuple[np.ndarray | None, list[int]]:
    """Rank by z-scores and min-max scaling, `(2, rows)`; also return constant columns.

    The ranks are None below two complete rows.
    """
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
        averages = _averages(scaled, points.weight_groups, np.ones(len(points.weight_groups), bool))
        columns.append(np.where(complete, averages, np.nan))
    return ranks(np.stack(columns)), np.flatnonzero(constant & there).tolist()


def _span(table: np.ndarray | None, rows: int) -> list[tuple[int, int] | None]:
    """Return each row's best and worst rank in `(rules, rows)`; None without a rank."""
    if table is None:
        return [None] * rows
    placed = [column[column > 0] for column in table.T]
    return [(int(column.min()), int(column.max())) if len(column) else None for column in placed]


@dataclass(frozen=True, slots=True)
class RankDraws:
    """The distribution of ranks under other items.

    Args:
        intervals: ranks of the middle 95 % of the draws; None for a row without items.
        shares: of draws by row and rank, `(rows, rows)`; column 0 is rank 1.
        above: shares of draws with one row above another, `(rows, rows)`; a tie counts half.
        tied: indistinguishable rows by row, adjusted over all pairs.
        notes: why an interval is missing.
    """

    intervals: tuple[tuple[int, int] | None, ...]
    shares: np.ndarray
    above: np.ndarray
    tied: tuple[tuple[int, ...], ...]
    notes: tuple[Diagnostic | None, ...]


@dataclass(frozen=True, slots=True)
class UnitEffects:
    """One benchmark's contribution to averages without each of its units.

    Args:
        rows: the numbers of the rows with items of this benchmark.
        added: without each unit (a speaker, or an item of unknown speaker), `(units, rows)`.
    """

    rows: Sequence[int]
    added: np.ndarray

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.added)

    def covariance(self) -> np.ndarray:
        """Return the jackknife's covariance, `(rows, rows)`."""
        from_mean = self.added - self.added.mean(axis=0)
        return (self.units - 1) / self.units * (from_mean.T @ from_mean)


def rank_draws(averages: np.ndarray, parts: Sequence[UnitEffects], *, seed: int = 0, draws: int = DRAWS) -> RankDraws:
    """Estimate rank intervals by drawing the rows' averages as under other test items.

    Draws are centred on the observed averages, with the jackknife's covariance over shared units: an item that is hard
    for every row moves no rank. Each benchmark uses Student's t for its units. Rows without items stay in place.

    Args:
        averages: of each row, `(rows,)`, without NaN.
        parts: each benchmark's effect of leaving out its units, `UnitEffects`.
        seed: of the draws.
        draws: how many.
    """
    rows = len(averages)
    drawn = drawn_values(averages, parts, seed=seed, draws=draws)
    small_samples = {row: one.units for one in parts if one.units < FEWEST_UNITS for row in one.rows}
    moving = {row for one in parts for row in one.rows} - set(small_samples)
    placed, above = _rank_draws(drawn)
    shares = np.stack([np.bincount(placed[:, row], minlength=rows + 1)[1:] for row in range(rows)]) / draws
    ends = np.quantile(placed, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0, method="nearest").astype(int)
    notes: list[Diagnostic | None] = [Diagnostic("row_without_items")] * rows
    for row in moving:
        notes[row] = None
    for row, units in small_samples.items():
        notes[row] = too_few(units, FEWEST_UNITS, "rank_interval")
    unsure = ~_are_distinguishable(np.asarray(averages, np.float64), drawn)
    return RankDraws(
        tuple((int(ends[0, row]), int(ends[1, row])) if row in moving else None for row in range(rows)), shares, above,
        tuple(
            tuple(int(n) for n in np.flatnonzero(unsure[row]) if n != row and (row in moving or n in moving))
            for row in range(rows)
        ),
        tuple(notes),
    )  # fmt: skip


def _are_distinguishable(averages: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return which rows differ, bool `(rows, rows)`, at a familywise error of 5 %.

    Differences are divided by their standard deviation over the draws, and compared with the largest by chance,
    stepwise as in Holm's procedure. Source: Romano and Wolf 2005, JASA 100 (stepdown by resampling).
    """
    centred = drawn - averages
    covariance = centred.T @ centred / len(drawn)
    spread = np.diag(covariance)
    sd = np.sqrt(np.maximum(spread[:, None] + spread[None, :] - 2 * covariance, 0))
    least = _SAME * max(1.0, float(np.abs(drawn).max()))
    differences = np.abs(averages[:, None] - averages[None, :])
    is_distinct = (sd <= least) & (differences > least)
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
        over = left & (ratio > np.quantile(np.concatenate(largest), LEVEL))
        if not over.any():
            break
        is_distinct[first[over], second[over]] = is_distinct[second[over], first[over]] = True
        left &= ~over
    return is_distinct


def drawn_values(averages: np.ndarray, parts: Sequence[UnitEffects], *, seed: int, draws: int) -> np.ndarray:
    """Draw the rows' averages for other items, `(draws, rows)`; see `rank_draws`."""
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


def _rank_draws(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks `(draws, rows)`, and the share of draws with row i above row j."""
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
    """Order columns by how little the ranking changes without them.

    Columns are removed one by one, each time the one that preserves the ranking best; of equally dispensable columns
    the last one. Incomplete rows are ignored.

    Returns:
        Column numbers in the order of removal, each with Kendall's tau-b of full and reduced ranking. Empty below three
        complete rows.
    """
    from scipy.stats import kendalltau

    complete = points.complete
    if complete.sum() < 3:
        return []
    full = points.averages()[complete]
    included = np.ones(len(points.weight_groups), bool)
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


def changes_of(run: Run, system: str, metric: str) -> Changes:
    """Compute how a metric's value changes without each unit (jackknife), by unit.

    A unit is a speaker, or an item without a known speaker. The result is empty if the run lacks the metric or the
    system, or a value is undefined.
    """
    if metric not in run.metrics or system not in run.systems:
        return {}
    parts = parts_of(RecordedRun(run), system, metric)
    if isinstance(parts, SetParts) or parts.value is None:
        return {}
    names, sums = _units(run, parts)
    with np.errstate(all="ignore"):
        without = parts.fold(sums.sum(axis=0) - sums) - parts.value
    if not np.isfinite(without).all():
        return {}
    return dict(zip(names, without.tolist(), strict=True))


def sizes_of(run: Run, system: str, metric: str) -> dict[str, float]:
    """Return each unit's size: its items, or for an error rate its reference words."""
    if metric not in run.metrics or system not in run.systems:
        return {}
    names, sums = _units(run, parts_of(RecordedRun(run), system, metric))
    return dict(zip(names, sums[:, 1].tolist(), strict=True))


def combine(rows: Mapping[int, Changes]) -> UnitEffects:
    """Arrange each row's leave-one-out changes by unit as one table `(units, rows)`."""
    names = dict.fromkeys(unit for changes in rows.values() for unit in changes)
    units = {unit: line for line, unit in enumerate(names)}
    added = np.zeros((len(units), len(rows)))
    for column, changes in enumerate(rows.values()):
        added[[units[unit] for unit in changes], column] = list(changes.values())
    return UnitEffects(list(rows), added)


def _units(run: Run, parts: MetricParts) -> tuple[list[str], np.ndarray]:
    """Return unit names, equal in all runs of the same data, and each unit's sums."""
    ids = dict(run.query("SELECT number, id FROM samples"))
    names = [unit or f"item {ids[number]}" for number, unit in zip(parts.numbers, parts.units, strict=True)]
    codes = unit_codes(names, len(names))
    return list(dict.fromkeys(names)), unit_sums(parts.sums, codes)
