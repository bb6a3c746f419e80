"""The sounds and questions of a benchmark's data in numbers, as tables of data sets give them, with everything that is
wrong in them.

Every sound is decoded, so that one that is empty, truncated or missing is found.
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
from codec_bench.errors import AudioError

if TYPE_CHECKING:
    from codec_bench.benchmark.definition.base import Question
    from codec_bench.benchmark.definition.benchmark import Benchmark

_QUOTED = re.compile(r"'[^']*'")


@dataclass(frozen=True, slots=True)
class DataStatistics:
    """A benchmark's data in numbers.

    Args:
        questions: how many there are. sounds: how many of them have a sound that can be read.
        hours: of these sounds together. mean_s, least_s, most_s: their mean, least and greatest length; None without a
            sound.
        renamed: how many sounds have another suffix than the data names.
        problems: how many questions have what is wrong with them, by the reason; a question may have several.
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
    """Reads all questions of a benchmark and their sounds.

    Args:
        benchmark: whose data.
        mirror: a folder that holds the data sets and is used in place of the hub.
        limit: at most so many questions, from the front; None for all.

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
    """What is wrong with a question beside its sound."""
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
