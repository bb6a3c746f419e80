"""What the ratings say: the value of every system with its intervals, of every pair of systems, and of every rater.

Conventions
    All ratings of one rater resemble each other, and so do those of one speaker. The interval of a value is over both: how it
    would be with other people and other sounds (`stats.crossed`). Beside it stand one over the raters (other people, these sounds) and one
    over the speakers, or items of unknown speaker (these people, other sounds), each with whole clusters as its units. There is none
    where there are too few units. Intervals are cut at the ends of the scale, beyond which no value can be.
    A comparison of two systems is over what one rater said of both about one item. Its interval and its p are over raters and
    items too: over raters alone, two equal systems of which each is better on some sounds would often seem to differ.
    Practice and repeated trials count nowhere here; the repeated ones say how much a rater's own answers differ.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from codec_bench.apps.listening.answers import Problem
from codec_bench.apps.listening.key import REFERENCE, Key
from codec_bench.apps.listening.kinds import kind_of
from codec_bench.apps.listening.ratings import REPEAT, USED, Rating, Screened, counted
from codec_bench.errors import UserError
from codec_bench.stats.crossed import crossed_interval, crossed_test
from codec_bench.stats.intervals import FEWEST_UNITS, Interval, interval_of, item_table, ratios, unit_codes
from codec_bench.stats.paired import PairedTest, holm
from codec_bench.stats.pairs import Duel, Strengths, strengths

_SHARES = ("preference", "options")
POSITION = "shown as A"


@dataclass(frozen=True, slots=True)
class SystemValue:
    """What the raters said of one system, or of the first of two (`other` is the second, for a preference).

    Args:
        system, other: names. value: the mean of the scores that count; None if there is none.
        interval: over raters and items. over_raters: over the raters. over_items: over the speakers, or items of unknown speaker.
        n: how many ratings count. raters, items: from how many raters, about how many items.
        uncounted: the mean over all valid ratings, also of those who were left out; None if nobody was.
        below_reference: for MUSHRA the mean difference from the hidden reference of the same trial, or None.
        choices: how often each answer was given: the decisions, the options, or wins and ties.
        test: for a preference whether it differs from an even one. p_holm: p adjusted for all pairs.
    """

    system: str
    other: str
    value: float | None
    interval: Interval
    over_raters: Interval
    over_items: Interval
    n: int
    raters: int
    items: int
    uncounted: float | None = None
    below_reference: float | None = None
    choices: dict[str, int] | None = None
    test: PairedTest | None = None
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class SystemPair:
    """Two systems that the same raters rated on the same items: the difference A minus B, with its interval and p."""

    a: str
    b: str
    n: int
    test: PairedTest
    p_holm: float | None = None


@dataclass(frozen=True, slots=True)
class RaterFacts:
    """What is known of one rater.

    Args:
        rater: the name. answered, asked: answers that are valid, of those that were asked, without practice and repeats.
        minutes: that all trials took. repeats: how many ratings were given twice.
        repeat_difference: the mean absolute difference of those; None without any.
        left_out: why the rater does not count; empty for who does.
    """

    rater: str
    answered: int
    asked: int
    minutes: float
    repeats: int
    repeat_difference: float | None
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListeningOutcome:
    """What a listening test says.

    Args:
        sheet: the id of the test. kind: of the test. measure: what the values are, such as `DMOS`. scale: of an answer.
        systems: the values. pairs: comparisons of systems; empty for a preference, whose values are comparisons already.
        raters: one entry for each. screening: the rule, and what it found of each rater.
        screening_note: that a part of the rule does not apply to some items, or None.
        first_preferred: for a preference how often the side that was shown as A was preferred, without ties.
        problems: what is wrong with files and answers. ratings: every answer, with what became of it.
        csv: where the ratings were written, or None.
        strengths: for preferences among three systems or more, how strong each is, with intervals over sounds and these raters.
    """

    sheet: str
    kind: str
    measure: str
    scale: tuple[int, int]
    systems: Sequence[SystemValue]
    pairs: Sequence[SystemPair]
    raters: Sequence[RaterFacts]
    screening: str
    screened: Sequence[Screened]
    first_preferred: SystemValue | None
    problems: Sequence[Problem]
    ratings: Sequence[Rating]
    csv: Path | None = None
    screening_note: str | None = None
    strengths: Strengths | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, without the ratings, of which `statuses` counts what became of them."""
        held = {**asdict(replace(self, ratings=(), csv=None)), "csv": str(self.csv) if self.csv else None}
        held["statuses"] = dict(Counter(row.status for row in self.ratings))
        del held["ratings"]
        return held


def outcome_of(
    key: Key,
    rows: Sequence[Rating],
    problems: Sequence[Problem],
    found: Sequence[Screened],
    rule: str,
    void: str | None = None,
) -> ListeningOutcome:
    """What a test says.

    Args:
        rows: all ratings, those of raters who were left out marked. found: what post-screening says. rule: its name.
        void: the sentence that a part of the rule does not apply to some items, or None.
    """
    kind = kind_of(key.kind)
    groups: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for row in rows:
        if row.value is not None or (key.kind == "review" and row.status == USED):
            groups[row.system, row.other].append(row)
    reference = {(row.rater, row.trial): row.score for row in counted(rows) if row.system == REFERENCE}
    order = {name: n for n, name in enumerate(key.systems)}
    names = sorted(groups, key=lambda pair: [order.get(name, len(order)) for name in pair])
    values = [
        replace(_value(key, pair, groups[pair]), below_reference=_below(pair[0], groups[pair], reference))
        for pair in names
    ]
    if key.kind == "preference":
        adjusted = holm([one.test.p if one.test else None for one in values])
        values = [replace(one, p_holm=p) for one, p in zip(values, adjusted)]
    return ListeningOutcome(
        key.sheet, key.kind, kind.measures[key.beside_reference], key.scale, values, _pairs(key, counted(rows)),
        _raters(key, rows, found), rule if key.kind == "mushra" else "none", found, _first(key, counted(rows)), problems, rows,
        screening_note=void, strengths=_strengths(key, counted(rows)),
    )  # fmt: skip


def _strengths(key: Key, used: Sequence[Rating]) -> Strengths | None:
    """How strong the systems are by whom they were preferred to; None for two systems, whose share of preferences says it."""
    if key.kind != "preference" or len(key.systems) < 3:
        return None
    scored = [(row, sound) for row, sound in zip(used, _sounds(used)) if row.score is not None]
    duels = [Duel(row.system, row.other, row.score or 0.0, sound) for row, sound in scored]
    try:
        return strengths(duels)
    except UserError as error:
        return Strengths((), 0.0, len(duels), len({duel.unit for duel in duels}), error.message)


def _value(key: Key, names: tuple[str, str], rows: Sequence[Rating]) -> SystemValue:
    used = counted(rows)
    scored = [row for row in used if row.score is not None]
    scores = [row.score for row in scored if row.score is not None]
    raters = [row.rater for row in scored]
    left_out = len([row for row in rows if row.status in ("screened", "edited")])
    valid = [row.value for row in rows if row.value is not None and row.status in (USED, "screened", "edited")]
    test = None
    if key.kind == "preference" and scores:
        test = crossed_test([2 * score - 1 for score in scores], raters, _sounds(scored))
    return SystemValue(
        *names, fmean(scores) if scores else None, *_intervals(key, scores, raters, _sounds(scored)),
        len(scores) if key.kind != "review" else len(used), len({row.rater for row in used}), len({row.id for row in used}),
        fmean(valid) if left_out and valid else None, None, _choices(key.kind, names, used), test,
    )  # fmt: skip


def _sounds(rows: Sequence[Rating]) -> list[str]:
    """The speaker of each rating, or its item where the speaker is unknown."""
    return [row.speaker or f"item {row.id}" for row in rows]


def _intervals(
    key: Key, scores: Sequence[float], raters: Sequence[str], sounds: Sequence[str]
) -> tuple[Interval, Interval, Interval]:
    """The intervals of a mean: over raters and items, over raters, and over speakers or items."""
    made = [
        _over(key, scores, clusters, what) for clusters, what in ((raters, "raters"), (sounds, "speakers or items"))
    ]
    both = crossed_interval(scores, raters, sounds) if scores else made[0]
    lowest, highest = (0, 1) if key.kind in _SHARES else key.scale
    if key.kind in _SHARES and both.low is not None and both.high is not None:
        # Near 0 and 1 Student's t is too short for a share, and the other two allow for that.
        lows = [one.low for one in (both, *made) if one.low is not None]
        both = replace(both, low=min(lows), high=max(one.high for one in (both, *made) if one.high is not None))
    cut = [
        one
        if one.low is None or one.high is None
        else replace(one, low=max(one.low, lowest), high=min(one.high, highest))
        for one in (both, *made)
    ]
    return cut[0], cut[1], cut[2]


def _over(key: Key, scores: Sequence[float], clusters: Sequence[str], what: str) -> Interval:
    bounds = (0, 1) if key.kind in _SHARES else key.scale
    codes = unit_codes(clusters, len(scores))
    made = interval_of(ratios, item_table(scores), codes, share=key.kind in _SHARES, bounds=bounds)
    if made.ends is None and len(scores) and made.units < FEWEST_UNITS:
        told = f"there are {made.units} {what}; an interval needs at least {FEWEST_UNITS}"
        return replace(made, note=told)
    return made


def _choices(kind: str, names: tuple[str, str], used: Sequence[Rating]) -> dict[str, int] | None:
    if kind == "preference":
        wins = Counter(row.score for row in used)
        return {names[0]: wins[1.0], names[1]: wins[0.0], "no difference": wins[0.5]}
    return dict(Counter(row.choice for row in used).most_common()) if kind in ("options", "review") else None


def _below(system: str, rows: Sequence[Rating], reference: Mapping[tuple[str, str], float | None]) -> float | None:
    """The mean of a system's scores minus those of the hidden reference in the same trial of the same rater."""
    if system == REFERENCE:
        return None
    both = [(row.score, reference.get((row.rater, row.trial))) for row in counted(rows)]
    apart = [own - hidden for own, hidden in both if own is not None and hidden is not None]
    return fmean(apart) if apart else None


def _pairs(key: Key, used: Sequence[Rating]) -> list[SystemPair]:
    """The comparisons of all pairs of systems, without anchors and reference."""
    if key.kind not in ("mushra", "rating", "options"):
        return []
    held: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    sounds = {row.id: sound for row, sound in zip(used, _sounds(used))}
    for row in used:
        if row.system in key.systems and row.score is not None:
            held[row.system][row.rater, row.id] = row.score
    made = []
    for a, b in combinations([name for name in key.systems if name in held], 2):
        both = sorted(held[a].keys() & held[b].keys())
        if both:
            differences = [held[a][which] - held[b][which] for which in both]
            raters, heard = [rater for rater, _ in both], [sounds[id] for _, id in both]
            made.append(SystemPair(a, b, len(both), crossed_test(differences, raters, heard)))
    adjusted = holm([pair.test.p for pair in made])
    return [replace(pair, p_holm=p) for pair, p in zip(made, adjusted)]


def _raters(key: Key, rows: Sequence[Rating], found: Sequence[Screened]) -> list[RaterFacts]:
    asked = sum(len(trial.stimuli) if key.kind in ("mushra", "rating", "options") else 1 for trial in key.counted)
    reasons = {one.rater: one.reasons for one in found}
    facts = []
    for rater in dict.fromkeys(row.rater for row in rows):
        own = [row for row in rows if row.rater == rater]
        valid = [row for row in own if row.status in (USED, "screened", "edited")]
        took = {
            (row.file, row.trial): row.seconds for row in own if row.seconds is not None and row.status != "superseded"
        }
        apart = _apart(key, own)
        edited = ("the file was changed by hand",) if any(row.status == "edited" for row in own) else ()
        facts.append(
            RaterFacts(
                rater, len(valid), asked, math.fsum(took.values()) / 60, len(apart), fmean(apart) if apart else None,
                (*reasons.get(rater, ()), *edited),
            )
        )  # fmt: skip
    return facts


def _apart(key: Key, own: Sequence[Rating]) -> list[float]:
    """The absolute differences of what one rater said twice about the same."""
    repeated = {trial.id: trial.repeat_of for trial in key.trials}
    first = {(row.trial, row.system): row.value for row in own if row.status in (USED, "screened", "edited")}
    found = []
    for row in own:
        before = first.get((repeated[row.trial] or "", row.system))
        if row.status == REPEAT and row.value is not None and before is not None:
            found.append(abs(row.value - before))
    return found


def _first(key: Key, used: Sequence[Rating]) -> SystemValue | None:
    """How often the side that was shown as A was preferred."""
    told = [
        (row, row.score == float(row.is_first)) for row in used if row.is_first is not None and row.score in (0.0, 1.0)
    ]
    if key.kind != "preference" or not told:
        return None
    scores, raters = [float(is_a) for _, is_a in told], [row.rater for row, _ in told]
    return SystemValue(
        POSITION, "", fmean(scores), *_intervals(key, scores, raters, _sounds([row for row, _ in told])), len(scores), len(set(raters)), len({row.id for row, _ in told}),
    )  # fmt: skip
