"""What a judge's reply says of its own, apart from what it quotes and from what it repeats of the answer it judged."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

_FLAT_OBJECT = re.compile(r"^[ \t]{0,8}(\{[^{}]{0,4000}\})[ \t]*$", re.MULTILINE)
_QUOTES = re.compile(
    r"```.{0,20000}?(?:```|\Z)|^[ \t]{0,8}>[^\n]*|\"[^\"\n]{1,2000}\"|`[^`\n]{1,2000}`"
    r"|“[^“”\n]{1,2000}”|‘[^‘’\n]{1,2000}’|「[^「」\n]{1,2000}」",
    re.DOTALL | re.MULTILINE,
)
NUMBER = r"(-?\d{1,6}(?:\.\d{1,6})?)(?![.,_]?\d|[A-Za-z_])"
_OUT_OF = r"(?:\s?/\s?(?P<below>\d{1,4})|\s+out\s+of\s+(?P<of>\d{1,4}))?"
BRACKETED = re.compile(rf"\[\[\s?{NUMBER}\s?{_OUT_OF}\s?\]\]")
LABELLED = re.compile(
    rf"(?:rating|score|评分|得分|分数)[\s*_]{{0,4}}(?:[:=]|is)[\s*_(\[]{{0,6}}{NUMBER}{_OUT_OF}", re.IGNORECASE
)
WHOLE = re.compile(rf"[\s*_(\[]{{0,6}}{NUMBER}{_OUT_OF}[\s*_)\].]{{0,6}}")
_OBJECT = re.compile(r"\{[^{}]{0,4000}\}")
_IMITATES = re.compile(r"\d|yes|no|是|否", re.IGNORECASE)
_ONE_WORD = re.compile(r"[-\w.]+[!。]?")
_MARKS = " \t\r*_`"
ECHO = "…"
"""Stands where something was taken out; text in NFKC has no such character, so no verdict comes about across it."""
SHORT = 5
"""Characters below which an answer is as likely an honest `5` or `Yes` as an imitation."""
PHRASE = 8
"""Characters from which a line that stands within a line of the answer is no accident: `Yes` is, `Yes, it is` is not."""


class Said:
    """What a reply says of its own: without what it quotes and what it repeats of the answer.

    Args:
        reply: of the judge. answer: what it judged.
    """

    def __init__(self, reply: str, answer: str) -> None:
        answer = answer.strip()
        self.short = len(answer) < SHORT
        part = squeezed(reply) in squeezed(answer) and not _ONE_WORD.fullmatch(reply.strip())
        self._rest = "" if part and not self.short else without_answer(reply, answer)
        self._reply, self._answer = unicodedata.normalize("NFKC", reply), unicodedata.normalize("NFKC", answer)
        self._here, self._there = _pieces(self._reply), _pieces(self._answer)
        text = unicodedata.normalize("NFKC", self._rest)
        bare = _QUOTES.sub(" ", unfenced(text))
        own = bare if bare.strip() else text
        for pattern in (_OBJECT, BRACKETED, LABELLED):
            own = self._without_echoes(pattern, own)
        self.own = own

    def objects(self, key: str) -> list[dict[str, Any]]:
        """The reply where it is one JSON object, else flat ones with the key that stand on lines of their own."""
        text = unfenced(self._rest)
        whole = _loaded(text)
        if whole is not None:
            if _OBJECT.fullmatch(text):
                return [] if self._echoed(_key(_OBJECT, text), True) else [whole]
            return [] if squeezed(text) in squeezed(self._answer) else [whole]
        end = len(self._rest.rstrip(_MARKS + "\n"))
        own = [
            _loaded(match[1])
            for match in _FLAT_OBJECT.finditer(self._rest)
            if not self._echoed(_key(_OBJECT, match[1]), match.end(1) >= end)
        ]
        return [one for one in own if one is not None and key in one]

    def own_lines(self) -> Iterator[str]:
        """Its words without lines that stand in the answer; then, for a short answer or a reply of one bare word, with the
        first line at any rate: a rubric that asks for the number alone is answered so, whatever the answer holds."""
        lines = [line for line in self.own.splitlines() if line.strip()]
        own = [line for at, line in enumerate(lines) if not self._echoed_line(line, at == len(lines) - 1)]
        yield "\n".join(own)
        bare = len(lines) == 1 and _ONE_WORD.fullmatch(lines[0].strip(_MARKS)) is not None
        if (self.short or bare) and lines and own[:1] != lines[:1]:
            yield "\n".join([lines[0], *own])

    def holds(self, line: str) -> bool:
        """Whether a line, or its beginning, is a phrase of the answer, in any case."""
        phrase = _line(line).casefold()
        return len(phrase) >= PHRASE and phrase in " ".join(self._answer.casefold().split())

    def repeats(self, line: str) -> bool:
        """Whether numbers on lines stand in the answer, and not once more at the reply's end."""
        words = " ".join(line.split())
        pattern = re.compile(rf"(?<![\d.]){re.escape(words)}(?![.,]?\d)")
        reply, answer = " ".join(self._reply.split()), " ".join(self._answer.split())
        there = len(pattern.findall(answer))
        return there > 0 and not (reply.endswith(words) and len(pattern.findall(reply)) > there)

    def _echoed(self, key: Hashable, last: bool) -> bool:
        return key in self._there and not (last and self._here[key] > self._there[key])

    def _echoed_line(self, line: str, last: bool) -> bool:
        # A verdict with its mark was looked at already, wherever in a line it stood.
        if BRACKETED.search(line) or LABELLED.search(line):
            return False
        return self._echoed(_line(line), last)

    def _without_echoes(self, pattern: re.Pattern[str], text: str) -> str:
        start = text.rstrip().rfind("\n") + 1
        # Only a last line that is nothing else is a verdict again: `[[5]] is a trick` is not.
        lone = pattern.fullmatch(text[start:].strip(_MARKS + "\n.#")) is not None

        def kept(match: re.Match[str]) -> str:
            echoed = self._echoed(_key(pattern, match), lone and match.start() >= start)
            return ECHO if echoed else match[0]

        return pattern.sub(kept, text)


def _pieces(text: str) -> Counter[Hashable]:
    """How often each imitation of a verdict, and each line, stands in a text in NFKC."""
    found: Counter[Hashable] = Counter(
        _key(pattern, match) for pattern in (_OBJECT, BRACKETED, LABELLED) for match in pattern.finditer(text)
    )
    found.update(line for line in map(_line, text.splitlines()) if line)
    return found


def _key(pattern: re.Pattern[str], match: re.Match[str] | str) -> Hashable:
    """What makes two imitations the same: all of an object, else the label and the number."""
    if pattern is _OBJECT:
        return "object", squeezed(match if isinstance(match, str) else match[0])
    label = match[0][: match.start(1) - match.start()]
    return "rating", squeezed(label).casefold(), float(match[1])


def _line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).split()).strip(_MARKS)


def squeezed(text: str) -> str:
    """A text in NFKC without white space."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def _loaded(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        given = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def unfenced(text: str) -> str:
    """A reply that is one fenced block without its fence; any other without outer white space."""
    text = text.strip()
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    first, _, rest = text[3:-3].partition("\n")
    return rest.strip() if first.strip().isalpha() or not first.strip() else text[3:-3].strip()


def without_answer(reply: str, answer: str) -> str:
    """The reply without the whole answer, where that can be told from the judge's own words."""
    # A word such as "score" stands in replies by chance, and so does a short answer; one that is a verdict and nothing
    # else cannot be told from the judge's by its place.
    lone = any(pattern.fullmatch(answer) for pattern in (_OBJECT, BRACKETED, LABELLED, WHOLE))
    if len(answer) < SHORT or lone or not _IMITATES.search(answer):
        return reply
    return reply.replace(answer, " ")
