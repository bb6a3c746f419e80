"""The maker of joined recordings: the recording of a question, and its options as people read them or a synthesiser says them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.apps.building.checks import as_mono, check_sound, joined, normalised
from codec_bench.apps.building.inspection import Found
from codec_bench.apps.building.item import Dropped, Failure, Item
from codec_bench.apps.building.quality import MetricLoader
from codec_bench.apps.building.recipe_spoken import JoinedRecipe, Limits
from codec_bench.apps.building.script import Line, check_line, lines_of, readers_of
from codec_bench.apps.building.speech import SpeechMaker
from codec_bench.apps.building.texts import Text, read_texts, text_digest
from codec_bench.apps.building.wording import Unspeakable
from codec_bench.audio.encode import flac_bytes
from codec_bench.audio.hash import content_hash
from codec_bench.errors import AudioError, UserError
from codec_bench.types import Audio

ENDINGS = (".wav", ".flac", ".mp3", ".ogg", ".m4a")


@dataclass(frozen=True, slots=True)
class Read:
    """The options of one item as they were read: the sounds, who read them, and what is to be known of how."""

    sounds: Sequence[Audio]
    reader: str
    made: Mapping[str, Any]


class Joined(SpeechMaker):
    """Makes the items of a recipe of joined recordings.

    Args:
        recipe: what is asked for. folder: where the recipe's paths start. load: loads a metric by name.

    Raises:
        UserError: the texts or a folder of recordings cannot be read, or a model cannot be started.
    """

    steps = ("row", "text", "stem", "synthesis", "recording", "sound", "quality", "recognition")

    def __init__(self, recipe: JoinedRecipe, folder: Path, load: MetricLoader) -> None:
        self.recipe = recipe
        check_line(recipe)
        self._stems = _folder(recipe.stems.folder, folder, "stems")
        self._lines = _folder(recipe.recorded.folder, folder, "recordings") if recipe.recorded else None
        self._files = _found(self._lines) if self._lines else {}
        texts = read_texts(recipe.texts, folder, stem=recipe.stems.column, limit=recipe.limit)
        self._readers = readers_of(texts, recipe)
        super().__init__(recipe, texts, folder, load)

    @property
    def columns(self) -> Mapping[str, str]:
        """As `Maker.columns`; `level` is the source's group."""
        return {
            "question": "text", "choices": "texts", "answer": "text", "level": "text", "said": "text", "reader": "text",
            "stem": "text", **self.inspection.columns, "loudness_lufs": "number", "duration_s": "number", "licence": "text",
            "provenance": "text",
        }  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """The texts, the recordings and how they were checked."""
        recipe, told = self.recipe, super().facts()
        told["sources"].append(_recordings("stems", recipe.stems.licence, self._stems))
        if recipe.recorded is not None and self._lines is not None:
            told["sources"].append(_recordings("options", recipe.recorded.licence, self._lines))
        return told

    def make_text(self, key: str, text: Text) -> Item:
        """Joins one stem with its options. Recordings are tried once, and a synthesiser as often as the recipe allows."""
        groups: dict[str, Any] = {"level": text.group} if text.group else {}
        try:
            lines = lines_of(key, text, self.recipe)
            stem = self._stem(text)
        except Unspeakable as problem:
            return Item(key, groups, (Failure("text", problem.reason, problem.what),))
        except Dropped as dropped:
            return Item(key, groups, (dropped.failure,))
        failures: list[Failure] = []
        material = None
        for number in range(self.recipe.retries + 1 if self.voices else 1):
            try:
                read = self._synthesised(key, lines, number) if self.voices else self._recorded(key, lines)
                groups["reader"] = read.reader
                material = flac_bytes(self._whole([stem, *read.sounds]))
                row, sound = self._checked(key, text, lines, stem, read)
            except Dropped as dropped:
                failures.append(dropped.failure)
                continue
            return Item(key, groups, tuple(failures), row, sound)
        return Item(key, groups, tuple(failures), material=material)

    def _whole(self, parts: Sequence[Audio]) -> Audio:
        return joined(parts, [self.recipe.pause_s] * (len(parts) - 1), self.recipe.rate_hz)

    def _stem(self, text: Text) -> Audio:
        path = self._stems / (text.stem or "")
        if not text.stem or not path.is_file():
            raise Dropped(Failure("stem", "the stem is missing", str(text.stem or "no path is given")))
        return _read(path, self.recipe.stems.limits, "stem", "the stem")

    def _recorded(self, key: str, lines: Sequence[Line]) -> Read:
        sounds = []
        for line in lines:
            paths = self._files.get(line.file, [])
            if len(paths) != 1:
                wrong = "a recording is there more than once" if paths else "a recording is missing"
                raise Dropped(Failure("recording", wrong, line.file))
            sounds.append(_read(paths[0], self.recipe.checks, "recording", "a recording"))
        return Read(sounds, self._readers[key], {"files": [line.file for line in lines]})

    def _synthesised(self, key: str, lines: Sequence[Line], number: int) -> Read:
        assert self.voices is not None, "what is synthesised has voices"
        place, again = self.voices.order(self.recipe.seed, key, number)
        sounds = []
        for line in lines:
            sound = self.voices.say(line.said, place, again)
            check_sound(sound, self.recipe.checks)
            sounds.append(sound)
        told = {
            "draw": again,
            "try": number,
            "synthesiser": {**self.voices.describe(place), "model": self.voices.model(place)},
        }
        return Read(sounds, self.voices.voices[place].name, told)

    def _checked(
        self, key: str, text: Text, lines: Sequence[Line], stem: Audio, read: Read
    ) -> tuple[dict[str, Any], bytes]:
        recipe = self.recipe
        parts = [normalised(sound, recipe.loudness_lufs, recipe.peak_dbfs)[0] for sound in (stem, *read.sounds)]
        whole, level = normalised(self._whole(parts), recipe.loudness_lufs, recipe.peak_dbfs)
        found = self.inspection.check(whole, [(line.said, part) for line, part in zip(lines, parts[1:])])
        hashes = [content_hash(sound.samples, sound.sample_rate_hz) for sound in (stem, *read.sounds, whole)]
        own = recipe.recorded.licence if recipe.recorded else "synthesised"
        return {
            "question": text.question or None,
            "choices": list(text.choices),
            "answer": text.answer,
            "level": text.group,
            "said": "\n".join(line.said for line in lines),
            "reader": read.reader,
            "stem": text.stem,
            **found.columns,
            "loudness_lufs": round(level, 3),
            "duration_s": round(whole.duration_s, 6),
            "licence": f"texts: {recipe.texts.licence}; stem: {recipe.stems.licence}; options: {own}",
            "provenance": self._provenance(key, lines, read, found, hashes),
        }, flac_bytes(whole)

    def _provenance(self, key: str, lines: Sequence[Line], read: Read, found: Found, hashes: Sequence[str]) -> str:
        said = text_digest("\n".join(line.said for line in lines))
        made = {
            "source": self.texts.origin(key),
            "line": self.recipe.line,
            "seed": self.recipe.seed,
            "reader": read.reader,
            **read.made,
            "pause_s": self.recipe.pause_s,
            **found.provenance,
            "hashes": {"said": said, "stem": hashes[0], "options": list(hashes[1:-1]), "kept": hashes[-1]},
        }
        return json.dumps(made, sort_keys=True, ensure_ascii=False)


def _folder(name: str, folder: Path, what: str) -> Path:
    path = folder / name
    if not path.is_dir():
        raise UserError(
            f"the folder of the {what}, '{path}', is not there",
            hint="the path is relative to the recipe, or to the folder that the command is typed in for a recipe of the project",
        )
    return path


def _read(path: Path, limits: Limits, step: str, what: str) -> Audio:
    """A recording in one channel.

    Raises:
        Dropped: at the step; it cannot be read, or does not keep to the limits.
    """
    try:
        audio = as_mono(Audio.read(path))
    except AudioError as error:
        raise Dropped(Failure(step, f"{what} is empty or cannot be read", str(error.message))) from error
    try:
        check_sound(audio, limits, step=step, what=what)
    except Dropped as dropped:
        told = dropped.failure
        raise Dropped(Failure(step, told.reason, f"{path.name} {told.detail}".strip())) from dropped
    return audio


def _found(folder: Path) -> dict[str, list[Path]]:
    """The sound files of a folder and of those within it, by their names without the ending."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in ENDINGS:
            found[path.stem].append(path)
    return found


def _recordings(name: str, licence: str, folder: Path) -> dict[str, Any]:
    """What the card says of a folder of recordings. Other files, or files of other sizes, are another build."""
    files = [path for paths in _found(folder).values() for path in paths]
    told = sorted([path.relative_to(folder).as_posix(), path.stat().st_size] for path in files)
    return {
        "name": name,
        "recordings": len(files),
        "taken": len(files),
        "left_out": {},
        "licences": {licence: len(files)},
        "fingerprint": text_digest(json.dumps(told)),
    }
