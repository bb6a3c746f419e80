"""Prompts in YAML and Jinja: one is selected for a model and filled.

A template may insert values, choose between texts and loop without nesting. It can neither call nor define a function.
The length of a rendered text is limited. Values are never rendered as templates. Selection, first match: the
benchmark's prompt for the model, for the model's family, the prompt's variant for the model, for the family, the prompt
itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.finding import fit_lines
from codec_bench.benchmark.definition.schema import ContentPart, PromptSpec, Template, Turn
from codec_bench.config import load_yaml_with_lines
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.models.base import ModelInfo
from codec_bench.types import Message, Request, Wants

LIMIT = 200_000
"""The highest number of characters in one part of a prompt."""

SEEDED, FIRST, EACH = "seeded", "first", "each"
"""The wording of a question: by the run's seed and its id, the first, or each."""

_FILTERS = ("default", "first", "join", "last", "length", "lower", "tojson", "trim", "upper")
_NODES = frozenset(
    "Template Output TemplateData Name Const List Tuple For If Getattr Getitem Filter Test Compare Operand And Or Not "
    "CondExpr Add Sub Concat".split()
)


def check_wording(wording: str) -> None:
    """Check the setting of a prompt's wording.

    Raises:
        UserError: it is neither a known word nor a number from 1.
    """
    if wording not in (SEEDED, FIRST, EACH) and not (wording.isdecimal() and int(wording) >= 1):
        raise UserError(
            "wording_form",
            wording=wording,
            seeded=SEEDED,
            first=FIRST,
            each=EACH,
            hint="--prompts 3 asks every question in the third wording",
        )


def canonical(name: str) -> str:
    """Normalise a name for look-ups: lower case, hyphens for underscores and spaces."""
    return name.strip().lower().replace("_", "-").replace(" ", "-")


def prompt_names() -> list[str]:
    """The project's prompts; those of a published study are named `STUDY/NAME`."""
    names, folder = [], files("codec_bench") / "benchmarks" / "prompts"
    for entry in folder.iterdir():
        inside = [f"{entry.name}/{file.name}" for file in entry.iterdir()] if entry.is_dir() else [entry.name]
        names += [name.removesuffix(".yaml") for name in inside if name.endswith(".yaml")]
    return sorted(names)


@cache
def load_prompt(name: str) -> PromptSpec:
    """Read a prompt by name.

    Raises:
        UnknownName: there is no such prompt.
        UserError: a field of its file is unknown, missing or wrong; the message names the file and the line.
    """
    if name not in prompt_names():
        raise UnknownName("prompt", name, prompt_names())
    file = files("codec_bench") / "benchmarks" / "prompts" / f"{name}.yaml"
    document, lines = load_yaml_with_lines(file)
    return fit_lines(document if isinstance(document, dict) else {}, PromptSpec, str(file), lines)


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A prompt for one model.

    Args:
        name: name of the prompt, with `/VARIANT` for a variant.
        template: the messages and fields to fill.
        reads: what the model reads, `messages` or `fields`.
        wants, parameters: put into every request.
        wording: the wording of a question: `seeded` (by seed and id of the question), `first`, `each` (another one for
            every draw of a question), or a number from 1.

    Raises:
        UserError: the prompt has nothing that this model reads, one of its texts is not a template, or it has no such
            wording.
    """

    name: str
    template: Template
    reads: str
    wants: Wants = "text"
    parameters: Mapping[str, Any] | None = None
    wording: str = SEEDED
    seed: int = 0

    def __post_init__(self) -> None:
        if not getattr(self.template, self.reads):
            other = "fields" if self.reads == "messages" else "messages"
            raise UserError(
                "prompt_lacks_part",
                name=self.name,
                reads=self.reads,
                hint=f"the prompt is for models that read {other}",
            )
        for content_part in self.parts():
            for text in content_part.texts:
                _compiled(text)
        check_wording(self.wording)
        if self.wording.isdecimal() and int(self.wording) > max(1, self.wordings):
            hint = (
                f"give a number up to {self.wordings}" if self.wordings else "it has one wording; leave out --prompts"
            )
            raise UserError("no_wording", name=self.name, wording=self.wording, hint=hint)

    @property
    def wordings(self) -> int:
        """How many wordings a question has; 0 if there is one way to ask."""
        return len(self.template.wordings) if self.reads == "messages" else 0

    def wording_of(self, question: Question) -> int | None:
        """The number, from 1, of the wording that a question gets; None without wordings."""
        if not self.wordings:
            return None
        if self.wording == EACH:
            return question.draw + 1
        if self.wording != SEEDED:
            return 1 if self.wording == FIRST else int(self.wording)
        key = f"{self.seed}:{question.draw_of or question.id}:wording"
        return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") % self.wordings + 1

    @property
    def process(self) -> tuple[str, ...]:
        """Steps that undo the prompt's format; none for fields, which have no format."""
        return tuple(self.template.answer) if self.reads == "messages" else ()

    @property
    def identity(self) -> dict[str, Any]:
        """Everything of the prompt that changes an answer, as JSON values."""
        held = {"name": self.name, self.reads: self.template.model_dump(exclude_none=True)[self.reads]}
        held |= {"rounds": self.template.rounds} if self.template.rounds is not None else {}
        return {**held, "wording": self.wording} if self.wordings else held

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the prompt reads."""
        return frozenset(name for content_part in self.parts() for name in part_reads(content_part))

    @property
    def required_columns(self) -> frozenset[str]:
        """The columns that every question must have: those of the mandatory parts."""
        return frozenset(name for one in self.parts() for name in part_reads(one) - {one.when})

    def render(self, question: Question) -> Request:
        """Render the request of a question; further rounds follow empty assistant turns.

        Raises:
            UserError: the question lacks a column, or a rendered text is longer than `LIMIT`.
        """
        values = question_values(question)
        if self.reads == "fields":
            parts = {name: one for name, one in (self.template.fields or {}).items() if _present(one, question)}
            filled = {name: self._fill(one, question, values)[0] for name, one in parts.items()}
            return Request(question.id, (), filled, self.wants, dict(self.parameters or {}))
        *above, last = self.template.messages or []
        turns = [self._turn(turn, question, values) for turn in above]
        messages = [turn for turn in turns if turn.content]  # a conversation may be shorter than the prompt
        for at, one in enumerate(self._rounds(question)):
            messages += [Message("assistant", ())] if at else []
            messages += [turn] if (turn := self._turn(last, one, values)).content else []
        return Request(question.id, tuple(messages), {}, self.wants, dict(self.parameters or {}))

    def _rounds(self, question: Question) -> Iterator[Question]:
        """Yield the question once per round, each with only that round's audio."""
        name = self.template.rounds
        held = question.fields.get(name) if name is not None else None
        if name is None or not isinstance(held, list):
            yield question
            return
        for sound in held:
            yield replace(question, fields={**question.fields, name: sound}, audio=sound)

    def _turn(self, turn: Turn, question: Question, values: Mapping[str, Any]) -> Message:
        filled = (self._fill(one, question, values) for one in turn.content if _present(one, question))
        return Message(turn.role, tuple(chain.from_iterable(filled)))

    def parts(self, *, last: bool = False) -> Iterator[ContentPart]:
        """The texts and sounds of the prompt, or of its last turn; fields are one turn."""
        if self.reads == "fields":
            yield from (self.template.fields or {}).values()
            return
        for turn in (self.template.messages or ())[-1 if last else 0 :]:
            yield from turn.content

    def _fill(self, content_part: ContentPart, question: Question, values: Mapping[str, Any]) -> tuple[str | Clip, ...]:
        """Render a part of the prompt: one text, or the audio clips of a column."""
        if content_part.audio is None:
            text = content_part.texts[(self.wording_of(question) or 1) - 1 if content_part.wordings is not None else 0]
            return (render_text(text, values, f"the prompt '{self.name}' for '{question.id}'"),)
        held = question.fields.get(content_part.audio)
        if content_part.audio == "audio" and not isinstance(held, list):
            held = question.audio
        clips = tuple(held) if isinstance(held, list) else (held,)
        if not clips or not all(isinstance(clip, Clip) for clip in clips):
            raise UserError("prompt_needs_sound", name=self.name, sound=content_part.audio, id=question.id)
        return clips


def choose(
    prompt: str | Template,
    others: Mapping[str, str | Template],
    info: ModelInfo,
    *,
    wants: Wants = "text",
    parameters: Mapping[str, Any] | None = None,
    wording: str = SEEDED,
    seed: int = 0,
) -> Prompt:
    """Select the prompt for a model, or the variant for its name or family.

    Args:
        prompt: the benchmark's prompt, as a name or a template.
        others: the benchmark's prompts for single models or families, by their names; they precede `prompt`.
        wants, parameters: put into every request.
        wording, seed: as in `Prompt`.

    Raises:
        UnknownName: there is no prompt of that name.
        UserError: the prompt has nothing that this model reads, or no such wording.
    """
    rest = (wants, parameters, wording, seed)
    keys = [canonical(key) for key in (info.name, info.family) if key]
    by_name = {canonical(key): value for key, value in others.items()}
    picked = next((by_name[key] for key in keys if key in by_name), prompt)
    if not isinstance(picked, str):
        return Prompt("inline", picked, info.reads, *rest)
    spec = load_prompt(picked)
    variants = {canonical(key): (key, value) for key, value in spec.variants.items()}
    key, template = next((variants[key] for key in keys if key in variants), (None, spec))
    if not getattr(template, info.reads):
        key, template = None, spec  # a variant for messages says nothing about fields, nor the other way round
    return Prompt(picked if key is None else f"{picked}/{key}", template, info.reads, *rest)


def question_values(question: Question) -> dict[str, Any]:
    """Values for a template: the question's columns without sounds, and `language`."""
    values = {name: value for name, value in question.fields.items() if not _sounding(value)}
    if question.language is not None:
        values.setdefault("language", question.language)
    return values


def _sounding(value: Any) -> bool:
    return isinstance(value, Clip) or (isinstance(value, list) and any(isinstance(one, Clip) for one in value))


def render_text(template: str, values: Mapping[str, Any], subject: str) -> str:
    """Render one Jinja template.

    Raises:
        UserError: a name in the template has no value, or the result is longer than `LIMIT`; the message begins with
            `subject`.
    """
    from jinja2 import TemplateError

    pieces, length = [], 0
    try:
        for chunk in _compiled(template).generate(values):
            length += len(chunk)
            if length > LIMIT:
                raise UserError("prompt_too_long", subject=subject, most=LIMIT)
            pieces.append(chunk)
    except (TemplateError, TypeError, ValueError) as error:
        hint = f"known names: {', '.join(sorted(values))}"
        raise UserError("prompt_not_rendered", subject=subject, cause=error, hint=hint) from error
    return "".join(pieces).strip()


@cache
def variables(template: str) -> frozenset[str]:
    """The names that a template reads.

    Raises:
        UserError: the text is not a template, or uses a part of Jinja that prompts may not use.
    """
    from jinja2 import meta

    return frozenset(meta.find_undeclared_variables(_parsed(template)))


def part_reads(content_part: ContentPart) -> set[str]:
    """The names of the columns that a part reads.

    Raises:
        UserError: as `variables`.
    """
    if content_part.audio is not None:
        return {content_part.audio}
    return {name for text in content_part.texts for name in variables(text)}


def _present(content_part: ContentPart, question: Question) -> bool:
    if content_part.when is None:
        return True
    value = question.fields.get(content_part.when)
    return value is not None and value != "" and value != []


@cache
def _environment() -> Any:
    """Create the sandboxed Jinja environment with the allowed filters."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def finalize(value: Any) -> Any:
        if value is None:
            raise ValueError("a column that it inserts is null")
        return value

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, finalize=finalize)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in _FILTERS}
    # Jinja's own `tojson` escapes characters for web pages.
    environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
    environment.filters["join"] = _joined
    return environment


def _joined(value: Any, between: str = "") -> str:
    """Join a list of texts; Jinja's own filter would join the letters of a text."""
    if isinstance(value, str):
        raise ValueError(f"'join' got the text {value[:80]!r}; expected a list")
    return between.join(map(str, value))


def _parsed(template: str) -> Any:
    """Parse a template; raise UserError for forbidden syntax."""
    from jinja2 import TemplateSyntaxError, nodes

    try:
        tree = _environment().parse(template)
    except TemplateSyntaxError as error:
        raise UserError("not_a_template", template=_short(template), cause=error.message) from error
    except (RecursionError, ValueError) as error:  # too deep, or a number of thousands of digits
        raise UserError("not_a_template", template=_short(template), cause=error) from error
    for node in tree.find_all(nodes.Node):
        kind = type(node).__name__
        if kind not in _NODES:
            raise UserError("template_forbidden", template=_short(template), kind=kind)
        if kind == "For" and next(iter(node.find_all(nodes.For)), None) is not None:
            raise UserError("template_loop_in_loop", template=_short(template))
        if kind == "Filter" and node.name not in _FILTERS:
            raise UserError("no_filter", name=node.name, hint=f"known filters: {', '.join(_FILTERS)}")
    return tree


@cache
def _compiled(template: str) -> Any:
    _parsed(template)
    return _environment().from_string(template)


def _short(template: str) -> str:
    return template if len(template) < 60 else template[:57] + "..."
