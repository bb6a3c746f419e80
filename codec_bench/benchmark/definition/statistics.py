"""Statistics of a benchmark's sounds and questions, with all of their defects.

Every sound is decoded, to find empty, truncated or missing ones.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codec_bench.benchmark.reading.choices import choices_of, right_letters
from codec_bench.messages.errors import AudioError

if TYPE_CHECKING:
    from codec_bench.benchmark.definition.base import Question
    from codec_bench.benchmark.definition.benchmark import Benchmark

_QUOTED = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """A benchmark's data in numbers.

    Args:
        sounds: how many questions have a readable sound.
        hours: total duration. mean_s, least_s, most_s: mean, least and greatest duration; None without a sound.
        renamed: how many sounds have another suffix than the data says.
        problems: how many questions have each defect; a question may have several.
    """

    questions: int
    sounds: int
    hours: float
    mean_s: float | None
    least_s: float | None
    most_s: float | None
    renamed: int
    problems: Mapping[str, int]


def data_statistics(
    benchmark: Benchmark, *, mirror: str | os.PathLike[str] | None = None, limit: int | None = None
) -> DataStatistics:
    """Read all questions of a benchmark and their sounds.

    Args:
        mirror: a folder of data sets that replaces the hub.
        limit: at most this many questions, from the front; None for all.

    Raises:
        UserError: the data cannot be found, or a column is missing.
    """
    lengths_s: list[float] = []
    problems: Counter[str] = Counter()
    questions = renamed = 0
    for question in benchmark.questions(limit=limit, mirror=mirror):
        questions += 1
        renamed += question.fields.get("renamed") is True
        problems.update(_wrong(question))
        if question.audio is None:
            continue
        try:
            lengths_s.append(question.audio.duration_s)
        except AudioError as error:
            problems[_QUOTED.sub("'…'", error.message)] += 1
    total_s = math.fsum(lengths_s)
    return DataStatistics(
        questions,
        len(lengths_s),
        total_s / 3600,
        total_s / len(lengths_s) if lengths_s else None,
        min(lengths_s, default=None),
        max(lengths_s, default=None),
        renamed,
        dict(problems.most_common()),
    )


def _wrong(question: Question) -> list[str]:
    """The defects of a question other than its sound."""
    problems = [] if question.problem is None else [question.problem]
    if question.problem is None and not question.references:
        problems.append("there is no expected answer")
    if question.references and choices_of(question.fields):
        right = right_letters(question.fields, question.references)
        if not right:
            problems.append("the expected answer is none of the choices")
        elif len(right) > len(question.references):
            problems.append("the right choice stands more than once among the choices")
    return problems
