"""The sources of a build: recordings with licences, and rows of texts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codec_bench.apps.building.recipe_base import RecordingSource
from codec_bench.apps.building.recipe_spoken import Dialogue, TextSource
from codec_bench.audio.clip import Clip
from codec_bench.data import open_source
from codec_bench.data.hub import PREFIX
from codec_bench.data.source import problem_of
from codec_bench.data.table import open_table, row_problem
from codec_bench.messages import Diagnostic, as_reason, of_error, to_codes
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.types import Sample

NO_LICENCE, EXCLUDED_BY_RECIPE = Diagnostic("source_without_licence"), Diagnostic("source_excluded")


@dataclass(frozen=True, slots=True)
class Recordings:
    """The selected recordings of one source.

    Args:
        samples: in the order of their ids, regardless of a folder's order.
        licences: by sample id.
        excluded: counts by reason.
    """

    name: str
    samples: tuple[Sample, ...]
    licences: Mapping[str, str]
    excluded: Mapping[Diagnostic, int]
    fingerprint: str

    def facts(self) -> dict[str, Any]:
        """The source for the card."""
        return source_facts(self.name, list(self.licences.values()), self.fingerprint, self.excluded)


def source_facts(
    name: str, licences: Sequence[str], fingerprint: str, excluded: Mapping[Diagnostic, int] = MappingProxyType({})
) -> dict[str, Any]:
    """Describe a source for the card: records, selected records, licences."""
    return {
        "name": name,
        "recordings": len(licences) + sum(excluded.values()),
        "taken": len(licences),
        "left_out": [{"reason": reason, "count": count} for reason, count in sorted(excluded.items())],
        "licences": dict(sorted(Counter(licences).items())),
        "fingerprint": fingerprint,
    }


def located(data: str, folder: Path) -> str:
    """Resolve a data path from the recipe's folder; a registered name stays as it is."""
    if data.startswith(PREFIX) or not (folder / data).exists():
        return data
    return str(folder / data)


def read_recordings(source: RecordingSource, folder: Path, *, least_s: float = 0.0) -> Recordings:
    """Open an audio source, and select its usable recordings.

    A recording is excluded by the recipe's id patterns, if unreadable or too short, or without a licence.

    Args:
        source: data, id patterns and licences, as in the recipe.
        folder: the recipe's folder, from which the data path is resolved.
        least_s: the shortest recording, in seconds; 0 selects all.

    Raises:
        UserError: the data cannot be read, or no recording is left.
    """
    opened = open_source(located(source.data, folder))
    selected, licences, excluded = [], {}, Counter[Diagnostic]()
    for sample in sorted(opened.samples, key=lambda sample: sample.id):
        licence = next((text for pattern, text in source.licences.items() if fnmatchcase(sample.id, pattern)), None)
        if not _any(sample.id, source.ids) or _any(sample.id, source.without):
            excluded[EXCLUDED_BY_RECIPE] += 1
        elif problem_of(sample) is not None:
            excluded[Diagnostic("source_unreadable")] += 1
        elif not licence:
            excluded[NO_LICENCE] += 1
        elif least_s and _seconds(str(sample.audio)) < least_s:
            excluded[Diagnostic("source_too_short", least_s=least_s)] += 1
        else:
            selected.append(sample)
            licences[sample.id] = licence
    if not selected:
        why = "; ".join(f"{count}: {reason}" for reason, count in excluded.items())
        raise UserError(
            "no_recording_left",
            data=source.data,
            reasons=why,
            hint="'licences' of the recipe names the licence of the recordings, by patterns of their ids"
            if excluded[NO_LICENCE]
            else "look at 'ids', 'without' and 'excerpt' of the recipe, and at the recordings",
        )
    return Recordings(opened.name, tuple(selected), licences, dict(excluded), opened.content_hash)


def _seconds(path: str) -> float:
    """Return a length in seconds; infinite if the file is unreadable, and fails later."""
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except (OSError, RuntimeError):  # no plain file, or none that libsndfile knows
        pass
    try:
        return Clip(path).duration_s
    except AudioError:
        return float("inf")


def _any(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


LETTERS = "ABCDEFGH"


class BadRow(Exception):
    """A row cannot be used; its argument is the diagnostic."""


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """One turn of a dialogue; `gender` is None where the source does not tell it."""

    speaker: str
    gender: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """One row of the source, as written.

    Args:
        answer: the letter of the right option, or without options the reference answer.
        fields: further values for the template.
        recording: the path of its recording, or None.
    """

    question: str
    choices: tuple[str, ...]
    answer: str
    group: str | None
    fields: Mapping[str, str]
    turns: tuple[DialogueTurn, ...] = ()
    recording: str | None = None

    def dialogue(self) -> str:
        """A hash of the dialogue, equal for all rows with the same dialogue."""
        return text_digest("\n".join(f"{turn.speaker}: {turn.text}" for turn in self.turns))

    def digest(self) -> str:
        """A hash of all fields of the row."""
        return text_digest(json.dumps(asdict(self), sort_keys=True, ensure_ascii=False))


@dataclass(frozen=True)
class Texts:
    """All rows of a source by key; an unusable row is the reason."""

    name: str
    revision: str | None
    licence: str
    rows: Mapping[str, Text | Diagnostic]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all rows with their keys."""
        written = [
            [key, text.digest() if isinstance(text, Text) else to_codes(text)] for key, text in self.rows.items()
        ]
        return text_digest(json.dumps(written, ensure_ascii=False))

    def facts(self) -> dict[str, Any]:
        """The source for the card."""
        source = source_facts(self.name, [self.licence] * len(self.rows), self.fingerprint)
        return {**source, "revision": self.revision}

    def origin(self, key: str) -> dict[str, Any]:
        """Describe the source of one row: name, revision, key and hash."""
        text = self.rows[key]
        digest = "" if isinstance(text, str) else text.digest()
        return {"name": self.name, "revision": self.revision, "row": key, "hash": digest}


def text_digest(text: str) -> str:
    """Hash a text."""
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def read_texts(source: TextSource, folder: Path, *, recording: str | None = None, limit: int | None = None) -> Texts:
    """Read the rows of a text source: questions, choices, answers, dialogues.

    Args:
        source: data and columns, as in the recipe.
        folder: the recipe's folder, from which the data path is resolved.
        recording: the column with the paths of recordings.
        limit: read at most this many rows.

    Raises:
        UserError: the data cannot be read, lacks a column, or has no rows.
    """
    table = open_table(
        located(source.data, folder), config=source.config, split=source.split, revision=source.revision, limit=limit
    )
    named = (*source.columns, *([recording] if recording else []))
    if missing := [name for name in named if name not in table.columns]:
        raise UserError(
            "texts_lack_columns",
            data=source.data,
            columns=", ".join(missing),
            hint=f"they have {', '.join(table.columns)}" if table.columns else "the file has no row",
        )
    rows: dict[str, Text | Diagnostic] = {}
    for key, row in table:
        problem = as_reason(row_problem(row), "unusable_row")
        try:
            rows[key.replace("/", "-")] = _read_text(row, source, recording) if problem is None else problem
        except BadRow as bad:
            rows[key.replace("/", "-")] = of_error(bad)
    if not rows:
        raise UserError("texts_without_rows", data=source.data)
    return Texts(table.name, table.revision, source.licence, rows)


def _read_text(row: Mapping[str, Any], source: TextSource, recording: str | None) -> Text:
    """Build the question of a row, with its options, answer and turns."""
    choices = _choices(row, source.choices)
    return Text(
        question=_cell(row, source.question),
        choices=choices,
        answer=_answer(_cell(row, source.answer), choices, source),
        group=_cell(row, source.group) or None,
        fields={name: _cell(row, column) for name, column in source.fields.items()},
        turns=() if source.dialogue is None else parse_turns(row[source.dialogue.column], source.dialogue),
        recording=_cell(row, recording) if recording else None,
    )


def _cell(row: Mapping[str, Any], column: str | None) -> str:
    held = None if column is None else row[column]
    return "" if held is None else str(held).strip()


def _choices(row: Mapping[str, Any], columns: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the options of a row, without empty ones at the end; raises BadRow.

    Args:
        columns: one column that holds a list, or a column per option; None for no options.
    """
    if columns is None:
        return ()
    held = row[columns] if isinstance(columns, str) else [row[name] for name in columns]
    if not isinstance(held, (list, tuple)):
        raise BadRow(Diagnostic("cell_without_list", column=columns, type=type(held).__name__))
    choices = ["" if choice is None else str(choice).strip() for choice in held]
    # Questions with fewer options than others leave the last columns empty. An empty one before them is a mistake,
    # which the checks find.
    while choices and not choices[-1]:
        choices.pop()
    return tuple(choices)


def _answer(answer: str, choices: Sequence[str], source: TextSource) -> str:
    """Return the letter of the right option, or without options the answer's text."""
    if source.choices is None:
        return answer
    if source.answer_is == "letter":
        return answer.upper()
    places = [index for index, choice in enumerate(choices) if choice == answer]
    if len(places) != 1 or places[0] >= len(LETTERS):
        raise BadRow(Diagnostic("answer_not_one_option", answer=answer, options=len(places)))
    return LETTERS[places[0]]


def parse_turns(held: Any, dialogue: Dialogue) -> tuple[DialogueTurn, ...]:
    """Parse a dialogue from a list of turns or lines `NAME: TEXT`; raises BadRow."""
    turns = held.splitlines() if isinstance(held, str) else held
    if not isinstance(turns, (list, tuple)):
        raise BadRow(Diagnostic("cell_without_turns", column=dialogue.column, type=type(held).__name__))
    parsed = []
    for turn in turns:
        if isinstance(turn, Mapping):
            speaker, text = turn.get("speaker"), turn.get("text")
        else:
            speaker, colon, text = str(turn).partition(":")
            speaker = speaker if colon else None
        if not speaker or not str(speaker).strip():
            raise BadRow(Diagnostic("turn_without_speaker", turn=str(turn)))
        name = str(speaker).strip()
        gender = next(
            (named_gender for pattern, named_gender in dialogue.genders.items() if fnmatchcase(name, pattern)), None
        )
        parsed.append(DialogueTurn(name, gender, str(text or "").strip()))
    if not parsed:
        raise BadRow(Diagnostic("dialogue_without_turns"))
    return tuple(parsed)
