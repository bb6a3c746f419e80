"""Questions and published numbers of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.audio.clip import Clip
    from codec_bench.messages import Diagnostic


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One row of a benchmark's data, with its columns under the benchmark's own names.

    Args:
        id: unique in the benchmark, independent of limit and order.
        fields: value of every column that the definition names, by the definition's name: JSON values and clips.
        references: expected answers; any of several is right; empty if none is known.
        audio: the sound of the question (for voice cloning, the recording of the voice), or None.
        language: language of the expected answer, or None.
        speaker: of the sound; None if unknown. Intervals are over speakers.
        subsets: the question's value for each of the benchmark's subsets, by the subset's name.
        problem: why the row gives no question, or None. Such a row counts as a failure.
        draw_of, draw: for several answers to a question, its own id and the index of this one; else None and 0.
        other: under a control, the item with the replacement sound, or None.
    """

    id: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    references: tuple[str, ...] = ()
    audio: Clip | None = None
    language: str | None = None
    speaker: str | None = None
    subsets: Mapping[str, str] = field(default_factory=dict)
    problem: Diagnostic | None = None
    draw_of: str | None = None
    draw: int = 0
    other: Question | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """One published number: model, metric, value in the metric's unit, and source."""

    model: str
    metric: str
    value: float
    source: str
