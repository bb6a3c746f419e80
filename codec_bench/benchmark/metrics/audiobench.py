"""AudioBench's rules for right answers, with their quirks (github.com/AudioLLMs/AudioBench e991641,
`src/dataset_src`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from codec_bench.benchmark.metrics.ultraeval import choice_strings_match

_TRIGGERS = ("The answer is:", "The answer is", "the answer is", "####")
_TRIGGER = re.compile("|".join(_TRIGGERS))
_NUMBER = re.compile(r"-?\d+/?\.?\d*")
# The published program lets Python evaluate a quotient, so its numbers have no leading zeros and no digits of other
# scripts.
_QUOTIENT = re.compile(r"(-?(?:0+|[1-9][0-9]*))/(0+|[1-9][0-9]*|\.[0-9]+)")
_LABEL_LENGTH = 4
_MOST = 100


@dataclass(frozen=True, slots=True)
class Spoken:
    """The decision of the rule for spoken arithmetic about one answer.

    Args:
        acc: 1 or 0; None if the published program raises an exception.
        extracted: the number that it read, as text, or `empty`.
        reference: the references as it compared them.
    """

    acc: float | None
    extracted: str
    reference: tuple[str, ...]


def string_match(pred: str, ref: str, choices: Sequence[str]) -> float:
    """MMAU's rule, after the first four characters of the reference and of every choice were cut off, even if
    they are no label.
    """
    cut = [choice[_LABEL_LENGTH:] for choice in choices]
    return float(choice_strings_match(pred, ref[_LABEL_LENGTH:], cut).match == 1)


def spoken_mqa(pred: str, refs: Sequence[str], kind: Literal["arithmetic", "reasoning"]) -> Spoken:
    """A number, read as MAmmoTH's program reads it, is compared as text with the first reference.

    A second reference is taken for a number that belongs to the first, and never matches. With more than two
    references the published program raises an exception.
    """
    extracted = (_extract(pred) or "empty")[:_MOST]
    references = tuple(_reasoning_reference(ref) for ref in refs) if kind == "reasoning" else tuple(refs)
    if len(refs) not in (1, 2):
        return Spoken(None, extracted, references)
    return Spoken(float(extracted.lower() == references[0].lower()), extracted, references)


def _reasoning_reference(ref: str) -> str:
    return _without_zeros(ref.split("#### ")[-1].replace(",", "") if "####" in ref else ref) or "empty"


def _extract(text: str) -> str:
    text = text.strip("\n")
    if any(text.count(trigger) > 1 for trigger in _TRIGGERS):
        text = text.split("\n\n")[0]
    parts = _TRIGGER.split(text)
    text = parts[-1].strip("\n").rstrip(".").rstrip("/").strip(" ").replace(",", "")
    found = _NUMBER.findall(text)
    if not found:
        return ""
    return _without_zeros(found[0] if len(parts) > 1 else found[-1]).rstrip(".").rstrip("/")


def _without_zeros(text: str) -> str:
    """A number without trailing zeros, with a quotient evaluated; other texts are kept. `1e+120` loses a zero too."""
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
