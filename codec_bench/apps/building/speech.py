"""What the makers of speech have in common: voices, and the checks of an item by floors of quality and by reading it
back.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from codec_bench.apps.building.asking import ModelCalls
from codec_bench.apps.building.checks import as_mono
from codec_bench.apps.building.item import Dropped, Failure, Item, Maker, at_once, draws
from codec_bench.apps.building.recipe_spoken import Checks, JoinedRecipe, SpokenRecipe, Used, Voice, VoiceList
from codec_bench.apps.building.sources import Text, Texts
from codec_bench.apps.building.wording import Unspeakable
from codec_bench.audio.clip import Clip, clip_digest
from codec_bench.audio.loudness import PROTOCOL
from codec_bench.benchmark.definition.finding import fit_lines
from codec_bench.config import load_yaml_with_lines
from codec_bench.errors import UserError
from codec_bench.messages import Diagnostic
from codec_bench.metrics import build_metric
from codec_bench.models.base import Model
from codec_bench.models.cache import ResponseCache
from codec_bench.text.error_rate import ErrorRate
from codec_bench.text.rules import get_rule
from codec_bench.types import Audio, Request, Score


class VoicesOf:
    """The voices of a recipe. Voices with the same options share one model.

    Args:
        synthesiser: the model that speaks. voices: as the recipe says. folder: where the recipe's paths start.
        language: of the texts. asking: where the models are started.

    Raises:
        UserError: a file of voices or a recording is not there, or the model cannot be started.
    """

    def __init__(
        self, synthesiser: Used, voices: Sequence[Voice] | str, folder: Path, language: str, asking: ModelCalls
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
                started[key] = asking.load(used, folder, language)
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

    def describe(self, index: int) -> dict[str, Any]:
        """One voice as JSON values: name, gender, options, fields, and the hash of the recording that it imitates."""
        voice = self.voices[index]
        facts = {"name": voice.name, "gender": voice.gender, "options": voice.options, "fields": voice.fields}
        imitated = {name: clip_digest(clip) for name, clip in self._prompts[index].items()}
        return {name: value for name, value in {**facts, "imitates": imitated}.items() if value}

    def model(self, index: int) -> dict[str, Any]:
        """What the model of one voice is, as JSON values."""
        return dict(self._models[index].identity)

    def __len__(self) -> int:
        return len(self.voices)

    def order(self, seed: int, key: str, number: int) -> tuple[int, int]:
        """The voice of one item at its try `number`, and how often it was asked before: another one until all had their
        turn.
        """
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
        order = [int(index) for index in draws(seed, text.dialogue(), number).permutation(len(self))]
        cast_of: dict[str, int] = {}
        # Who may have any voice is given one last, so that those of the others are not taken.
        for speaker in sorted(genders, key=lambda name: genders[name] is None):
            gender = genders[speaker]
            fitting = (index for index in order if gender is None or self.voices[index].gender == gender)
            index = next((index for index in fitting if index not in cast_of.values()), None)
            if index is None:
                raise Unspeakable(Diagnostic("too_few_voices"), f"{speaker}: {gender or 'any'}")
            cast_of[speaker] = index
        return {speaker: cast_of[speaker] for speaker in genders}

    def lowest_rate_hz(self, texts: Sequence[str]) -> int | None:
        """The lowest sample rate of the voices, each of which says the first of a few texts that it can say; None if
        none of them speaks.
        """

        def rate_of(index: int) -> int | None:
            for text in texts:
                with suppress(Dropped):
                    return self.synthesise(text, index, 0).sample_rate_hz
            return None

        with ThreadPoolExecutor(at_once(model.concurrency for model in self.models)) as pool:
            return min(filter(None, pool.map(rate_of, range(len(self)))), default=None)

    def synthesise(self, text: str, index: int, again: int) -> Audio:
        """What one voice makes of a text, in one channel.

        Args:
            text: the text as it is read out. index: of the voice. again: tells several sounds of one text and voice
                apart.

        Raises:
            Dropped: at the step `synthesis`.
        """
        fields: dict[str, Any] = {"text": text, "language": self._language, **self.voices[index].fields}
        fields |= self._prompts[index]
        # The id is the same for all items: models that draw by it would otherwise give one text two sounds, and the
        # cache one.
        request = Request(text, fields=fields, wants="audio")
        answer = self._asking.ask(self._models[index], request, draw=again)
        if answer.status != "ok":
            raise Dropped(Failure("synthesis", Diagnostic("synthesis_error"), answer.reason or answer.status))
        if answer.audio is None or not answer.audio.num_samples:
            raise Dropped(Failure("synthesis", Diagnostic("synthesis_without_sound")))
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


MetricLoader = Callable[[str], Callable[..., list[dict[str, Score]]]]
"""Loads a metric by name, as `codec_bench.load_metric` does."""


class Floors:
    """Metrics of single sounds, such as UTMOS and DNSMOS, below whose lowest score an item is not kept.

    Args:
        floors: the lowest score by the name of the metric. language: of the texts. load: loads a metric by name.

    Raises:
        UserError: there is no such metric, it needs a reference or a transcript, less is better for it, it does not
            know the language, or its weights are not there.
    """

    def __init__(self, floors: Mapping[str, float], language: str, load: MetricLoader) -> None:
        self._floors, self._language = floors, language
        self.protocols = {name: _fitting(name, language) for name in floors}
        self._loaded = {name: load(name) for name in floors}
        # Features load at their first call and hold buffers of their own, so that one thread at a time asks them.
        self._lock = threading.Lock()

    def check(self, audio: Audio) -> dict[str, float]:
        """The scores of a sound by name.

        Raises:
            Dropped: at the step `quality`; a score is too low, or there is none.
        """
        scores = {}
        for name, floor in self._floors.items():
            with self._lock:
                score = self._loaded[name](estimate=[audio], language=self._language)[0][name]
            if score.status != "ok" or score.value is None:
                raise Dropped(
                    Failure("quality", Diagnostic("floor_without_score", metric=name), score.reason or score.status)
                )
            if score.value < floor:
                raise Dropped(
                    Failure("quality", Diagnostic("below_floor", metric=name, floor=floor), f"{score.value:.3f}")
                )
            scores[name] = round(float(score.value), 6)
        return scores

    def as_dict(self, scores: Mapping[str, float]) -> dict[str, Any]:
        """Scores with their protocols, for the provenance of a row."""
        return {name: {"score": score, "protocol": self.protocols[name]} for name, score in scores.items()}


def _fitting(name: str, language: str) -> str:
    """The protocol of a metric that can be a floor."""
    metric = build_metric(name)
    if metric.kind != "single" or not metric.higher_is_better:
        raise UserError(
            f"checks.quality names '{name}', which is no score of a single sound whose higher values are better",
            hint="use utmos, dnsmos_ovrl, dnsmos_sig, dnsmos_bak or dnsmos_p808",
        )
    if (refusal := metric.refusal(text=None, language=language)) is not None:
        raise UserError(f"checks.quality names '{name}': {refusal}")
    return metric.protocol


class ReadBack:
    """The recognisers of a recipe, and the rule by which what they write down is compared with what was meant.

    Args:
        checks: as the recipe says. language: of the texts. folder: where the recipe's paths start. asking: where they
            are started.

    Raises:
        UserError: there is no such rule, a package that it needs is missing, or a recogniser cannot be started.
    """

    def __init__(self, checks: Checks, language: str, folder: Path, asking: ModelCalls) -> None:
        self._checks, self._language, self._asking = checks, language, asking
        self._rule = get_rule(checks.rule)
        self._rule.check(language)
        self.models: list[Model] = [asking.load(used, folder, language) for used in checks.recognisers]

    def facts(self) -> dict[str, Any]:
        """What the card says of the recognisers."""
        return {
            "recognisers": [dict(model.identity) for model in self.models],
            "rule": self._rule.protocol(self._language),
            "check": self._checks.read_back,
        }

    def check(self, model: Model, parts: Sequence[tuple[str, Audio]]) -> dict[str, Any]:
        """Has one recogniser read back an item; gives what the provenance of its row says of it.

        Args:
            parts: what was meant, and the sound of it.

        Raises:
            Dropped: at the step `recognition`; the recogniser gave an error, or the error rate over all parts is too
                high.
        """
        name = model.info.name
        transcripts = [self._transcript(model, audio, text) for text, audio in parts]
        unit = None if self._rule.fixed else self._checks.unit
        languages = [self._language] * len(parts)
        compared = self._rule.compare(
            reference=[text for text, _ in parts], estimate=transcripts, language=languages, unit=unit
        )
        rate = sum((one.counts for one in compared), ErrorRate.zero()).rate
        if rate is None or rate > self._checks.error_rate:
            rate_text = "no rate" if rate is None else f"{100 * rate:.1f} %"
            wrong = [transcript for transcript, one in zip(transcripts, compared) if one.counts.errors] or transcripts
            detail = f"{name}, {rate_text}: {' / '.join(wrong)}"
            raise Dropped(Failure("recognition", Diagnostic("read_back_differs"), detail, rate))
        protocol = self._rule.protocol(self._language)
        return {
            "recogniser": name,
            "model": dict(model.identity),
            "transcript": "\n".join(transcripts),
            "error_rate": round(rate, 6),
            "protocol": f"{protocol}/{unit}" if unit else protocol,
        }

    def _transcript(self, model: Model, audio: Audio, expected: str) -> str:
        request = Request(expected, fields={"audio": Clip(audio), "language": self._language})
        answer = self._asking.ask(model, request)
        if answer.status != "ok":
            why = f"{model.info.name}: {answer.reason or answer.status}"
            raise Dropped(Failure("recognition", Diagnostic("recogniser_error"), why))
        return answer.text or ""


def plain_text(rule: str, language: str) -> Callable[[str], str]:
    """What makes texts of a language equal that a rule cannot tell apart.

    Raises:
        UserError: there is no such rule, or a package that it needs is missing.
    """
    known = get_rule(rule)
    known.check(language)
    return lambda text: known.compare(reference=[text], estimate=[text], language=[language])[0].reference


TWIN = Diagnostic("same_text")


def twins_of(
    texts: Texts, speech_of: Callable[[str, Text], tuple[Sequence[str], Sequence[str]]], checks: Checks, language: str
) -> dict[str, str]:
    """For each row that can be said, the first one with the same text.

    Args:
        texts: the rows. speech_of: gives what is said of a row, which the rule compares, and what stays written; it may
            raise `Unspeakable`.
        checks: name the rule. language: of the texts.
    """
    plain = plain_text(checks.rule, language)
    first: dict[tuple[str, ...], str] = {}
    twins = {}
    for key, text in texts.rows.items():
        with suppress(Unspeakable):
            if isinstance(text, Text):
                spoken, written = speech_of(key, text)
                mark = (
                    *(plain(line) or line for line in spoken),
                    *(" ".join(line.split()).casefold() for line in written),
                )
                twins[key] = first.setdefault(mark, key)
    return twins


class SpeechMaker(Maker):
    """The common part of makers of speech. A maker adds `steps`, `columns` (with the `checked_columns`), `speech_of` and
    `make_text`.

    Args:
        recipe: what is asked for. texts: its rows. folder: where its paths start. load: loads a metric by name.

    Raises:
        UserError: a voice or a metric is wrong, or a model cannot be started.
    """

    rate = "error_rate"
    group = "group"
    """The column with the group of the texts."""

    def __init__(self, recipe: SpokenRecipe | JoinedRecipe, texts: Texts, folder: Path, load: MetricLoader) -> None:
        self.texts = texts
        self._checks, self._drops = recipe.checks, recipe.duplicates == "drop"
        self._twins = twins_of(texts, self.speech_of, recipe.checks, recipe.language)
        scores = dict.fromkeys(recipe.checks.quality, "number")
        self.checked_columns = {"transcripts": "texts", "error_rate": "number", "check": "text", **scores}
        self._asking = ModelCalls(ResponseCache.of_user())
        self.voices: VoicesOf | None = None
        try:
            self._floors = Floors(recipe.checks.quality, recipe.language, load)
            self._read_back = ReadBack(recipe.checks, recipe.language, folder, self._asking)
            if recipe.synthesiser is not None and recipe.voices is not None:
                self.voices = VoicesOf(recipe.synthesiser, recipe.voices, folder, recipe.language, self._asking)
        except BaseException:
            self._asking.close()
            raise
        models = (*(self.voices.models if self.voices else ()), *self._read_back.models)
        self.parallel = at_once(model.concurrency for model in models)

    def keys(self) -> Sequence[str]:
        """The keys of the rows: the split and the place in it."""
        return list(self.texts.rows)

    def facts(self) -> dict[str, Any]:
        """The texts, the voices and the checks."""
        speaking = self.voices.facts() if self.voices else {}
        checks = {**self._read_back.facts(), "quality": self._floors.protocols, "loudness": PROTOCOL}
        return {"sources": [self.texts.facts()], **speaking, **checks}

    def nearness(self, row: Mapping[str, Any]) -> float | None:
        """As `Maker.nearness`: the error rate as a share of the highest one; None where no error is let pass."""
        return (row["error_rate"] or 0.0) / self._checks.error_rate if self._checks.error_rate else None

    def close(self) -> None:
        """Closes the models."""
        self._asking.close()

    def make(self, key: str) -> Item:
        """Makes one item; a row that cannot be used is dropped."""
        text = self.texts.rows[key]
        if isinstance(text, str):
            return Item(key, failures=(Failure("row", Diagnostic("row_unusable"), text),))
        if self._drops and (first := self._twins.get(key, key)) != key:
            duplicates = (
                first
                if getattr(self.texts.rows[first], "answer", "") == text.answer
                else f"{first}, with another answer"
            )
            return Item(key, {self.group: text.group} if text.group else {}, (Failure("row", TWIN, duplicates),))
        return self.make_text(key, text)

    def same(self, key: str) -> Sequence[str]:
        """As `Maker.same`: the first row with the same text."""
        return [f"text {self._twins[key]}"]

    def speech_of(self, key: str, text: Text) -> tuple[Sequence[str], Sequence[str]]:
        """What is said of a row, and what is asked with it in writing. Raises `Unspeakable` if it cannot be said."""
        raise NotImplementedError(f"{type(self).__name__} does not say what is asked")

    def make_text(self, key: str, text: Text) -> Item:
        """Makes one item of a row that can be used."""
        raise NotImplementedError(f"{type(self).__name__} does not say how an item is made")

    def inspect(self, full: Audio, parts: Sequence[tuple[str, Audio]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Checks a whole item; gives the columns of `checked_columns`, and what its provenance says of the checks.

        Args:
            full: its sound. parts: what was meant and how it sounds, part by part.

        Raises:
            Dropped: at the step `quality` or `recognition`.
        """
        scores = self._floors.check(full)
        readings = [self._read_back.check(model, parts) for model in self._read_back.models]
        check = self._checks.read_back
        rate = max((one["error_rate"] for one in readings), default=None)
        columns = {"transcripts": [one["transcript"] for one in readings], "error_rate": rate, "check": check, **scores}
        quality = self._floors.as_dict(scores)
        return columns, {"check": check, "recognisers": readings, "quality": quality, "loudness": PROTOCOL}
