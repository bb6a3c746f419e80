"""Detect generated audio that is the reference audio itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np

from codec_bench.data.source import problem_of
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError
from codec_bench.types import Audio, Sample

LOOKED_AT = 24
"""How many pairs are compared before a run, spread over the data."""

_QUIETEST = 0.5 / 32768


def sameness(samples: Sequence[Sample]) -> Diagnostic | None:
    """Say why generated audio seems to be the reference audio; None if it does not.

    The reason is that an estimate is the file of its reference, or that more than half of the compared pairs are
    equal sample by sample.

    Args:
        samples: with `audio` and `estimate`.
    """
    pairs = [(s.id, s.audio, s.estimate) for s in samples if problem_of(s) is None and s.audio and s.estimate]
    real_path = partial(_real_path, lru_cache(os.path.realpath))
    identical = [id for id, audio, estimate in pairs if real_path(audio) == real_path(estimate)]
    if identical:
        return Diagnostic("estimates_are_references", files=len(identical), estimates=len(pairs), example=identical[0])
    count = min(LOOKED_AT, len(pairs))
    chosen = [pairs[round(k * (len(pairs) - 1) / max(1, count - 1))] for k in range(count)]
    equal: list[bool] = []
    for _, audio, estimate in chosen:
        if (same := equal_sound(audio, estimate)) is not None:
            equal.append(same)
        if (len(equal) - sum(equal)) * 2 >= count:
            return None  # whatever the others are
    if sum(equal) * 2 <= len(equal):
        return None
    return Diagnostic("estimates_equal_references", equal=sum(equal), compared=len(equal))


def _real_path(real_folder: Callable[[str], str], path: str) -> str:
    """`os.path.realpath` of a file; `real_folder` resolves its folder, with a cache."""
    folder, name = os.path.split(path)
    return os.path.realpath(path) if os.path.islink(path) else os.path.join(real_folder(folder), name)


def equal_sound(one: str, other: str) -> bool | None:
    """Whether two files have the same samples; None if unreadable or silent."""
    try:
        a, b = Audio.read(one), Audio.read(other)
    except AudioError:
        return None
    if not a.num_samples or float(np.abs(a.samples).max()) < _QUIETEST:
        return None
    return a.sample_rate_hz == b.sample_rate_hz and np.array_equal(a.samples, b.samples)
