"""Prompts for questions, parsers of the replies, and segments of recordings.

Texts from data are fenced by unpredictable marks, so a caption cannot pass for an instruction. A reply that cannot be
parsed raises `TryError` with a reason for the funnel; nothing is guessed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, TypedDict

from codec_bench.apps.building.item import Failure, TryError
from codec_bench.apps.building.recipe import Topics
from codec_bench.benchmark.definition.prompt import render_text
from codec_bench.messages import Diagnostic, of_error
from codec_bench.types import Message, Request, Sample

OTHER = "other"
"""The subject of a question about none of the facts."""


def _unreadable(reason: Diagnostic, detail: str) -> TryError:
    """Build the error of an unreadable reply: a general reason, and the reply."""
    return TryError("writing", reason, " ".join(detail.split())[:200])


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question from a model; `about` is a fact by name, or `other`."""

    question: str
    answer: str
    about: str = OTHER


def ask_for_questions(
    description: str, language: str, each: int, focus: str | None, facts: Mapping[str, str]
) -> Request:
    """Build the request for `each` questions about a description."""
    named = [{"name": name, "is_what": text} for name, text in facts.items()]
    return _request(
        "questions", {"description": description}, language=language, each=each, focus=focus or "", facts=named
    )


def ask_for_options(description: str, question: str, answer: str, count: int, language: str) -> Request:
    """Build the request for `count` wrong options of a question."""
    texts = {"description": description, "question": question, "answer": answer}
    return _request("options", texts, count=count, language=language)


def ask_for_topics(lines: Sequence[str]) -> Request:
    """Build the request for the numbers of the lines at which topics begin."""
    return _request("topics", {"lines": "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))})


def ask_for_check(description: str, question: str, options: Sequence[str], answer: str) -> Request:
    """Build the request that asks a model whether an answer is right.

    Its reply is parsed by `read_yes_no`. `description` holds the known facts of the audio.
    """
    texts = {"description": description, "question": question, "answer": answer}
    if options:
        texts["options"] = "\n".join(options)
    return _request("check", texts, **({} if options else {"options": ""}))


def _request(prompt: str, texts: Mapping[str, str], **values: Any) -> Request:
    """Fill the prompt template `prompt`; texts from data are fenced.

    The fences depend on the texts, so that a text cannot close its own.
    """
    mark = hashlib.blake2b("\0".join(texts.values()).encode(), digest_size=6).hexdigest()
    fenced = {name: f"<{name} {mark}>\n{text}\n</{name} {mark}>" for name, text in texts.items()}
    template = (files(__package__) / "prompts" / f"{prompt}.j2").read_text("utf-8").removesuffix("\n")
    rendered = render_text(template, {**values, **fenced}, "the request to a model")
    return Request("described", (Message("user", (rendered,)),))


def read_candidates(reply: str, each: int, facts: Sequence[str]) -> list[Candidate]:
    """Parse the first `each` questions of a reply; raises TryError if it has fewer.

    Args:
        facts: what a question may be about, besides `other`.
    """
    candidates = []
    for one in _list(reply):
        texts = [one.get(name) if isinstance(one, dict) else None for name in ("question", "answer")]
        about = str(one.get("about", OTHER)) if isinstance(one, dict) else OTHER
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise _unreadable(Diagnostic("reply_without_questions"), reply)
        if about != OTHER and about not in facts:
            raise _unreadable(Diagnostic("unknown_fact"), about)
        question, answer = (" ".join(str(text).split()) for text in texts)
        candidates.append(Candidate(question, answer, about))
    if len(candidates) < each:
        detail = Diagnostic("count_of_expected", count=len(candidates), expected=each)
        raise TryError("writing", Diagnostic("too_few_questions"), detail)
    return candidates[:each]


def read_options(reply: str, right: str, count: int) -> list[str]:
    """Parse the first `count` wrong options of a reply; raises TryError.

    Args:
        right: the right option; all must differ from it, and from each other.
    """
    options = [" ".join(one.split()) for one in _list(reply) if isinstance(one, str) and one.strip()]
    if len(options) < count:
        detail = Diagnostic("count_of_expected", count=len(options), expected=count)
        raise TryError("writing", Diagnostic("too_few_options"), detail)
    options = options[:count]
    if len({text.casefold().strip(" .") for text in (right, *options)}) <= count:
        raise _unreadable(Diagnostic("equal_options"), "; ".join((right, *options)))
    return options


def read_starts(reply: str, count: int) -> list[int]:
    """Parse a model's reply: the numbers of the transcript lines that begin a topic.

    Args:
        reply: contains a JSON list of rising line numbers, the first one 1.
        count: the number of lines of the transcript.

    Raises:
        TryError: the reply is no such list, or not within 1 to `count`.
    """
    starts = _list(reply)
    are_integers = all(isinstance(one, int) and not isinstance(one, bool) for one in starts)
    if not are_integers or starts[:1] != [1] or starts != sorted(set(starts)) or starts[-1] > count:
        raise _unreadable(Diagnostic("lines_not_rising"), reply)
    return starts


def _list(reply: str) -> list[Any]:
    """Parse the JSON list in a reply, possibly inside a code block or sentence."""
    begin, end = reply.find("["), reply.rfind("]")
    try:
        parsed = json.loads(reply[begin : end + 1]) if 0 <= begin < end else None
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, list):
        raise _unreadable(Diagnostic("reply_without_list"), reply)
    return parsed


@dataclass(frozen=True, slots=True)
class Segment:
    """The subject of a question.

    Args:
        number: of the segment, from 1; 0 for a whole recording.
        start_s, end_s: its position; None is the end of the recording.
        text: the segment's transcript; empty for a whole recording.
        problem: why it has no question; None if it has.
    """

    sample: Sample
    number: int = 0
    start_s: float = 0.0
    end_s: float | None = None
    text: str = ""
    problem: Failure | None = None

    @property
    def key(self) -> str:
        """The id of the recording, with the number of the segment."""
        name = self.sample.id.replace("/", "-")
        return f"{name}-s{self.number:02d}" if self.number else name


def cut(sample: Sample, topics: Topics, ask: Callable[[Request], str]) -> list[Segment]:
    """Split a recording into segments by topic, from its transcript lines with times.

    A recording that cannot be split is one segment with a `problem`.

    Args:
        topics: the recipe's rules: the column of lines, and the least and the greatest length.
        ask: sends a request to a model and returns its reply.
    """
    try:
        lines = _lines(sample.extra.get(topics.lines))
        texts = [line["text"] for line in lines]
        starts = (
            list(range(1, len(lines) + 1)) if topics.by is None else read_starts(ask(ask_for_topics(texts)), len(lines))
        )
    except TryError as dropped:
        return [Segment(sample, problem=replace(dropped.failure, step="topics"))]
    segments = []
    for number, (first, last) in enumerate(zip(starts, [*(one - 1 for one in starts[1:]), len(lines)]), 1):
        begin, end = lines[first - 1]["start_s"], lines[last - 1]["end_s"]
        text = " ".join(line["text"] for line in lines[first - 1 : last])
        segments.append(Segment(sample, number, begin, end, text, _length_problem(end - begin, topics)))
    return segments


def _length_problem(seconds: float, topics: Topics) -> Failure | None:
    if seconds < topics.least_s:
        return Failure("topics", Diagnostic("segment_too_short"), f"{seconds:.1f} s")
    return Failure("topics", Diagnostic("segment_too_long"), f"{seconds:.1f} s") if seconds > topics.most_s else None


class _TimedLine(TypedDict):
    """A transcript line with its times."""

    start_s: float
    end_s: float
    text: str


def _lines(value: Any) -> Sequence[_TimedLine]:
    """Parse a transcript's lines with times, a list or its JSON; raises TryError."""
    try:
        lines = json.loads(value) if isinstance(value, str) else value
        candidates: list[_TimedLine] = [
            {"start_s": float(line["start_s"]), "end_s": float(line["end_s"]), "text": str(line["text"])}
            for line in lines or ()
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise TryError("topics", Diagnostic("lines_unreadable"), of_error(error)) from error
    times = [time for line in candidates for time in (line["start_s"], line["end_s"])]
    if not candidates or times != sorted(times) or times[0] < 0:
        raise TryError("topics", Diagnostic("lines_out_of_order"))
    return candidates
