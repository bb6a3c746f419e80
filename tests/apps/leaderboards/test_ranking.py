"""Ranks under other rules and other items, against plain loops and simulations with known truth."""

from __future__ import annotations

import csv
import statistics
from importlib.resources import files

import numpy as np
import pytest

from codec_bench.apps.leaderboards.ranking import Points, UnitEffects, rank_draws, ranks, redundancy, robustness

ERRORS = 10
"""How many columns of the board of understanding are error rates; they come first."""


def board():
    """The published board of understanding: names, points by row, benchmarks, groups."""
    text = (files("codec_bench") / "configs" / "leaderboard" / "ultraeval-understanding.csv").read_text("utf-8")
    names, *lines = list(csv.reader(text.splitlines()))
    benchmarks = names[1:-1]
    values = [[100 - float(cell) if n < ERRORS else float(cell) for n, cell in enumerate(line[1:-1])] for line in lines]
    groups = ["ASR"] * ERRORS + ["AST"] * 2 + ["EMO"]
    return [line[0] for line in lines], values, benchmarks, groups


def places(averages):
    return [1 + sum(other > mine + 1e-9 for other in averages) for mine in averages]


def test_the_ranks_of_the_published_board_are_those_of_plain_loops():
    names, values, benchmarks, groups = board()
    result = robustness(Points(np.asarray(values), benchmarks, groups, benchmarks))
    one = [
        places([statistics.fmean(v for n, v in enumerate(row) if n != left) for row in values]) for left in range(13)
    ]
    group = [
        places([statistics.fmean(v for v, of in zip(row, groups, strict=True) if of != left) for row in values])
        for left in ("ASR", "AST", "EMO")
    ]
    columns = list(zip(*values, strict=True))
    scaled = [
        places([statistics.fmean((v - statistics.fmean(c)) / statistics.pstdev(c)
            for v, c in zip(row, columns, strict=True)) for row in values]),
        places([statistics.fmean((v - min(c)) / (max(c) - min(c)) for v, c in zip(row, columns, strict=True))
            for row in values]),
    ]  # fmt: skip
    rule = places([statistics.fmean(row) for row in values])
    for n, name in enumerate(names):
        assert result[n].rank == rule[n], name
        assert result[n].leave_one_benchmark_out == (min(t[n] for t in one), max(t[n] for t in one)), name
        assert result[n].leave_one_group_out == (min(t[n] for t in group), max(t[n] for t in group)), name
        assert result[n].other_normalisations == (min(t[n] for t in scaled), max(t[n] for t in scaled)), name
    assert names[rule.index(1)] == "Qwen3-Omni-30B-A3B-Instruct"
    # One column of 146.53 % puts this model next to last; without that column, or scaled, it is far better.
    lone = result[names.index("MiDaShengLM-7B")]
    assert lone.rank == 10 and lone.leave_one_benchmark_out[0] < 10


def test_columns_of_one_mark_count_as_one_and_shrink_when_one_of_them_is_omitted():
    values = np.asarray([[90.0, 10.0, 60.0], [40.0, 40.0, 70.0]])
    points = Points(values, ["a", "b", "c"], ["x", "x", "y"], ["ab", "ab", "c"])
    assert points.averages().tolist() == pytest.approx([55.0, 55.0])
    assert [r.rank for r in robustness(points)] == [1, 1]
    # Without a: (10 + 60) / 2 and (40 + 70) / 2. Without b: 75 and 55. Without c: 50 and 40.
    assert [r.leave_one_benchmark_out for r in robustness(points)] == [(1, 2), (1, 2)]
    assert [r.leave_one_group_out for r in robustness(points)] == [(1, 2), (1, 2)]


def test_a_row_with_a_missing_cell_has_no_rank_and_changes_none():
    values = np.asarray([[1.0, 2.0], [3.0, np.nan], [2.0, 1.5]])
    result = robustness(Points(values, "ab", "ab", "ab"))
    assert all(span[1] <= 2 for one in result for span in (one.leave_one_benchmark_out,) if span)
    first, missing, last = result
    assert missing.rank is None and missing.other_normalisations is None and "missing" in missing.notes[0]
    assert (first.rank, last.rank) == (2, 1)


def test_what_cannot_be_omitted_or_scaled_is_named():
    (only,) = robustness(Points(np.asarray([[1.0, 2.0]]), "aa", "bb", "ab"))
    assert only.rank == 1
    assert only.leave_one_benchmark_out is only.leave_one_group_out is only.other_normalisations is None
    assert len(only.notes) == 3
    flat = robustness(Points(np.asarray([[1.0, 5.0], [2.0, 5.0]]), "ab", "ab", "ab"))
    assert [r.other_normalisations for r in flat] == [(2, 2), (1, 1)]
    assert "column 1" in flat[0].notes[0]
    named = robustness(Points(np.asarray([[1.0, 5.0], [2.0, 5.0]]), "ab", "ab", "ab", ["first", "second"]))
    assert "column second, which" in named[0].notes[0]
    assert robustness(Points(np.zeros((0, 2)), "ab", "ab", "ab")) == []


def test_equal_averages_share_the_better_rank():
    assert ranks(np.asarray([5.0, 7.0, 5.0 + 1e-12, np.nan, 1.0])).tolist() == [2, 1, 2, 0, 4]


def excluded(items):
    """The means of `(items, rows)` without each item."""
    return (items.sum(axis=0) - items) / (len(items) - 1)


def test_the_draws_are_the_paired_t_test():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 5, (12, 1))
    items = hard + rng.normal(0, 1, (12, 2)) + [0.0, 0.9]
    from scipy.stats import ttest_rel

    drawn = rank_draws(items.mean(axis=0), [UnitEffects([0, 1], excluded(items))], draws=200_000)
    one_sided = ttest_rel(items[:, 1], items[:, 0], alternative="greater").pvalue
    assert drawn.above[0, 1] == pytest.approx(one_sided, abs=0.004)
    assert drawn.above + drawn.above.T == pytest.approx(np.ones((2, 2)))
    assert drawn.shares.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_systems_that_are_equal_in_truth_are_tied_nineteen_times_in_twenty():
    rng = np.random.default_rng(1)
    separated = 0
    for seed in range(400):
        several = []
        averages = np.zeros(2)
        for units in (5, 30):
            items = rng.normal(0, 5, (units, 1)) + rng.normal(0, 1, (units, 2))
            several.append(UnitEffects([0, 1], excluded(items) / 2))
            averages += items.mean(axis=0) / 2
        separated += rank_draws(averages, several, seed=seed, draws=2_000).tied[0] == ()
    assert 0.02 < separated / 400 < 0.08


def test_a_published_row_has_no_interval_and_is_ranked_with_ours():
    items = np.random.default_rng(2).normal([[1.0, 3.0]], 0.1, (50, 2))
    drawn = rank_draws(np.asarray([2.0, *items.mean(axis=0)]), [UnitEffects([1, 2], excluded(items))])
    assert drawn.intervals == (None, (3, 3), (1, 1))
    assert "no items" in drawn.notes[0] and drawn.notes[1] is None
    assert drawn.tied == ((), (), ())
    small = rank_draws(np.asarray([1.0, 1.1]), [UnitEffects([0, 1], excluded(items[:2]))])
    assert small.intervals == (None, None) and small.notes[0].as_dict() == {
        "code": "too_few_units",
        "units": 2,
        "needed": 3,
        "purpose": "rank_interval",
    }
    assert small.tied == ((), ())


def test_the_least_informative_column_is_omitted_first():
    rng = np.random.default_rng(3)
    truth = np.linspace(0, 100, 8)
    values = np.stack([truth, truth + rng.normal(0, 0.1, 8), rng.permutation(truth) * 0.01], axis=1)
    result = redundancy(Points(values, "abc", "abc", "abc"))
    assert result[0][1] == pytest.approx(1.0)
    excluded = [column for column, _ in result]
    assert set(excluded) < {0, 1, 2} and len(excluded) == 2
    assert 2 in excluded
    assert redundancy(Points(values[:2], "abc", "abc", "abc")) == []


def simulated(items, rng, seed, shift=0.0):
    """What each of four systems is tied with, over three benchmarks whose items are hard or
    easy for all of them alike.
    """
    values = rng.normal(0, 8, (3, items, 1)) + rng.normal(0, 10, (3, items, 4)) + shift * np.eye(4)[0]
    parts = [UnitEffects(range(4), (one.sum(axis=0) - one) / (items - 1) / 3) for one in values]
    return rank_draws(values.mean(axis=(0, 1)), parts, seed=seed, draws=1_000).tied


@pytest.mark.parametrize("items", [20, 50, 200])
def test_some_pair_of_four_equal_systems_is_distinguished_in_at_most_a_twentieth_of_the_data_sets(items):
    rng, runs = np.random.default_rng(items), 600
    wrong = sum(any(len(others) < 3 for others in simulated(items, rng, seed)) for seed in range(runs))
    assert wrong / runs <= 0.05 + 0.022, "600 data sets tell a share of 0.05 to within 0.022"


def test_a_system_that_is_better_is_distinguished_from_all_others():
    rng = np.random.default_rng(0)
    assert sum(not simulated(20, rng, seed, shift=14.0)[0] for seed in range(50)) >= 45
