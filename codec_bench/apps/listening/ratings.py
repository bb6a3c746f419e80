"""The answers of raters with their systems: one row for each answer, and what became of it.

What becomes of an answer (`status`)
    `used`, or why it does not count: `training`, `repeat`, `edited` (its file was changed), `superseded` (the rater saved
    another file later), `out of range`, `answered twice`, `screened` (its rater was left out by a rule) or `missing`.
    A row has a `score` only if it counts; `given` always has what the file says.
    A missing answer is a row too, so that the rows of every rater are all that was asked.
What a score is
    `mushra` and `rating`: the value. `preference`: 1 where `system` was preferred to `other`, 0 where `other` was, 0.5 for no
    difference. `options`: 1 if the chosen option is right, else 0. `review`: none; `choice` is the decision.
Which raters of a MUSHRA test are left out, by a named rule. Who is left out, and why, is always told.
    `bs1534-3` is the post-screening of ITU-R BS.1534-3, section 4.1.2. A rater is left out who
        rates the hidden reference below 90 in more than 15 % of the trials, or
        rates the mid-range anchor (7 kHz) above 90 in more than 15 % of the trials.
        For the second rule an item does not count if more than a quarter of the raters rate its mid-range anchor above 90: the
        filter may then have taken nothing away that can be heard.
    `none` leaves nobody out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from codec_bench.apps.listening.answers import (
    MISSING,
    OUT_OF_RANGE,
    RATER_TWICE,
    TWICE,
    UNKNOWN,
    AnswerFile,
    Given,
    Problem,
)
from codec_bench.apps.listening.key import REFERENCE, Key, Trial, anchor_name
from codec_bench.apps.listening.kinds import NONE, TIE, is_valid
from codec_bench.errors import UnknownName

USED, TRAINING, REPEAT, SUPERSEDED, EDITED, SCREENED = "used", "training", "repeat", "superseded", "edited", "screened"
_EXAMPLES = 3


class Rating(NamedTuple):
    """One row: what a rater said of one stimulus of one trial.

    Args:
        id: of the sample. rater: the name. system: that the score is about; the first of the two for a preference.
        score: as above; None if the row does not count. kind: of the test.
        trial, stimulus: ids in the test. other: the second system of a preference.
        choice: the option or decision in words. given: what the file says, as text. text: what was written, as JSON.
        seconds: that the trial took. speaker: of the sample. status: as above. file: where it stands.
        value: the score, whether the row counts or not. is_first: whether `system` was shown as A, or None.
    """

    id: str
    rater: str
    system: str
    score: float | None
    kind: str
    trial: str
    stimulus: str
    other: str
    choice: str
    given: str
    text: str
    seconds: float | None
    speaker: str | None
    status: str
    file: str
    value: float | None = None
    is_first: bool | None = None


COLUMNS = Rating._fields[:-2]
"""The columns of the table of ratings."""


def unblind(files: Sequence[AnswerFile], key: Key, keep: Sequence[str] = ()) -> tuple[list[Rating], list[Problem]]:
    """The answers of files with their systems.

    Args:
        files: to the test of the key. keep: `edited` to count the answers of files that were changed.

    Returns:
        The rows, by rater in the order of the files; and what is wrong with them.
    """
    by_rater: dict[str, list[AnswerFile]] = defaultdict(list)
    for file in files:
        same = by_rater[file.rater.casefold()]
        same.append(
            replace(file, rater=same[0].rater) if same else file
        )  # one spelling of the name: that of the first file
    rows: list[Rating] = []
    problems: list[Problem] = []
    for several in by_rater.values():
        several.sort(key=lambda file: file.saved)
        *before, last = several
        own, found = _of_file(last, key, EDITED if last.edited and EDITED not in keep else "")
        rows += own
        problems += found
        for file in before:
            others, found = _of_file(file, key, SUPERSEDED)
            rows += others
            problems += [*found, _rater_twice(file, last)]
        problems += _missing(own, last, key, rows)
    return rows, problems


def _rater_twice(before: AnswerFile, last: AnswerFile) -> Problem:
    held = {(one.trial, one.stimulus): one.value for one in last.given}
    apart = sum(held.get((one.trial, one.stimulus)) != one.value for one in before.given)
    later = f"'{last.name}'" if last.name != before.name else "another session of this file"
    told = f"{later} was saved later and is used; {apart} of {len(before.given)} answers of this file are not in it, or differ"
    return Problem(RATER_TWICE, before.name, last.rater, told)


def _of_file(file: AnswerFile, key: Key, status: str) -> tuple[list[Rating], list[Problem]]:
    trials = {trial.id: trial for trial in key.trials}
    times = Counter((one.trial, one.stimulus) for one in file.given)
    rows = []
    wrong: dict[str, list[str]] = defaultdict(list)
    for one in file.given:
        trial = trials.get(one.trial)
        where = f"{one.trial or '?'} {one.stimulus}".strip()
        if trial is None or one.stimulus not in _asked(trial, key.kind):
            wrong[UNKNOWN].append(where)
            continue
        row = _row(one, trial, key, file)
        if not is_valid(one.value, key.kind, key.scale, tuple(s.id for s in trial.stimuli), len(trial.choices)):
            wrong[OUT_OF_RANGE].append(f"{where}: {str(one.value)[:40]}")
            row = row._replace(status=OUT_OF_RANGE.removeprefix("value "), value=None)
        elif times[one.trial, one.stimulus] > 1:
            wrong[TWICE].append(where)
            row = row._replace(status=TWICE)
        else:
            own = TRAINING if trial.training else REPEAT if trial.repeat_of is not None else USED
            row = row._replace(status=status if status == SUPERSEDED or (status and own == USED) else own)
        rows.append(row._replace(score=row.value if row.status == USED else None))
    problems = [
        Problem(what, file.name, file.rater, _examples(which, "answers that are not used"), len(which))
        for what, which in wrong.items()
    ]
    return rows, problems


def _asked(trial: Trial, kind: str) -> tuple[str, ...]:
    """What a trial asks for an answer to: its stimuli, or one answer to all of it."""
    return ("",) if kind in ("preference", "review") else tuple(one.id for one in trial.stimuli)


def _row(one: Given, trial: Trial, key: Key, file: AnswerFile) -> Rating:
    """An answer with its system; its status is still open."""
    about = {stimulus.id: stimulus.system for stimulus in trial.stimuli}
    # The two systems of a preference stand in the order of the key, whatever the order in which they were shown.
    pair = sorted(about.items(), key=lambda held: key.systems.index(held[1])) if key.kind == "preference" else []
    system, other = (pair[0][1], pair[1][1]) if pair else (about.get(one.stimulus, ""), "")
    value, choice = _value(one.value, trial, key.kind, pair)
    text = json.dumps(dict(one.texts), ensure_ascii=False) if one.texts else ""
    return Rating(
        trial.item, file.rater, system, None, key.kind, trial.id, one.stimulus, other, choice, str(one.value), text, one.seconds,
        trial.speaker, "", file.name, value, one.first == pair[0][0] if pair and one.first in about else None,
    )  # fmt: skip


def _value(given: Any, trial: Trial, kind: str, pair: Sequence[tuple[str, str]]) -> tuple[float | None, str]:
    """The score of an answer, and its words."""
    if kind == "preference":
        preferred = next((system for id, system in pair if id == given), "")
        return (0.5 if given == TIE else float(given == pair[0][0])), preferred or str(given)
    if kind == "options":
        known = isinstance(given, int) and 0 <= given < len(trial.choices)
        words = trial.choices[given] if known else str(NONE)
        return (float(given in trial.right) if trial.right else None), words
    if kind == "review":
        return None, str(given)
    return (float(given) if isinstance(given, int) else None), ""


def _missing(own: Sequence[Rating], file: AnswerFile, key: Key, rows: list[Rating]) -> Iterable[Problem]:
    """What a rater was asked and did not answer; it becomes rows too."""
    held = {(row.trial, row.stimulus) for row in own}
    lacking = []
    for trial in key.counted:
        for stimulus in _asked(trial, key.kind):
            if (trial.id, stimulus) not in held:
                empty = _row(Given(trial.id, stimulus, ""), trial, key, file)
                rows.append(empty._replace(value=None, status="missing", choice="", given=""))
                lacking.append(f"{trial.id} {stimulus}".strip())
    if lacking:
        yield Problem(MISSING, file.name, file.rater, _examples(lacking, "answers were not given"), len(lacking))


def _examples(which: Sequence[str], what: str) -> str:
    more = f" and {len(which) - _EXAMPLES} more" if len(which) > _EXAMPLES else ""
    return f"{len(which)} {what}: {', '.join(which[:_EXAMPLES])}{more}"


def screened(rows: Iterable[Rating], raters: Mapping[str, Any]) -> list[Rating]:
    """The rows, of which those of some raters do not count."""
    return [
        row._replace(status=SCREENED, score=None) if row.status == USED and row.rater in raters else row for row in rows
    ]


def counted(rows: Iterable[Rating]) -> list[Rating]:
    """The rows that count."""
    return [row for row in rows if row.status == USED]


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


def _anchors(rows: Sequence[Rating]) -> tuple[list[dict[str, float]], int]:
    """By item, what each rater gave the mid-range anchor, where the rule for it applies; and to how many items it does not."""
    anchors: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.system == MID_ANCHOR and row.value is not None:
            anchors[row.trial][row.rater] = row.value
    telling = [held for held in anchors.values() if sum(v > HIGH for v in held.values()) <= TOO_GOOD * len(held)]
    return telling, len(anchors) - len(telling)


def rule_without_effect(rows: Sequence[Rating]) -> str | None:
    """The sentence that the rule of the mid-range anchor does not apply to some items; None if it applies to all."""
    telling, void = _anchors(rows)
    if not void:
        return None
    why = f"more than a quarter of the raters put it above {HIGH} there"
    return f"the rule of the 7 kHz anchor does not apply to {void} of {void + len(telling)} items, because {why}"


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
    for row in rows:
        if row.system == REFERENCE and row.value is not None:
            references[row.rater].append(row.value)
    telling, _ = _anchors(rows)
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
