"""Steps that read a part of an answer: JSON fields, tags, markers and lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from codec_bench.benchmark.reading.bare_text import bare_text
from codec_bench.benchmark.reading.base import FORMAT_IGNORED, REFUSAL, TRUNCATED, Parsed, Step, Unparsed, quote
from codec_bench.benchmark.reading.refusal import lacks_sound
from codec_bench.messages import Diagnostic
from codec_bench.store.reasoning import cut_reasoning

MOST_OBJECTS = 100
"""How many braces are tried, to limit the time for an answer of braces alone."""

_OBJECT = re.compile(r"\{\s*\"")
# A truncated or differently written object; such an answer is no plain text.
_BROKEN = re.compile(r"[{\[]\s{0,9}[\"'{\[]|\A\s{0,99}(?:```\w{0,9}\s{0,9})?[{\[]\s{0,9}(?:\Z|[}\]])|[\"']\s{0,9}[}\]]")
_TOKEN = re.compile(r"<\|[^|<>\n]{0,200}\|>")
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n]*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]+", re.MULTILINE)
_QUOTED = re.compile(r"^>[ \t]?", re.MULTILINE)
_STRONG = re.compile(r"\*{2,}|(?<!_)_{2,}+(?=[^\W_])|(?<=[^\W_])_{2,}")
# A single mark is removed only if it touches a word on one side: 2*3, 2 * 3 and snake_case stay.
_LIGHT = re.compile(r"(?<![^\W_])[*_`](?=\S)|(?<=\S)[*_`](?![^\W_])")


def json_field(name: str) -> Step:
    """Extract a field of a JSON object in the answer, fenced or among words.

    This builds the step. Numbers and truth values are written as in JSON. An answer without any object is plain text:
    the additions of models are removed (`codec_bench.benchmark.reading.bare_text`), and the score is flagged. So is the
    only text of an object with another field. Unparsed if an object lacks the field, if its value is null, a list or an
    object, if two objects have different values, or if the model declines.
    """
    decoder = json.JSONDecoder(strict=False)  # models write line breaks into strings

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Extract the field's value from an answer."""
        values: list[Any] = []
        others: list[Any] = []
        at = 0
        for _ in range(MOST_OBJECTS):
            start = _OBJECT.search(text, at)
            if start is None:
                break
            try:
                value, at = decoder.raw_decode(text, start.start())
            except (ValueError, RecursionError):
                at = start.start() + 1
                continue
            others += list(value.values()) if name not in value and len(value) == 1 else []
            if name in value:
                values.append(value[name])
        if not values and not _BROKEN.search(text):
            return _plain(text)
        if not values and len(others) == 1 and isinstance(others[0], str):
            return Parsed(others[0], FORMAT_IGNORED)
        if not values:
            return Unparsed(Diagnostic("no_json_field", name=name, answer=quote(text)))
        if any(value != values[0] for value in values):
            return Unparsed(Diagnostic("several_json_values", name=name, answer=quote(text)))
        value = values[0]
        if value is None or isinstance(value, (list, dict)):
            return Unparsed(Diagnostic("json_field_not_text", name=name, answer=quote(text)))
        return Parsed(value if isinstance(value, str) else json.dumps(value))

    return step


def _plain(text: str) -> Parsed | Unparsed:
    """Read an answer without JSON as plain text; its score is flagged."""
    if lacks_sound(text):
        return Unparsed(Diagnostic("declines", answer=quote(text)), REFUSAL)
    bare = bare_text(text)
    return Parsed(bare, FORMAT_IGNORED) if bare else Unparsed(Diagnostic("nothing_said"))


def strip_tags(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """Remove reasoning, `<|...|>` tokens and Markdown marks from an answer.

    Unparsed if the answer ends inside of its reasoning, or if nothing is left.
    """
    cut = cut_reasoning(text)
    if cut.unfinished:
        return Unparsed(Diagnostic("ends_in_reasoning", answer=quote(text)), TRUNCATED)
    rest = cut.text
    for pattern in (_TOKEN, _FENCE, _HEADING, _QUOTED, _STRONG, _LIGHT):
        rest = pattern.sub("", rest)
    rest = rest.strip()
    return Parsed(rest) if rest else Unparsed(Diagnostic("nothing_without_tags", answer=quote(text)))


def first_line(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """Take the first line that is not blank, stripped; unparsed without one."""
    stripped = text.lstrip()
    line = stripped.splitlines()[0].rstrip() if stripped else ""
    return Parsed(line) if line else Unparsed(Diagnostic("nothing_said"))


def after(marker: str) -> Step:
    """Take the text after a marker's last occurrence, in any case.

    This builds the step; an answer without the marker is unparsed.
    """
    pattern = re.compile(re.escape(marker), re.IGNORECASE)

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Take the text after the marker."""
        last = max(pattern.finditer(text), key=re.Match.start, default=None)
        if last is None:
            return Unparsed(Diagnostic("no_marker", marker=marker, answer=quote(text)))
        rest = text[last.end() :].strip()
        return Parsed(rest) if rest else Unparsed(Diagnostic("nothing_after_marker", marker=marker, answer=quote(text)))

    return step


def before(marker: str) -> Step:
    """Take the text before a marker's first occurrence, in any case.

    This builds the step; an answer without the marker stays whole.
    """
    pattern = re.compile(re.escape(marker), re.IGNORECASE)

    def step(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
        """Take the text before the marker."""
        first = pattern.search(text)
        rest = text[: first.start()].strip() if first else text.strip()
        nothing = Unparsed(Diagnostic("nothing_before_marker", marker=marker, answer=quote(text)))
        return Parsed(rest) if rest else nothing

    return step
