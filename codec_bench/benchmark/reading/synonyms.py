"""Synonyms of common labels: ten digits, male and female, nouns of emotions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from codec_bench.config import load_yaml

_WORDS = load_yaml(files("codec_bench.benchmark.reading").joinpath("synonyms.yaml"))


@lru_cache(512)
def phrases_of(labels: tuple[str, ...]) -> Mapping[str, str]:
    """Map phrases to labels: the labels themselves, and synonyms.

    There are synonyms of emotions, of digits if all labels are digits, and of genders if both are labels.
    """
    phrases = {label: label for label in labels}
    lowered = {label.casefold(): label for label in labels}
    more: dict[str, str] = {}
    if len(labels) > 1 and all(label.isdecimal() and len(label) == 1 for label in labels):
        more = {word: label for label in labels for word in _WORDS["digits"][int(label)].split()}
    genders = [text.split() for text in _WORDS["genders"].values()]
    named = [[lowered[word.casefold()] for word in text if word.casefold() in lowered] for text in genders]
    if all(len(one) == 1 for one in named):
        more |= {word: one[0] for text, one in zip(genders, named) for word in text}
    for languages in _WORDS["emotions"]:
        for language in languages:
            words = [word.replace("_", " ") for word in language.split()]
            same = {lowered[word.casefold()] for word in words if word.casefold() in lowered}
            if len(same) == 1:
                more |= dict.fromkeys(words, same.pop())
    return {**{word: label for word, label in more.items() if word.casefold() not in lowered}, **phrases}
