"""Which raters of a MUSHRA test are left out, by a named rule. Who is left out, and why, is always told.

`bs1534-3` is the post-screening of ITU-R BS.1534-3, section 4.1.2. A rater is left out who
    rates the hidden reference below 90 in more than 15 % of the trials, or
    rates the mid-range anchor (7 kHz) above 90 in more than 15 % of the trials.
    For the second rule an item does not count if more than a quarter of the raters rate its mid-range anchor above 90: the
    filter may then have taken nothing away that can be heard.
`none` leaves nobody out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from codec_bench.apps.listening.key import REFERENCE, anchor_name
from codec_bench.apps.listening.ratings import Rating
from codec_bench.errors import UnknownName

RULES = ("bs1534-3", "none")
HIGH = 90
MOST = 0.15
TOO_GOOD = 0.25
MID_ANCHOR = anchor_name("7k")


@dataclass(frozen=True, slots=True)
class Screened:
    """What post-screening found of one rater.

    Args:
        rater: the name. trials: in which the hidden reference was rated.
        reference_low: in how many of them it was rated below 90.
        anchor_trials: in which the mid-range anchor was rated and counts. anchor_high: in how many of them it was above 90.
        reasons: why the rater is left out; empty for who stays.
    """

    rater: str
    trials: int
    reference_low: int
    anchor_trials: int
    anchor_high: int
    reasons: tuple[str, ...]


def screen(rows: Sequence[Rating], rule: str) -> list[Screened]:
    """What a rule finds of every rater with counted ratings.

    Raises:
        UnknownName: there is no such rule.
    """
    if rule not in RULES:
        raise UnknownName("rule of post-screening", rule, RULES)
    if rule == "none":
        return []
    references: dict[str, list[float]] = defaultdict(list)
    anchors: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.system == REFERENCE and row.value is not None:
            references[row.rater].append(row.value)
        elif row.system == MID_ANCHOR and row.value is not None:
            anchors[row.trial][row.rater] = row.value
    telling = [held for held in anchors.values() if sum(v > HIGH for v in held.values()) <= TOO_GOOD * len(held)]
    found = []
    for rater in dict.fromkeys(row.rater for row in rows):
        low = sum(value < HIGH for value in references[rater])
        heard = [held[rater] for held in telling if rater in held]
        high = sum(value > HIGH for value in heard)
        reasons = []
        if low > MOST * len(references[rater]):
            reasons.append(f"the hidden reference was below {HIGH} in {low} of {len(references[rater])} trials")
        if high > MOST * len(heard):
            reasons.append(f"the 7 kHz anchor was above {HIGH} in {high} of {len(heard)} trials")
        found.append(Screened(rater, len(references[rater]), low, len(heard), high, tuple(reasons)))
    return found
