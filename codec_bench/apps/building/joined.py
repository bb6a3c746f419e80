"""The maker of joined recordings: a question, with spoken options."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from codec_bench.apps.building.checks import as_mono, check_sound, join_sounds, normalise_loudness
from codec_bench.apps.building.item import BuildItem, Failure, TryError, make_rng, try_item, with_audio
from codec_bench.apps.building.recipe import read_recipe
from codec_bench.apps.building.recipe_spoken import AudioLimits, JoinedRecipe
from codec_bench.apps.building.sources import LETTERS, Text, Texts, read_texts, source_facts, text_digest
from codec_bench.apps.building.speech import TWIN, MetricLoader, SpeechMaker, plain_text, twins_of
from codec_bench.apps.building.spoken import check_answer
from codec_bench.apps.building.wording import Unspeakable, check_options, spoken_text
from codec_bench.audio.hash import content_hash
from codec_bench.benchmark.definition.prompt import render_text, variables
from codec_bench.config.file_content import file_hash
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.store.export import csv_text
from codec_bench.store.files import write_text
from codec_bench.types import Audio

COLUMNS = ("file", "reader", "item", "option", "line")
_HASH = 6


@dataclass(frozen=True, slots=True)
class Line:
    """One option to read: letter, spoken text, and the recording's name."""

    letter: str
    spoken: str
    file: str


def lines_of(key: str, text: Text, recipe: JoinedRecipe) -> list[Line]:
    """Return the options to read aloud for one item; file names contain a hash.

    Raises:
        Unspeakable: a line cannot be spoken, the options sound alike, or the answer names none of them.
    """
    check_answer(text)
    language = recipe.language
    choices = [spoken_text(choice, language) for choice in text.choices]
    check_options(choices, language, plain_text(recipe.checks.rule, language))
    lines = []
    for letter, choice in zip(LETTERS, text.choices):
        spoken = spoken_text(render_text(recipe.line, {"letter": letter, "choice": choice}, "the line"), language)
        lines.append(Line(letter, spoken, f"{key}_{letter}_{text_digest(spoken)[:_HASH]}"))
    return lines


def speech_of_item(key: str, text: Text, recipe: JoinedRecipe) -> tuple[Sequence[str], Sequence[str]]:
    """Return lines, stem and question of an item; raises as `lines_of`."""
    return [line.spoken for line in lines_of(key, text, recipe)], [str(text.recording), text.question]


def readers_of(texts: Texts, recipe: JoinedRecipe) -> Mapping[str, str]:
    """Map items to readers: equally many each, in random order; empty without readers."""
    readers = recipe.recorded.readers if recipe.recorded else ()
    keys = list(texts.rows)
    order = make_rng(recipe.seed, "readers").permutation(len(keys))
    return {keys[int(index)]: readers[number % len(readers)] for number, index in enumerate(order)} if readers else {}


def check_line(recipe: JoinedRecipe) -> None:
    """Check that a line's template reads `letter` and `choice` only."""
    if unknown := variables(recipe.line) - {"letter", "choice"}:
        raise UserError("line_fields", fields=", ".join(sorted(unknown)))


def write_script(
    name: str | os.PathLike[str], file: str | os.PathLike[str], *, seed: int | None = None, limit: int | None = None
) -> tuple[int, dict[str, int]]:
    """Write the script sheet of a recipe: the lines to read, and their file names.

    Args:
        seed, limit: as for `build`, which needs the same ones, since they decide who reads what.
        file: the sheet, a CSV file.

    Returns:
        Number of lines, and excluded items by reason why they cannot be spoken.

    Raises:
        UnknownName: there is no such recipe.
        UserError: the recipe is wrong or has nothing to read aloud, its texts cannot be read, or the file cannot be
            written.
    """
    parsed, folder = read_recipe(os.fspath(name))
    recipe = parsed.limited(seed, limit)
    if not isinstance(recipe, JoinedRecipe):
        raise UserError(
            "nothing_read_aloud",
            kind=recipe.kind,
            hint="a script sheet is for recipes of the kind 'joined', such as speech-hsk",
        )
    if recipe.recorded is None:
        raise UserError("options_synthesised", hint="a script sheet is for recipes with 'recorded'")
    check_line(recipe)
    texts = read_texts(recipe.texts, folder, recording=recipe.stems.column, limit=recipe.limit)
    readers, excluded = readers_of(texts, recipe), Counter[str]()
    speech_of = partial(speech_of_item, recipe=recipe)
    twins = twins_of(texts, speech_of, recipe.checks, recipe.language) if recipe.duplicates == "drop" else {}
    rows: list[tuple[str, ...]] = []
    for key, text in texts.rows.items():
        try:
            lines = [] if isinstance(text, str) else lines_of(key, text, recipe)
        except Unspeakable as problem:
            excluded[problem.reason] += 1
            continue
        if isinstance(text, str):
            excluded[Diagnostic("row_unusable")] += 1
        elif twins.get(key, key) != key:
            excluded[TWIN] += 1
            continue
        for line in lines:
            rows.append((f"{line.file}.wav", readers[key], key, line.letter, line.spoken))
    # Spreadsheets detect UTF-8 by this mark only.
    write_text(Path(file), "\ufeff" + csv_text(COLUMNS, rows))
    return len(rows), dict(excluded)


ENDINGS = (".wav", ".flac", ".mp3", ".ogg", ".m4a")


@dataclass(frozen=True, slots=True)
class Read:
    """The options of one item as read: audio, reader, and provenance."""

    sounds: Sequence[Audio]
    reader: str
    provenance: Mapping[str, Any]


class Joined(SpeechMaker):
    """Makes the items of a recipe of joined recordings, with paths from `folder`.

    Raises:
        UserError: the texts or a folder of recordings cannot be read, or a model cannot be started.
    """

    group = "level"
    steps = ("row", "text", "stem", "synthesis", "recording", "sound", "quality", "recognition", "duplicate")

    def __init__(self, recipe: JoinedRecipe, folder: Path, load: MetricLoader) -> None:
        self.recipe = recipe
        check_line(recipe)
        self._stems = _find_folder(recipe.stems.folder, folder, "stems")
        self._lines = _find_folder(recipe.recorded.folder, folder, "recordings") if recipe.recorded else None
        self._files = _list_recordings(self._lines) if self._lines else {}
        texts = read_texts(recipe.texts, folder, recording=recipe.stems.column, limit=recipe.limit)
        self._readers = readers_of(texts, recipe)
        super().__init__(recipe, texts, folder, load)
        self.columns = {
            "question": "text", "choices": "texts", "answer": "text", "level": "text", "said": "text", "reader": "text",
            "stem": "text", **self.checked_columns, "loudness_lufs": "number", "duration_s": "number",
            "licence": "text", "provenance": "text",
        }  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """The texts, the recordings and their checks."""
        recipe, base_facts = self.recipe, super().facts()
        base_facts["sources"].append(_recordings("stems", recipe.stems.licence, self._stems))
        if recipe.recorded is not None and self._lines is not None:
            base_facts["sources"].append(_recordings("options", recipe.recorded.licence, self._lines))
        return base_facts

    def make_text(self, key: str, text: Text) -> BuildItem:
        """Join the recorded question (stem) with its options; retries only synthesis."""
        groups: dict[str, Any] = {self.group: text.group} if text.group else {}
        try:
            lines = lines_of(key, text, self.recipe)
            question_audio = self._read_question(text)
        except Unspeakable as problem:
            return BuildItem(key, groups, (Failure("text", problem.reason, problem.detail),))
        except TryError as dropped:
            return BuildItem(key, groups, (dropped.failure,))

        def attempt(number: int) -> tuple[dict[str, Any], Audio]:
            groups["reader"] = self._reader(key, number)
            read = self._synthesise_lines(key, lines, number) if self.voices else self._read_recordings(key, lines)
            with with_audio(self._join([question_audio, *read.sounds])):
                return self._join_and_check(key, text, lines, question_audio, read)

        return try_item(key, groups, self.recipe.retries + 1 if self.voices else 1, attempt, by="reader")

    def _join(self, parts: Sequence[Audio]) -> Audio:
        return join_sounds(parts, [self.recipe.pause_s] * (len(parts) - 1), self.recipe.rate_hz)

    def speech_of(self, key: str, text: Text) -> tuple[Sequence[str], Sequence[str]]:
        """Implement `SpeechMaker.speech_of`."""
        return speech_of_item(key, text, self.recipe)

    def _reader(self, key: str, number: int) -> str:
        if self.voices is None:
            return self._readers[key]
        return self.voices.voices[self.voices.order(self.recipe.seed, key, number)[0]].name

    def _read_question(self, text: Text) -> Audio:
        path = self._stems / (text.recording or "")
        if not text.recording or not path.is_file():
            raise TryError("stem", Diagnostic("stem_missing"), text.recording or Diagnostic("stem_without_path"))
        return _read(path, self.recipe.stems.limits, "stem", "stem")

    def _read_recordings(self, key: str, lines: Sequence[Line]) -> Read:
        """Read the recordings of an item's lines; raises TryError if one is missing."""
        sounds = []
        for line in lines:
            paths = self._files.get(line.file, [])
            if len(paths) != 1:
                wrong = Diagnostic("recording_twice") if paths else Diagnostic("recording_missing")
                raise TryError("recording", wrong, line.file)
            sounds.append(_read(paths[0], self.recipe.checks, "recording", "recording"))
        return Read(sounds, self._readers[key], {"files": [line.file for line in lines]})

    def _synthesise_lines(self, key: str, lines: Sequence[Line], number: int) -> Read:
        """Synthesise an item's lines by the voice of try `number`, and check their audio."""
        assert self.voices is not None, "what is synthesised has voices"
        voice, again = self.voices.order(self.recipe.seed, key, number)
        sounds = []
        for line in lines:
            sound = self.voices.synthesise(line.spoken, voice, again)
            check_sound(sound, self.recipe.checks)
            sounds.append(sound)
        synthesiser = {**self.voices.describe(voice), "model": self.voices.model(voice)}
        provenance = {"draw": again, "try": number, "synthesiser": synthesiser}
        return Read(sounds, self.voices.voices[voice].name, provenance)

    def _join_and_check(
        self, key: str, text: Text, lines: Sequence[Line], question_audio: Audio, read: Read
    ) -> tuple[dict[str, Any], Audio]:
        """Join stem and options, and check the recording: row and audio; raises TryError."""
        recipe = self.recipe
        parts = [
            normalise_loudness(sound, recipe.loudness_lufs, recipe.peak_dbfs)[0]
            for sound in (question_audio, *read.sounds)
        ]
        full, level = normalise_loudness(self._join(parts), recipe.loudness_lufs, recipe.peak_dbfs)
        checked, checks = self.inspect(full, [(line.spoken, segment) for line, segment in zip(lines, parts[1:])])
        hashes = [content_hash(sound.samples, sound.sample_rate_hz) for sound in (question_audio, *read.sounds, full)]
        licence = recipe.recorded.licence if recipe.recorded else "synthesised"
        script = "\n".join(line.spoken for line in lines)
        provenance = {
            "source": self.texts.origin(key),
            "line": recipe.line,
            "seed": recipe.seed,
            "reader": read.reader,
            **read.provenance,
            "pause_s": recipe.pause_s,
            **checks,
            "hashes": {"said": text_digest(script), "stem": hashes[0], "options": hashes[1:-1], "kept": hashes[-1]},
        }
        return {
            "question": text.question or None,
            "choices": list(text.choices),
            "answer": text.answer,
            "level": text.group,
            "said": script,
            "reader": read.reader,
            "stem": text.recording,
            **checked,
            "loudness_lufs": round(level, 3),
            "duration_s": round(full.duration_s, 6),
            "licence": f"texts: {recipe.texts.licence}; stem: {recipe.stems.licence}; options: {licence}",
            "provenance": json.dumps(provenance, sort_keys=True, ensure_ascii=False),
        }, full


def _find_folder(name: str, folder: Path, subject: str) -> Path:
    """Resolve a folder of recordings; raises UserError if it is missing."""
    path = folder / name
    if not path.is_dir():
        raise UserError(
            "no_recorded_folder",
            subject=subject,
            path=path,
            hint="the path is relative to the recipe, or to the folder that the command is typed in for a recipe of "
            "the project",
        )
    return path


def _read(path: Path, limits: AudioLimits, step: str, subject: str) -> Audio:
    """Read a recording as mono; raises TryError at `step` if it is outside the limits."""
    try:
        audio = as_mono(Audio.read(path))
    except AudioError as error:
        raise TryError(step, Diagnostic("sound_unreadable", subject=subject), error.message) from error
    try:
        check_sound(audio, limits, step=step, subject=subject)
    except TryError as dropped:
        reason, detail = dropped.failure.reason, dropped.failure.detail
        in_file = Diagnostic("detail_of_file", file=path.name, detail=detail) if detail else path.name
        raise TryError(step, reason, in_file) from dropped
    return audio


def _list_recordings(folder: Path) -> dict[str, list[Path]]:
    """List the audio files under a folder by their names without the ending."""
    files_by_name: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in ENDINGS:
            files_by_name[path.stem].append(path)
    return files_by_name


def _recordings(name: str, licence: str, folder: Path) -> dict[str, Any]:
    """Return source facts of a folder of recordings, with a hash of their content."""
    files = [path for paths in _list_recordings(folder).values() for path in paths]
    hashes = sorted([path.relative_to(folder).as_posix(), file_hash(path)] for path in files)
    return source_facts(name, [licence] * len(files), text_digest(json.dumps(hashes)))
