"""Continue a record with a larger limit or more draws, and renumber its answers.

A limit takes the rows with the lowest hashes of seed and key: a larger selection contains every smaller one. The number
of a question is its position in the selection. One transaction writes the new numbers and the new limit, so the record
equals that of one run at the larger limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codec_bench.benchmark.asking.question_loop import plain_fields
from codec_bench.benchmark.definition.base import Question
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import RunMismatch
from codec_bench.store.answers import AnswerWriter, NewPosition, content_of
from codec_bench.store.controls import ANOTHER, CONTROL
from codec_bench.store.tables import storable


def resume_size(requested: Mapping[str, Any], recorded: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A copy of the request with the limit and repeats of the existing record.

    The record is opened with it and then enlarged by `grow`.

    Args:
        requested: the facts that change an answer, such as data, prompt, model, `limit` and `repeats`.
        recorded: the same facts in the record; empty without one, and the request stays as it is.
        folder: of the run, for messages.

    Raises:
        RunMismatch: the request has fewer questions or draws than the record.
    """
    if not recorded:
        return dict(requested)
    limit, repeats = recorded.get("limit"), recorded.get("repeats")
    smaller = {**requested, "limit": limit, "repeats": repeats}
    if json.loads(json.dumps(smaller)) != recorded:
        return smaller  # something else differs, which the writer of the record reports
    limit_now, repeats_now = requested["limit"], requested["repeats"]
    if limit_now != limit and requested.get(CONTROL, {}).get("sound") == ANOTHER:
        raise RunMismatch("choice_fixed_by_sounds", folder=folder, hint="give another --out, or the same --limit")
    if limit_now is not None and (limit is None or limit_now < limit):
        raise RunMismatch(
            "limit_lowered",
            folder=folder,
            before=limit,
            unit="question",
            limit=limit_now,
            hint=f"give another --out, or {'no --limit' if limit is None else f'--limit {limit} or more'}",
        )
    if repeats_now < repeats:
        raise RunMismatch(
            "repeats_lowered",
            folder=folder,
            repeats=repeats,
            draws=repeats_now,
            hint=f"give another --out, or --repeats {repeats} or more",
        )
    return smaller


def grow(writer: AnswerWriter, questions: Iterable[Question], requested: Mapping[str, Any]) -> None:
    """Renumber recorded answers by their positions in a larger set of questions.

    Args:
        questions: all questions of the larger selection, in order.
        requested: the facts of the larger request, which replace the recorded ones.

    Raises:
        RunMismatch: the larger selection lacks a question of the record, or has another one in its place.
    """
    held, places = writer.questions(), {}
    for number, question in enumerate(questions):
        before = held.pop(storable(question.id) or "", None)
        if before is None:
            continue
        if before[1] != content_of(plain_fields(question.fields), question.references):
            raise _cannot_grow(writer, Diagnostic("choice_changes_question", id=question.id))
        places[before[0]] = NewPosition(number, question.draw_of, question.draw)
    if held:
        raise _cannot_grow(writer, Diagnostic("choice_lacks_question", id=next(iter(held))))
    writer.renumber(places, requested)


def _cannot_grow(writer: AnswerWriter, why: Diagnostic) -> RunMismatch:
    """Build the error of a choice of questions that does not continue the run's."""
    return RunMismatch(
        "choice_cannot_grow",
        folder=writer.folder,
        cause=why,
        hint="give another --out. If rows hold several questions, take limits that are multiples of their number",
    )
