"""Shared by makers of speech: voices, quality floors, and reading back."""

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
from codec_bench.apps.building.item import BuildItem, Failure, ItemMaker, TryError, choose_concurrency, make_rng
from codec_bench.apps.building.recipe_spoken import Checks, JoinedRecipe, RecipeVoice, SpokenRecipe, Used, VoiceList
from codec_bench.apps.building.sources import Text, Texts
from codec_bench.apps.building.wording import Unspeakable
from codec_bench.audio.clip import Clip, clip_digest
from codec_bench.audio.loudness import PROTOCOL
from codec_bench.benchmark.definition.finding import fit_lines
from codec_bench.config import load_yaml_with_lines
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics import build_metric
from codec_bench.models.base import Model
from codec_bench.models.cache import ResponseCache
from codec_bench.text.error_rate import ErrorRate
from codec_bench.text.rules import get_rule
from codec_bench.types import Audio, Request, Score


class VoicesOf:
    """The voices of a recipe. Voices with the same options share one model.

    Raises:
        UserError: a file of voices or a recording is missing, or the model cannot be started.
    """

    def __init__(
        self, synthesiser: Used, voices: Sequence[RecipeVoice] | str, folder: Path, language: str, asking: ModelCalls
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
        """The models and voices for the card."""
        models = [dict(model.identity) for model in self.models]
        return {"synthesiser": models, "voices": [*map(self.describe, range(len(self)))]}

    def describe(self, index: int) -> dict[str, Any]:
        """Describe one voice as JSON values, with a hash of its recording."""
        voice = self.voices[index]
        facts = {"name": voice.name, "gender": voice.gender, "options": voice.options, "fields": voice.fields}
        imitated = {name: clip_digest(clip) for name, clip in self._prompts[index].items()}
        return {name: value for name, value in {**facts, "imitates": imitated}.items() if value}

    def model(self, index: int) -> dict[str, Any]:
        """Describe the model of one voice, as JSON values."""
        return dict(self._models[index].identity)

    def __len__(self) -> int:
        return len(self.voices)

    def order(self, seed: int, key: str, number: int) -> tuple[int, int]:
        """Return the voice of try `number`, and how often earlier tries used that voice."""
        order = make_rng(seed, key).permutation(len(self))
        return int(order[number % len(order)]), number // len(order)

    def cast(self, text: Text, seed: int, number: int) -> dict[str, int]:
        """Assign distinct voices to the speakers of a dialogue at the try `number`.

        It depends on the dialogue and not on the row, so all questions about a dialogue have the same voices.

        Raises:
            Unspeakable: there are not enough voices.
        """
        genders: dict[str, str | None] = {}
        for turn in text.turns:
            genders.setdefault(turn.speaker, turn.gender)
        order = [int(index) for index in make_rng(seed, text.dialogue(), number).permutation(len(self))]
        cast_of: dict[str, int] = {}
        # Speakers of any voice come last, so that the others get theirs.
        for speaker in sorted(genders, key=lambda name: genders[name] is None):
            gender = genders[speaker]
            fitting = (index for index in order if gender is None or self.voices[index].gender == gender)
            index = next((index for index in fitting if index not in cast_of.values()), None)
            if index is None:
                raise Unspeakable(Diagnostic("too_few_voices"), f"{speaker}: {gender or 'any'}")
            cast_of[speaker] = index
        return {speaker: cast_of[speaker] for speaker in genders}

    def lowest_rate_hz(self, texts: Sequence[str]) -> int | None:
        """Return the lowest rate of voices, from a few texts; or None."""

        def rate_of(index: int) -> int | None:
            for text in texts:
                with suppress(TryError):
                    return self.synthesise(text, index, 0).sample_rate_hz
            return None

        with ThreadPoolExecutor(choose_concurrency(model.concurrency for model in self.models)) as pool:
            return min(filter(None, pool.map(rate_of, range(len(self)))), default=None)

    def synthesise(self, text: str, index: int, again: int) -> Audio:
        """Synthesise a text by voice `index` as mono; `again` counts repetitions.

        Raises:
            TryError: at the step `synthesis`.
        """
        fields: dict[str, Any] = {"text": text, "language": self._language, **self.voices[index].fields}
        fields |= self._prompts[index]
        # The id is the same for all items: models that draw by it would otherwise give one text two sounds, and the
        # cache one.
        request = Request(text, fields=fields, wants="audio")
        answer = self._asking.ask(self._models[index], request, draw=again)
        if answer.status != "ok":
            raise TryError("synthesis", Diagnostic("synthesis_error"), answer.reason or answer.status)
        if answer.audio is None or not answer.audio.num_samples:
            raise TryError("synthesis", Diagnostic("synthesis_without_sound"))
        return as_mono(answer.audio)


def _read_voices(file: str, folder: Path) -> tuple[RecipeVoice, ...]:
    """Read the voices from a YAML file; raises UserError."""
    path = folder / file
    if not path.is_file():
        raise UserError(
            "no_voice_file", path=path, hint="it is a YAML file with a list 'voices'; docs/build.md shows one"
        )
    document, lines = load_yaml_with_lines(path)
    if not isinstance(document, dict):
        raise UserError("not_a_voice_list", path=path, type=type(document).__name__)
    listed: VoiceList = fit_lines(document, VoiceList, str(path), lines)
    return listed.voices


def _prompt(voice: RecipeVoice, folder: Path) -> Mapping[str, Clip]:
    """Return `prompt_audio` for a voice that imitates a recording; otherwise nothing."""
    if voice.recording is None:
        return {}
    path = folder / voice.recording
    if not path.is_file():
        raise UserError(
            "voice_recording_missing",
            voice=voice.name,
            path=path,
            hint="the path is relative to the recipe, or to the folder that the command is typed in for a recipe of "
            "the project",
        )
    return {"prompt_audio": Clip(str(path))}


MetricLoader = Callable[[str], Callable[..., list[dict[str, Score]]]]
"""Loads a metric by name, as `codec_bench.load_metric` does."""


class Floors:
    """Minimum scores of items by metrics of single sounds, such as UTMOS and DNSMOS.

    Raises:
        UserError: a metric is unknown, needs a reference or a transcript, is better when lower, does not know the
            language, or its weights are missing.
    """

    def __init__(self, floors: Mapping[str, float], language: str, load: MetricLoader) -> None:
        self._floors, self._language = floors, language
        self.protocols = {name: _fitting(name, language) for name in floors}
        self._loaded = {name: load(name) for name in floors}
        # Features load lazily and own buffers: one thread at a time.
        self._lock = threading.Lock()

    def check(self, audio: Audio) -> dict[str, float]:
        """Return the scores of audio by metric, if all reach their minimum.

        Raises:
            TryError: at the step `quality`; a score is too low, or missing.
        """
        scores = {}
        for name, floor in self._floors.items():
            with self._lock:
                score = self._loaded[name](estimate=[audio], language=self._language)[0][name]
            if score.status != "ok" or score.value is None:
                raise TryError("quality", Diagnostic("floor_without_score", metric=name), score.reason or score.status)
            if score.value < floor:
                raise TryError("quality", Diagnostic("below_floor", metric=name, floor=floor), f"{score.value:.3f}")
            scores[name] = round(float(score.value), 6)
        return scores

    def as_dict(self, scores: Mapping[str, float]) -> dict[str, Any]:
        """Return scores with their protocols, for the provenance of a row."""
        return {name: {"score": score, "protocol": self.protocols[name]} for name, score in scores.items()}


def _fitting(name: str, language: str) -> str:
    """Return a metric's protocol; raises UserError if its scores cannot be a minimum."""
    metric = build_metric(name)
    if metric.kind != "single" or not metric.higher_is_better:
        raise UserError(
            "quality_not_a_score", name=name, hint="use utmos, dnsmos_ovrl, dnsmos_sig, dnsmos_bak or dnsmos_p808"
        )
    if (refusal := metric.refusal(text=None, language=language)) is not None:
        raise UserError("quality_unusable", name=name, reason=refusal)
    return metric.protocol


class ReadBack:
    """The recognisers of a recipe, and the text rule of their comparison.

    Raises:
        UserError: there is no such rule, a package that it needs is missing, or a recogniser cannot be started.
    """

    def __init__(self, checks: Checks, language: str, folder: Path, asking: ModelCalls) -> None:
        self._checks, self._language, self._asking = checks, language, asking
        self._rule = get_rule(checks.rule)
        self._rule.check(language)
        self.models: list[Model] = [asking.load(used, folder, language) for used in checks.recognisers]

    def facts(self) -> dict[str, Any]:
        """The recognisers for the card."""
        return {
            "recognisers": [dict(model.identity) for model in self.models],
            "rule": self._rule.protocol(self._language),
            "check": self._checks.read_back,
        }

    def check(self, model: Model, parts: Sequence[tuple[str, Audio]]) -> dict[str, Any]:
        """Transcribe an item by one recogniser, check the text, and return the provenance.

        Args:
            parts: spoken text and audio of each part.

        Raises:
            TryError: at the step `recognition`; the recogniser failed, or the error rate over all parts is too high.
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
            wrong = [transcript for transcript, one in zip(transcripts, compared) if one.counts.errors] or transcripts
            detail = Diagnostic("transcribed", recogniser=name, rate=rate, transcripts=wrong)
            raise TryError("recognition", Diagnostic("read_back_differs"), detail, rate)
        protocol = self._rule.protocol(self._language)
        return {
            "recogniser": name,
            "model": dict(model.identity),
            "transcript": "\n".join(transcripts),
            "error_rate": round(rate, 6),
            "protocol": f"{protocol}/{unit}" if unit else protocol,
        }

    def _transcript(self, model: Model, audio: Audio, expected: str) -> str:
        """Transcribe audio, whose request is identified by `expected`; raises TryError."""
        request = Request(expected, fields={"audio": Clip(audio), "language": self._language})
        answer = self._asking.ask(model, request)
        if answer.status != "ok":
            detail = Diagnostic("of_recogniser", recogniser=model.info.name, cause=answer.reason or answer.status)
            raise TryError("recognition", Diagnostic("recogniser_error"), detail)
        return answer.text or ""


def plain_text(rule: str, language: str) -> Callable[[str], str]:
    """Return the function that normalises a text by a rule; raises UserError."""
    known = get_rule(rule)
    known.check(language)
    return lambda text: known.compare(reference=[text], estimate=[text], language=[language])[0].reference


TWIN = Diagnostic("same_text")


def twins_of(
    texts: Texts, speech_of: Callable[[str, Text], tuple[Sequence[str], Sequence[str]]], checks: Checks, language: str
) -> dict[str, str]:
    """Map each row that can be spoken to the first row with the same spoken text.

    Args:
        speech_of: gives a row's spoken text, which the rule compares, and its written text; it may raise `Unspeakable`.
        checks: name the rule.
    """
    plain = plain_text(checks.rule, language)
    first: dict[tuple[str, ...], str] = {}
    twins = {}
    for key, text in texts.rows.items():
        with suppress(Unspeakable):
            if isinstance(text, Text):
                spoken, written = speech_of(key, text)
                mark = [plain(line) or line for line in spoken]
                mark += [" ".join(line.split()).casefold() for line in written]
                twins[key] = first.setdefault(tuple(mark), key)
    return twins


class SpeechMaker(ItemMaker):
    """The base of speech makers; they add `steps`, `columns` and abstract methods.

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
        self.parallel = choose_concurrency(model.concurrency for model in models)

    def keys(self) -> Sequence[str]:
        """The keys of the rows: split and position."""
        return list(self.texts.rows)

    def facts(self) -> dict[str, Any]:
        """The facts of the card: sources, voices, and checks."""
        speaking = self.voices.facts() if self.voices else {}
        checks = {**self._read_back.facts(), "quality": self._floors.protocols, "loudness": PROTOCOL}
        return {"sources": [self.texts.facts()], **speaking, **checks}

    def nearness(self, row: Mapping[str, Any]) -> float | None:
        """Error rate as a share of its limit; None if the limit is 0."""
        return (row["error_rate"] or 0.0) / self._checks.error_rate if self._checks.error_rate else None

    def close(self) -> None:
        """Close the models."""
        self._asking.close()

    def make(self, key: str) -> BuildItem:
        """Make the item of a row; unusable and repeated rows are dropped."""
        text = self.texts.rows[key]
        if isinstance(text, str):
            return BuildItem(key, failures=(Failure("row", Diagnostic("row_unusable"), text),))
        if self._drops and (first := self._twins.get(key, key)) != key:
            same = getattr(self.texts.rows[first], "answer", "") == text.answer
            failure = Failure("row", TWIN, first if same else Diagnostic("another_answer", item=first))
            return BuildItem(key, {self.group: text.group} if text.group else {}, (failure,))
        return self.make_text(key, text)

    def same(self, key: str) -> Sequence[str]:
        """Return the first row with the same text."""
        return [f"text {self._twins[key]}"]

    def speech_of(self, key: str, text: Text) -> tuple[Sequence[str], Sequence[str]]:
        """Return the texts of a row that are spoken, and those that are only written.

        Raises:
            Unspeakable: a text cannot be spoken.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define `speech_of`")

    def make_text(self, key: str, text: Text) -> BuildItem:
        """Make the item of a usable row."""
        raise NotImplementedError(f"{type(self).__name__} does not define `make_text`")

    def inspect(self, full: Audio, parts: Sequence[tuple[str, Audio]]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Check the audio of a complete item: quality scores, and read-back error rate.

        Args:
            full: the audio of the item.
            parts: spoken text and audio of each part of it, in order.

        Returns:
            The columns `checked_columns` of the row, and the provenance of the checks.

        Raises:
            TryError: at the step `quality` or `recognition`.
        """
        scores = self._floors.check(full)
        readings = [self._read_back.check(model, parts) for model in self._read_back.models]
        check = self._checks.read_back
        rate = max((one["error_rate"] for one in readings), default=None)
        columns = {"transcripts": [one["transcript"] for one in readings], "error_rate": rate, "check": check, **scores}
        quality = self._floors.as_dict(scores)
        return columns, {"check": check, "recognisers": readings, "quality": quality, "loudness": PROTOCOL}
