"""How unequally codes occur, and how fast new ones appear: the exponents of Zipf and of Heaps.

    zipf_exponent(counts, seed=0)        # 0 is white, words of a language are near 1
    heaps_exponent(counts)               # 0: no new entries come any more; 1: every code is new

Zipf    The probability of the entry of rank r is taken as proportional to r ** -s over all entries of the codebook; s
        is the most likely one. Ranks and frequencies of one sample share their errors, and then even white codes seem
        to fall with the rank. So the codes are split into two halves by chance (a seed): one ranks the entries, the
        other counts them, and then the other way round. It is still too low where most entries were seen less than a
        few times, since their ranks are then guesses: of 1,024 entries with s = 0.5, 500 codes gave 0.39, 2,000 gave
        0.42, 10,000 gave 0.47 and 100,000 gave 0.50 (simulated; with s = 1, 0.96 to 1.00). White codes gave at most
        0.04.
Heaps   The number of different entries in n codes grows as n ** b. The exponent b is that between a tenth of the codes
        and all of them, where a tenth means all ways to draw one (exactly, by the hypergeometric distribution), so that
        the order of clips does not matter. A finite codebook ends at 0, so compare it only over equally many codes.

References: S. T. Piantadosi, "Zipf's word frequency law in natural language", Psychonomic Bulletin & Review 21 (2014),
for the two halves; H. S. Heaps, "Information Retrieval", 1978. Codes of codecs by both laws: J. Park et al., "Analysing
the Language of Neural Audio Codecs", arXiv 2509.01390.
"""

from __future__ import annotations

import math

import numpy as np

_STEEPEST = 20.0


def zipf_exponent(counts: np.ndarray, *, seed: int) -> float | None:
    """The exponent of Zipf's law of a codebook.

    Args:
        counts: how often each entry occurred, int64 `(entries,)`. seed: decides the halves.

    Returns:
        The exponent; None with fewer than two codes, and where all codes are one entry.
    """
    if counts.sum() < 2 or np.count_nonzero(counts) < 2:
        return None
    half = np.random.default_rng(seed).binomial(counts, 0.5)
    other = counts - half
    exponents = [_exponent(counted[np.argsort(-ranking, kind="stable")]) for ranking, counted in _both(half, other)]
    return math.fsum(exponents) / len(exponents) if exponents else None


def _both(half: np.ndarray, other: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a, b) for a, b in ((half, other), (other, half)) if b.any()]


def _exponent(counts: np.ndarray) -> float:
    """The most likely exponent of counts in the order of their ranks."""
    from scipy.optimize import brentq

    logs = np.log(np.arange(1, len(counts) + 1))
    seen = float(counts @ logs / counts.sum())

    def surplus(s: float) -> float:
        """The expected logarithm of the rank less the one that was seen; it falls with s."""
        weights = np.exp(-s * (logs - logs[0]) - max(0.0, -s * float(logs[-1])))
        return float(weights @ logs / weights.sum()) - seen

    if surplus(_STEEPEST) > 0:  # all codes are one entry
        return _STEEPEST
    return 0.0 if surplus(0.0) <= 0 else float(brentq(surplus, 0.0, _STEEPEST, xtol=1e-10))


def heaps_exponent(counts: np.ndarray) -> float | None:
    """The exponent of Heaps' law of a codebook over the last tenfold of its codes.

    Args:
        counts: how often each entry occurred, int64 `(entries,)`.

    Returns:
        The exponent, 0 to 1; None with fewer than ten codes.
    """
    total = int(counts.sum())
    if total < 10:
        return None
    sample_size = total // 10
    return math.log(np.count_nonzero(counts) / _different(counts, sample_size)) / math.log(total / sample_size)


def _different(counts: np.ndarray, sample_size: int) -> float:
    """How many different entries are expected in so many of the codes."""
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
