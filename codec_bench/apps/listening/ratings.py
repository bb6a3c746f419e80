"""The answers of raters with their systems, one row for each.

`status` is `used`, or why a row does not count: `training`, `repeat`, `check` (of the rater), `reference` (the hidden
one), `edited` (changed file), `superseded` (by a later file), `out of range`, `answered twice`, `screened` (rater
excluded) or `missing`. Only counted rows have a `score`; `given` is the file's answer.
Scores: the number, or its difference from the hidden reference; a comparison of `system` with `other`; a preference 1,
0 or 0.5; `abx` and `options` 1 if right, else 0; `review` none. A check has a `value` of 1 or 0. A rater is a name with
the page's number of the person.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from codec_bench.apps.listening.answers import (
    MISSING,
    OUT_OF_RANGE,
    RATER_TWICE,
    SAME_NAME,
    TWICE,
    UNKNOWN,
    AnswerFile,
    AnswerProblem,
    ListenerAnswer,
)
from codec_bench.apps.listening.checks import CHECKS, GOLD, GOLD_WITHIN
from codec_bench.apps.listening.key import REFERENCE, UNKNOWN_ROLE, Key, Trial
from codec_bench.apps.listening.kinds import NONE, TIE, Kind, is_option, is_valid, kind_of
from codec_bench.messages import Diagnostic

USED, TRAINING, REPEAT, SUPERSEDED, EDITED, SCREENED = "used", "training", "repeat", "superseded", "edited", "screened"
CHECK = "check"
_EXAMPLES = 3


class Rating(NamedTuple):
    """One row: a rater's answer on one stimulus of one trial.

    Args:
        system: the scored one; the first of the two for a preference.
        other: the second one.
        choice: the option or decision in words.
        given: the file's answer as text.
        text: written texts, as JSON.
        value: the score, whether the row counts or not.
        is_first: whether `system` was A.
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
    given: str | int | float
    text: str
    seconds: float | None
    speaker: str | None
    status: str
    file: str
    scale: str = ""
    value: float | None = None
    is_first: bool | None = None


COLUMNS = Rating._fields[:-2]
"""The columns of the table of ratings."""


def unblind(
    files: Sequence[AnswerFile], key: Key, keep: Sequence[str] = ()
) -> tuple[list[Rating], list[AnswerProblem]]:
    """Join raters' answers with the systems that the key names.

    Args:
        keep: `edited` to count the answers of changed files.

    Returns:
        The rows, by rater in the order of the files, and their problems.
    """
    people: dict[tuple[str, str], list[AnswerFile]] = defaultdict(list)
    named: dict[str, list[str]] = defaultdict(list)
    for file in files:
        name, person = file.rater.casefold(), (file.rater.casefold(), file.person)
        if person not in people:
            named[name].append(file.rater)
        # The name as in the person's first file, numbered for others of this name.
        first = f"{file.rater} ({len(named[name])})" if len(named[name]) > 1 else file.rater
        people[person].append(replace(file, rater=people[person][0].rater if people[person] else first))
    rows: list[Rating] = []
    problems = [
        AnswerProblem(SAME_NAME, "", same[0], Diagnostic("raters_of_one_name", people=len(same)), len(same))
        for same in named.values()
        if len(same) > 1
    ]
    for several in people.values():
        several.sort(key=lambda file: file.saved)
        *before, last = several
        counted_rows, new_problems = _of_file(last, key, EDITED if last.edited and EDITED not in keep else "")
        rows += counted_rows
        problems += new_problems
        for file in before:
            others, new_problems = _of_file(file, key, SUPERSEDED)
            rows += others
            problems += [*new_problems, _rater_twice(file, last)]
        problems += _missing(counted_rows, last, key, rows)
    return rows, problems


def _rater_twice(before: AnswerFile, last: AnswerFile) -> AnswerProblem:
    """A problem: a rater saved a later file, in which so many answers differ."""
    held = {(one.trial, one.stimulus): one.value for one in last.answers}
    changed_answers = sum(held.get((one.trial, one.stimulus)) != one.value for one in before.answers)
    later = last.name if last.name != before.name else None
    detail = Diagnostic("later_answers_used", later=later, changed=changed_answers, answers=len(before.answers))
    return AnswerProblem(RATER_TWICE, before.name, last.rater, detail)


def _of_file(file: AnswerFile, key: Key, status: str) -> tuple[list[Rating], list[AnswerProblem]]:
    """Join one file's answers with systems; unusable answers become problems.

    Args:
        status: `superseded` or `edited` for a file that does not count; empty otherwise.
    """
    trials = {trial.id: trial for trial in key.trials}
    times = Counter((one.trial, one.stimulus) for one in file.answers)
    rows = []
    wrong: dict[str, list[str]] = defaultdict(list)
    for one in file.answers:
        trial = trials.get(one.trial)
        where = f"{one.trial or '?'} {one.stimulus}".strip()
        if trial is None or one.stimulus not in answer_slots(trial, key):
            wrong[UNKNOWN].append(where)
            continue
        row = _row(one, trial, key, file)
        if not _fits(one, trial, key):
            wrong[OUT_OF_RANGE].append(f"{where}: {str(one.value)[:40]}")
            row = row._replace(status=OUT_OF_RANGE.removeprefix("value "), value=None)
        elif times[one.trial, one.stimulus] > 1:
            wrong[TWICE].append(where)
            row = row._replace(status=TWICE)
        else:
            kinds = ((trial.training, TRAINING), (trial.check, CHECK), (trial.repeat_of is not None, REPEAT))
            own_status = next((name for holds, name in kinds if holds), USED)
            row = row._replace(status=status if status == SUPERSEDED or (status and own_status == USED) else own_status)
        rows.append(row)
    if kind_of(key.kind).difference:
        rows = _differences(rows)
    rows = [row._replace(score=row.value if row.status == USED else None) for row in rows]
    problems = [
        AnswerProblem(kind, file.name, file.rater, _examples("answers_not_usable", which), len(which))
        for kind, which in wrong.items()
    ]
    return rows, problems


def answer_slots(trial: Trial, key: Key) -> tuple[str, ...]:
    """List the answer ids of a trial: of each stimulus and scale, or "" for the trial."""
    kind = kind_of(key.kind)
    if kind.is_per_trial or is_question(trial):
        return ("",)
    ids = [one.id for one in trial.stimuli]
    return tuple(f"{id}/{scale.name}" for id in ids for scale in kind.scales) if kind.scales else tuple(ids)


def is_question(trial: Trial) -> bool:
    """Whether a trial is a question to the rater (an option or digits)."""
    return trial.check in CHECKS


def _fits(one: ListenerAnswer, trial: Trial, key: Key) -> bool:
    """Whether an answer is possible in its trial."""
    kind = kind_of(key.kind)
    if is_question(trial):
        return is_option(one.value, len(trial.choices)) if trial.choices else _is_digits(one.value, len(trial.right))
    sides = tuple(stimulus.id for stimulus in trial.stimuli if stimulus.role != UNKNOWN_ROLE)
    if kind.answer == "comparison" and one.first not in sides:
        return False
    return is_valid(one.value, key.kind, key.scale, sides, len(trial.choices))


def _is_digits(value: Any, count: int) -> bool:
    return isinstance(value, str) and len(value) == count and value.isascii() and value.isdecimal()


def _differences(rows: Sequence[Rating]) -> list[Rating]:
    """Convert grades to differences from the hidden reference of the same trial."""
    hidden = {row.trial: row.value for row in rows if row.system == REFERENCE}
    differences = []
    for row in rows:
        grade = hidden.get(row.trial)
        if row.system == REFERENCE:
            differences.append(row._replace(status="reference") if row.status == USED else row)
        else:
            value = row.value - grade if row.value is not None and grade is not None else None
            lacks = row.status == USED and value is None
            differences.append(row._replace(value=value, status="missing" if lacks else row.status))
    return differences


def _row(one: ListenerAnswer, trial: Trial, key: Key, file: AnswerFile) -> Rating:
    """Build the row of one answer; the two systems of a pair are in the key's order."""
    kind = kind_of(key.kind)
    about = {stimulus.id: stimulus.system for stimulus in trial.stimuli if stimulus.role != UNKNOWN_ROLE}
    id, _, scale = one.stimulus.partition("/")
    # The two systems of a pair are in the order of the key, not in the order of the page; the hidden
    # reference is second.
    order = {name: n for n, name in enumerate(key.systems)}
    has_sides = kind.has_sides and not trial.check
    pair = sorted(about.items(), key=lambda held: order.get(held[1], len(order))) if has_sides else []
    system, other = (pair[0][1], pair[1][1]) if pair else (about.get(id, ""), "")
    if trial.check:
        system, (value, choice) = f"({trial.check})", (_passed(one, scale, trial, kind), "")
    else:
        value, choice = _value(one, trial, kind, pair)
    answer = one.value if isinstance(one.value, int | float) else str(one.value)
    text = json.dumps(dict(one.texts), ensure_ascii=False) if one.texts else ""
    return Rating(
        trial.item, file.rater, system, None, key.kind, trial.id, one.stimulus, other, choice, answer, text,
        one.seconds,
        trial.speaker, "", file.name, scale, value, one.first == pair[0][0] if pair and one.first in about else None,
    )  # fmt: skip


def _passed(one: ListenerAnswer, scale: str, trial: Trial, kind: Kind) -> float | None:
    """Grade the answer to a check as 1 or 0; None where any answer is right."""
    if is_question(trial) and not trial.choices:
        return float(one.value == "".join(map(str, trial.right)))
    if not isinstance(one.value, int | float):
        return None
    if is_question(trial):
        return float(one.value in trial.right)
    right = trial.right[[each.name for each in kind.scales].index(scale) if scale else 0]
    return None if right is None else float(abs(one.value - right) <= (GOLD_WITHIN if trial.check == GOLD else 0))


def _value(one: ListenerAnswer, trial: Trial, kind: Kind, pair: Sequence[tuple[str, str]]) -> tuple[float | None, str]:
    """Return the score of an answer, and the choice in words.

    Args:
        pair: (id, system) of the two systems; the score is that of the first.
    """
    answer = one.value
    if kind.answer == "choice":
        preferred = next((system for id, system in pair if id == answer), "")
        if kind.unknown:
            return float(preferred == trial.stimuli[-1].system), preferred or str(answer)
        return (0.5 if answer == TIE else float(answer == pair[0][0])), preferred or str(answer)
    if kind.answer == "option":
        known = is_option(answer, len(trial.choices))
        words = trial.choices[answer] if known else str(NONE)
        return (float(answer in trial.right) if trial.right else None), words
    if kind.answer == "decision":
        return None, str(answer)
    number = float(answer) if isinstance(answer, int | float) and abs(answer) < 1e9 else None
    if kind.answer == "comparison" and number is not None:
        return (-number if one.first == pair[0][0] else number), ""
    return number, ""


def _missing(of_rater: Sequence[Rating], file: AnswerFile, key: Key, rows: list[Rating]) -> Iterable[AnswerProblem]:
    """Append rows for a rater's missing answers to `rows`, and yield the problem."""
    held = {(row.trial, row.stimulus) for row in of_rater}
    lacking = []
    for trial in key.counted:
        for stimulus in answer_slots(trial, key):
            if (trial.id, stimulus) not in held:
                empty = _row(ListenerAnswer(trial.id, stimulus, ""), trial, key, file)
                rows.append(empty._replace(value=None, status="missing", choice="", given=""))
                lacking.append(f"{trial.id} {stimulus}".strip())
    if lacking:
        yield AnswerProblem(MISSING, file.name, file.rater, _examples("answers_missing", lacking), len(lacking))


def _examples(code: str, which: Sequence[str]) -> Diagnostic:
    return Diagnostic(code, count=len(which), examples=list(which[:_EXAMPLES]))


def exclude_raters(rows: Iterable[Rating], raters: Container[str]) -> list[Rating]:
    """Exclude the rows of some raters."""
    is_out = lambda row: row.status == USED and row.rater in raters  # noqa: E731
    return [row._replace(status=SCREENED, score=None) if is_out(row) else row for row in rows]


def counted_rows(rows: Iterable[Rating]) -> list[Rating]:
    """Return the counted rows."""
    return [row for row in rows if row.status == USED]
