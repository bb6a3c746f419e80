"""The files from raters, and their problems.

A page's file is JSON: test id, rater with the page's person number (missing in old pages), time, one row per answer,
and a CRC-32 that finds manual changes but no forgery. Unusable content becomes an `AnswerProblem` with a count.
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
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
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
"""The problems of unusable answers."""


@dataclass(frozen=True, slots=True)
class AnswerProblem:
    """A problem of `count` files or answers; `what` is its kind, such as `EDITED`."""

    what: str
    file: str
    rater: str
    detail: Diagnostic
    count: int = 1


@dataclass(frozen=True, slots=True)
class ListenerAnswer:
    """One answer in a file.

    Args:
        value: as in `kinds`, unchecked.
        first: for a preference or comparison the id of stimulus A.
        texts: written texts by field.
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
        saved: ISO time, or empty.
        edited: the checksum is wrong.
        person: the page's number of the person; empty without one.
    """

    name: str
    rater: str
    saved: str
    edited: bool
    answers: tuple[ListenerAnswer, ...]
    person: str = ""


def read_files(paths: Sequence[Path], key: Key) -> tuple[list[AnswerFile], list[AnswerProblem]]:
    """Read raters' answers to the test of `key`, from the page's files or webMUSHRA's.

    Returns:
        The files of answers, and problems: unreadable, edited, or of another test.
    """
    matching: list[AnswerFile] = []
    problems: list[AnswerProblem] = []
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
            problems.append(AnswerProblem(UNREADABLE, path.name, "", as_reason(error.message)))
            continue
        if not sheets:
            problems.append(AnswerProblem(UNREADABLE, path.name, "", Diagnostic("no_rating_in_file", path=path)))
        for sheet, file in sheets:
            if sheet == key.sheet:
                matching.append(file)
            else:
                detail = Diagnostic("answers_to_other_test", sheet=sheet, expected=key.sheet)
                problems.append(AnswerProblem(OTHER_TEST, path.name, file.rater, detail))
    wrong = Diagnostic("checksum_of_answers")
    edited = [AnswerProblem(EDITED, one.name, one.rater, wrong) for one in matching if one.edited]
    return matching, problems + edited


def _read_webmushra(rows: Sequence[Row], key: Key) -> tuple[ListenerAnswer, ...]:
    trials = {trial.id: trial for trial in key.trials}
    return tuple(
        ListenerAnswer(trial, own_id(stimulus, trials[trial]) if trial in trials else stimulus, value, seconds)
        for trial, stimulus, value, seconds in rows
    )


def sheets_of(paths: Sequence[Path]) -> list[str]:
    """List the test ids in raters' files; unreadable files are skipped."""
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
    """Read test id and answers of a page's file; raises UserError."""
    document = read_json(path, hint=None)
    if document.get("format") != FORMAT:
        raise UserError("not_a_rater_file", path=path)
    rows = document.get("answers")
    rater = document.get("rater")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows) or not isinstance(rater, str):
        raise UserError("rater_file_incomplete", path=path)
    try:
        edited = document.get("crc32") != checksum(document)
    except RecursionError:
        edited = True
    saved = document.get("saved")
    file = AnswerFile(
        path.name, " ".join(rater.split()), saved if isinstance(saved, str) else "", edited,
        tuple(map(_read_answer, rows)),
        str(document.get("person") or "")[:64],
    )  # fmt: skip
    return str(document.get("sheet") or ""), file


def checksum(document: Mapping[str, Any]) -> str:
    """Compute the page's checksum: CRC-32 of the content as compact ASCII JSON."""
    rows = [
        [row.get("trial"), row.get("stimulus"), row.get("value"), row.get("ms"), row.get("first", ""),
            _pairs(row.get("texts"))]
        for row in document["answers"]
    ]  # fmt: skip
    content = [*(document.get(name) for name in ("sheet", "kind", "rater", "saved", "complete")), rows]
    content += [document["person"]] if document.get("person") else []
    return f"{zlib.crc32(json.dumps(content, ensure_ascii=True, separators=(',', ':')).encode('ascii')):08x}"


def _pairs(texts: Any) -> list[Any]:
    return [[name, text] for name, text in texts.items()] if isinstance(texts, dict) else []


def _read_answer(row: Mapping[str, Any]) -> ListenerAnswer:
    """Read a listener's answer; wrong times and texts are dropped."""
    ms, texts = row.get("ms"), row.get("texts")
    seconds = ms / 1000 if isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms < 1e12 else None
    return ListenerAnswer(
        str(row.get("trial", "")), str(row.get("stimulus", "")), row.get("value"), seconds, str(row.get("first", "")),
        {str(name): str(text) for name, text in texts.items()} if isinstance(texts, dict) else {},
    )  # fmt: skip
