"""The speakers and utterances needed to show a difference, from a pilot run.

The pilot's differences are split into variances between and within speakers (one-way analysis of variance; Searle,
Casella and McCulloch 1992, chapter 3). G speakers of m utterances have the standard error sqrt(between / G + within /
(G m)); they suffice if the minimum detectable effect of its t test is at most the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.stats.cluster_variance import detectable_effect
from codec_bench.stats.intervals import FEWEST_UNITS, LEVEL
from codec_bench.stats.paired import FEWEST_FOR_P, POWER

PER_SPEAKER = (1, 2, 5, 10, 20, 50, 100)
MOST_SPEAKERS = 1_000_000


@dataclass(frozen=True, slots=True)
class PilotSpread:
    """Spread of the items' differences in a pilot.

    `between`: variance of speakers' means beyond their utterances'. `within`: variance of a speaker's utterances.
    """

    difference: float
    between: float
    within: float
    units: int
    items: int


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A sufficient number of speakers, with so many utterances each."""

    speakers: int
    utterances_per_speaker: int

    @property
    def utterances(self) -> int:
        """Number of all utterances."""
        return self.speakers * self.utterances_per_speaker


def spread_of(differences: np.ndarray, codes: np.ndarray | None) -> PilotSpread:
    """Split the spread of differences `(items,)` between and within 3 units or more."""
    items = len(differences)
    codes = np.arange(items) if codes is None else codes
    sizes = np.bincount(codes)
    units = len(sizes)
    if units < FEWEST_UNITS:
        raise UserError(
            "pilot_units", units=units, least=FEWEST_UNITS, hint="run the two systems over a few more speakers first"
        )
    means = np.bincount(codes, differences) / sizes
    grand = float(differences.mean())
    among = float((sizes * np.square(means - grand)).sum()) / (units - 1)
    if items == units:
        return PilotSpread(grand, 0.0, among, units, items)
    within = float(np.square(differences - means[codes]).sum()) / (items - units)
    typical = (items - float(np.square(sizes).sum()) / items) / (units - 1)
    return PilotSpread(grand, max(0.0, (among - within) / typical), within, units, items)


def plans_for(spread: PilotSpread, difference: float, *, power: float = POWER) -> list[StudyPlan]:
    """The fewest speakers that find a difference, by utterances per speaker.

    Args:
        difference: the smallest that matters, of any sign. power: of the test.

    Raises:
        UserError: the difference is 0 or not finite, or more than a million speakers would be needed.
    """
    difference = abs(difference)
    if not (math.isfinite(difference) and difference > 0):
        raise UserError("difference_value", difference=difference)
    counts: Sequence[int] = PER_SPEAKER if spread.items > spread.units else (1,)
    plans = [StudyPlan(_fewest_speakers(spread, each, difference, power), each) for each in counts]
    return [plan for index, plan in enumerate(plans) if not index or plan.speakers < plans[index - 1].speakers]


def _fewest_speakers(pilot: PilotSpread, each: int, difference: float, power: float) -> int:
    """Find the fewest speakers that detect a difference, by bisection."""
    variance = pilot.between + pilot.within / each

    def enough(units: int) -> bool:
        return detectable_effect(math.sqrt(variance / units), units - 1, LEVEL, power) <= difference

    if not enough(MOST_SPEAKERS):
        raise UserError(
            "difference_needs_more",
            difference=difference,
            speakers=MOST_SPEAKERS,
            utterances=each,
            hint="name a larger difference; the pilot's scores spread too much for this one",
        )
    low, high = FEWEST_FOR_P, MOST_SPEAKERS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
