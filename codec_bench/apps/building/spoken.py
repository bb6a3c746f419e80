"""The maker of spoken texts: template, synthesiser, and reading back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from codec_bench.apps.building.checks import check_part, check_sound, join_sounds, level_sounds, normalise_loudness
from codec_bench.apps.building.item import BuildItem, Failure, TryError, make_rng, try_item, with_audio
from codec_bench.apps.building.recipe_spoken import SpokenRecipe
from codec_bench.apps.building.sources import LETTERS, Text, read_texts, text_digest
from codec_bench.apps.building.speech import MetricLoader, SpeechMaker, VoicesOf, plain_text
from codec_bench.apps.building.wording import Unspeakable, check_options, spoken_text
from codec_bench.audio.hash import content_hash
from codec_bench.audio.resample import to_rate
from codec_bench.benchmark.definition.prompt import render_text, variables
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio

_TEXTS_FOR_RATE = 3
"""Texts tried until a voice shows its rate."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One part of an item: text, voice, earlier uses of the voice, and speaker."""

    text: str
    voice: int
    again: int
    speaker: str | None = None


class SpokenTexts(SpeechMaker):
    """Makes the items of a recipe of spoken texts, with paths from `folder`.

    Raises:
        UserError: the texts cannot be read, the template is wrong, or a model cannot be started.
    """

    steps = ("row", "text", "synthesis", "sound", "quality", "recognition", "duplicate")
    voices: VoicesOf

    def __init__(self, recipe: SpokenRecipe, folder: Path, load: MetricLoader) -> None:
        self.recipe = recipe
        _check_template(recipe)
        super().__init__(recipe, read_texts(recipe.texts, folder, limit=recipe.limit), folder, load)
        self._rate_hz = recipe.rate_hz
        if self._rate_hz is None and len(self.voices) > 1:
            try:
                self._rate_hz = self.voices.lowest_rate_hz(list(islice(self._some_lines(), _TEXTS_FOR_RATE)))
            except BaseException:
                self.close()
                raise
        choices = {} if recipe.texts.choices is None else {"choices": "texts"}
        # The voices of a dialogue are a list parallel to its speakers.
        cast = (
            {"dialogue": "text", "speakers": "texts", "voices": "texts"} if recipe.texts.dialogue else {"voice": "text"}
        )
        self.columns = {
            "question": "text", **choices, "answer": "text", "group": "text", "said": "text", **cast,
            **self.checked_columns,
            "loudness_lufs": "number", "duration_s": "number", "licence": "text", "provenance": "text",
        }  # fmt: skip

    def make_text(self, key: str, text: Text) -> BuildItem:
        """Synthesise and check one text, up to as many times as the recipe allows."""
        groups: dict[str, Any] = {self.group: text.group} if text.group else {}

        def attempt(number: int) -> tuple[dict[str, Any], Audio]:
            """Synthesise and check at try `number`: row and audio; raises TryError."""
            parts = self._parts(key, text, lines, number)
            groups["voice"] = self._named(parts)
            raw = [self.voices.synthesise(segment.text, segment.voice, segment.again) for segment in parts]
            with with_audio(_join(raw, pauses)):
                row, sound = self._checked(text, parts, raw, pauses)
            provenance = {"source": self.texts.origin(key), "try": number, **row["provenance"]}
            return {**row, "provenance": json.dumps(provenance, sort_keys=True, ensure_ascii=False)}, sound

        try:
            lines = self._lines(text)
            pauses = self._pauses(lines)
            return try_item(key, groups, self.recipe.retries + 1, attempt, by="voice")
        except Unspeakable as problem:
            return BuildItem(key, groups, (Failure("text", problem.reason, problem.detail),))

    def facts(self) -> dict[str, Any]:
        """As `SpeechMaker.facts`, with the rate of all items if there are several voices."""
        return super().facts() | ({"rate_hz": self._rate_hz} if self._rate_hz else {})

    def _some_lines(self) -> Iterator[str]:
        for text in self.texts.rows.values():
            with suppress(Unspeakable):
                if isinstance(text, Text):
                    yield self._lines(text)[0][1]

    def _at_rate(self, sound: Audio) -> Audio:
        """Check a sound for clipping, and resample it to the common rate; raises TryError."""
        check_part(sound, self.recipe.checks)
        rate, source_hz = self._rate_hz or sound.sample_rate_hz, sound.sample_rate_hz
        if source_hz < rate:
            detail = Diagnostic("sample_rate_expected", rate_hz=source_hz, least_hz=rate)
            raise TryError("sound", Diagnostic("sound_low_rate", subject="sound"), detail)
        return to_rate(sound, rate)

    def speech_of(self, key: str, text: Text) -> tuple[Sequence[str], Sequence[str]]:
        """Return the texts of a row that are spoken, and those that are only written.

        Of a dialogue, question and options are only written. Raises Unspeakable.
        """
        lines = self._lines(text)
        written = [*(str(speaker) for speaker, _ in lines), text.question, *text.choices] if text.turns else []
        return [line for _, line in lines], written

    def _lines(self, text: Text) -> list[tuple[str | None, str]]:
        """Return (speaker or None, spoken text) of each part; raises Unspeakable."""
        source, language = self.recipe.texts, self.recipe.language
        if source.question is not None and not text.question:
            raise Unspeakable(Diagnostic("nothing_to_say"))
        if source.choices is not None:
            check_answer(text)
        elif not text.answer:
            raise Unspeakable(Diagnostic("no_reference_answer"))
        if source.dialogue is not None:
            return [(turn.speaker, spoken_text(turn.text, language)) for turn in text.turns]
        if source.choices is not None:
            choices = [spoken_text(choice, language) for choice in text.choices]
            check_options(choices, language, plain_text(self.recipe.checks.rule, language))
        values = {"question": text.question, "choices": list(text.choices), **text.fields}
        return [(None, spoken_text(render_text(self.recipe.template or "", values, "the template"), language))]

    def _pauses(self, lines: Sequence[tuple[str | None, str]]) -> list[float]:
        """Draw the pauses between turns in seconds, equal for all questions on a dialogue."""
        dialogue = self.recipe.texts.dialogue
        if dialogue is None:
            return []
        random = make_rng(self.recipe.seed, "pauses", text_digest(json.dumps(lines)))
        return [max(0.0, dialogue.pause_s.sample(random)) for _ in lines[1:]]

    def _parts(self, key: str, text: Text, lines: Sequence[tuple[str | None, str]], number: int) -> list[Passage]:
        if not text.turns:
            voice, again = self.voices.order(self.recipe.seed, key, number)
            return [Passage(line, voice, again) for _, line in lines]
        cast = self.voices.cast(text, self.recipe.seed, number)
        return [Passage(line, cast[speaker], number, speaker) for speaker, line in lines if speaker is not None]

    def _named(self, parts: Sequence[Passage]) -> str | list[str]:
        names = [self.voices.voices[voice].name for voice in _cast(parts).values()]
        return names if parts[0].speaker is not None else names[0]

    def _checked(
        self, text: Text, parts: Sequence[Passage], raw: Sequence[Audio], pauses: Sequence[float]
    ) -> tuple[dict[str, Any], Audio]:
        """Level, join and check the parts of an item: row and audio; raises TryError.

        Args:
            raw: the audio of each part, as synthesised.
            pauses: between the parts, in seconds.
        """
        recipe = self.recipe
        full, level, sounds = self._set_level(parts, raw, pauses)
        checked, checks = self.inspect(full, [(segment.text, sound) for segment, sound in zip(parts, sounds)])
        cast = _cast(parts)
        named = self._named(parts)
        row = {
            "question": text.question,
            **({} if recipe.texts.choices is None else {"choices": list(text.choices)}),
            "answer": text.answer,
            "group": text.group,
            "said": "\n".join(segment.text for segment in parts),
            **(
                {"voice": named}
                if isinstance(named, str)
                else {"dialogue": text.dialogue(), "speakers": list(cast), "voices": named}
            ),
            **checked,
            "loudness_lufs": round(level, 3),
            "duration_s": round(full.duration_s, 6),
            "licence": recipe.texts.licence,
            "provenance": {**self._provenance(parts, pauses, [*raw, full]), **checks},
        }
        return row, full

    def _set_level(
        self, parts: Sequence[Passage], raw: Sequence[Audio], pauses: Sequence[float]
    ) -> tuple[Audio, float, Sequence[Audio]]:
        """Return the joined item, its loudness in LUFS, and the parts for recognisers.

        Voices of a dialogue are first brought to one loudness, each by one gain over all its turns.
        """
        recipe, sounds = self.recipe, [self._at_rate(sound) for sound in raw]
        if parts[0].speaker is not None:
            for speaker in _cast(parts):
                places = [index for index, segment in enumerate(parts) if segment.speaker == speaker]
                of_speaker = level_sounds([sounds[index] for index in places], recipe.loudness_lufs, recipe.peak_dbfs)
                for index, sound in zip(places, of_speaker):
                    sounds[index] = sound
        full = _join(sounds, pauses)
        check_sound(full, recipe.checks)
        full, level = normalise_loudness(full, recipe.loudness_lufs, recipe.peak_dbfs)
        return full, level, sounds if len(sounds) > 1 else [full]

    def _provenance(self, parts: Sequence[Passage], pauses: Sequence[float], sounds: Sequence[Audio]) -> dict[str, Any]:
        """Record how an item was made, with hashes of text, synthesised and final audio."""
        cast, recipe = _cast(parts), self.recipe
        hashes = [content_hash(sound.samples, sound.sample_rate_hz) for sound in sounds]
        names = {speaker: self.voices.voices[voice].name for speaker, voice in cast.items()}
        speaking: dict[str, Any] = {"voice": names[parts[0].speaker]}
        if parts[0].speaker is not None:
            speaking = {"voices": names, "pauses_s": list(pauses)}
        return {
            "template": recipe.template, "seed": recipe.seed, "draw": parts[0].again, **speaking,
            "synthesiser": [
                {**self.voices.describe(voice), "model": self.voices.model(voice)} for voice in cast.values()
            ],
            "hashes": {"said": text_digest("\n".join(segment.text for segment in parts)), "synthesised": hashes[:-1],
                "kept": hashes[-1]},
        }  # fmt: skip


def check_answer(text: Text) -> None:
    """Raise Unspeakable if the answer is not the letter of an option."""
    if len(text.choices) < 2 or text.answer not in tuple(LETTERS[: len(text.choices)]):
        raise Unspeakable(Diagnostic("answer_names_no_option"), f"'{text.answer}' of {len(text.choices)}")


def _check_template(recipe: SpokenRecipe) -> None:
    """Raise UserError if the template uses a field that the texts lack."""
    if recipe.template is None:
        return
    source = recipe.texts
    known = {*source.fields, *(["question"] if source.question else []), *(["choices"] if source.choices else [])}
    if unknown := variables(recipe.template) - known:
        raise UserError(
            "text_template_fields",
            fields=", ".join(sorted(unknown)),
            known=", ".join(sorted(known)),
            hint="'fields' of the texts names further columns",
        )


def _cast(parts: Sequence[Passage]) -> dict[str | None, int]:
    """Return the voice of each speaker, in order of appearance."""
    return {segment.speaker: segment.voice for segment in parts}


def _join(sounds: Sequence[Audio], pauses: Sequence[float]) -> Audio:
    return sounds[0] if len(sounds) == 1 else join_sounds(sounds, pauses, max(sound.sample_rate_hz for sound in sounds))
