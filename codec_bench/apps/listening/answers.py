"""The files that raters send back, and what is wrong with them.

Conventions
    A file of the page is JSON: the id of the test, the rater's name with the number that the page drew for the person
    (files of older pages have none), when it was saved, one row for each answer, and a checksum (CRC-32) of all of it.
    The checksum finds a file that was changed by hand. It is no proof against forgery. What cannot be used becomes a
    `Problem` with a count. Nothing is left out without one.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.apps.listening.key import Key
from codec_bench.apps.listening.webmushra import Row, own_id, read_results
from codec_bench.errors import UserError
from codec_bench.store.files import read_json

FORMAT = "codec-bench listening answers"

UNREADABLE = "unreadable file"
OTHER_TEST = "file of another test"
EDITED = "edited file"
RATER_TWICE = "rater twice"
SAME_NAME = "people of one name"
UNKNOWN = "unknown id"
OUT_OF_RANGE = "value out of range"
TWICE = "answered twice"
MISSING = "missing answer"
REFUSED = (UNREADABLE, OTHER_TEST, UNKNOWN, OUT_OF_RANGE, TWICE)
"""The problems by which something that a rater gave could not be used at all."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a file or an answer.

    Args:
        what: which kind of problem. file: its name. rater: who gave it; empty if unknown.
        detail: one sentence. count: how many answers (or files) it is about.
    """

    what: str
    file: str
    rater: str
    detail: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as a file holds it.

    Args:
        trial, stimulus: ids. value: as `kinds` has it, not checked. seconds: that the trial took, or None.
        first: for a preference or comparison the id of the stimulus that was shown as A. texts: what was written, by
            the name of the field.
    """

    trial: str
    stimulus: str
    value: Any
    seconds: float | None = None
    first: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The answers of one rater from one file.

    Args:
        name: of the file. rater: who answered. saved: when, in ISO format; empty if the file does not say.
        edited: whether its checksum does not fit. answers: the answers, in the order of the file.
        person: the number that the page drew for who answered; empty if the file has none.
    """

    name: str
    rater: str
    saved: str
    edited: bool
    answers: tuple[Answer, ...]
    person: str = ""


def read_files(paths: Sequence[Path], key: Key) -> tuple[list[AnswerFile], list[Problem]]:
    """Reads files of answers: those of the page, and results of webMUSHRA (`.csv`)."""
    matching: list[AnswerFile] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            if path.suffix.lower() == ".csv":
                sheets = [
                    (sheet, AnswerFile(path.name, rater, "", False, _read_webmushra(rows, key)))
                    for sheet, rater, rows in read_results(path)
                ]
            else:
                sheets = [_read_page_file(path)]
        except UserError as error:
            problems.append(Problem(UNREADABLE, path.name, "", error.message))
            continue
        if not sheets:
            problems.append(Problem(UNREADABLE, path.name, "", f"'{path}' holds no rating"))
        for sheet, file in sheets:
            if sheet == key.sheet:
                matching.append(file)
            else:
                detail = f"it answers the test {sheet or 'of no id'}, and the key is of {key.sheet}"
                problems.append(Problem(OTHER_TEST, path.name, file.rater, detail))
    edited = [
        Problem(EDITED, one.name, one.rater, "its checksum does not fit its content") for one in matching if one.edited
    ]
    return matching, problems + edited


def _read_webmushra(rows: Sequence[Row], key: Key) -> tuple[Answer, ...]:
    trials = {trial.id: trial for trial in key.trials}
    return tuple(
        Answer(trial, own_id(stimulus, trials[trial]) if trial in trials else stimulus, value, seconds)
        for trial, stimulus, value, seconds in rows
    )


def sheets_of(paths: Sequence[Path]) -> list[str]:
    """The ids of the tests that files answer, as far as they can be read."""
    ids: dict[str, None] = {}
    for path in paths:
        try:
            if path.suffix.lower() == ".csv":
                ids.update(dict.fromkeys(sheet for sheet, _, _ in read_results(path)))
            else:
                ids[_read_page_file(path)[0]] = None
        except UserError:
            continue
    return list(ids)


def _read_page_file(path: Path) -> tuple[str, AnswerFile]:
    """The id of the test that a file of the page answers, and the answers.

    Raises:
        UserError: it cannot be read, or is no file of answers.
    """
    document = read_json(path, hint=None)
    if document.get("format") != FORMAT:
        raise UserError(f"'{path}' is no file of answers that a listening test saved")
    rows = document.get("answers")
    rater = document.get("rater")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not isinstance(rater, str):
        raise UserError(f"'{path}' holds no list of answers, or does not name its rater")
    try:
        edited = document.get("crc32") != checksum(document)
    except RecursionError:
        edited = True
    saved = document.get("saved")
    file = AnswerFile(
        path.name, " ".join(rater.split()), saved if isinstance(saved, str) else "", edited, tuple(map(_read_answer, rows)),
        str(document.get("person") or "")[:64],
    )  # fmt: skip
    return str(document.get("sheet") or ""), file


def checksum(document: Mapping[str, Any]) -> str:
    """The page's checksum of a file: CRC-32 of its content as compact ASCII JSON."""
    rows = [
        [row.get("trial"), row.get("stimulus"), row.get("value"), row.get("ms"), row.get("first", ""), _pairs(row.get("texts"))]
        for row in document["answers"]
    ]  # fmt: skip
    content = [
        document.get("sheet"),
        document.get("kind"),
        document["rater"],
        document.get("saved"),
        document.get("complete"),
        rows,
    ]
    content += [document["person"]] if document.get("person") else []
    return f"{zlib.crc32(json.dumps(content, ensure_ascii=True, separators=(',', ':')).encode('ascii')):08x}"


def _pairs(texts: Any) -> list[Any]:
    return [[name, text] for name, text in texts.items()] if isinstance(texts, dict) else []


def _read_answer(row: Mapping[str, Any]) -> Answer:
    ms, texts = row.get("ms"), row.get("texts")
    seconds = ms / 1000 if isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms < 1e12 else None
    return Answer(
        str(row.get("trial", "")), str(row.get("stimulus", "")), row.get("value"), seconds, str(row.get("first", "")),
        {str(name): str(text) for name, text in texts.items()} if isinstance(texts, dict) else {},
    )  # fmt: skip
