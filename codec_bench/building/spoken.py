"""The maker of spoken texts: a template says what is said, a synthesiser says it, and recognisers must read it back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.audio.clip import Clip, clip_digest
from codec_bench.audio.encode import MOST_CHANNELS, flac_bytes
from codec_bench.audio.hash import content_hash
from codec_bench.audio.loudness import PROTOCOL
from codec_bench.benchmark.definition.prompt import render_text, variables
from codec_bench.building.asking import Asking
from codec_bench.building.checks import check_sound, normalised
from codec_bench.building.item import Dropped, Failure, Item, draws
from codec_bench.building.recipe import SpokenRecipe, Used, Voice
from codec_bench.building.sources import located
from codec_bench.building.wording import Unspeakable, check_options, spoken_text
from codec_bench.data.table import open_table, row_problem
from codec_bench.errors import UserError
from codec_bench.models import load_model
from codec_bench.models.base import Model
from codec_bench.models.cache import ResponseCache
from codec_bench.registry import is_own_code
from codec_bench.text.rules import get_rule
from codec_bench.types import Audio, Request

LETTERS = "ABCDEFGH"


@dataclass(frozen=True, slots=True)
class Text:
    """One question of the source, as it is written."""

    question: str
    choices: tuple[str, ...]
    answer: str
    group: str | None


class Spoken:
    """Makes the items of a recipe of spoken texts.

    Args:
        recipe: what is asked for.
        folder: where the recipe's paths start.

    Raises:
        UserError: the texts cannot be read, the template is wrong, or a model cannot be started.
    """

    steps = ("row", "text", "synthesis", "sound", "recognition")
    columns: Mapping[str, str] = {
        "question": "text", "choices": "texts", "answer": "text", "group": "text", "said": "text", "voice": "text",
        "transcripts": "texts", "error_rate": "number", "loudness_lufs": "number", "duration_s": "number", "licence": "text",
        "provenance": "text",
    }  # fmt: skip

    def __init__(self, recipe: SpokenRecipe, folder: Path) -> None:
        self.recipe = recipe
        if unknown := variables(recipe.template) - {"question", "choices"}:
            raise UserError(
                f"the template reads {', '.join(sorted(unknown))}; expected 'question' and 'choices' and nothing else"
            )
        self._rule = get_rule(recipe.checks.rule)
        self._rule.check(recipe.language)
        self._prompts = [_prompt(voice, folder) for voice in recipe.voices]
        self._texts: dict[str, Text | str] = self._read(folder)
        self._asking = Asking(ResponseCache.of_user())
        try:
            self._voices = [self._start(_with(recipe.synthesiser, voice), folder) for voice in recipe.voices]
            self._recognisers = [self._start(used, folder) for used in recipe.checks.recognisers]
        except BaseException:
            self._asking.close()
            raise
        self.parallel = min(32, max(model.concurrency for model in (*self._voices, *self._recognisers)))

    def _start(self, used: Used, folder: Path) -> Model:
        beside = is_own_code(used.model) and (folder / used.model.partition(":")[0]).is_file()
        model = load_model(str(folder / used.model) if beside else used.model, used.options)
        self._asking.start(model)
        return model

    def _read(self, folder: Path) -> dict[str, Text | str]:
        """The rows by key; a row that cannot be used is a sentence."""
        source = self.recipe.texts
        table = open_table(
            located(source.data, folder), config=source.config, split=source.split, revision=source.revision, limit=self.recipe.limit
        )  # fmt: skip
        named = (source.question, source.answer, *_listed(source.choices), *([source.group] if source.group else []))
        if missing := [name for name in named if name not in table.columns]:
            raise UserError(
                f"the texts '{source.data}' have no column {', '.join(missing)}",
                hint=f"they have {', '.join(table.columns)}",
            )
        self._source = (table.name, table.revision)
        found: dict[str, Text | str] = {}
        for key, row in table:
            problem = row_problem(row)
            found[key.replace("/", "-")] = _text(row, self.recipe) if problem is None else problem
        if not found:
            raise UserError(f"the texts '{source.data}' have no rows")
        return found

    def keys(self) -> Sequence[str]:
        """The keys of the rows: the split and the place in it."""
        return list(self._texts)

    def facts(self) -> Mapping[str, Any]:
        """The texts, the models and the rule."""
        name, revision = self._source
        written = json.dumps([[key, str(text)] for key, text in self._texts.items()], ensure_ascii=False)
        source = {
            "name": name,
            "recordings": len(self._texts),
            "taken": len(self._texts),
            "left_out": {},
            "licences": {self.recipe.texts.licence: len(self._texts)},
            "fingerprint": hashlib.blake2b(written.encode(), digest_size=20).hexdigest(),
            "revision": revision,
        }
        return {
            "sources": [source],
            "synthesiser": [dict(model.identity) for model in self._voices],
            "imitated": [
                {name: clip_digest(clip) for name, clip in prompt.items()} for prompt in self._prompts if prompt
            ],
            "recognisers": [dict(model.identity) for model in self._recognisers],
            "rule": self._rule.protocol(self.recipe.language),
            "loudness": PROTOCOL,
        }

    def close(self) -> None:
        """Closes the models."""
        self._asking.close()

    def make(self, key: str) -> Item:
        """Has one text spoken and read back, up to as many times as the recipe allows."""
        text = self._texts[key]
        if isinstance(text, str):
            return Item(key, failures=(Failure("row", "the row cannot be used", text),))
        groups = {"group": text.group} if text.group else {}
        try:
            said = self._said(text)
        except Unspeakable as problem:
            return Item(key, groups, (Failure("text", problem.reason, problem.what),))
        order = draws(self.recipe.seed, key).permutation(len(self._voices))
        failures: list[Failure] = []
        material = None
        for number in range(self.recipe.retries + 1):
            place, again = int(order[number % len(order)]), number // len(order)
            groups["voice"] = self.recipe.voices[place].name
            try:
                audio = self._synthesised(said, place, again)
                material = flac_bytes(audio)
                row, sound = self._checked(text, said, audio, place)
            except Dropped as dropped:
                failures.append(dropped.failure)
                continue
            made = {"key": key, "seed": self.recipe.seed, "try": number, "draw": again, "voice": groups["voice"]}
            made |= {
                "template": self.recipe.template,
                "text": list(self._source),
                "synthesised": content_hash(audio.samples, audio.sample_rate_hz),
            }
            row["provenance"] = json.dumps(made, sort_keys=True, ensure_ascii=False)
            return Item(key, groups, tuple(failures), row, sound)
        return Item(key, groups, tuple(failures), material=material)

    def _said(self, text: Text) -> str:
        language = self.recipe.language
        if not text.question.strip():
            raise Unspeakable("there is nothing to say")
        if len(text.choices) < 2 or text.answer not in LETTERS[: len(text.choices)]:
            raise Unspeakable("the answer names no option", f"'{text.answer}' of {len(text.choices)}")
        choices = [spoken_text(choice, language) for choice in text.choices]
        check_options(
            choices,
            lambda choice: self._rule.compare(reference=[choice], estimate=[choice], language=[language])[0].reference,
        )
        values = {"question": text.question, "choices": list(text.choices)}
        return spoken_text(render_text(self.recipe.template, values, "the template"), language)

    def _synthesised(self, said: str, place: int, again: int) -> Audio:
        fields: dict[str, Any] = {"text": said, "language": self.recipe.language, **self.recipe.voices[place].fields}
        fields |= self._prompts[place]
        # The id is the same for all items: models that draw by it would otherwise give one text two sounds, and the cache one.
        request = Request(said, fields=fields, wants="audio")
        answer = self._asking.ask(self._voices[place], request, draw=again)
        if answer.status != "ok":
            raise Dropped(Failure("synthesis", "the synthesiser gave an error", answer.reason or answer.status))
        if answer.audio is None or not answer.audio.num_samples:
            raise Dropped(Failure("synthesis", "the synthesiser gave no sound"))
        if answer.audio.channels > MOST_CHANNELS:
            raise Dropped(Failure("synthesis", "the synthesiser gave too many channels", str(answer.audio.channels)))
        return answer.audio

    def _checked(self, text: Text, said: str, audio: Audio, place: int) -> tuple[dict[str, Any], bytes]:
        check_sound(audio, self.recipe.checks)
        audio, level = normalised(audio, self.recipe.loudness_lufs, self.recipe.peak_dbfs)
        heard = [self._heard(model, said, audio) for model in self._recognisers]
        return {
            "question": text.question,
            "choices": list(text.choices),
            "answer": text.answer,
            "group": text.group,
            "said": said,
            "voice": self.recipe.voices[place].name,
            "transcripts": [transcript for transcript, _ in heard],
            "error_rate": round(max(rate for _, rate in heard), 6),
            "loudness_lufs": round(level, 3),
            "duration_s": round(audio.duration_s, 6),
            "licence": self.recipe.texts.licence,
        }, flac_bytes(audio)

    def _heard(self, model: Model, said: str, audio: Audio) -> tuple[str, float]:
        """What a recogniser reads back, and its error rate."""
        language, checks = self.recipe.language, self.recipe.checks
        request = Request(said, fields={"audio": Clip(audio), "language": language})
        answer = self._asking.ask(model, request)
        if answer.status != "ok":
            raise Dropped(Failure("recognition", "the recogniser gave an error", answer.reason or answer.status))
        transcript = answer.text or ""
        unit = None if self._rule.fixed else checks.unit
        (compared,) = self._rule.compare(reference=[said], estimate=[transcript], language=[language], unit=unit)
        rate = compared.counts.rate
        if rate is None or rate > checks.error_rate:
            found = "no rate" if rate is None else f"{100 * rate:.1f} %"
            raise Dropped(Failure("recognition", "it was not read back as it was meant", f"{found}: {transcript}"))
        return transcript, rate


def _prompt(voice: Voice, folder: Path) -> dict[str, Clip]:
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


def _listed(choices: str | tuple[str, ...]) -> tuple[str, ...]:
    return (choices,) if isinstance(choices, str) else choices


def _text(row: Mapping[str, Any], recipe: SpokenRecipe) -> Text | str:
    source = recipe.texts
    held = row[source.choices] if isinstance(source.choices, str) else [row[name] for name in source.choices]
    if not isinstance(held, (list, tuple)):
        return f"the column '{source.choices}' holds {type(held).__name__}; expected a list"
    choices = tuple(str(choice) for choice in held if choice is not None)
    group = None if source.group is None or row[source.group] is None else str(row[source.group])
    return Text(str(row[source.question] or ""), choices, str(row[source.answer] or "").strip().upper(), group)


def _with(synthesiser: Used, voice: Voice) -> Used:
    return synthesiser.model_copy(update={"options": {**synthesiser.options, **voice.options}})
