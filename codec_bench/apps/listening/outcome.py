"""The outcome of a listening test: values of systems, pairs and raters.

A value's main interval is over raters and speakers (or items) together (`crossed`); further ones are over raters, and
over speakers, as whole clusters. Small numbers of units have none. Intervals are cut at the ends of the scale. A
comparison uses one rater's scores of both systems on one item, with interval and p over raters and items: over raters
alone, equal systems that are each better on some sounds would often differ. Practice and repeats do not count; repeats
measure consistency.
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

from codec_bench.apps.listening.answers import AnswerProblem
from codec_bench.apps.listening.crossed import crossed_interval, crossed_test
from codec_bench.apps.listening.key import REFERENCE, Key
from codec_bench.apps.listening.kinds import Kind, kind_of
from codec_bench.apps.listening.ratings import USED, Rating, answer_slots, counted_rows
from codec_bench.apps.listening.screening import Screening, repeat_differences, unapplied
from codec_bench.messages import Diagnostic, to_json
from codec_bench.messages.errors import UserError
from codec_bench.stats.intervals import FEWEST_UNITS, Interval, interval_of, item_table, ratios, unit_codes
from codec_bench.stats.paired import PairedTest, holm
from codec_bench.stats.pairwise_preferences import Duel, Strengths, strengths

POSITION = "shown as A"


@dataclass(frozen=True, slots=True)
class SystemValue:
    """The value of one system, or of the first of two.

    Args:
        value: the mean of the counted scores; None without any.
        interval: over raters and items.
        over_raters: over the raters.
        over_items: over the speakers, or items of unknown speaker.
        n: counted ratings.
        uncounted: the mean over all valid ratings, those of excluded raters included; None if nobody was.
        below_reference: for MUSHRA the mean difference from the hidden reference of the same trial.
        choices: counts of answers: decisions, options, or wins and ties.
        test: of a preference, comparison or difference grade against none.
        p_holm: adjusted for all pairs or systems.
        exact_p: for `abx` the one-sided p of the exact binomial test against guessing.
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
    scale: str = ""
    exact_p: float | None = None


@dataclass(frozen=True, slots=True)
class SystemDifference:
    """The paired difference A minus B of two systems, with interval and p."""

    a: str
    b: str
    n: int
    test: PairedTest
    p_holm: float | None = None
    scale: str = ""


@dataclass(frozen=True, slots=True)
class RaterFacts:
    """One rater's behaviour.

    Args:
        answered, asked: valid and requested answers, without practice and repeats.
        repeat_difference: their mean absolute difference.
        left_out: why the rater does not count.
        marked: findings of rules that only mark.
    """

    rater: str
    answered: int
    asked: int
    minutes: float
    repeats: int
    repeat_difference: float | None
    left_out: tuple[Diagnostic, ...]
    marked: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class ListeningOutcome:
    """The outcome of a listening test.

    Args:
        measure: name of the values, such as `DMOS`.
        pairs: comparisons of systems; empty for a preference, whose values are comparisons.
        screening: the rules that exclude raters.
        notes: rules that were not applicable, or chosen afterwards.
        first_preferred: for a preference how often A was preferred, without ties.
        problems: of files and answers.
        ratings: every answer, with its status.
        strengths: of three systems or more by preferences, with intervals over sounds and these raters.
    """

    sheet: str
    kind: str
    measure: str
    scale: tuple[int, int]
    systems: Sequence[SystemValue]
    pairs: Sequence[SystemDifference]
    raters: Sequence[RaterFacts]
    screening: tuple[str, ...]
    screened: Sequence[Screening]
    first_preferred: SystemValue | None
    problems: Sequence[AnswerProblem]
    ratings: Sequence[Rating]
    csv: Path | None = None
    notes: tuple[Diagnostic, ...] = ()
    strengths: Strengths | None = None

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values, with counts of `statuses` in place of ratings."""
        held = {**asdict(replace(self, ratings=(), csv=None)), "csv": str(self.csv) if self.csv else None}
        held["statuses"] = dict(Counter(row.status for row in self.ratings))
        del held["ratings"]
        return dict(to_json(held))


def outcome_of(
    key: Key,
    rows: Sequence[Rating],
    problems: Sequence[AnswerProblem],
    findings: Sequence[Screening],
    rules: tuple[str, ...],
) -> ListeningOutcome:
    """Compute values, comparisons and facts of raters from a test's ratings.

    Args:
        rows: all ratings, those of excluded raters marked.
        findings: of the screening rules.
        rules: those that exclude raters.
    """
    kind = kind_of(key.kind)
    groups: dict[tuple[str, str, str], list[Rating]] = defaultdict(list)
    for row in rows:
        if row.status in ("check", "reference"):
            continue
        if row.value is not None or (kind.answer == "decision" and row.status == USED):
            groups[row.system, row.other, row.scale].append(row)
    reference = {(row.rater, row.trial): row.score for row in counted_rows(rows) if row.system == REFERENCE}
    order = {name: n for n, name in enumerate(key.systems)}
    of_scale = {scale.name: n for n, scale in enumerate(kind.scales)}
    names = sorted(groups, key=lambda of: (of_scale.get(of[2], 0), *[order.get(name, len(order)) for name in of[:2]]))
    values = [
        replace(_value(key, kind, of, groups[of]), below_reference=_below(kind, of[0], groups[of], reference))
        for of in names
    ]
    if kind.has_sides or kind.difference:
        adjusted = holm([one.exact_p if kind.exact else one.test.p if one.test else None for one in values])
        values = [replace(one, p_holm=p) for one, p in zip(values, adjusted)]
    return ListeningOutcome(
        key.sheet, key.kind, kind.measures[key.beside_reference], key.scale, values,
        _pairs(key, kind, counted_rows(rows)), _raters(key, rows, findings, rules), rules, findings,
        _first(key, kind, counted_rows(rows)), problems, rows,
        notes=tuple(unapplied(findings)), strengths=_strengths(key, counted_rows(rows)),
    )  # fmt: skip


def _strengths(key: Key, used: Sequence[Rating]) -> Strengths | None:
    """Fit the systems' strengths to preferences; None for other tests or two systems."""
    if key.kind != "preference" or len(key.systems) < 3:
        return None
    scored = [(row, sound) for row, sound in zip(used, _sounds(used)) if row.score is not None]
    duels = [Duel(row.system, row.other, row.score or 0.0, sound) for row, sound in scored]
    try:
        return strengths(duels)
    except UserError as error:
        return Strengths((), 0.0, len(duels), len({duel.unit for duel in duels}), error.message)


def _value(key: Key, kind: Kind, of: tuple[str, str, str], rows: Sequence[Rating]) -> SystemValue:
    """Compute mean, intervals, counts and test of one system's ratings.

    Args:
        of: system, other system of a pair, and scale.
    """
    used = counted_rows(rows)
    scored = [row for row in used if row.score is not None]
    scores = [row.score for row in scored if row.score is not None]
    raters = [row.rater for row in scored]
    excluded = len([row for row in rows if row.status in ("screened", "edited")])
    valid = [row.value for row in rows if row.value is not None and row.status in (USED, "screened", "edited")]
    test = None
    if scores and not kind.exact and (kind.has_sides or kind.difference):
        even = [2 * score - 1 for score in scores] if kind.is_share else scores
        test = crossed_test(even, raters, _sounds(scored))
    return SystemValue(
        *of[:2], fmean(scores) if scores else None, *_intervals(key, kind, scores, raters, _sounds(scored)),
        len(scores) if kind.answer != "decision" else len(used), len({row.rater for row in used}),
        len({row.id for row in used}),
        fmean(valid) if excluded and valid else None, None, _count_choices(kind, of, used), test,
        scale=of[2], exact_p=_exact(scores) if kind.exact and scores else None,
    )  # fmt: skip


def _exact(scores: Sequence[float]) -> float:
    """Return the one-sided binomial p of so many right guesses, at a chance of 0.5."""
    from scipy.special import bdtrc

    right = round(sum(scores))
    return float(bdtrc(right - 1, len(scores), 0.5)) if right else 1.0


def _sounds(rows: Sequence[Rating]) -> list[str]:
    """Return the speaker of each rating, or its item where unknown."""
    return [row.speaker or f"item {row.id}" for row in rows]


def _intervals(
    key: Key, kind: Kind, scores: Sequence[float], raters: Sequence[str], sounds: Sequence[str]
) -> tuple[Interval, Interval, Interval]:
    """Compute a mean's intervals: over both (crossed), over raters, and over items.

    They are cut to the scale.
    """
    intervals = [_over(key, kind, scores, raters, "raters"), _over(key, kind, scores, sounds, "speakers or items")]
    both = crossed_interval(scores, raters, sounds) if scores else intervals[0]
    lowest, highest = kind.bounds(key.scale)
    if kind.is_share and both.low is not None and both.high is not None:
        # Near 0 and 1 Student's t is too short for a share; the other two allow for that.
        lows = [one.low for one in (both, *intervals) if one.low is not None]
        both = replace(both, low=min(lows), high=max(one.high for one in (both, *intervals) if one.high is not None))

    def cut(one: Interval) -> Interval:
        if one.low is None or one.high is None:
            return one
        return replace(one, low=max(one.low, lowest), high=min(one.high, highest))

    return cut(both), cut(intervals[0]), cut(intervals[1])


def _over(key: Key, kind: Kind, scores: Sequence[float], clusters: Sequence[str], unit: str) -> Interval:
    """Compute a mean's interval over clusters, which `unit` names in messages."""
    codes = unit_codes(clusters, len(scores))
    result = interval_of(ratios, item_table(scores), codes, share=kind.is_share, bounds=kind.bounds(key.scale))
    if result.ends is None and len(scores) and result.units < FEWEST_UNITS:
        return replace(result, note=Diagnostic("few_of", units=result.units, of=unit, needed=FEWEST_UNITS))
    return result


def _count_choices(kind: Kind, names: Sequence[str], used: Sequence[Rating]) -> dict[str, int] | None:
    """Count the answers of a kind by option; None for a scale."""
    if kind.answer == "choice":
        times = Counter(row.score for row in used)
        if kind.exact:
            return {"right": times[1.0], "wrong": times[0.0]}
        return {names[0]: times[1.0], names[1]: times[0.0], "no difference": times[0.5]}
    answered = Counter(row.choice for row in used).most_common()
    return dict(answered) if kind.answer in ("option", "decision") else None


def _below(
    kind: Kind, system: str, rows: Sequence[Rating], reference: Mapping[tuple[str, str], float | None]
) -> float | None:
    """Average a system's scores minus the hidden reference's; None if there is none.

    Args:
        reference: its score by (rater, trial).
    """
    if system == REFERENCE or kind.trial != "all":
        return None
    both = [(row.score, reference.get((row.rater, row.trial))) for row in counted_rows(rows)]
    differences = [value - hidden for value, hidden in both if value is not None and hidden is not None]
    return fmean(differences) if differences else None


def _pairs(key: Key, kind: Kind, used: Sequence[Rating]) -> list[SystemDifference]:
    """Test the difference of every two systems on each scale, with Holm's correction."""
    if kind.trial not in ("all", "each"):
        return []
    held: dict[tuple[str, str], dict[tuple[str, str], float]] = defaultdict(dict)
    sounds = {row.id: sound for row, sound in zip(used, _sounds(used))}
    for row in used:
        if row.system in key.systems and row.score is not None:
            held[row.scale, row.system][row.rater, row.id] = row.score
    pairs = []
    for scale in [one.name for one in kind.scales] or [""]:
        for a, b in combinations([name for name in key.systems if (scale, name) in held], 2):
            of_a, of_b = held[scale, a], held[scale, b]
            both = sorted(of_a.keys() & of_b.keys())
            if both:
                differences = [of_a[which] - of_b[which] for which in both]
                raters, audio_ids = [rater for rater, _ in both], [sounds[id] for _, id in both]
                pairs.append(
                    SystemDifference(a, b, len(both), crossed_test(differences, raters, audio_ids), scale=scale)
                )
    adjusted = holm([pair.test.p for pair in pairs])
    return [replace(pair, p_holm=p) for pair, p in zip(pairs, adjusted)]


def _raters(key: Key, rows: Sequence[Rating], findings: Sequence[Screening], rules: Sequence[str]) -> list[RaterFacts]:
    """Collect the facts of each rater: answers, time, repeats, and findings.

    Args:
        findings: of the screening rules.
        rules: those that exclude raters; other findings only mark them.
    """
    count = sum(len(answer_slots(trial, key)) for trial in key.counted)
    reasons: dict[tuple[str, bool], list[Diagnostic]] = defaultdict(list)
    for one in findings:
        if one.marked:
            reasons[one.rater, one.rule in rules].append(Diagnostic("rule_finding", rule=one.rule, cause=one.told))
    facts = []
    for rater in dict.fromkeys(row.rater for row in rows):
        of_rater = [row for row in rows if row.rater == rater]
        valid = [row for row in of_rater if row.status in (USED, "reference", "screened", "edited")]
        timed = [row for row in of_rater if row.seconds is not None and row.status != "superseded"]
        took = {(row.file, row.trial): row.seconds or 0.0 for row in timed}
        twice = repeat_differences(key, of_rater)
        edited = ("the file was changed by hand",) if any(row.status == "edited" for row in of_rater) else ()
        facts.append(
            RaterFacts(
                rater, len(valid), count, math.fsum(took.values()) / 60, len(twice), fmean(twice) if twice else None,
                (*reasons[rater, True], *edited), tuple(reasons[rater, False]),
            )
        )  # fmt: skip
    return facts


def _first(key: Key, kind: Kind, used: Sequence[Rating]) -> SystemValue | None:
    """Compute how often the system shown first is preferred; None if not applicable."""
    answers = [
        (row, row.score == float(row.is_first)) for row in used if row.is_first is not None and row.score in (0.0, 1.0)
    ]
    if kind.answer != "choice" or kind.exact or not answers:
        return None
    scores, raters = [float(is_a) for _, is_a in answers], [row.rater for row, _ in answers]
    return SystemValue(
        POSITION, "", fmean(scores), *_intervals(key, kind, scores, raters, _sounds([row for row, _ in answers])),
        len(scores), len(set(raters)), len({row.id for row, _ in answers}),
    )  # fmt: skip
