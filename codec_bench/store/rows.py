"""The rows of a run record as values: what is written of an item, and what is read of items, samples and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from codec_bench.types import Score

SILENT = "the audio is digital silence"
"""The note of an item whose estimate holds no sound: no sample is more than two steps of 16 bits from a constant."""
SAME = "the estimate is the reference, sample by sample"
"""The note of an item of audio made elsewhere that equals its reference."""
CUT = "samples beyond full scale were cut"
"""The end of the note of an item whose estimate was louder than full scale; their number stands before it."""
NO_ANSWER = {
    "empty": "the answer is empty",
    "endless": "the answer has no end: it ran into the limit of length, or repeats itself",
    "copy": "the answer is a copy of what was asked",
    "phonemes": "the answer is in phonemes",
    "language": "the answer is in another language or script than was expected",
}
"""The notes of answers that are none, by the way in which each is none (`codec_bench.text.collapse.WAYS`)."""


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One sample through one system, with everything that the record keeps of it.

    Args:
        system, sample: names as in the record.
        status, reason: `ok`, or `failed` and why there is no estimate.
        scores: by metric name.
        bits: how many bits the codec sent, or None.
        audio: path of the kept estimate, relative to the run folder, or None.
        notes: remarks that are not failures, such as "3 samples beyond full scale were cut".
        duration_s, sample_rate_hz, channels: of the reference audio, or None if it could not be read.
    """

    system: str
    sample: str
    status: str
    reason: str | None
    scores: Mapping[str, Score]
    bits: float | None = None
    audio: str | None = None
    notes: Sequence[str] = ()
    duration_s: float | None = None
    sample_rate_hz: int | None = None
    channels: int | None = None


class Results(Protocol):
    """What takes finished items; `RunWriter` writes them to the record."""

    @property
    def folder(self) -> Path:
        """The run folder, where audio is kept."""
        ...

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Takes finished items, each with the number of its sample."""
        ...


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score as the record holds it; `id` is the id of the sample."""

    system: str
    id: str
    metric: str
    value: float | None
    status: str
    reason: str | None
    protocol: str
    numerator: float | None
    denominator: float | None
    detail: Mapping[str, Any] = field(default_factory=dict)


class TableRow(NamedTuple):
    """One row of the run as a table: one metric of one sample through one system. docs/export.md explains each column.

    Args:
        system, id, metric: names; `id` is the id of the sample.
        value: the score; None unless `status` is `ok`.
        status, reason: as those of a `Score`. `failed` also stands for an item that failed and has no score in the record,
            and `not_scored` for any other score that the record lacks.
        protocol: the exact measurement.
        numerator, denominator: what the row adds to the value of its system and metric.
        speaker, language, duration_s, text: of the sample; `text` is its reference text.
        transcript: what a recogniser heard, if the score says so.
        detail: the further numbers of the score as a JSON object; `{}` if there are none.
        extra: the further columns of the manifest that the record keeps, or the subsets of a benchmark's question, as a JSON
            object; `{}` if there are none.
    """

    system: str
    id: str
    metric: str
    value: float | None
    status: str
    reason: str | None
    protocol: str
    numerator: float | None
    denominator: float | None
    speaker: str | None
    language: str | None
    duration_s: float | None
    text: str | None
    transcript: str | None
    detail: str
    extra: str


NUMBERS = ("value", "numerator", "denominator", "duration_s")
"""The columns of `TableRow` that hold numbers; the others hold text."""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as the record holds it; `audio` is the file with the kept estimate, or None."""

    system: str
    id: str
    status: str
    reason: str | None
    bits: float | None
    notes: Sequence[str]
    audio: Path | None


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One sample as the record holds it; `audio` is the path of the reference as the data names it."""

    id: str
    audio: str | None
    text: str | None
    speaker: str | None
    language: str | None
    duration_s: float | None
    sample_rate_hz: int | None
    channels: int | None
