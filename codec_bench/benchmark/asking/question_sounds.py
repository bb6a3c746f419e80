"""A hash of the content of a question's sounds, to match answers with questions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from codec_bench.audio.clip import Clip, clip_content
from codec_bench.benchmark.definition.base import Question

_DIGITS = 16


def sounds_hash(question: Question) -> str | None:
    """A hash of the sounds of a question, 64 bits as hexadecimal; None if it has none.

    A sound within a table or a tar file changes with its file.
    """
    contents = [clip_content(clip) for clip in _clips_of(question)]
    return hashlib.blake2b("\n".join(contents).encode()).hexdigest()[:_DIGITS] if contents else None


def _clips_of(question: Question) -> Iterator[Clip]:
    yield from _clips_in([question.audio, *question.fields.values()])
    if question.other is not None:
        yield from _clips_of(question.other)


def _clips_in(value: Any) -> Iterator[Clip]:
    if isinstance(value, Clip):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from _clips_in(element)
