"""The exponents of Zipf's and Heaps' laws: how unequally codes occur, how fast new ones appear.

Zipf is the most likely s of p(rank r) ~ r ** -s. One random half of the codes ranks the entries and the other counts
them, and vice versa: with shared errors even white codes would fall with the rank. It is too low where entries were
seen less than a few times: of 1,024 entries with s = 0.5, 500 codes gave 0.39, 10,000 gave 0.47 (simulated; white at
most 0.04). Heaps is the growth n ** b of distinct entries between a tenth of the codes, over all draws
(hypergeometric), and all; a finite codebook ends at 0, so compare equal numbers of codes.
References: S. T. Piantadosi, Psychonomic Bulletin & Review 21 (2014); H. S. Heaps, 1978; J. Park et al., arXiv
2509.01390.
"""

from __future__ import annotations

import math

import numpy as np

_STEEPEST = 20.0


def zipf_exponent(counts: np.ndarray, *, seed: int) -> float | None:
    """Estimate Zipf's exponent from counts; None below two used entries."""
    if counts.sum() < 2 or np.count_nonzero(counts) < 2:
        return None
    half = np.random.default_rng(seed).binomial(counts, 0.5)
    other = counts - half
    exponents = [_exponent(counted[np.argsort(-ranking, kind="stable")]) for ranking, counted in _both(half, other)]
    return math.fsum(exponents) / len(exponents) if exponents else None


def _both(half: np.ndarray, other: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a, b) for a, b in ((half, other), (other, half)) if b.any()]


def _exponent(counts: np.ndarray) -> float:
    """Find the most likely exponent of counts in the order of their ranks."""
    from scipy.optimize import brentq

    logs = np.log(np.arange(1, len(counts) + 1))
    seen = float(counts @ logs / counts.sum())

    def surplus(s: float) -> float:
        """Compute the expected less the observed log rank; it falls with s."""
        weights = np.exp(-s * (logs - logs[0]) - max(0.0, -s * float(logs[-1])))
        return float(weights @ logs / weights.sum()) - seen

    if surplus(_STEEPEST) > 0:  # all codes are one entry
        return _STEEPEST
    return 0.0 if surplus(0.0) <= 0 else float(brentq(surplus, 0.0, _STEEPEST, xtol=1e-10))


def heaps_exponent(counts: np.ndarray) -> float | None:
    """Estimate Heaps' exponent, 0 to 1; None below ten codes."""
    total = int(counts.sum())
    if total < 10:
        return None
    sample_size = total // 10
    return math.log(np.count_nonzero(counts) / _different(counts, sample_size)) / math.log(total / sample_size)


def _different(counts: np.ndarray, sample_size: int) -> float:
    """Compute the expected number of different entries in a sample of the codes."""
    from scipy.special import gammaln

    total, sizes = int(counts.sum()), counts[counts > 0].astype(np.float64)
    left = total - sizes
    fits = left >= sample_size  # otherwise the entry is in every draw
    none = (
        gammaln(left[fits] + 1)
        - gammaln(left[fits] - sample_size + 1)
        - gammaln(total + 1)
        + gammaln(total - sample_size + 1)
    )
    return float(len(sizes) - np.exp(none).sum())
