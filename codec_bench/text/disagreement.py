"""Where a reference and its correction disagree, and which of the two a transcript follows there.

Source: github.com/huggingface/open_asr_leaderboard d1e99b2, `benchmark_fitting/ref_error_utils.py`; equal on the cases
of tests/golden/text/open_asr_reference_errors.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from codec_bench.text.error_rate import error_rates

_LEAST_MATCHED = 0.5
"""A text is compared only if it has this share of the reference's words, rounded down,"""
_MOST_WORDS = 3.0
"""and at most so many times its words."""
_LEAST_DISTANCE = 0.3
"""Spans whose letters differ by less, for each letter of the reference, differ in spacing or accents alone."""


class Followed(NamedTuple):
    """At how many places of a clip a transcript follows the reference, and at how many one of the two.

    Args:
        original: places with the reference's words. eligible: places with the words of the reference or of the
            correction.
        places: at how many the two disagree.
    """

    original: int
    eligible: int
    places: int


@dataclass(frozen=True, slots=True)
class _Aligned:
    """A text next to the words of a reference.

    Args:
        words: of the text. steps: what difflib finds, each with its place in the reference and in the text.
    """

    words: Sequence[str]
    steps: Sequence[tuple[str, int, int, int, int]]

    @property
    def matched(self) -> int:
        return sum(i2 - i1 for step, i1, i2, _, _ in self.steps if step == "equal")

    @property
    def missing(self) -> set[int]:
        """The places of the reference whose words the text has not."""
        return {at for step, i1, i2, _, _ in self.steps if step in ("delete", "replace") for at in range(i1, i2)}

    def inserted(self, before: int) -> list[str]:
        """The words that stand before a place of the reference and belong to none."""
        return [
            word
            for step, i1, _, j1, j2 in self.steps
            if step == "insert" and i1 == before
            for word in self.words[j1:j2]
        ]

    def in_place_of(self, span: Sequence[int]) -> str:
        """The words that stand in place of a span of the reference, or of a part of it."""
        first, last = span[0], span[-1]
        groups = [
            self.words[j1:j2] for step, i1, i2, j1, j2 in self.steps if step == "replace" and i1 <= last and first < i2
        ]
        return " ".join(word for words in groups for word in words)


def followed(original: str, corrected: str, transcript: str) -> Followed:
    """Which of two references a transcript follows where they disagree; all three are normalised.

    A place counts where the correction lacks or replaces words of the original, or adds words at its beginning or end.
    A transcript follows the original if it has all of its words there, and the correction if it has none of them and
    the correction's in their place.

    Examples:
        >>> followed("we thank the commission for this", "we thank the council for this", "we thank the council for this")
        Followed(original=0, eligible=1, places=1)
    """
    words = original.split()
    fixed, recognised = _align(words, corrected), _align(words, transcript)
    least = int(_LEAST_MATCHED * len(words))
    if not words or fixed.matched < least:
        return Followed(0, 0, 0)
    verdicts = [*_replaced(words, fixed, recognised), *_added(words, fixed, recognised)]
    usable = recognised.matched >= least and len(recognised.words) <= _MOST_WORDS * len(words)
    decided = [one for one in verdicts if one is not None] if usable else []
    return Followed(sum(decided), len(decided), len(verdicts))


def _align(words: Sequence[str], text: str) -> _Aligned:
    others = text.split()
    return _Aligned(others, SequenceMatcher(None, words, others, autojunk=False).get_opcodes())


def _replaced(words: Sequence[str], fixed: _Aligned, recognised: _Aligned) -> Iterator[bool | None]:
    """Of each span that the correction lacks, whether the transcript has it (or the correction's words); None if
    neither.
    """
    lacking = sorted(fixed.missing)
    for _, run in groupby(enumerate(lacking), lambda one: one[1] - one[0]):
        span = [at for _, at in run]
        spoken = fixed.in_place_of(span)
        if _distance("".join(words[at] for at in span), spoken.replace(" ", "")) < _LEAST_DISTANCE:
            continue
        missing = recognised.missing & set(span)
        corrected = len(missing) == len(span) and recognised.in_place_of(span) == spoken
        yield True if not missing else False if corrected else None


def _added(words: Sequence[str], fixed: _Aligned, recognised: _Aligned) -> Iterator[bool | None]:
    """Of the words that the correction adds at the beginning and at the end, whether the transcript adds none there (or
    these).
    """
    for before in (0, len(words)):
        more, mine = fixed.inserted(before), recognised.inserted(before)
        if more:
            same = mine[-len(more) :] == more if before == 0 else mine[: len(more)] == more
            yield True if not mine else False if same else None


def _distance(letters: str, others: str) -> float:
    """Edits of letters for each letter."""
    (rate,) = error_rates(reference=[letters], estimate=[others], unit="char", normaliser="none")
    return rate.errors / len(letters)
