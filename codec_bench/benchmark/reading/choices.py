"""The choices of a question by letter, from the forms of data sets.

Known forms: `choices` as a list of texts, with or without `(A)`; as a mapping of letters, or of names such as
`choice_a`; as one text `(A) first (B) second`, or a list in JSON; or separate fields `choice_a`, `choice_b`, ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.benchmark.reading.words import plain

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LABEL = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])[.):、：])\s*(?=\S)")
_INSIDE = re.compile(r"(?:^|\s)\(([A-Z])\)\s*")


def choices_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The texts of a question's options by letter (A, B, ...); empty without options."""
    choices = fields.get("choices")
    if choices is None:
        return {letter: str(fields[key]) for letter, key in choice_keys(fields, separate=True).items()}
    if isinstance(choices, str):
        choices = parse_choices(choices)
    if isinstance(choices, Mapping):
        return {letter: str(choices[key]) for letter, key in choice_keys(choices).items()}
    texts = [str(text) for text in choices] if isinstance(choices, (list, tuple)) else []
    labels = [match for text in texts if (match := _LABEL.match(text)) is not None]
    if texts and [m[1] or m[2] for m in labels] == list(LETTERS[: len(texts)]):
        texts = [text[match.end() :] for text, match in zip(texts, labels)]
    return dict(zip(LETTERS, texts))


def choice_keys(choices: Mapping[str, Any], *, separate: bool = False) -> dict[str, str]:
    """The key of each choice in a mapping, by letter in order, without empty ones.

    Args:
        choices: a mapping whose keys are letters or names such as `choice_a`.
        separate: whether only names count, as among the fields of a row.
    """
    keys = {
        (key[7:] if key.lower().startswith("choice_") else key).strip().upper(): key
        for key in choices
        if not separate or (key.lower().startswith("choice_") and len(key) == 8)
    }
    return {
        letter: key
        for letter, key in sorted(keys.items())
        if letter and letter in LETTERS and choices[key] is not None and str(choices[key]).strip()
    }


def remove_label(text: str) -> str:
    """Remove the label before a choice, such as `(A)` or `A.`, if there is one."""
    match = _LABEL.match(text)
    return text[match.end() :] if match else text


def label_of(text: str) -> str | None:
    """The letter before a choice, such as `A` of `(A) Man`, or None."""
    match = _LABEL.match(text)
    return (match[1] or match[2]) if match else None


def named_choices(text: str, choices: Mapping[str, str], letters: str | None = None) -> set[str]:
    """The letters of the choices that a text names by letter, label or text.

    Args:
        choices: the texts by letter; several may be equal.
        letters: the possible letters; None for those of the choices.
    """
    letters = "".join(choices) if letters is None else letters
    normalised = plain(remove_label(text))
    same = {letter for letter, choice in choices.items() if plain(choice) == normalised}
    label = label_of(text)
    if label:
        return {label} & set(letters)
    bare = plain(text).strip("()[] ").upper()
    return same or ({bare} if len(bare) == 1 and bare in letters else set())


def right_letters(fields: Mapping[str, Any], references: Sequence[str]) -> set[str]:
    """The letters of the options that references name; several if texts are equal."""
    choices = choices_of(fields)
    texts = {plain(choices[letter]) for text in references for letter in named_choices(text, choices)}
    return {letter for letter, text in choices.items() if plain(text) in texts}


def chance_of(fields: Mapping[str, Any], references: Sequence[str]) -> float | None:
    """The probability of a right guess among the choices; None without choices."""
    choices = choices_of(fields)
    return max(1, len(right_letters(fields, references))) / len(choices) if choices else None


def parse_choices(text: str) -> list[Any] | dict[str, str]:
    """Parse the options in one text: a JSON list, or texts by letter after `(A)`."""
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            listed = None
        if isinstance(listed, list):
            return listed
    starts = list(_INSIDE.finditer(text))
    ends = [m.start() for m in starts[1:]] + [len(text)]
    return {m[1]: text[m.end() : end].strip() for m, end in zip(starts, ends)}
