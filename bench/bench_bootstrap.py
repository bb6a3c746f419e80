"""Times the bootstrap interval of a corpus ratio against SciPy's, and checks that the two intervals are the same.

    python bench/bench_bootstrap.py

The baseline is `scipy.stats.bootstrap(paired=True, vectorized=True, method="percentile")` in batches that fit a cache.
The floor makes the random numbers, one per draw, on one thread, and reads nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial

import numpy as np
from common import append_rows, interleaved, row
from numba import njit
from scipy import stats

from codec_bench.kernels.bootstrap import cpu
from codec_bench.stats import bootstrap_interval

DRAWS = 200_000_000  # of a case at most; the number of resamples follows


@njit
def _numbers_alone(units, resamples, state):
    seen = np.uint64(0)
    for _ in range(units * resamples):
        state += cpu._GOLDEN
        seen ^= cpu._mix(state)
    return seen


def scipy_interval(errors: np.ndarray, words: np.ndarray, resamples: int) -> tuple[float, float]:
    """SciPy's percentile interval of sum(errors) / sum(words)."""
    result = stats.bootstrap(
        (errors, words), lambda e, n, axis: e.sum(axis) / n.sum(axis), paired=True, vectorized=True,
        n_resamples=resamples, batch=max(1, 200_000 // len(errors)), method="percentile", rng=np.random.default_rng(0),
    )  # fmt: skip
    return result.confidence_interval.low, result.confidence_interval.high


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, nargs="+", default=[100, 1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = []
    sys.stdout.write(f"{'items':>9} {'resamples':>9} {'variant':>12} {'p50 s':>9} {'ratio':>7}  agreement\n")
    for items in options.items:
        resamples = min(1000, DRAWS // items)
        words = rng.integers(3, 40, items).astype(float)
        errors = rng.binomial(words.astype(int), 0.12).astype(float)
        ours = bootstrap_interval(errors, words, seed=1, resamples=resamples)
        low, high = scipy_interval(errors, words, resamples)
        apart = max(abs(ours.low - low), abs(ours.high - high)) / (high - low)
        # An end of 200 resamples wanders by some 7 % of the width; two such intervals may lie this far apart.
        if apart > 0.3:
            raise SystemExit(f"{items} items: the intervals lie {apart:.1%} of their width apart")
        seconds = interleaved(
            {
                "scipy": partial(scipy_interval, errors, words, resamples),
                "codec-bench": partial(bootstrap_interval, errors, words, seed=1, resamples=resamples),
                "floor": partial(_numbers_alone, items, resamples, np.uint64(1)),
            },
            repeats=options.repeats,
        )
        for variant, times in seconds.items():
            ratio = float(np.median(seconds["scipy"]) / np.median(times))
            agreement = f"ends within {apart:.1%} of the width" if variant == "codec-bench" else ""
            note = f"{resamples} resamples"
            rows.append(
                row("interval of a ratio", variant, times, n=items, ratio=ratio, agreement=agreement, note=note)
            )
            sys.stdout.write(
                f"{items:>9} {resamples:>9} {variant:>12} {np.median(times):>9.4f} {ratio:>7.1f}  {agreement}\n"
            )
    path = append_rows("bootstrap", rows, ("codec-bench", "numba", "scipy", "numpy"))
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
