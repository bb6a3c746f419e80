"""What a benchmark is once its definition has been read: data, prompt, post-processing, metrics, published numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codec_bench.audio.clip import Clip


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One row of a benchmark's data under the benchmark's own names.

    Args:
        id: unique in the benchmark; does not depend on a limit or on the order of the rows.
        fields: every column the definition names, by the definition's name: JSON values and clips.
        references: what is expected; several where any of them is right; empty where nothing is.
        audio: the sound that the question is about (for voice cloning, the prompt), or None.
        language: of the expected answer, or None.
        subsets: value by column, for the benchmark's subsets.
        problem: why the row cannot be asked, or None. Such a row stays in every count as a failure.
    """

    id: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    references: tuple[str, ...] = ()
    audio: Clip | None = None
    language: str | None = None
    subsets: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """One published number: whose, of which metric, how much, where it stands."""

    model: str
    metric: str
    value: float
    source: str
