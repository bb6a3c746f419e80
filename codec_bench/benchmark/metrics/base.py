"""Metrics of answers: cheap comparisons of texts with expected answers.

A metric gets the text after the benchmark's post-processing, and no unparsed answers. It raises no exception for a bad
item, but returns a `Score` whose status and reason say why there is no number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codec_bench.benchmark.reading.words import words
from codec_bench.messages import Diagnostic
from codec_bench.types import Score


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A model's answer to a question, as input of metrics.

    Args:
        text: the answer after post-processing.
        references: expected answers; any of several is right. Empty if none is known.
        fields: the data's other columns by the benchmark's names (`choices`, `question`, `instructions`, ...).
        raw: the unprocessed answer.
        sound_scores: scores of a spoken answer's sound by the metrics in `AnswerMetric.sound_metrics`.
        question_s, answer_s: durations of the question's and the answer's sound, or None; only for such metrics.
        turns: the words of the model's answers in the rounds before.
    """

    id: str
    text: str
    references: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    raw: str = ""
    sound_scores: Mapping[str, Score] = field(default_factory=dict)
    question_s: float | None = None
    answer_s: float | None = None
    turns: tuple[str, ...] = ()


class AnswerMetric(ABC):
    """One number per answer.

    Attributes
        name: the metric's name with its argument, such as `accuracy[exact]`.
        unit, range, higher_is_better: unit and range of the values, and whether a higher one is better.
        bounds: as of `metrics.base.Metric`.
        aggregate: `mean` of the values; `ratio` of summed numerators and denominators; or the name of a function in
            `codec_bench.stats.corpus.FOLDS`, such as `bleu`, which turns the summed `detail["counts"]` into a value.
        whole_set: whether an item's score depends on the other items, as for CIDEr. `compute` then gets all answers at
            once.
        empty_references: whether it compares with an empty expected answer. Other metrics get none.
        compares: whether it compares with the expected answer, which a definition must then name.
        needs: names in `Answer.fields` without which the metric cannot be computed.
        sound_metrics: the sound metrics whose scores of a spoken answer it reads; not for whole sets.
        protocol: exact id of the measurement.
        paper, source: the paper that defines it, and the implementation that it agrees with (and how closely).

    Raises:
        UnknownName: the argument in brackets names no variant or rule.
    """

    name: str
    unit: str = ""
    range: tuple[float | None, float | None] = (0.0, 1.0)
    bounds: tuple[float | None, float | None] | None = None
    higher_is_better: bool = True
    aggregate: str = "mean"
    whole_set: bool = False
    empty_references: bool = False
    compares: bool = False
    needs: tuple[str, ...] = ()
    sound_metrics: tuple[str, ...] = ()
    protocol: str
    paper: str = ""
    source: str = ""

    @abstractmethod
    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer, in order, independent of other answers unless `whole_set`."""

    def worst(self, answer: Answer) -> Score:
        """The score of a failure that counts as wrong; by default of an empty answer."""
        return self.compute([Answer(answer.id, "", answer.references, answer.fields, answer.language)])[0]


class SeparateMetric(AnswerMetric):
    """A metric whose score of an answer does not depend on other answers."""

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer."""
        return [self._one(answer) for answer in answers]

    @abstractmethod
    def _one(self, answer: Answer) -> Score:
        """The score of an answer."""


class WordMetric(SeparateMetric):
    """Compares the words of answer and references; undefined without words in these."""

    compares = True

    def _one(self, answer: Answer) -> Score:
        references = [items for ref in answer.references if (items := words(ref))]
        if not references:
            return Score.undefined(Diagnostic("no_expected_words", id=answer.id), self.protocol)
        return self.compare(references, words(answer.text))

    @abstractmethod
    def compare(self, references: Sequence[Sequence[str]], estimate: Sequence[str]) -> Score:
        """The score of an answer's words, possibly none, against those of each reference."""
