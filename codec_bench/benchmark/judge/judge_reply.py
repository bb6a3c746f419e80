"""A judge's own words: its reply without quotations and repeated answers."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

_FLAT_OBJECT = re.compile(r"^[ \t]{0,8}(\{[^{}]{0,4000}\})[ \t]*$", re.MULTILINE)
_QUOTES = re.compile(
    r"```.{0,20000}?(?:```|\Z)|^[ \t]{0,8}>[^\n]*|\"[^\"\n]{1,2000}\"|`[^`\n]{1,2000}`"
    r"|“[^“”\n]{1,2000}”|‘[^‘’\n]{1,2000}’|「[^「」\n]{1,2000}」",
    re.DOTALL | re.MULTILINE,
)
NUMBER = r"(-?\d{1,6}(?:\.\d{1,6})?)(?![.,_]?\d|[A-Za-z_])"
_OUT_OF = r"(?:\s?/\s?(?P<below>\d{1,4})|\s+out\s+of\s+(?P<of>\d{1,4}))?"
# `Rating: 3-4` and `Rating: 3 or 4` leave the rating open, as does `Rating: 3/`, whose end was cut.
_NO_RANGE = r"(?!\s?/|\s+out\b)(?![-\u2013\u2014~]\d|\s(?:[-\u2013\u2014~]|to|or)\s\d|\s?[至到或]\s?\d)"
BRACKETED = re.compile(rf"\[\[\s?{NUMBER}\s?{_OUT_OF}\s?\]\]")
LABELLED = re.compile(
    rf"(?:(?:rating|score|评分|得分|分数)[\s*_]{{0,4}}(?:[:=]|is)|\[RESULT\])[\s*_(\[]{{0,6}}{NUMBER}{_OUT_OF}{_NO_RANGE}",
    re.IGNORECASE,
)
FULL_REPLY = re.compile(rf"[\s*_(\[]{{0,6}}{NUMBER}{_OUT_OF}[\s*_)\].]{{0,6}}")
_OBJECT = re.compile(r"\{[^{}]{0,4000}\}")
_IMITATES = re.compile(r"\d|yes|no|是|否", re.IGNORECASE)
_ONE_WORD = re.compile(r"[-\w.]+[!。]?")
_MARKS = " \t\r*_`"
ECHO = "…"
"""Replaces a removed part of the reply. NFKC text never has this character, so no verdict spans a gap."""
SHORT = 5
"""A shorter answer, such as `5` or `Yes`, is more likely honest than an imitation of a verdict."""
PHRASE = 8
"""A line of at least this many characters that the answer contains is a repetition."""


class JudgeReply:
    """The parts of a judge's reply that do not repeat the judged answer.

    Attributes:
        judge_text: the reply without quotations, with `ECHO` in place of repetitions of the answer.
        short: whether the answer has fewer than `SHORT` characters.
    """

    def __init__(self, reply: str, answer: str) -> None:
        answer = answer.strip()
        self.short = len(answer) < SHORT
        is_echo = _squeezed(reply) in _squeezed(answer) and not _ONE_WORD.fullmatch(reply.strip())
        self._rest = "" if is_echo and not self.short else _without_answer(reply, answer)
        self._reply, self._answer = unicodedata.normalize("NFKC", reply), unicodedata.normalize("NFKC", answer)
        self._here, self._there = _pieces(self._reply), _pieces(self._answer)
        text = unicodedata.normalize("NFKC", self._rest)
        bare = _QUOTES.sub(" ", unfenced(text))
        judge_text = bare if bare.strip() else text
        for pattern in (_OBJECT, BRACKETED, LABELLED):
            judge_text = self._without_echoes(pattern, judge_text)
        self.judge_text = judge_text

    def objects(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        """The JSON objects in the reply that may hold the verdict.

        The reply as one object; else flat objects on separate lines that have one of `keys`.
        """
        text = unfenced(self._rest)
        document = _parse_object(text)
        if document is not None:
            if _OBJECT.fullmatch(text):
                return [] if self._echoed(_object_key(text), True) else [document]
            return [] if _squeezed(text) in _squeezed(self._answer) else [document]
        end = len(self._rest.rstrip(_MARKS + "\n"))
        judge_objects = [
            _parse_object(match[1])
            for match in _FLAT_OBJECT.finditer(self._rest)
            if not self._echoed(_object_key(match[1]), match.end(1) >= end)
        ]
        return [one for one in judge_objects if one is not None and any(key in one for key in keys)]

    def reasoning(self) -> list[str]:
        """The reply's texts outside of JSON objects, or in the object that is the reply."""
        document = _parse_object(unfenced(self._rest))
        if document is None:
            return [_OBJECT.sub(" ", self.judge_text)]
        return [
            JudgeReply(text, self._answer).judge_text
            for text in document.values()
            if isinstance(text, str) and " " in text
        ]

    def ends(self) -> list[str]:
        """The first and last line of the reply without lines that the answer has too."""
        judge_text = next(self.lines_without_echoes()).replace(ECHO, " ")
        lines = [line.strip() for line in judge_text.splitlines() if line.strip()]
        return lines[:1] + lines[1:][-1:]

    def lines_without_echoes(self) -> Iterator[str]:
        """Yield the reply without the lines that the answer has too.

        For a short answer, or a reply of one bare word, a second text follows that always has the first line: a judge
        that replies with the number alone does so whatever the answer says.
        """
        lines = [line for line in self.judge_text.splitlines() if line.strip()]
        judge_lines = [line for at, line in enumerate(lines) if not self._echoed_line(line, at == len(lines) - 1)]
        yield "\n".join(judge_lines)
        bare = len(lines) == 1 and _ONE_WORD.fullmatch(lines[0].strip(_MARKS)) is not None
        if (self.short or bare) and lines and judge_lines[:1] != lines[:1]:
            yield "\n".join([lines[0], *judge_lines])

    def is_phrase_of_answer(self, line: str) -> bool:
        """Whether a line, or its beginning, is a phrase of the answer, ignoring case."""
        phrase = _line(line).casefold()
        return len(phrase) >= PHRASE and phrase in " ".join(self._answer.casefold().split())

    def repeats_numbers(self, line: str) -> bool:
        """Whether a line of numbers is quoted from the answer.

        Not if the reply ends with it and has it more often than the answer.
        """
        words = " ".join(line.split())
        pattern = re.compile(rf"(?<![\d.]){re.escape(words)}(?![.,]?\d)")
        reply, answer = " ".join(self._reply.split()), " ".join(self._answer.split())
        there = len(pattern.findall(answer))
        return there > 0 and not (reply.endswith(words) and len(pattern.findall(reply)) > there)

    def _echoed(self, key: Hashable, last: bool) -> bool:
        return key in self._there and not (last and self._here[key] > self._there[key])

    def _echoed_line(self, line: str, last: bool) -> bool:
        # Verdicts with a label or brackets were examined before, anywhere in a line.
        if BRACKETED.search(line) or LABELLED.search(line):
            return False
        return self._echoed(_line(line), last)

    def _without_echoes(self, pattern: re.Pattern[str], text: str) -> str:
        """Replace verdicts that the judge copied from the answer by `ECHO`."""
        start = text.rstrip().rfind("\n") + 1
        # A repeated verdict counts only as a separate last line: `[[5]] is a trick` does not.
        lone = pattern.fullmatch(text[start:].strip(_MARKS + "\n.#")) is not None

        def keep_line(match: re.Match[str]) -> str:
            echoed = self._echoed(_key(pattern, match), lone and match.start() >= start)
            return ECHO if echoed else match[0]

        return pattern.sub(keep_line, text)


def _pieces(text: str) -> Counter[Hashable]:
    """Count a text's lines, and its parts that look like a verdict; NFKC is expected."""
    counts: Counter[Hashable] = Counter(
        _key(pattern, match) for pattern in (_OBJECT, BRACKETED, LABELLED) for match in pattern.finditer(text)
    )
    counts.update(line for line in map(_line, text.splitlines()) if line)
    return counts


def _key(pattern: re.Pattern[str], match: re.Match[str]) -> Hashable:
    """A key to compare two parts that look like a verdict, ignoring white space."""
    if pattern is _OBJECT:
        return _object_key(match[0])
    label = match[0][: match.start(1) - match.start()]
    return "rating", _squeezed(label).casefold(), float(match[1])


def _object_key(text: str) -> Hashable:
    return "object", _squeezed(text)


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_MARKS)


def _squeezed(text: str) -> str:
    """A text in NFKC without white space."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _parse_object(text: str) -> dict[str, Any] | None:
    """Parse a text as one JSON object with unique keys, or return None."""
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; different values of a repeated key become one text."""
    held: dict[str, Any] = {}
    for name, value in pairs:
        held[name] = f"{held[name]} and {value}" if name in held and held[name] != value else value
    return held


def unfenced(text: str) -> str:
    """Return the inside of a reply that is one code block, or the stripped reply."""
    text = text.strip()
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    first, _, rest = text[3:-3].partition("\n")
    return rest.strip() if first.strip().isalpha() or not first.strip() else text[3:-3].strip()


def _without_answer(reply: str, answer: str) -> str:
    """Remove quotations of the judged answer from a reply.

    A short answer, or one that is a verdict by itself, cannot be distinguished from the judge's words and stays.
    """
    # A short answer or a word such as "score" may occur by chance, and a bare verdict equals the judge's own.
    lone = any(pattern.fullmatch(answer) for pattern in (_OBJECT, BRACKETED, LABELLED, FULL_REPLY))
    if len(answer) < SHORT or lone or not _IMITATES.search(answer):
        return reply
    return reply.replace(answer, " ")
