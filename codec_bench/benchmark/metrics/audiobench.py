"""AudioBench's rules for right answers, with their quirks (e991641).

`follows` checks the thirteen rules of IFEval-Audio (Y. Gao et al., 2025; `eval_methods/eval_llama_3_70b_combined.py`).
Quirks: a word needs a word boundary on both sides, a text without letters is in upper and in lower case, and one
character can be both ends of a quotation. An exception of the published program means that the rule is not followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from codec_bench.benchmark.metrics.ultraeval import choice_strings_match

_TRIGGERS = ("The answer is:", "The answer is", "the answer is", "####")
_TRIGGER = re.compile("|".join(_TRIGGERS))
_NUMBER = re.compile(r"-?\d+/?\.?\d*")
# The published program evaluates a quotient in Python: no leading zeros and no digits of other scripts.
_QUOTIENT = re.compile(r"(-?(?:0+|[1-9][0-9]*))/(0+|[1-9][0-9]*|\.[0-9]+)")
_LABEL_LENGTH = 4
_MOST = 100


@dataclass(frozen=True, slots=True)
class Spoken:
    """The decision of the rule for spoken arithmetic about one answer.

    Args:
        acc: 1 or 0; None if the published program raises an exception.
        extracted: the number that it read, as text, or `empty`.
        reference: the references in the compared form.
    """

    acc: float | None
    extracted: str
    reference: tuple[str, ...]


def string_match(pred: str, ref: str, choices: Sequence[str]) -> float:
    """MMAU's rule, after four characters are cut off reference and choices."""
    cut = [choice[_LABEL_LENGTH:] for choice in choices]
    return float(choice_strings_match(pred, ref[_LABEL_LENGTH:], cut).match == 1)


def spoken_mqa(pred: str, refs: Sequence[str], kind: Literal["arithmetic", "reasoning"]) -> Spoken:
    """Compare the answer's number, as MAmmoTH's program reads it, with a reference.

    Texts are compared, with the first reference only. More than two references give no value, because the published
    program raises an exception.

    Args:
        kind: the data set; for `reasoning`, references are simplified like answers.
    """
    extracted = (_extract(pred) or "empty")[:_MOST]
    references = tuple(_reasoning_reference(ref) for ref in refs) if kind == "reasoning" else tuple(refs)
    if len(refs) not in (1, 2):
        return Spoken(None, extracted, references)
    return Spoken(float(extracted.lower() == references[0].lower()), extracted, references)


def _reasoning_reference(ref: str) -> str:
    return _without_zeros(ref.split("#### ")[-1].replace(",", "") if "####" in ref else ref) or "empty"


def _extract(text: str) -> str:
    """The first number after the last "the answer is" or `####`, else the last number."""
    text = text.strip("\n")
    if any(text.count(trigger) > 1 for trigger in _TRIGGERS):
        text = text.split("\n\n")[0]
    parts = _TRIGGER.split(text)
    text = parts[-1].strip("\n").rstrip(".").rstrip("/").strip(" ").replace(",", "")
    numbers = _NUMBER.findall(text)
    if not numbers:
        return ""
    return _without_zeros(numbers[0] if len(parts) > 1 else numbers[-1]).rstrip(".").rstrip("/")


def _without_zeros(text: str) -> str:
    """Write a number without trailing zeros and evaluate a quotient; keep other texts.

    As published, `1e+120` loses a zero too.
    """
    try:
        value = float(text)
    except ValueError:
        parts = _QUOTIENT.fullmatch(text)
        if parts is None:
            return text
        try:
            value = int(parts[1]) / (float(parts[2]) if "." in parts[2] else int(parts[2]))
        except (ValueError, ZeroDivisionError, OverflowError):
            return text
    shown = str(value).rstrip("0")
    try:
        return str(int(shown[:-1])) if shown.endswith(".") else str(float(shown))
    except ValueError:
        return text


_BRACKETS = {"()": ("(", ")"), "[]": ("[", "]"), "{}": ("{", "}"), "<>": ("<", ">")}
_MARKERS = {
    "0": re.compile(r"-"),
    "1": re.compile(r"(\d{1,100})\."),
    "2": re.compile(r"([IVXLCDM]+)\."),
    "3": re.compile(r"([A-Z])\."),
}
_ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_NO_LIMIT = 99999


def follows(text: str, rule: Any, target: Any) -> bool:
    """Whether an answer follows a rule of IFEval-Audio; an unknown one never is.

    Args:
        rule: 1 to 13, as a number or as text; an empty one is no rule, which every answer follows.
        target: the rule's argument, such as the word; None counts as an empty text.
    """
    if not rule:
        return True
    check = _RULES.get(str(rule))
    try:
        return check is not None and check(text, "" if target is None else str(target))
    except (KeyError, ValueError, RecursionError):
        return False


def _occurrences(text: str, word: str) -> list[str]:
    return re.findall(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)


def _cased(case: Callable[[str], bool]) -> Callable[[str, str], bool]:
    return lambda text, target: all(case(letter) for letter in text if letter.isalpha())


def _word_cased(case: Callable[[str], bool]) -> Callable[[str, str], bool]:
    def check(text: str, target: str) -> bool:
        occurrences = _occurrences(text, target)
        return not occurrences or any(map(case, occurrences))

    return check


def _quoted(text: str, target: str) -> bool:
    first, last = _BRACKETS.get(target, (target, target))
    return bool(target) and text.startswith(first) and text.endswith(last)


def _uses_markers(text: str, target: str) -> bool:
    """Return whether the answer's list uses the requested markers, in order."""
    if target not in _MARKERS:
        return False
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matched = [match for line in lines if (match := _MARKERS[target].match(line))]
    if not lines or target == "0":
        return bool(matched) or not lines
    numbers = [_numbered(match[1], target) for match in matched]
    return bool(numbers) and all(later == earlier + 1 for earlier, later in pairwise(numbers))


def _numbered(marker: str, kind: str) -> int:
    """The value of a list marker: digits (`1`), a letter (`3`) or Roman (other kinds)."""
    if kind == "1":
        return int(marker)
    if kind == "3":
        return ord(marker)
    values = [_ROMAN[letter] for letter in marker]
    return sum(value if value >= after else -value for value, after in zip(values, [*values[1:], 0]))


def _word_count(text: str, target: str) -> bool:
    low, high = map(int, target.split("-"))
    return low <= len(text.split()) <= (high or _NO_LIMIT)


def _json_like(text: str, target: str) -> bool:
    value, expected = _read_object(text), _read_object(target)
    return isinstance(value, dict) and isinstance(expected, dict) and _same_structure(value, expected)


def _read_object(text: str) -> Any:
    """Parse the outermost JSON object of a text; repair unquoted keys."""
    start, end = text.find("{"), text.rfind("}")
    if not 0 <= start < end:
        return None
    inner = re.sub(r"\\{2,}", r"\\", text[start : end + 1])
    try:
        return json.loads(inner)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(re.sub(r"(?<!\w)(\w++):", r'"\1":', inner.replace('\\"', '"')))
    except (ValueError, RecursionError):
        return None


def _same_structure(answered: Any, expected: Any) -> bool:
    """Whether two JSON values have the same keys and types."""
    if isinstance(expected, dict):
        return (
            isinstance(answered, dict)
            and {key.strip() for key in answered} == {key.strip() for key in expected}
            and all(_same_structure(answered[key], value) for key, value in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(answered, list)
    if type(expected) in (int, float):
        return type(answered) in (int, float)
    return type(answered) is type(expected)


_RULES: dict[str, Callable[[str, str], bool]] = {
    "1": lambda text, target: bool(_occurrences(text, target)),
    "2": lambda text, target: not _occurrences(text, target),
    "3": _cased(str.isupper),
    "4": _cased(str.islower),
    "5": _word_cased(str.isupper),
    "6": _word_cased(str.islower),
    "7": lambda text, target: bool(target) and text.startswith(target),
    "8": lambda text, target: bool(target) and text.endswith(target),
    "9": _quoted,
    "10": lambda text, target: re.search(r"[^\w\s]|_", text) is None,
    "11": _uses_markers,
    "12": _word_count,
    "13": _json_like,
}
