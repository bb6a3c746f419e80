"""Rows of a run record as values: items to write; items and scores to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_args, get_type_hints

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import plain
from codec_bench.text.tags import FLAG_FROM
from codec_bench.types import Score

SOUND = "<audio>"
"""Placeholder of a sound in the text sent to a model (`QuestionRecord.prompt`)."""
IGNORED_FORMAT = Diagnostic("ignored_format")
"""Flag of the score of a plain-text answer where the prompt asks for JSON."""
WAYS = ("empty", "endless", "copy", "phonemes", "language", "truncated", "refusal")
NO_ANSWER = {problem: Diagnostic(f"answer_{problem}") for problem in WAYS}
"""Notes of answers that are none, by kind (`codec_bench.text.degenerate_answers.WAYS`)."""


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One sample through one system, as the record keeps it.

    Args:
        status: `ok`, `failed`, or `refused` if a model rejected or declined the question.
        bits: sent by the codec, or None.
        audio: path of the saved estimate in the run folder, or None.
        notes: remarks that are no failures, such as `Diagnostic("clipped", samples=3)`.
        duration_s, sample_rate_hz, channels: of the reference; None if unreadable.
        estimate_s: of the estimate.
        sound: a hash of the reference's samples.
        estimate_sound: of an estimate from a file.
    """

    system: str
    sample: str
    status: str
    reason: str | None  # `messages.as_reason` takes it
    scores: Mapping[str, Score]
    bits: float | None = None
    audio: str | None = None
    notes: Sequence[str] = ()
    duration_s: float | None = None
    sample_rate_hz: int | None = None
    channels: int | None = None
    sound: str | None = None
    estimate_sound: str | None = None
    estimate_s: float | None = None


class Results(Protocol):
    """A sink of finished items; `RunWriter` writes them to the record."""

    @property
    def folder(self) -> Path:
        """The run folder, for saved audio."""
        ...

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Accept finished items, each with the number of its sample."""
        ...


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score of the record; `id` is the id of the sample."""

    system: str
    id: str
    metric: str
    value: float | None
    status: str
    reason: Diagnostic | None
    protocol: str
    numerator: float | None
    denominator: float | None
    detail: Mapping[str, Any] = field(default_factory=dict)


def counted_from(detail: Mapping[str, Any]) -> float:
    """Share of a metric's scores from which the flag in a detail is reported."""
    return float(detail.get(FLAG_FROM, 0.0))


def finding_text(finding: Mapping[str, Any]) -> str:
    """A check's finding, such as `polarity is suspect: ...` or `contract failed: ...`."""
    verb = "" if finding["state"] == "failed" else "is "
    return plain(f"{finding['check']} {verb}{finding['state']}: {finding['found']}")


def doubts_text(findings: Sequence[Mapping[str, Any]]) -> str | None:
    """All findings of a system as one text; None if there are none."""
    return plain("; ".join(map(finding_text, findings))) or None


class Cells:
    """Convert cells of the table `Run.rows` that SQL alone cannot compute.

    Args:
        protocols, judges: by metric.
        checks: results by system.
        read_detail, read_reason: parse a cell of a sample.
    """

    def __init__(
        self,
        protocols: Mapping[str, str],
        judges: Mapping[str, str | None],
        checks: Mapping[str, Any],
        read_detail: Callable[[str, str], Mapping[str, Any]],
        read_reason: Callable[[str, str], Diagnostic],
    ) -> None:
        self.protocols, self.judges = protocols, judges
        self.doubts = {name: doubts_text((check or {}).get("findings", ())) for name, check in checks.items()}
        self.sample = ""
        self._read, self._read_reason = read_detail, read_reason
        self._last: tuple[str, str, Mapping[str, Any]] = ("", "", {})

    def detail(self, text: str | None) -> Mapping[str, Any]:
        """The detail of the row's score, cached for several columns."""
        if text is None:
            return {}
        if self._last[:2] != (self.sample, text):
            self._last = (self.sample, text, self._read(text, self.sample))
        return self._last[2]

    def diagnostic(self, text: str | None) -> Diagnostic | None:
        """The reason of the row."""
        return None if text is None else self._read_reason(text, self.sample)

    def sentence(self, text: str | None) -> str | None:
        """The reason of the row in words."""
        diagnostic = self.diagnostic(text)
        return None if diagnostic is None else str(diagnostic)

    def transcript(self, text: str | None) -> str | None:
        """The transcript as the recogniser wrote it."""
        return self._text(text, "transcript") or self._text(text, "hypothesis")

    def normalised(self, text: str | None) -> str | None:
        """The transcript as an error rate compares it."""
        return self._text(text, "hypothesis")

    def normalised_text(self, text: str | None) -> str | None:
        """The reference text as an error rate compares it."""
        return self._text(text, "reference") if "hypothesis" in self.detail(text) else None

    def _text(self, text: str | None, name: str) -> str | None:
        held = self.detail(text).get(name)
        return held if isinstance(held, str) else None

    def checked_detail(self, text: str | None) -> str:
        """The detail as JSON text, checked."""
        self.detail(text)
        return "{}" if text is None else text


class TableColumn(NamedTuple):
    """A column of the table.

    Args:
        means: its description in `docs/export.md`.
        sql: expression over the tables `systems s`, `metrics m`, `items i`, `samples p`, `scores c` (NULL where the
            record has no score) and `extras`.
        questions_sql: in a run with `questions`, if different.
        convert: makes the cell of the expression's value where SQL alone does not.
    """

    means: str
    sql: str
    questions_sql: str | None = None
    convert: Callable[[Cells, Any], Any] | None = None


_OF_PROMPT = (
    "'prompt' IS (SELECT json_extract(value, '$.reference') FROM meta WHERE key = 'config') AND p.sound IS NOT NULL"
)
SAMPLE_DURATION, SAMPLE_RATE = (
    f"CASE WHEN NOT ({_OF_PROMPT}) THEN p.{column} END" for column in ("duration_s", "sample_rate_hz")
)
"""Duration and rate of a sample `p`; those of a voice prompt do not count."""
_REASON = (
    "CASE WHEN c.status IS NOT NULL THEN c.reason "
    """WHEN i.status = 'ok' THEN '{"code": "no_score"}' ELSE i.reason END"""
)
_EXTRA = "COALESCE(extras.columns, '{}')"
_OF_QUESTION = f"json_patch({_EXTRA}, COALESCE(questions.subsets, '{{}}'))"


class TableRow(NamedTuple):
    """One metric of one sample through one system; the columns of every table."""

    system: str
    id: str
    metric: str
    value: float | None
    status: str
    code: str | None
    reason: str | None
    protocol: str
    numerator: float | None
    denominator: float | None
    speaker: str | None
    language: str | None
    duration_s: float | None
    reference_duration_s: float | None
    text: str | None
    transcript: str | None
    text_normalised: str | None
    transcript_normalised: str | None
    detail: str
    extra: str
    suspect: str | None
    judge: str | None


TABLE_COLUMNS = {
    "system": TableColumn("The name of the system.", "s.name"),
    "id": TableColumn("The id of the sample.", "p.id"),
    "metric": TableColumn("The name of the metric.", "m.name"),
    "value": TableColumn("The score. It is empty unless `status` is `ok`.", "c.value"),
    "status": TableColumn(
        "`ok`, or why there is no value; see below.",
        "CASE WHEN c.status IS NULL AND i.status = 'ok' THEN 'not_scored' ELSE COALESCE(c.status, i.status) END",
    ),
    "code": TableColumn(
        "The code of the reason, unless `status` is `ok`.",
        _REASON,
        convert=lambda cells, text: getattr(cells.diagnostic(text), "code", None),
    ),
    "reason": TableColumn("One sentence, unless `status` is `ok`.", _REASON, convert=Cells.sentence),
    "protocol": TableColumn(
        "The exact measurement. Do not average numbers of two protocols.",
        "m.name",
        convert=lambda cells, metric: cells.protocols[metric],
    ),
    "numerator": TableColumn(
        "What the row adds to the numerator of the value of its system and metric: errors, or bits. For a plain mean "
        "this is the value.",
        "c.numerator",
    ),
    "denominator": TableColumn(
        "What the row adds to the denominator: words, or seconds. For a plain mean this is 1.", "c.denominator"
    ),
    "speaker": TableColumn("The speaker of the sample, where it is known.", "p.speaker"),
    "language": TableColumn("The language of the sample, where it is known.", "p.language"),
    "duration_s": TableColumn(
        "How long the system's audio is, in seconds; without it, how long the sample is, where that is known. The "
        "length of a prompt is never here.",
        f"COALESCE(i.duration_s, {SAMPLE_DURATION})",
    ),
    "reference_duration_s": TableColumn(
        "How long the reference audio is, in seconds, where there is some.",
        "CASE WHEN p.sound IS NOT NULL THEN p.duration_s END",
    ),
    "text": TableColumn("The reference text of the sample, as the data has it.", "p.text"),
    "transcript": TableColumn("The transcript as the recogniser wrote it.", "c.detail", convert=Cells.transcript),
    "text_normalised": TableColumn(
        "The reference text as an error rate compares it: after its rule for texts.",
        "c.detail",
        convert=Cells.normalised_text,
    ),
    "transcript_normalised": TableColumn(
        "The transcript as an error rate compares it.", "c.detail", convert=Cells.normalised
    ),
    "detail": TableColumn(
        "Everything else that the score says, as a JSON object in text; `{}` if there is nothing.",
        "c.detail",
        convert=Cells.checked_detail,
    ),
    "extra": TableColumn(
        "The further columns of the manifest, or the subsets of a benchmark's question, as a JSON object in text; "
        "where a question was sent several times (`--repeats`, `--prompts each`, `--choices all-rotations`) also the "
        "id of its `question` and its `draw`, from 0; `{}` if there are none. A column that forms "
        "[no groups](report.md#by-speaker-duration-or-another-column), such as one of long texts, is not in the record "
        "and not here.",
        _EXTRA,
        questions_sql=f"CASE WHEN questions.draw_of IS NULL THEN {_OF_QUESTION} "
        f"ELSE json_patch({_OF_QUESTION}, json_object('question', questions.draw_of, 'draw', questions.draw)) END",
    ),
    "suspect": TableColumn(
        "What the [checks](checks.md) of the system found; empty if they found nothing. Do not compare the values of "
        "such a system.",
        "s.name",
        convert=lambda cells, system: cells.doubts.get(system),
    ),
    "judge": TableColumn(
        "By whom a value that rests on a judge was marked, and how that judge did in its [test](judges.md); empty for "
        "other metrics.",
        "m.name",
        convert=lambda cells, metric: cells.judges[metric],
    ),
}
"""The columns of the table by name."""
NUMBERS = tuple(name for name, hint in get_type_hints(TableRow).items() if float in get_args(hint))
"""Columns of `TableRow` that hold numbers."""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item of the record, with the file of the saved estimate and its seconds."""

    system: str
    id: str
    status: str
    reason: Diagnostic | None
    bits: float | None
    notes: Sequence[Diagnostic]
    audio: Path | None
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One sample of the record; `audio` is the path of the reference in the data."""

    id: str
    audio: str | None
    text: str | None
    speaker: str | None
    language: str | None
    duration_s: float | None
    sample_rate_hz: int | None
    channels: int | None
