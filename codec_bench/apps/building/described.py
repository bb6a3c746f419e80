"""The maker of questions from descriptions, checked by rule or judge."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.building.asking import ModelCalls
from codec_bench.apps.building.candidates import (
    Candidate,
    Segment,
    ask_for_check,
    ask_for_options,
    ask_for_questions,
    cut,
    read_candidates,
    read_options,
)
from codec_bench.apps.building.item import (
    BuildItem,
    ItemMaker,
    TryError,
    choose_concurrency,
    make_rng,
    try_item,
    with_audio,
)
from codec_bench.apps.building.recipe import Classes, DescribedRecipe, Fact
from codec_bench.apps.building.sources import LETTERS, read_recordings
from codec_bench.audio.clip import Clip, SharedSounds
from codec_bench.audio.hash import content_hash
from codec_bench.benchmark.definition.prompt import render_text, variables
from codec_bench.benchmark.definition.schema import Strict
from codec_bench.benchmark.judge.replies import read_yes_no
from codec_bench.config import read_config
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.models.cache import ResponseCache
from codec_bench.types import Audio, Request, Sample


class Wordings(Strict):
    """Wordings of a question, `configs/wording/NAME.yaml`; they may name columns."""

    version: int
    summary: str
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question before its check."""

    question: str
    answer: str
    about: str
    choices: tuple[str, ...] = ()


class Described(ItemMaker):
    """Makes the questions of a recipe, whose paths are relative to `folder`.

    Raises:
        UserError: a source cannot be read, a template is wrong, a column is missing, or a model cannot be started.
    """

    steps = ("topics", "reading", "description", "writing", "rule", "judge", "duplicate", "review")
    columns: Mapping[str, str] = {
        "question": "text", "choices": "texts", "answer": "text", "answer_text": "text", "about": "text",
        "group": "text", "description": "text",
        "checked": "text", "review": "text", "recording": "text", "licence": "text", "start_s": "number",
        "duration_s": "number", "provenance": "text",
    }  # fmt: skip

    def __init__(self, recipe: DescribedRecipe, folder: Path) -> None:
        self.recipe = recipe
        self.recordings = read_recordings(recipe.source, folder)
        self._wordings = () if recipe.classes is None else wordings_of(recipe.classes)
        self._check_columns()
        self._values = {name: self._values_of(fact.column) for name, fact in recipe.facts.items()}
        self._classes = [] if recipe.classes is None else self._class_names(recipe.classes)
        self._shared = SharedSounds()
        self._asking = ModelCalls(ResponseCache.of_user())
        try:
            topics = recipe.topics.by if recipe.topics else None
            used = {"writer": recipe.writer, "judge": recipe.judge, "topics": topics}
            self._models = {name: self._asking.load(one, folder) for name, one in used.items() if one is not None}
            self.parallel = choose_concurrency(model.concurrency for model in self._models.values())
            self._segments = self._cut()
        except BaseException:
            self._asking.close()
            raise

    def _check_columns(self) -> None:
        """Raise a UserError if the recipe names a column that no recording has."""
        recipe = self.recipe
        named = {*variables(recipe.description), *(name for text in self._wordings for name in variables(text))}
        named |= {one for fact in recipe.facts.values() for one in (fact.column, fact.measure) if one}
        named |= {recipe.group} if recipe.group else set()
        named |= {recipe.classes.column} if recipe.classes else set()
        named |= {recipe.topics.lines} if recipe.topics else set()
        known = {"segment", *(name for sample in self.recordings.samples for name in values_of(sample))}
        if missing := sorted(named - known):
            raise UserError(
                "recordings_lack_columns",
                data=recipe.source.data,
                columns=", ".join(missing),
                hint=f"they have {', '.join(sorted(known - {'segment'}))}",
            )

    def _values_of(self, column: str) -> set[str]:
        held = (values_of(sample).get(column) for sample in self.recordings.samples)
        return {str(value) for value in held if value is not None}

    def _class_names(self, classes: Classes) -> list[str]:
        """List the sorted class names; raises UserError if they do not fit the options."""
        class_names = sorted(set(classes.names.values()) or self._values_of(classes.column))
        if classes.others != "written" and len(class_names) < 2:
            raise UserError("one_class_only", column=classes.column, class_name="".join(class_names))
        if classes.others == "all" and len(class_names) > classes.options:
            raise UserError(
                "too_few_classes",
                column=classes.column,
                classes=len(class_names),
                options=classes.options,
                hint="take more options, or others: random",
            )
        return class_names

    def _cut(self) -> dict[str, tuple[Segment, int]]:
        """Split the recordings, and map each item's key to (segment, question's number)."""
        topics, each = self.recipe.topics, self.recipe.written.each if self.recipe.written else 1
        if topics is None:
            segments = [Segment(sample) for sample in self.recordings.samples]
        else:
            with ThreadPoolExecutor(self.parallel) as pool:
                ask = partial(self._ask_model, "topics")
                held = pool.map(lambda sample: cut(sample, topics, ask), self.recordings.samples)
                segments = list(chain.from_iterable(held))
        keys = [(f"{one.key}-q{n + 1}" if each > 1 else one.key, one, n) for one in segments for n in range(each)]
        return {key: (segment, number) for key, segment, number in keys[: self.recipe.limit]}

    def keys(self) -> Sequence[str]:
        """The recordings' ids, with numbers of segment and question if several."""
        return list(self._segments)

    def facts(self) -> Mapping[str, Any]:
        """The recordings, a hash of their metadata, and the models."""
        known = []
        for key, (segment, _) in self._segments.items():
            values = {name: str(value) for name, value in values_of(segment.sample).items()}
            known.append([key, segment.start_s, segment.end_s, segment.text, values])
        written = json.dumps(known, sort_keys=True, ensure_ascii=False)
        return {
            "sources": [self.recordings.facts()],
            "descriptions": hashlib.blake2b(written.encode(), digest_size=20).hexdigest(),
            "models": {name: dict(model.identity) for name, model in self._models.items()},
        }

    def close(self) -> None:
        """Close the models."""
        self._asking.close()

    def make(self, key: str) -> BuildItem:
        """Make one question, with as many tries as the recipe allows."""
        segment, number = self._segments[key]
        values = {**values_of(segment.sample), "segment": segment.text}
        group = self.recipe.group
        groups = {"group": str(values.get(group) or "none")} if group else {}

        def attempt(turn: int) -> tuple[dict[str, Any], Audio]:
            """Make row and audio at try `turn`; raises TryError."""
            if segment.problem:
                problem = segment.problem
                raise TryError(problem.step, problem.reason, problem.detail, last=True)
            audio = self._read_audio(segment)
            with with_audio(audio):
                row = self._try(key, segment, number, values, turn)
            groups["about"] = row["about"]
            provenance = {"key": key, "seed": self.recipe.seed, "try": turn, "recording": segment.sample.id,
                "start_s": segment.start_s,
                    "sound": content_hash(audio.samples, audio.sample_rate_hz)}  # fmt: skip
            row |= {
                "group": groups.get("group"),
                "duration_s": round(audio.duration_s, 6),
                "provenance": json.dumps(provenance, sort_keys=True, ensure_ascii=False),
            }
            return row, audio

        return try_item(key, groups, self.recipe.retries + 1, attempt)

    def _read_audio(self, segment: Segment) -> Audio:
        """Read the audio of a segment; raises TryError if it is unreadable or empty."""
        sample = segment.sample
        try:
            audio = self._shared.share(Clip(str(sample.audio)), sample.audio).read()
        except AudioError as error:
            raise TryError("reading", Diagnostic("recording_unreadable"), error.message, last=True) from error
        rate = audio.sample_rate_hz
        end = audio.num_samples if segment.end_s is None else min(audio.num_samples, round(segment.end_s * rate))
        excerpt = audio.samples[:, round(segment.start_s * rate) : end]
        if not excerpt.size:
            raise TryError("reading", Diagnostic("segment_beyond_end"), segment.key, last=True)
        return Audio(excerpt, rate)

    def _try(self, key: str, segment: Segment, number: int, values: Mapping[str, Any], turn: int) -> dict[str, Any]:
        """Make and check one question: the row of the data set; raises TryError.

        Args:
            number: of the question about the segment.
            values: the recording's columns.
            turn: number of the try.
        """
        try:
            description = render_text(self.recipe.description, values, "the description")
        except UserError as error:
            raise TryError("description", Diagnostic("description_without_value"), error.message, last=True) from error
        if not description:
            raise TryError("description", Diagnostic("nothing_known"), last=True)
        random = make_rng(self.recipe.seed, key, turn)
        if self.recipe.classes is not None:
            question = self._of_class(self.recipe.classes, description, values, random, turn)
        else:
            question = self._write_question(segment, description, number, turn)
        choices = [question.choices[int(index)] for index in random.permutation(len(question.choices))]
        letter = LETTERS[choices.index(question.answer)] if choices else question.answer
        return {
            "question": question.question,
            "choices": choices or None,
            "answer": letter,
            "answer_text": question.answer,
            "about": question.about,
            "description": description,
            "checked": self._check_answer(question, description, values, turn),
            "review": "none",
            "recording": segment.sample.id,
            "licence": self.recordings.licences[segment.sample.id],
            "start_s": segment.start_s,
        }

    def _of_class(
        self, classes: Classes, description: str, values: Mapping[str, Any], random: np.random.Generator, turn: int
    ) -> _Question:
        """Build the question for the class of a recording, with other classes as options.

        Args:
            values: the recording's columns.
            turn: number of the try.

        Raises:
            TryError: the class is unknown, or a wording lacks a value.
        """
        held = values.get(classes.column)
        right = None if held is None else classes.names.get(str(held)) if classes.names else str(held)
        if not right:
            raise TryError("description", Diagnostic("none_of_the_classes"), str(held), last=True)
        wording = self._wordings[int(random.integers(len(self._wordings)))]
        try:
            question = render_text(wording, values, "a wording of the question")
        except UserError as error:
            raise TryError("description", Diagnostic("question_without_value"), error.message, last=True) from error
        others = [name for name in self._classes if name != right]
        if classes.others == "random":
            picked = random.permutation(len(others))[: classes.options - 1]
            others = [others[int(index)] for index in picked]
        elif classes.others == "written":
            count = classes.options - 1
            request = ask_for_options(description, question, right, count, self.recipe.language)
            others = read_options(self._ask_model("writer", request, turn), right, count)
        return _Question(question, right, classes.column, (right, *others))

    def _write_question(self, segment: Segment, description: str, number: int, turn: int) -> _Question:
        """Return question `number` of those that a model wrote about a segment at a try."""
        written, facts = self.recipe.written, self.recipe.facts
        assert written is not None, "a recipe has classes or written questions"
        descriptions = {name: fact.is_what for name, fact in facts.items()}
        request = ask_for_questions(description, self.recipe.language, written.each, written.focus, descriptions)

        def questions() -> list[Candidate]:
            return read_candidates(self._ask_model("writer", request, turn), written.each, list(facts))

        # One reply holds all questions about a segment, to make them differ.
        text = self._shared.once(("questions", segment.key, turn), questions)[number]
        return _Question(text.question, text.answer, text.about)

    def _check_answer(self, question: _Question, description: str, values: Mapping[str, Any], turn: int) -> str:
        """Check a question's answer by measured values, otherwise by the judge model.

        Returns:
            `rule`, `judge`, or `none` if the recipe has no judge.

        Raises:
            TryError: the answer is wrong.
        """
        if question.about in self.recipe.facts:
            self._follow_rule(question, self.recipe.facts[question.about], values)
            return "rule"
        if self.recipe.judge is None:
            return "none"
        request = ask_for_check(description, question.question, question.choices, question.answer)
        verdict = read_yes_no(self._ask_model("judge", request, turn, "judge"))
        if verdict.reason is not None:
            raise TryError("judge", Diagnostic("judge_undecided"), verdict.reason)
        if not verdict.values["score"]:
            raise TryError("judge", Diagnostic("judge_rejects"), f"{question.question} {question.answer}")
        return "judge"

    def _follow_rule(self, question: _Question, fact: Fact, values: Mapping[str, Any]) -> None:
        """Raise TryError unless the answer names the measured value, and no other."""
        if fact.measure is not None and abs(_number(values.get(fact.measure))) < fact.least:
            raise TryError("rule", Diagnostic("difference_too_small"), question.question)
        right = str(values.get(fact.column))
        named = {value for value in self._values[question.about] if _names(question.answer, value)}
        if named != {right}:
            detail = Diagnostic("measured_and_named", measured=right, named=sorted(named))
            raise TryError("rule", Diagnostic("answer_without_measured"), detail)

    def _ask_model(self, name: str, request: Request, draw: int = 0, step: str = "writing") -> str:
        """Return a model's reply to a request; raises TryError for an error.

        Args:
            name: the model's role: `writer`, `judge` or `topics`.
            draw: number of the repetition; another number gets another reply.
            step: of the build, which counts the error.
        """
        answer = self._asking.ask(self._models[name], request, draw=draw)
        if answer.status != "ok" or not answer.text:
            raise TryError(step, Diagnostic("model_without_answer", role=name), answer.reason or answer.status)
        return answer.text


def wordings_of(classes: Classes) -> tuple[str, ...]:
    """Return the question templates of a recipe; raises UserError for a bad one."""
    named = classes.wordings
    wordings = read_config("wording", named, Wordings).wordings if isinstance(named, str) else named
    for wording in wordings:
        variables(wording)
    return wordings


def values_of(sample: Sample) -> dict[str, Any]:
    """Return a recording's metadata by the names of templates."""
    named = {"id": sample.id, "text": sample.text, "speaker": sample.speaker, "language": sample.language}
    return {**sample.extra, **{name: value for name, value in named.items() if value is not None}}


def _names(text: str, value: str) -> bool:
    """Whether a text names a value as whole words, also without its article."""
    words = re.sub(r"^(the|a|an)\s+", "", value.strip().casefold())
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text.casefold()) is not None


def _number(value: Any) -> float:
    """Convert to a number; 0 for others, which excludes unknown differences."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0
