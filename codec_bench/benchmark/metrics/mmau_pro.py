"""MMAU-Pro's checks of an answer's form, with their quirks.

Source: `evaluate_aif_sample` in `evaluate_mmau_pro_comprehensive.py` of github.com/sonalkum/MMAUPro 960e93a. It agrees
with that program, except that sentences are counted by the project's own rule (there by NLTK's Punkt model). Quirks: a
required or forbidden word counts inside of other words, a marker or phrase is compared without marks and digits, a text
without letters is in neither case, and one character can be both ends of a quotation.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from codec_bench.benchmark.metrics.instructions import count_sentences

Arguments = Mapping[str, Any]
_NO_LETTERS = re.compile(r"[^a-zA-Z]")
_NO_LETTERS_OR_SPACES = re.compile(r"[^a-zA-Z ]")
_TWO_ANSWERS = "******"
_RELATIONS = ("at least", "at most", "range")


def keeps(text: str, kind: str, arguments: Arguments) -> bool:
    """Whether an answer follows an instruction; False if the instruction is unknown.

    Args:
        kind: the instruction, a key of `KINDS`.
        arguments: such as `N` or `keyword`; `prompt` is the text to repeat.

    Raises:
        TypeError, AttributeError: an argument is of another type, an error in the published program too.
    """
    check = KINDS.get(kind)
    return check is not None and bool(check(text, arguments))


def _stated(text: str, listed: str) -> list[bool]:
    return [word.lower() in text.lower() for word in listed.split(", ")]


def _frequency(text: str, a: Arguments) -> bool:
    word = re.escape(a.get("keyword", "").lower())
    return bool(len(re.findall(rf"\b{word}\b", text.lower())) == a.get("N", 0))


def _paragraphs(text: str) -> int:
    return sum(bool(paragraph.strip()) for paragraph in text.split("***"))


def _bullets(text: str) -> int:
    return len(re.findall(r"(?:^|\n)\s*\*\s+", text))


def _highlights(text: str) -> int:
    return len(re.findall(r"\*[^*]+\*", text))


def _placeholders(text: str) -> int:
    return len(re.findall(r"\[[^\]]+\]", text))


def _capitals(text: str) -> int:
    return sum(word.isupper() for word in text.split())


def _words(text: str) -> int:
    return len(text.split())


def _sections(text: str, a: Arguments) -> bool:
    splitter = re.escape(a.get("section_splitter", ""))
    return sum(bool(section.strip()) for section in re.split(rf"\s*{splitter}\s*", text.strip())) == a.get("N", 0)


def _letters(text: str, removed: re.Pattern[str] = _NO_LETTERS_OR_SPACES) -> str:
    return removed.sub("", text).lower()


def _postscript(text: str, a: Arguments) -> bool:
    return _letters(a.get("postscript_marker", ""), _NO_LETTERS) in _letters(text, _NO_LETTERS)


def _two_answers(text: str, a: Arguments) -> bool:
    parts = [answer.lower().strip() for answer in text.split(_TWO_ANSWERS)]
    return len(parts) == 2 and parts[0] != parts[1]


def _quoted(text: str, a: Arguments) -> bool:
    return text.strip().startswith('"') and text.strip().endswith('"')


def _counted(count: Callable[[str], int], relation: str) -> Callable[[str, Arguments], bool]:
    """Build a check that a count is exactly, at least or at most `N`, or `N1` to `N2`."""

    def check(text: str, a: Arguments) -> bool:
        """Whether the text's count fits `N`, or `N1` to `N2`."""
        amount = count(text)
        if relation == "range":
            return bool(a.get("N1", 0) <= amount <= a.get("N2", 999))
        expected = a.get("N", 0)
        relations = {"exactly": operator.eq, "at least": operator.ge, "at most": operator.le}
        return bool(relations[relation](amount, expected))

    return check


KINDS: Mapping[str, Callable[[str, Arguments], bool]] = {
    "Include Keywords": lambda text, a: all(_stated(text, a.get("keywords", ""))),
    "Keyword Frequency": _frequency,
    "Forbidden Words": lambda text, a: not any(_stated(text, a.get("forbidden_words", ""))),
    "Number Paragraphs": _counted(_paragraphs, "exactly"),
    **{f"Number Words ({relation})": _counted(_words, relation) for relation in _RELATIONS},
    **{f"Number Sentences ({relation})": _counted(count_sentences, relation) for relation in _RELATIONS},
    "Postscript": _postscript,
    "Number Placeholder": _counted(_placeholders, "at least"),
    "Number Bullets": _counted(_bullets, "exactly"),
    "Title": lambda text, a: re.search(r"<<[^>]+>>", text) is not None,
    "Minimum Number Highlighted Section": _counted(_highlights, "at least"),
    "Multiple Sections": _sections,
    "Repeat Prompt": lambda text, a: text.strip().lower().startswith(a["prompt"].strip().lower()),
    "Two Responses": _two_answers,
    "All Uppercase": lambda text, a: text.isupper(),
    "All Lowercase": lambda text, a: text.islower(),
    **{f"All-capital Words ({relation})": _counted(_capitals, relation) for relation in _RELATIONS},
    "Start Checker": lambda text, a: _letters(text).startswith(_letters(a.get("start_phrase", ""))),
    "End Checker": lambda text, a: _letters(text).endswith(_letters(a.get("end_phrase", ""))),
    "Quotation": _quoted,
    "No Commas": lambda text, a: "," not in text,
}
"""Every instruction with its check of the answer and the instruction's arguments."""
