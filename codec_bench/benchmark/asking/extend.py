"""A record that is continued with a larger limit or with more draws: its answers get the places that they have among
all.

Conventions
    A limit takes the rows with the lowest hashes of seed and key, so that a larger choice contains every smaller one.
    The number of a question is its place in the choice. When the choice grows, the answers get the numbers that they
    have in it, in one transaction with the new limit, so that the record is that of one run at the larger limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codec_bench.benchmark.asking.question_loop import plain_fields
from codec_bench.benchmark.definition.base import Question
from codec_bench.errors import RunMismatch
from codec_bench.store.answers import AnswerWriter, NewPosition, content_of
from codec_bench.store.controls import ANOTHER, CONTROL
from codec_bench.store.tables import storable


def resume_size(requested: Mapping[str, Any], recorded: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What is asked, in the size that the record in the folder was begun with; if there is none, what is asked.

    Args:
        requested: what is asked now. recorded: what the record was begun with, or nothing.

    Raises:
        RunMismatch: fewer questions or fewer draws are asked for than the record was begun with.
    """
    if not recorded:
        return dict(requested)
    limit, repeats = recorded.get("limit"), recorded.get("repeats")
    smaller = {**requested, "limit": limit, "repeats": repeats}
    if json.loads(json.dumps(smaller)) != recorded:
        return smaller  # something else differs, which the writer of the record tells
    limit_now, draws = requested["limit"], requested["repeats"]
    if limit_now != limit and requested.get(CONTROL, {}).get("sound") == ANOTHER:
        raise RunMismatch(
            f"'{folder}' gives sounds of other items, which were chosen among its questions, so that their number cannot change",
            hint="give another --out, or the same --limit",
        )
    if limit_now is not None and (limit is None or limit_now < limit):
        size = "all questions" if limit is None else f"{limit:,} questions"
        raise RunMismatch(
            f"'{folder}' was begun with {size} and cannot be limited to {limit_now:,}: a limit can be raised there, and not lowered",
            hint=f"give another --out, or {'no --limit' if limit is None else f'--limit {limit} or more'}",
        )
    if draws < repeats:
        raise RunMismatch(
            f"'{folder}' was begun with {repeats} answers to each question, and {draws} would leave some out: their number can "
            "be raised there, and not lowered",
            hint=f"give another --out, or --repeats {repeats} or more",
        )
    return smaller


def grow(writer: AnswerWriter, questions: Iterable[Question], requested: Mapping[str, Any]) -> None:
    """Gives the answers of a record the numbers that they have among more questions or more draws.

    Args:
        writer: the record. questions: all questions of the larger choice, in order. requested: what is asked now.

    Raises:
        RunMismatch: the larger choice lacks a question of the record, or has another one in its place.
    """
    held, places = writer.questions(), {}
    for number, question in enumerate(questions):
        before = held.pop(storable(question.id) or "", None)
        if before is None:
            continue
        if before[1] != content_of(plain_fields(question.fields), question.references):
            raise _misfit(writer, f"holds another question under the id '{question.id}'")
        places[before[0]] = NewPosition(number, question.draw_of, question.draw)
    if held:
        raise _misfit(writer, f"does not hold the question '{next(iter(held))}'")
    writer.renumber(places, requested)


def _misfit(writer: AnswerWriter, why: str) -> RunMismatch:
    return RunMismatch(
        f"'{writer.folder}' cannot grow: the larger choice {why}, which was answered there",
        hint="give another --out. Where a row of the data holds several questions, limits that are whole multiples of their "
        "number contain each other",
    )
