"""The rows of a run record as values: what is written of an item, and what is read of items, samples and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, get_args, get_type_hints

from codec_bench.errors import plain
from codec_bench.messages import Diagnostic
from codec_bench.types import FLAG_FROM, Score

SOUND = "<audio>"
"""What stands for a sound in the text that a model was given (`QuestionRecord.prompt`)."""
SILENT = Diagnostic("silent")
"""The note of an item whose estimate holds no sound (`audio.level_checks.is_silent`)."""
SILENT_ESTIMATE = Diagnostic("silent_estimate")
"""The flag of the scores of such an item."""
NO_SPEECH = {problem: Diagnostic(problem) for problem in ("partial", "lacking", "unlike")}
"""The notes of items whose estimates are no coded speech, by the way in which each is none (`audio.level_checks`); also
the flags of their scores.
"""
SHORT_INCONCLUSIVE = Diagnostic("short_inconclusive")
"""The note of such an estimate that is not plainly that sound; also the flag of its scores. It counts as speech."""
NO_SPOKEN_ANSWER = {
    problem: Diagnostic(f"spoken_answer_{problem}") for problem in ("short", "silent", "steady", "copy")
}
"""The flags of verdicts on sound that is no answer, by the way in which it is none."""
IGNORED_FORMAT = Diagnostic("ignored_format")
"""The flag of a score of an answer that is plain text where the prompt asks for JSON."""
WAYS = ("empty", "endless", "copy", "phonemes", "language", "truncated", "refusal")
NO_ANSWER = {problem: Diagnostic(f"answer_{problem}") for problem in WAYS}
"""The notes of answers that are none, by the way in which each is none (`codec_bench.text.degenerate_answers.WAYS`)."""


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One sample through one system, with everything that the record keeps of it.

    Args:
        system, sample: names as in the record.
        status, reason: `ok`, or why there is no estimate: `failed`, or `refused` where a model did not take the
            question or declined it.
        scores: by metric name.
        bits: how many bits the codec sent, or None.
        audio: path of the kept estimate, relative to the run folder, or None.
        notes: remarks that are not failures, such as `Diagnostic("clipped", samples=3)`.
        duration_s, sample_rate_hz, channels: of the reference audio, or None if it could not be read.
        sound: a hash of the reference's samples; None if there is no reference.
        estimate_sound: a hash of the samples of an estimate that was read from a file; else None.
        estimate_s: how long the estimate is; None if there is none.
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
    reason: Diagnostic | None
    protocol: str
    numerator: float | None
    denominator: float | None
    detail: Mapping[str, Any] = field(default_factory=dict)


def counted_from(detail: Mapping[str, Any]) -> float:
    """The share of a metric's scores from which the flag in the detail of one is counted beside the value."""
    return float(detail.get(FLAG_FROM, 0.0))


def finding_text(finding: Mapping[str, Any]) -> str:
    """What a check of a system found, such as `polarity is suspect: ...` or `contract failed: ...`."""
    verb = "" if finding["state"] == "failed" else "is "
    return plain(f"{finding['check']} {verb}{finding['state']}: {finding['found']}")


def doubts_text(findings: Sequence[Mapping[str, Any]]) -> str | None:
    """What the checks of a system found, as one text; None if they found nothing."""
    return plain("; ".join(map(finding_text, findings))) or None


class Cells:
    """What the cells of a row of `Run.rows` are made with, where SQL alone does not make them.

    Args:
        protocols, judges: by metric. checks: what a record says of them, by system. read_detail: reads a score's
            detail, given with the id of its sample; it is a mapping, or an error says not. read_reason: reads why an
            item or score has no value, given in the same way.
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
        """The detail of the row's score; two columns ask for it, and it is read once."""
        if text is None:
            return {}
        if self._last[:2] != (self.sample, text):
            self._last = (self.sample, text, self._read(text, self.sample))
        return self._last[2]

    def diagnostic(self, text: str | None) -> Diagnostic | None:
        """Why the row has no value."""
        return None if text is None else self._read_reason(text, self.sample)

    def sentence(self, text: str | None) -> str | None:
        """Why the row has no value, in words."""
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
        """The detail as standard JSON, as it was written."""
        self.detail(text)
        return "{}" if text is None else text


class TableColumn(NamedTuple):
    """How a column of the table is read, and what it is.

    Args:
        means: what it holds; `docs/export.md` has it from here.
        sql: the expression that gives the cell, over the tables `systems s`, `metrics m`, `items i`, `samples p`,
            `scores c` (NULL where the record has no score) and `extras`. asked: the expression in a run that holds
            `questions`, if it is another.
        made: makes the cell of what the expression gives, where SQL alone does not.
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
"""How long a sample `p` is, and its rate; a prompt of the voice says nothing about the audio of a text."""
_REASON = (
    "CASE WHEN c.status IS NOT NULL THEN c.reason "
    """WHEN i.status = 'ok' THEN '{"code": "no_score"}' ELSE i.reason END"""
)
_EXTRA = "COALESCE(extras.columns, '{}')"
_OF_QUESTION = f"json_patch({_EXTRA}, COALESCE(questions.subsets, '{{}}'))"


class TableRow(NamedTuple):
    """One row of the run as a table: one metric of one sample through one system. A field is a column of every format:
    a column of `float` holds numbers, any other texts."""

    system: Annotated[str, TableColumn("The name of the system.", "s.name")]
    id: Annotated[str, TableColumn("The id of the sample.", "p.id")]
    metric: Annotated[str, TableColumn("The name of the metric.", "m.name")]
    value: Annotated[float | None, TableColumn("The score. It is empty unless `status` is `ok`.", "c.value")]
    status: Annotated[
        str,
        TableColumn(
            "`ok`, or why there is no value; see below.",
            "CASE WHEN c.status IS NULL AND i.status = 'ok' THEN 'not_scored' ELSE COALESCE(c.status, i.status) END",
        ),
    ]
    code: Annotated[
        str | None,
        TableColumn(
            "The code of the reason, unless `status` is `ok`.",
            _REASON,
            convert=lambda cells, text: getattr(cells.diagnostic(text), "code", None),
        ),
    ]
    reason: Annotated[
        str | None,
        TableColumn("One sentence, unless `status` is `ok`.", _REASON, convert=Cells.sentence),
    ]
    protocol: Annotated[
        str,
        TableColumn(
            "The exact measurement. Do not average numbers of two protocols.",
            "m.name",
            convert=lambda cells, metric: cells.protocols[metric],
        ),
    ]
    numerator: Annotated[
        float | None,
        TableColumn(
            "What the row adds to the numerator of the value of its system and metric: errors, or bits. For a plain mean this is the value.",
            "c.numerator",
        ),
    ]
    denominator: Annotated[
        float | None,
        TableColumn(
            "What the row adds to the denominator: words, or seconds. For a plain mean this is 1.", "c.denominator"
        ),
    ]
    speaker: Annotated[str | None, TableColumn("The speaker of the sample, where it is known.", "p.speaker")]
    language: Annotated[str | None, TableColumn("The language of the sample, where it is known.", "p.language")]
    duration_s: Annotated[
        float | None,
        TableColumn(
            "How long the system's audio is, in seconds; without it, how long the sample is, where that is known. The length of a prompt is never here.",
            f"COALESCE(i.duration_s, {SAMPLE_DURATION})",
        ),
    ]
    reference_duration_s: Annotated[
        float | None,
        TableColumn(
            "How long the reference audio is, in seconds, where there is some.",
            "CASE WHEN p.sound IS NOT NULL THEN p.duration_s END",
        ),
    ]
    text: Annotated[str | None, TableColumn("The reference text of the sample, as the data has it.", "p.text")]
    transcript: Annotated[
        str | None,
        TableColumn(
            "The transcript as the recogniser wrote it.",
            "c.detail",
            convert=Cells.transcript,
        ),
    ]
    text_normalised: Annotated[
        str | None,
        TableColumn(
            "The reference text as an error rate compares it: after its rule for texts.",
            "c.detail",
            convert=Cells.normalised_text,
        ),
    ]
    transcript_normalised: Annotated[
        str | None,
        TableColumn("The transcript as an error rate compares it.", "c.detail", convert=Cells.normalised),
    ]
    detail: Annotated[
        str,
        TableColumn(
            "Everything else that the score says, as a JSON object in text; `{}` if there is nothing.",
            "c.detail",
            convert=Cells.checked_detail,
        ),
    ]
    extra: Annotated[
        str,
        TableColumn(
            "The further columns of the manifest, or the subsets of a benchmark's question, as a JSON object in text; where a question "
            "was asked several times (`--repeats`, `--prompts each`, `--choices all-rotations`) also the id of its `question` and its "
            "`draw`, from 0; `{}` if there are none. A column that forms [no groups](report.md#by-speaker-duration-or-another-column), "
            "such as one of long texts, is not in the record and not here.",
            _EXTRA,
            questions_sql=f"CASE WHEN questions.draw_of IS NULL THEN {_OF_QUESTION} "
            f"ELSE json_patch({_OF_QUESTION}, json_object('question', questions.draw_of, 'draw', questions.draw)) END",
        ),
    ]
    suspect: Annotated[
        str | None,
        TableColumn(
            "What the [checks](checks.md) of the system found; empty if they found nothing. Do not compare the values of such a system.",
            "s.name",
            convert=lambda cells, system: cells.doubts.get(system),
        ),
    ]
    judge: Annotated[
        str | None,
        TableColumn(
            "By whom a value that rests on a judge was marked, and how that judge did in its [test](judges.md); empty for other metrics.",
            "m.name",
            convert=lambda cells, metric: cells.judges[metric],
        ),
    ]


_HINTS = get_type_hints(TableRow, include_extras=True)
TABLE_COLUMNS: dict[str, TableColumn] = {name: _HINTS[name].__metadata__[0] for name in TableRow._fields}
"""The columns of the table by name."""
NUMBERS = tuple(
    name for name in TableRow._fields if float in (get_args(get_args(_HINTS[name])[0]) or get_args(_HINTS[name]))
)
"""The columns of `TableRow` that hold numbers; the others hold text."""


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as the record holds it; `audio` is the file with the kept estimate, or None, and `duration_s` is how long
    the estimate is."""

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
    """One sample as the record holds it; `audio` is the path of the reference as the data names it."""

    id: str
    audio: str | None
    text: str | None
    speaker: str | None
    language: str | None
    duration_s: float | None
    sample_rate_hz: int | None
    channels: int | None
