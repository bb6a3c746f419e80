"""`tag_f1`: the tags that an answer names, compared with the data's."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from codec_bench.benchmark.metrics.base import Answer, SeparateMetric
from codec_bench.benchmark.reading.words import negated, words
from codec_bench.messages import Diagnostic
from codec_bench.types import Score

LABELS = "labels"
"""The field of all possible tags."""
_MOST_WORDS = 5
"""How many words a tag may have in an answer: `drum 'n' bass` is `drumnbass`."""


class TagF1(SeparateMetric):
    """Micro F1 of the named tags, 0 to 1. Higher is better.

    The value over a set is 2 TP / (2 TP + FP + FN), summed over all items and tags. The expected answer is a
    comma-separated list of tags, where those among `labels` count. A tag is named if its letters occur as whole
    words, with any separators (`hip-hop` and `hip hop` are `hiphop`) except marks such as a comma; the longest counts,
    so `no vocals` does not name `vocals`. `not rock` names nothing. An item without expected and named tags has the
    value 1 and adds nothing.

    Source: micro F1 as in scikit-learn 1.9's `f1_score(average="micro")`, exactly. The reading of tags is the project's
    own rule.
    """

    compares = True

    name = "tag_f1"
    aggregate = "ratio"
    empty_references = True
    needs = (LABELS,)
    source = "scikit-learn 1.9 f1_score(average='micro'), exactly; tags are read by the project's own rule"
    protocol = "tag_f1/micro-1"

    def _one(self, answer: Answer) -> Score:
        """Score one answer; `detail` lists right, missed and added tags."""
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
    """The tags that a text names, except negated ones.

    Args:
        labels: the tags by their letters without separators.
    """
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
