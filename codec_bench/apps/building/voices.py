"""The voices of a build: the models that speak with them, and which voice says what."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.building.asking import Asking
from codec_bench.apps.building.checks import as_mono
from codec_bench.apps.building.item import Dropped, Failure, draws
from codec_bench.apps.building.recipe_spoken import Used, Voice, VoiceList
from codec_bench.apps.building.sources import Text
from codec_bench.apps.building.wording import Unspeakable
from codec_bench.audio.clip import Clip, clip_digest
from codec_bench.benchmark.definition.finding import fit_lines
from codec_bench.config import load_yaml_with_lines
from codec_bench.decoding.decode import check_audio
from codec_bench.errors import AudioError, UserError
from codec_bench.models.base import Model
from codec_bench.types import Audio, Request


class VoicesOf:
    """The voices of a recipe. Voices with the same options share one model.

    Args:
        synthesiser: the model that speaks. voices: as the recipe says. folder: where the recipe's paths start.
        language: of the texts. asking: where the models are started.

    Raises:
        UserError: a file of voices or a recording is not there, or the model cannot be started.
    """

    def __init__(
        self, synthesiser: Used, voices: Sequence[Voice] | str, folder: Path, language: str, asking: Asking
    ) -> None:
        self.voices = _read_voices(voices, folder) if isinstance(voices, str) else tuple(voices)
        self._language, self._asking = language, asking
        self._prompts = [_prompt(voice, folder) for voice in self.voices]
        started: dict[str, Model] = {}
        self._models: list[Model] = []
        for voice in self.voices:
            used = synthesiser.model_copy(update={"options": {**synthesiser.options, **voice.options}})
            key = json.dumps(used.options, sort_keys=True, default=str)
            if key not in started:
                started[key] = asking.load(used, folder)
            self._models.append(started[key])

    @property
    def models(self) -> list[Model]:
        """The models, each once."""
        return list({id(model): model for model in self._models}.values())

    def facts(self) -> dict[str, Any]:
        """What the card says of the voices: the models, and each voice with what tells it from the others."""
        return {
            "synthesiser": [dict(model.identity) for model in self.models],
            "voices": [*map(self.describe, range(len(self)))],
        }

    def describe(self, place: int) -> dict[str, Any]:
        """One voice as JSON values: name, gender, options, fields, and the hash of the recording that it imitates."""
        voice = self.voices[place]
        told = {"name": voice.name, "gender": voice.gender, "options": voice.options, "fields": voice.fields}
        imitated = {name: clip_digest(clip) for name, clip in self._prompts[place].items()}
        return {name: value for name, value in {**told, "imitates": imitated}.items() if value}

    def model(self, place: int) -> dict[str, Any]:
        """What the model of one voice is, as JSON values."""
        return dict(self._models[place].identity)

    def __len__(self) -> int:
        return len(self.voices)

    def order(self, seed: int, key: str, number: int) -> tuple[int, int]:
        """The voice of one item at its try `number`, and how often it was asked before: another one until all had their turn."""
        order = draws(seed, key).permutation(len(self))
        return int(order[number % len(order)]), number // len(order)

    def cast(self, text: Text, seed: int, number: int) -> dict[str, int]:
        """A voice for each speaker of a dialogue at the try `number`; no two speakers have the same one.

        It depends on the dialogue and not on the row, so that all questions about a dialogue hear the same voices.

        Raises:
            Unspeakable: there are not enough voices.
        """
        genders: dict[str, str | None] = {}
        for turn in text.turns:
            genders.setdefault(turn.speaker, turn.gender)
        order = [int(place) for place in draws(seed, text.dialogue(), number).permutation(len(self))]
        found: dict[str, int] = {}
        # Who may have any voice is given one last, so that those of the others are not taken.
        for speaker in sorted(genders, key=lambda name: genders[name] is None):
            gender = genders[speaker]
            fitting = (place for place in order if gender is None or self.voices[place].gender == gender)
            place = next((place for place in fitting if place not in found.values()), None)
            if place is None:
                raise Unspeakable("there are not enough voices for the speakers", f"{speaker}: {gender or 'any'}")
            found[speaker] = place
        return {speaker: found[speaker] for speaker in genders}

    def say(self, said: str, place: int, again: int) -> Audio:
        """What one voice makes of a text, in one channel.

        Args:
            said: the text as it is read out. place: of the voice. again: tells several sounds of one text and voice apart.

        Raises:
            Dropped: at the step `synthesis`.
        """
        fields: dict[str, Any] = {"text": said, "language": self._language, **self.voices[place].fields}
        fields |= self._prompts[place]
        # The id is the same for all items: models that draw by it would otherwise give one text two sounds, and the cache one.
        request = Request(said, fields=fields, wants="audio")
        answer = self._asking.ask(self._models[place], request, draw=again)
        if answer.status != "ok":
            raise Dropped(Failure("synthesis", "the synthesiser gave an error", answer.reason or answer.status))
        if answer.audio is None or not answer.audio.num_samples:
            raise Dropped(Failure("synthesis", "the synthesiser gave no sound"))
        try:
            check_audio(answer.audio, "the sound of the synthesiser")
        except AudioError as error:
            raise Dropped(Failure("synthesis", "the synthesiser gave what is no sound", str(error.message))) from error
        return as_mono(answer.audio)


def _read_voices(file: str, folder: Path) -> tuple[Voice, ...]:
    path = folder / file
    if not path.is_file():
        raise UserError(
            f"the file of voices '{path}' is not there",
            hint="it is a YAML file with a list 'voices'; docs/build.md shows one",
        )
    document, lines = load_yaml_with_lines(path)
    if not isinstance(document, dict):
        raise UserError(f"'{path}' holds {type(document).__name__}; expected a mapping with the list 'voices'")
    listed: VoiceList = fit_lines(document, VoiceList, str(path), lines)
    return listed.voices


def _prompt(voice: Voice, folder: Path) -> Mapping[str, Clip]:
    """The recording that a voice imitates, as a field of a request.

    Raises:
        UserError: it is not there.
    """
    if voice.recording is None:
        return {}
    path = folder / voice.recording
    if not path.is_file():
        raise UserError(
            f"the voice '{voice.name}' imitates '{path}', which is not there",
            hint="the path is relative to the recipe, or to the folder that the command is typed in for a recipe of the project",
        )
    return {"prompt_audio": Clip(str(path))}
