"""Metrics of answers: they compare a model's text with the expected answers, at little cost.

Conventions
    A metric is given the text after the benchmark's post-processing. It is not given answers that could not be parsed.
    For a bad item a metric raises no exception: it returns a `Score` whose status and reason say why there is no
    number.
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
    """One answer in the form that metrics take.

    Args:
        id: id of the question.
        text: the answer after post-processing.
        references: expected answers; if there are several, any of them is right. Empty if none is known.
        fields: the data's other columns by the benchmark's names (`choices`, `question`, `instructions`, ...).
        language: language of the answer, or None.
        raw: the answer as the model gave it.
        sound_scores: scores of the sound of a spoken answer by the metrics that `AnswerMetric.sound_metrics` names.
        question_s, answer_s: how long the question's and the answer's sound are, or None; only for metrics that hear.
        turns: the words of the model's answers to the rounds before, of a question of several rounds.
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
        whole_set: whether an item's score depends on the other items' references, as for CIDEr. `compute` is then
            called once with all answers.
        empty_references: whether it compares with an empty expected answer. Other metrics are not given empty ones.
        compares: whether it compares with the expected answer, so that a definition must say where that stands.
        needs: names in `Answer.fields` without which the metric cannot be computed.
        sound_metrics: the metrics of sound whose scores of a spoken answer it reads (`Answer.sound_scores`). It must not be of a whole
        set.
        protocol: exact id of the measurement.
        paper, source: the paper that defines it, and the implementation that it agrees with (and how closely).
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
        """One score per answer, in order. Unless `whole_set`, a score must not depend on the other answers."""

    def worst(self, answer: Answer) -> Score:
        """What an item adds if failures count as wrong: by default the score of an empty answer."""
        return self.compute([Answer(answer.id, "", answer.references, answer.fields, answer.language)])[0]


class WordMetric(AnswerMetric):
    """A metric that compares the words of each answer with the words of its references."""

    compares = True

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer, undefined where no reference has words."""
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Score:
        references = [items for ref in answer.references if (items := words(ref))]
        if not references:
            return Score.undefined(Diagnostic("no_expected_words", id=answer.id), self.protocol)
        return self.compare(references, words(answer.text))

    @abstractmethod
    def compare(self, references: Sequence[Sequence[str]], estimate: Sequence[str]) -> Score:
        """The score of the words of an answer, which may be none, against those of each reference."""
