"""Which of two texts a transcript follows where the two disagree.

Source: github.com/huggingface/open_asr_leaderboard d1e99b2, `benchmark_fitting/ref_error_utils.py`; equal on the cases
of tests/golden/text/open_asr_reference_errors.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, groupby
from typing import NamedTuple

from codec_bench.text.error_rate import error_rates

_LEAST_MATCHED = 0.5
"""A text needs at least this share of the reference's words, rounded down,"""
_MOST_WORDS = 3.0
"""and at most this many times its words."""
_LEAST_DISTANCE = 0.3
"""Spans with fewer edits per letter of the reference differ only in spacing or accents."""


class Followed(NamedTuple):
    """Counts of the places where the two references of a clip disagree.

    Args:
        original: places where the transcript has the reference's words.
        eligible: places where it has the words of the reference or of the correction.
        places: all places.
    """

    original: int
    eligible: int
    places: int


@dataclass(frozen=True, slots=True)
class _Aligned:
    """The words of a text, and difflib's steps from a reference to them."""

    words: Sequence[str]
    steps: Sequence[tuple[str, int, int, int, int]]

    @property
    def matched(self) -> int:
        return sum(i2 - i1 for step, i1, i2, _, _ in self.steps if step == "equal")

    @property
    def missing(self) -> set[int]:
        """The positions of reference words that the text lacks."""
        return {at for step, i1, i2, _, _ in self.steps if step in ("delete", "replace") for at in range(i1, i2)}

    def inserted(self, before: int) -> list[str]:
        """The words that the text inserts before a position of the reference."""
        return [
            word
            for step, i1, _, j1, j2 in self.steps
            if step == "insert" and i1 == before
            for word in self.words[j1:j2]
        ]

    def in_place_of(self, span: Sequence[int]) -> str:
        """The words that the alignment substitutes for a span of the reference."""
        first, last = span[0], span[-1]
        groups = (
            self.words[j1:j2] for step, i1, i2, j1, j2 in self.steps if step == "replace" and i1 <= last and first < i2
        )
        return " ".join(chain.from_iterable(groups))


def followed(original: str, corrected: str, transcript: str) -> Followed:
    """Which of two references a transcript follows, all three normalised.

    A place counts where the correction lacks or replaces words of the original, or adds words at its beginning or end.
    A transcript follows the original if it has all of its words there, and the correction if it has none of them but
    the correction's.

    Examples:
        >>> followed("we thank the commission", "we thank the council", "we thank the council")
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
    """For each span that the correction lacks: whether the transcript has it (True), the correction's words (False), or
    None.
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
    """For the words that the correction adds at each end: whether the transcript adds none (True), these (False), or
    None.
    """
    for before in (0, len(words)):
        more, mine = fixed.inserted(before), recognised.inserted(before)
        if more:
            same = mine[-len(more) :] == more if before == 0 else mine[: len(more)] == more
            yield True if not mine else False if same else None


def _distance(letters: str, others: str) -> float:
    """Edits per letter."""
    (rate,) = error_rates(reference=[letters], estimate=[others], unit="char", normaliser="none")
    return rate.errors / len(letters)
