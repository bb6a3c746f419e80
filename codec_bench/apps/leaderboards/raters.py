"""Judges of a board's values, and known offsets between them.

A judge is its name with the models that its service reported, since a service may replace a model. Values by two judges
are never ranked against each other; `judge compare` measures their offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from codec_bench.benchmark.judge.metric import STEM, is_judge_metric, published_judge
from codec_bench.messages.errors import UserError
from codec_bench.store.judge_successions import Succession, saved_successions
from codec_bench.store.judge_tests import NOT_TESTED

UNNAMED = "a judge that is not among the models here"
RaterKey = tuple[str, tuple[str, ...], str]


class BoardJudge(NamedTuple):
    """A judge.

    Args:
        served: the service's names of the models.
        rubric: the protocol without the judge, or "".
        named: the rubric's judge, if another one; else "".
    """

    judge: str
    served: tuple[str, ...] = ()
    rubric: str = ""
    tested: str = NOT_TESTED
    named: str = ""

    @property
    def key(self) -> RaterKey:
        """The identity, without test and the rubric's judge."""
        return self.judge, self.served, self.rubric

    @property
    def name(self) -> str:
        """The judge and, if different, its served name."""
        return self.judge if set(self.served) <= {self.judge} else f"{self.judge} as {' and '.join(self.served)}"

    @property
    def read(self) -> str:
        """The name, the rubric's judge that it replaces, and the test."""
        return f"{self.name}{self._instead}; {self.tested}"

    @property
    def words(self) -> str:
        """As `read`, with the wording in brackets."""
        wording = f" ({self.rubric.removeprefix(f'{STEM}/')})" if self.rubric else ""
        return f"{self.name}{wording}{self._instead}; {self.tested}"

    @property
    def _instead(self) -> str:
        return f" in place of {self.named}" if self.named else ""


def published_words(metrics: Mapping[str, str]) -> list[str]:
    """Describe the judges of published values: name, end of service, and test result."""
    of: dict[str, list[str]] = {}
    for column, metric in metrics.items():
        if is_judge_metric(metric):
            of.setdefault(": ".join(_published(metric) or (UNNAMED, NOT_TESTED)), []).append(column)
    return [f"published values of {', '.join(names)} were marked by {judge}" for judge, names in of.items()]


def published_rater(metric: str) -> BoardJudge | None:
    """Return the judge behind a metric's published numbers; None if unknown."""
    published = _published(metric)
    return None if published is None else BoardJudge(published[0])


def _published(metric: str) -> tuple[str, str] | None:
    try:
        return published_judge(metric)
    except UserError:  # a custom board may name a removed rubric
        return None


def describe_offsets(columns: Mapping[str, Sequence[BoardJudge]], factors: Mapping[str, int]) -> list[str]:
    """Describe the offset between every two judges of a column, in the column's unit.

    Args:
        columns: the judges by column.
        factors: by column, from the metric's unit to the column's.
    """
    known = saved_successions() if any(len(held) > 1 for held in columns.values()) else []
    of: dict[str, list[str]] = {}
    for column, raters in columns.items():
        for first, second in combinations(raters, 2):
            for words in _describe_offset(first, second, known, factors[column]):
                of.setdefault(words, []).append(column)
    return [f"{', '.join(names)}: {words}" for words, names in of.items()]


def _describe_offset(first: BoardJudge, second: BoardJudge, known: Sequence[Succession], factor: int) -> Iterator[str]:
    """Describe the measured offset between two judges, or that there is none."""
    if first.rubric and second.rubric and first.rubric != second.rubric:
        yield (
            f"values by {first.words} and by {second.words} are not of one wording, so that no bridge leads from one "
            "to the other"
        )
        return
    rubric = second.rubric or first.rubric
    for one in known:
        sides = one.name_of(first.judge, first.served), one.name_of(second.judge, second.served)
        if one.rubric == rubric and None not in sides and sides[0] != sides[1]:
            words = f"{one.words_in(factor)}, measured over {one.offset.n:,} answers"
            yield f"{words} with {rubric.removeprefix(f'{STEM}/')}; the two are not ranked against each other"
            return
    yield (
        f"values by {first.name} and by {second.name} are not ranked against each other, and no bridge between them "
        "was measured (codec-bench judge compare)"
    )
