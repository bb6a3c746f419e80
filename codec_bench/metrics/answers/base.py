"""What a metric of answers is: a cheap function of a model's text and of what was expected.

Conventions
    The text has been through the benchmark's post-processing; what could not be parsed never gets here.
    A metric never raises for one bad item: it returns a `Score` whose status and reason say why there is no number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from codec_bench.types import Score


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One answer as a metric sees it.

    Args:
        id: the sample's.
        text: the answer after post-processing.
        references: what was expected; several where any of them is right. Empty for a metric that needs none.
        fields: the data's other columns by the benchmark's names (`choices`, `question`, `instructions`, ...).
        language: of the answer, or None.
        raw: the answer as the model gave it.
    """

    id: str
    text: str
    references: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    raw: str = ""


class AnswerMetric(ABC):
    """One number per answer.

    Class attributes
        name: registry key with its argument, such as `accuracy[exact]`.
        aggregate: `mean` of the values; `ratio` of summed numerators and denominators; or the name of a fold in
            `codec_bench.stats.corpus.FOLDS` (such as `bleu`), which turns the summed `detail["counts"]` into a value.
        whole_set: whether an item's score depends on the other items' references (CIDEr): then `compute` is called once
            with all.
        needs: names in `Answer.fields` without which it cannot be computed.
        protocol: exact id of the measurement.
        paper, source: where it is defined, and the implementation it agrees with (and how closely).
    """

    name: str
    unit: ClassVar[str] = ""
    range: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    aggregate: ClassVar[Literal["mean", "ratio"] | str] = "mean"
    whole_set: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    protocol: str
    paper: ClassVar[str] = ""
    source: ClassVar[str] = ""

    @abstractmethod
    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer, in order. Unless `whole_set`, a score must not depend on the other answers."""

    def worst(self, answer: Answer) -> Score:
        """What an item adds where failures count as wrong: the score of an empty answer, unless a metric knows better."""
        return self.compute([Answer(answer.id, "", answer.references, answer.fields, answer.language)])[0]
