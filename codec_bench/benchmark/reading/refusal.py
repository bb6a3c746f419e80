"""Detect answers that decline: no sound came, cannot listen, or refuses.

In English, Chinese, German, French, Spanish, Italian, Portuguese, Japanese, Korean, Russian and Arabic, from the
opening of an answer.
"""

from __future__ import annotations

import re

from codec_bench.benchmark.reading.grammar import cue_pattern
from codec_bench.benchmark.reading.mentions import fold_text
from codec_bench.benchmark.reading.patterns import compile_pattern

OPENING = 400
_NO_SOUND = compile_pattern("refusal", "no_sound")
_DECLINES = compile_pattern("refusal", "declines")


def lacks_sound(text: str) -> bool:
    """Whether an answer says that no sound came, or that the model cannot listen."""
    return _NO_SOUND.search(fold_text(text[:OPENING])) is not None


_MISSING = compile_pattern("refusal", "missing")
_SENTENCE = re.compile(r"[.!?。！？\n।]+")


def declines(text: str) -> bool:
    """Whether an answer declines, for whatever reason."""
    return lacks_sound(text) or _DECLINES.search(fold_text(text[:OPENING])) is not None


def is_unheard(text: str) -> bool:
    """Whether an undecided answer says that no sound came, or declines to judge."""
    opening = fold_text(text[:OPENING])
    return _MISSING.search(opening) is not None or any(
        all(cue_pattern(role).search(sentence) for role in ("unable", "sound"))
        and any(cue_pattern(role).search(sentence) for role in ("sense", "provide"))
        for sentence in _SENTENCE.split(opening)
    )
