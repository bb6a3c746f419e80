"""Times the trust in a leaderboard's ranks at its full size, after checking it against plain loops and the normal distribution.

    python bench/bench_ranking.py            50 rows, 40 columns, 10,000 items in each column
    python bench/bench_ranking.py --rows 20 --columns 10 --items 1000

Timed are the ranks under other rules (`robustness`), the rank intervals with other items (`rank_draws`, 10,000 draws), and what could be
left out (`redundancy`): what `leaderboard --robustness` computes once the records are read. The items are given as numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

import numpy as np
from common import append_rows, interleaved, row, worst
from scipy.special import ndtr

from codec_bench.stats.ranking import LeftOut, Points, rank_draws, redundancy, robustness

GROUPS = 8


class Case:
    """A board of own rows: the items of every column, which all rows answered."""

    def __init__(self, rows: int, columns: int, items: int) -> None:
        rng = np.random.default_rng(0)
        ability = rng.normal(60, 5, rows)
        self.items = [
            ability + rng.normal(0, 3, rows) + rng.normal(0, 20, (items, 1)) + rng.normal(0, 20, (items, rows))
            for _ in range(columns)
        ]
        names = [f"b{n}" for n in range(columns)]
        values = np.stack([of.mean(axis=0) for of in self.items], axis=1)
        self.points = Points(values, names, [f"g{n % GROUPS}" for n in range(columns)], names)

    def left_out(self) -> list[LeftOut]:
        """What each column adds to the averages with each item left out."""
        rows = list(range(len(self.points.values)))
        return [LeftOut(rows, (of.sum(axis=0) - of) / (len(of) - 1) / len(self.items)) for of in self.items]


def trust(case: Case) -> None:
    """All that is timed."""
    robustness(case.points)
    rank_draws(case.points.averages(), case.left_out())


def check(case: Case) -> str:
    """Compares ranks with plain loops, and the draws with the normal distribution.

    Raises:
        SystemExit: a rank differs, or a share of draws by more than 0.03.
    """
    values = case.points.values
    places = lambda averages: 1 + (averages[None, :] > averages[:, None] + 1e-9).sum(axis=1)  # noqa: E731
    groups = np.asarray(case.points.groups)
    scaled = [
        (values - values.mean(axis=0)) / values.std(axis=0),
        (values - values.min(axis=0)) / np.ptp(values, axis=0),
    ]
    expected = [
        [places(np.delete(values, column, axis=1).mean(axis=1)) for column in range(values.shape[1])],
        [places(values[:, groups != group].mean(axis=1)) for group in dict.fromkeys(case.points.groups)],
        [places(of.mean(axis=1)) for of in scaled],
    ]
    rule = places(values.mean(axis=1))
    for n, found in enumerate(robustness(case.points)):
        spans = [(int(min(t[n] for t in tables)), int(max(t[n] for t in tables))) for tables in expected]
        mine = [found.leave_one_benchmark_out, found.leave_one_group_out, found.other_normalisations]
        if found.rank != rule[n] or mine != spans:
            raise SystemExit(f"row {n}: rank {found.rank} and {mine}; plain loops give {rule[n]} and {spans}")
    apart = sum(np.cov(of, rowvar=False) / len(of) for of in case.items) / len(case.items) ** 2
    spread = np.sqrt(np.maximum(np.diag(apart)[:, None] + np.diag(apart)[None] - 2 * apart, 1e-30))
    averages = values.mean(axis=1)
    normal = ndtr((averages[:, None] - averages[None]) / spread)
    above = rank_draws(averages, case.left_out()).above
    off = ~np.eye(len(averages), dtype=bool)
    far = worst(
        list(zip(normal[off].tolist(), above[off].tolist(), strict=True)), 0.03, "the share of draws above another row"
    )
    return f"equal ranks; shares of draws within {far:.3f} of the normal distribution's"


def main() -> None:
    """Checks, times, and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--columns", type=int, default=40)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    case = Case(options.rows, options.columns, options.items)
    agreement = check(case)
    calls = {"robustness and rank intervals": partial(trust, case), "redundancy": partial(redundancy, case.points)}
    rows = []
    for variant, times in interleaved(calls, repeats=options.repeats).items():
        told = agreement if variant != "redundancy" else ""
        size = f"{options.rows} rows, {options.columns} columns, {options.items} items"
        rows.append(row(size, variant, times, n=options.rows, agreement=told))
        sys.stdout.write(f"{size:>36} {variant:>30} {np.median(times):>8.2f} s  {told}\n")
    path = append_rows("ranking", rows, ("codec-bench", "numpy", "scipy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
