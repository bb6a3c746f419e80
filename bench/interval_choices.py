"""What `bench_intervals.py` draws for methods that hold more and were not taken, because of how wide they make ordinary intervals.

Two rules are tried beside those of the package. The first allows in a difference of error rates for whole speakers whom one system alone
loses, up to `MOST_LOST` of all items, as the interval of a single rate does. The second lets Student's t of few values reach farther, by twice their
skewness.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from interval_designs import LEVEL, OWN, Draw, Drawn, Rng, design, drawn_of_few, own, rare_of_speakers
from scipy import stats

from codec_bench.stats.intervals import ratios, unit_sums
from codec_bench.stats.spread import skewness
from codec_bench.stats.unseen import MOST_LOST, unseen_end

Ends = tuple[float, float]
_BOUNDS = (0.0, 1.0)


@design
def _rates(rng: Rng, speakers: int, each: int, better: float) -> Drawn:
    """Error rates of 2 % and of this much more, of speakers who are understood unequally well by both; nothing is lost."""
    codes = np.repeat(np.arange(speakers), each)
    harder = rng.gamma(4, 0.25, speakers)[codes]
    words = rng.integers(3, 41, len(codes)).astype(float)
    sides = [np.minimum(rng.poisson(rate * harder * words), words) for rate in (0.02 + better, 0.02)]
    tables = [np.stack([side.astype(float), words], axis=1) for side in sides]
    return tables[0], tables[1], codes, better


def whole_speakers(a: np.ndarray, b: np.ndarray, codes: np.ndarray, ends: Ends) -> Ends:
    """The interval of a difference that also allows for whole speakers whom one of the two loses.

    Args:
        a, b: each item's errors and words, `(items, 2)`. codes: the speakers. ends: the package's own.
    """
    of_a, of_b = unit_sums(a, codes), unit_sums(b, codes)
    apart = np.stack([of_a[:, 0] - of_b[:, 0], of_a[:, 1]], axis=1)
    difference = float(ratios(apart.sum(axis=0)))
    speaker = float(a[:, 1].sum()) / len(apart)
    low, high = (unseen_end(apart, (side * speaker, speaker), LEVEL, upper=side > 0) for side in (-1, 1))
    return min(ends[0], max(low, difference - MOST_LOST)), max(ends[1], min(high, difference + MOST_LOST))


def twice_skewed(a: np.ndarray) -> Ends:
    """Student's t of a mean, farther by twice the skewness; `a` holds values over 1, `(items, 2)`."""
    values = a[:, 0]
    reach = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1) * stats.sem(values))
    to_above = skewness(values - values.mean())
    below, above = (max(1.0, (2 + 2 * side) / math.sqrt(len(values)) + 1 / 3) for side in (-to_above, to_above))
    return float(values.mean()) - below * reach, float(values.mean()) + above * reach


SPEAKERS = "with whole speakers allowed for"
TWICE = "with twice the skewness"
CHOICES: dict[str, tuple[str, Draw]] = {
    **{
        f"difference of error rates, {'2.0% both' if not better else f'2.0% and {0.02 + better:.1%}'}, speakers {speakers} x {each}": (
            SPEAKERS,
            _rates(speakers, each, better),
        )
        for better in (0.0, 0.01)
        for speakers, each in ((20, 50), (40, 65), (100, 20))
    },
    **{
        f"difference of error rates, 2.0%, {lost:.1%} lost by one system, 0.95 alike, speakers {speakers} x {each}": (
            SPEAKERS,
            rare_of_speakers((each,) * speakers, lost, 0.95, two=True),
        )
        for speakers, each, lost in ((20, 50, 0.03), (40, 65, 0.03))
    },
    **{
        f"mean, {law}, {items} items": (TWICE, drawn_of_few(items, law))
        for law in ("normal", "exponential", "gamma of shape 0.5 (skewness 2.8)", "lognormal of spread 1 (skewness 6.2)")
        for items in (5, 8, 12, 20)
    },
}  # fmt: skip
"""The rule that is tried on each design, and what draws a run."""


def choices(repetitions: int, names: list[str]) -> Iterator[dict[str, object]]:
    """Two rows per design: how often the package's interval and that of the other rule hold the truth, and how wide they are."""
    for name in names:
        rule, draw = CHOICES[name]
        rng = np.random.default_rng(list(name.encode()))
        found: dict[str, list[tuple[float, float]]] = {OWN: [], rule: []}
        truth = 0.0
        for _ in range(repetitions):
            a, b, codes, truth = run = draw(rng)
            ends = own(run, bounds=None if b is None else _BOUNDS).ends
            if ends is not None:
                found[OWN].append(ends)
                found[rule].append(twice_skewed(a) if b is None or codes is None else whole_speakers(a, b, codes, ends))
        for variant, intervals in found.items():
            low, high = np.array(intervals).reshape(-1, 2).T
            yield {
                "design": name, "variant": variant, "coverage": float(((low <= truth) & (truth <= high)).mean()), "given": len(low) / repetitions,
                "width": float((high - low).mean()), "apart": float(((low > 0) | (high < 0)).mean()), "repetitions": repetitions,
            }  # fmt: skip
