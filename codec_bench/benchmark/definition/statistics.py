"""Statistics of a benchmark's sounds and questions, with all of their defects.

Every sound is decoded, to find empty, truncated or missing ones.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codec_bench.benchmark.reading.choices import choices_of, right_letters
from codec_bench.messages import Diagnostic, in_common, of_error
from codec_bench.messages.errors import AudioError

if TYPE_CHECKING:
    from codec_bench.benchmark.definition.base import Question
    from codec_bench.benchmark.definition.benchmark import Benchmark


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """A benchmark's data in numbers.

    Args:
        sounds: how many questions have a readable sound.
        hours: total duration. mean_s, least_s, most_s: mean, least and greatest duration; None without a sound.
        renamed: how many sounds have another suffix than the data says.
        problems: each defect as `code`, `parameters` and `message`, with its `questions`; a question may have several.
    """

    questions: int
    sounds: int
    hours: float
    mean_s: float | None
    least_s: float | None
    most_s: float | None
    renamed: int
    problems: tuple[Mapping[str, Any], ...]


def data_statistics(
    benchmark: Benchmark, *, mirror: str | os.PathLike[str] | None = None, limit: int | None = None
) -> DataStatistics:
    """Read all questions and audio of a benchmark; count them, seconds and defects.

    Args:
        mirror: a folder of data sets that replaces the hub.
        limit: at most this many questions, from the front; None for all.

    Raises:
        UserError: the data cannot be found, or a column is missing.
    """
    lengths_s: list[float] = []
    problems: defaultdict[str, list[Diagnostic]] = defaultdict(list)
    questions = renamed = 0
    for question in benchmark.questions(limit=limit, mirror=mirror):
        questions += 1
        renamed += question.fields.get("renamed") is True
        for problem in _wrong(question):
            problems[problem.code].append(problem)
        if question.audio is None:
            continue
        try:
            lengths_s.append(question.audio.duration_s)
        except AudioError as error:
            problems[of_error(error).code].append(of_error(error))
    total_s = math.fsum(lengths_s)
    return DataStatistics(
        questions,
        len(lengths_s),
        total_s / 3600,
        total_s / len(lengths_s) if lengths_s else None,
        min(lengths_s, default=None),
        max(lengths_s, default=None),
        renamed,
        tuple(_counted(same) for same in sorted(problems.values(), key=len, reverse=True)),
    )


def _counted(problems: list[Diagnostic]) -> dict[str, Any]:
    """Summarise defects of the same code as one entry with the number of questions."""
    common = in_common(problems)
    parameters = {name: value for name, value in common.as_dict().items() if name != "code"}
    return {"code": common.code, "parameters": parameters, "message": str(common), "questions": len(problems)}


def _wrong(question: Question) -> list[Diagnostic]:
    """The defects of a question, except those of its audio."""
    problems = [] if question.problem is None else [question.problem]
    if question.problem is None and not question.references:
        problems.append(Diagnostic("answer_missing"))
    if question.references and choices_of(question.fields):
        right = right_letters(question.fields, question.references)
        if not right:
            problems.append(Diagnostic("answer_not_among_choices"))
        elif len(right) > len(question.references):
            problems.append(Diagnostic("choice_repeated"))
    return problems
