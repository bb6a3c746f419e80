"""`tag_f1`: which of a closed set of tags an answer names, against those that the data give."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.benchmark.reading.words import negated, words
from codec_bench.messages import Diagnostic
from codec_bench.types import Score

LABELS = "labels"
"""The name of the field that holds all tags that may be named."""
_MOST_WORDS = 5
"""How many words of an answer a tag may take: `drum 'n' bass` is `drumnbass`."""


class TagF1(AnswerMetric):
    """Micro F1 of the tags that answers name, 0 to 1. Higher is better; 1 is every tag of every item and no other.

    The value over a set is 2 TP / (2 TP + FP + FN), summed over all items and tags. The expected answer is a list of
    tags between commas, of which those that are among `labels` count. A tag is named where its letters stand in an
    answer as whole words, however these are separated (`hip-hop` and `hip hop` are `hiphop`) but not across a mark such
    as a comma; the longest counts, so `no vocals` does not name `vocals`. `not rock` names nothing. An item without
    expected tags of which none are named adds nothing and has the value 1.

    Source: micro F1 as scikit-learn 1.9's `f1_score(average="micro")` counts it, exactly. How tags are read is the
        project's own rule.
    """

    compares = True

    name = "tag_f1"
    aggregate = "ratio"
    empty_references = True
    needs = (LABELS,)
    source = "scikit-learn 1.9 f1_score(average='micro'), exactly; tags are read by the project's own rule"
    protocol = "tag_f1/micro-1"

    def compute(self, answers: Sequence[Answer]) -> list[Score]:
        """One score per answer, undefined without an expected answer.

        `detail` holds the tags that were named, missed and added.
        """
        return [self._one(answer) for answer in answers]

    def _one(self, answer: Answer) -> Score:
        if not answer.references:
            return Score.undefined(Diagnostic("no_expected", id=answer.id), self.protocol)
        labels = {joined: str(label) for label in answer.fields[LABELS] if (joined := _joined(str(label)))}
        expected = {labels[joined] for tag in answer.references[0].split(",") if (joined := _joined(tag)) in labels}
        named = _named(answer.text, labels)
        right, counted = len(named & expected), len(named) + len(expected)
        detail = {
            "right": sorted(named & expected), "missed": sorted(expected - named), "added": sorted(named - expected)
        }  # fmt: skip
        value = 2 * right / counted if counted else 1.0
        return Score.ok(value, self.protocol, numerator=2 * right, denominator=counted, detail=detail)


def _joined(text: str) -> str:
    return "".join(words(text))


def _named(text: str, labels: dict[str, str]) -> set[str]:
    """The labels, by their joined letters, that a text names."""
    names: set[str] = set()
    for clause in _clauses(text):
        items, at = words(clause), 0
        while at < len(items):
            for length in range(min(_MOST_WORDS, len(items) - at), 0, -1):
                label = labels.get("".join(items[at : at + length]))
                if label is not None:
                    if not negated(items, at, items[at]):
                        names.add(label)
                    at += length
                    break
            else:
                at += 1
    return names


def _clauses(text: str) -> Iterable[str]:
    """The parts of a text between marks that end a tag."""
    folded = unicodedata.normalize("NFKC", text).translate(_ENDS)
    return folded.split("\n")


_ENDS = dict.fromkeys(map(ord, ',;:.!?()[]{}|/"\u3001\u3002\r'), "\n")
