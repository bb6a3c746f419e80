"""In which order the options of a question are offered: as the data has them, in one by seed and id, or in every rotation.

Conventions
    An order moves the texts of the options; letters, labels and the form in which the data writes them stay where they are. The
    answer key follows: a reference that is a letter or a labelled option gets the new letter, one that is a text stays.
    A question whose options name each other's places ("all of the above", "both A and B") keeps its order.
    The order is in the question's field `choice_order`, as the letters that the options have in the data: `BCA` offers the second
    option first. The place of the right answer and the rotation are subsets, by which the results are broken down.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.reading.choices import (
    LETTERS,
    choices_of,
    from_text,
    label_of,
    named,
    places_of,
    without_label,
)
from codec_bench.benchmark.reading.words import plain
from codec_bench.errors import UserError
from codec_bench.store.draws import ALL_ROTATIONS, GIVEN, ORDER, SHUFFLED

ORDERS = (GIVEN, SHUFFLED, ALL_ROTATIONS)
PLACE, ROTATION = "right_answer_at", "rotation"
"""Names of the subsets that the places of the right answer and the rotations form."""
_POINTS = re.compile(
    r"\b(?:of|the)\s+(?:above|below|preceding|following|former|latter)\b|\b(?:both|neither|either|only)?\s*\(?[A-H]\)?\s*"
    r"(?:and|or|nor|&|,)\s*(?:option\s*)?\(?[A-H]\)?(?!\w)|以上|上述|[A-H]\s*(?:和|与|或|、)\s*[A-H]",
)
"""What an option says that names the places of others."""


def check_orders(how: object) -> None:
    """Checks what says in which order options are offered.

    Raises:
        UserError: it is none of the words that are known.
    """
    if how not in ORDERS:
        raise UserError(f"the order of the options is '{how}'; expected {', '.join(ORDERS)}")


def arranged(question: Question, how: str, seed: int) -> list[Question]:
    """A question with its options in each order in which it is asked.

    Args:
        question: as the data has it. how: one of `ORDERS`. seed: of the run.

    Returns:
        One question, or with `all-rotations` as many as it has options.
    """
    choices = choices_of(question.fields) if how != GIVEN else {}
    letters = list(choices)
    # A list may be longer than the alphabet.
    if not 2 <= len(letters) < len(LETTERS) or any(_POINTS.search(text) for text in choices.values()):
        return [question]
    if how == SHUFFLED:
        digest = hashlib.blake2b(f"{seed}:{question.id}:choices".encode(), digest_size=16).digest()
        order = random.Random(digest).sample(letters, len(letters))
        return [reordered(question, order)]
    rotations = []
    for shift in range(len(letters)):
        one = reordered(question, [*letters[shift:], *letters[:shift]])
        rotations.append(replace(one, subsets={**one.subsets, ROTATION: str(shift)}))
    return rotations


def reordered(question: Question, order: Sequence[str]) -> Question:
    """A question with its options in another order.

    Args:
        question: the question. order: the present letters of its options, in their new order.
    """
    choices = choices_of(question.fields)
    letters = list(choices)
    moved = dict(zip(order, letters))  # the new letter of each option, by its present one
    fields = {**_moved(question.fields, letters, order), ORDER: "".join(order)}
    right = {letter for text in question.references for letter in named(text, choices)}
    places = sorted(moved[letter] for letter in right if letter in moved)
    subsets = {**question.subsets, **({PLACE: places[0]} if len(places) == 1 else {})}
    references = tuple(_reference(text, choices, moved) for text in question.references)
    return replace(question, fields=fields, references=references, subsets=subsets)


def _reference(text: str, choices: Mapping[str, str], moved: Mapping[str, str]) -> str:
    """An expected answer after its option has moved: with the new letter if it is a letter or has one before it."""
    label, found = label_of(text), named(text, choices)
    if len(found) != 1:
        return text
    (letter,) = found
    bare = without_label(text)
    if label is not None:
        return text[: len(text) - len(bare)].replace(label, moved[letter], 1) + bare
    if plain(choices[letter]) == plain(text):
        return text
    return re.sub("[A-Za-z]", moved[letter], text, count=1)


def _moved(fields: Mapping[str, Any], letters: Sequence[str], order: Sequence[str]) -> dict[str, Any]:
    """The fields with the texts of the options in another order, in the form that they have."""
    given = fields.get("choices")
    if given is None or isinstance(given, Mapping):
        holder = fields if given is None else given
        keys = places_of(holder, separate=given is None)
        changed = {**holder, **{keys[to]: holder[keys[of]] for to, of in zip(letters, order)}}
        return changed if given is None else {**fields, "choices": changed}
    if isinstance(given, str):
        read = from_text(given)
        if isinstance(read, list):
            return {**fields, "choices": json.dumps(_listed(read, letters, order), ensure_ascii=False)}
        return {**fields, "choices": _written(given, choices_of(fields), letters, order)}
    return {**fields, "choices": _listed(list(given), letters, order)}


def _listed(texts: Sequence[Any], letters: Sequence[str], order: Sequence[str]) -> list[Any]:
    """A list of options in another order; labels before them keep their places."""
    choices = choices_of({"choices": list(texts)})
    whole = {letter: str(text) for letter, text in zip(LETTERS, texts)}
    labels = {letter: whole[letter][: len(whole[letter]) - len(choices[letter])] for letter in letters}
    labelled = any(labels.values())
    return [labels[to] + choices[of] if labelled else texts[LETTERS.index(of)] for to, of in zip(letters, order)]


def _written(text: str, choices: Mapping[str, str], letters: Sequence[str], order: Sequence[str]) -> str:
    """One text such as `(A) first (B) second` with its options in another order."""
    out, at = "", 0
    for to, of in zip(letters, order):
        begin = text.index(choices[to], text.index(f"({to})", at) + len(to) + 2)
        out += text[at:begin] + choices[of]
        at = begin + len(choices[to])
    return out + text[at:]


__all__ = ["ORDERS", "PLACE", "ROTATION", "arranged", "check_orders", "reordered"]
