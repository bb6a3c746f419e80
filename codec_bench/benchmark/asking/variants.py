"""Draws of a question (several answers, a row each) and orders of its options.

The draws of a question are consecutive. The first keeps the question's id, and thus its request; the others have ids
that decide their seeds: no draw depends on the order or number of draws. Draws of one question are not independent, so
intervals take the question as unit. They share its sounds, which are decoded and encoded once.

    Options keep the data's order, get one order by seed and id, or every rotation. An order moves the texts; letters,
    labels and the written form stay. A reference that is a letter or labelled option gets the new letter. A question
    whose options refer to positions ("all of the above", "both A and B") keeps its order. The field `choice_order` has
    the data's letters in the new order: `BCA` offers the second option first. The position of the right answer and the
    rotation are subsets.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codec_bench.audio.clip import Clip, SharedSounds
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.reading.choices import (
    LETTERS,
    choice_keys,
    choices_of,
    label_of,
    named_choices,
    parse_choices,
    remove_label,
)
from codec_bench.benchmark.reading.words import plain
from codec_bench.messages.errors import UserError
from codec_bench.models import option_hint
from codec_bench.models.base import Model
from codec_bench.store.draws import ALL_ROTATIONS, AS_WRITTEN, ORDER, SHUFFLED, WORDING
from codec_bench.types import Request

MOST = 1_000


class Draws:
    """Questions, each repeated for its draws. Every iteration starts from the first.

    Args:
        wording: the number of a question's wording, which forms the subsets `wording`, or None if there is only one.
        arranged: returns a question with its options in each order; None keeps the order.
        rotated: whether every order is a draw of the question, without further draws.
    """

    def __init__(
        self,
        questions: Iterable[Question],
        repeats: int,
        wording: Callable[[Question], int | None] = lambda _: None,
        arranged: Callable[[Question], Sequence[Question]] | None = None,
        *,
        rotated: bool = False,
    ) -> None:
        self._questions, self._repeats, self._wording = questions, repeats, wording
        self._arranged, self._rotated = arranged, rotated

    def __iter__(self) -> Iterator[Question]:
        sounds = SharedSounds()
        for question in self._questions:
            if self._repeats == 1 and not self._rotated:
                yield self._set_wording(question if self._arranged is None else self._arranged(question)[0])
                continue
            shared = _sharing(question, sounds)
            orders = [shared] if self._arranged is None else self._arranged(shared)
            draws = orders if self._rotated else [orders[0]] * self._repeats
            for draw, one in enumerate(draws):
                yield self._set_wording(_number_draw(one, draw))

    def _set_wording(self, question: Question) -> Question:
        number = self._wording(question)
        if number is None:
            return question
        return replace(question, subsets={**question.subsets, WORDING: f"{number:02d}"})


def _sharing(question: Question, sounds: SharedSounds) -> Question:
    """The question with audio that is decoded once for all of its repeats."""

    def share(name: str, value: Any) -> Any:
        return sounds.share(value, (question.id, name)) if isinstance(value, Clip) else value

    fields = {name: share(name, value) for name, value in question.fields.items()}
    shared_clip = next((fields[name] for name, value in question.fields.items() if value is question.audio), None)
    audio = shared_clip if isinstance(shared_clip, Clip) else share("", question.audio)
    return replace(question, fields=fields, audio=audio)


def _number_draw(question: Question, draw: int) -> Question:
    id = question.id if draw == 0 else f"{question.id} (draw {draw + 1})"
    return replace(question, id=id, draw_of=question.id, draw=draw)


def check_repeats(repeats: object) -> None:
    """Check the number of answers per question.

    Raises:
        UserError: it is not a whole number from 1 to 1,000.
    """
    if not isinstance(repeats, int) or isinstance(repeats, bool) or not 1 <= repeats <= MOST:
        raise UserError("repeats_form", repeats=repeats, most=MOST)


def check_drawn(repeats: int, decoding: Mapping[str, Any], benchmark: str, model: Model) -> None:
    """Check that answers differ from draw to draw.

    Raises:
        UserError: several answers are requested of a model that decodes greedily.
    """
    if repeats > 1 and decoding.get("temperature") == 0:
        raise UserError(
            "repeats_of_greedy",
            benchmark=benchmark,
            repeats=repeats,
            name=model.info.name,
            hint=f"{option_hint(model, 'temperature', 0.7)} draws answers at random; without --repeats each question "
            "is sent once",
        )


def with_seed(request: Request, seed: int, draw: int = 0, *, draws: bool = False) -> Request:
    """Add a random seed to a request that samples; others are returned unchanged.

    Args:
        request: the seed depends on its id, and not on the order of requests.
        seed: of the run; a seed among the request's parameters replaces it.
        draw: number of the repeat, from 0. Every later one gets a seed, also if the temperature is left to the model or
            the parameters state a seed.
        draws: whether the model samples spoken answers at any temperature.
    """
    stated = request.parameters.get("seed")
    drawn_at_once = request.parameters.get("temperature") or (draws and request.wants == "audio")
    if draw == 0 and ("seed" in request.parameters or not drawn_at_once):
        return request
    base = seed if stated is None else stated
    drawn = int.from_bytes(hashlib.blake2b(f"{base}:{request.id}".encode(), digest_size=4).digest(), "big") >> 1
    return replace(request, parameters={**request.parameters, "seed": drawn})


ORDERS = (AS_WRITTEN, SHUFFLED, ALL_ROTATIONS)
POSITION, ROTATION = "right_answer_at", "rotation"
"""Names of the subsets of the right answer's position and of the rotation."""
_POINTS = re.compile(
    r"\b(?:of|the)\s+(?:above|below|preceding|following|former|latter)\b"
    r"|\b(?:both|neither|either|only)?\s*\(?[A-H]\)?\s*(?:and|or|nor|&|,)\s*(?:option\s*)?"
    r"\(?[A-H]\)?(?!\w)|以上|上述|[A-H]\s*(?:和|与|或|、)\s*[A-H]"
)
"""Phrases of options that refer to the positions of others."""


def check_orders(order: object) -> None:
    """Check the order of the options.

    Raises:
        UserError: it is unknown.
    """
    if order not in ORDERS:
        raise UserError("option_order", order=order, known=", ".join(ORDERS))


def arrange_options(question: Question, ordering: str, seed: int) -> list[Question]:
    """Return the question with its options shuffled, or once per rotation of them.

    Without options, or if options refer to positions ("all of the above"), it is returned alone and unchanged.

    Args:
        ordering: one of `ORDERS`.
    """
    choices = choices_of(question.fields) if ordering != AS_WRITTEN else {}
    letters = list(choices)
    # A list may be longer than the alphabet.
    if not 2 <= len(letters) < len(LETTERS) or any(_POINTS.search(text) for text in choices.values()):
        return [question]
    if ordering == SHUFFLED:
        digest = hashlib.blake2b(f"{seed}:{question.id}:choices".encode(), digest_size=16).digest()
        order = random.Random(digest).sample(letters, len(letters))
        return [reorder_options(question, order)]
    rotations = []
    for shift in range(len(letters)):
        one = reorder_options(question, [*letters[shift:], *letters[:shift]])
        rotations.append(replace(one, subsets={**one.subsets, ROTATION: str(shift)}))
    return rotations


def reorder_options(question: Question, order: Sequence[str]) -> Question:
    """The question with its options, references and subsets in another order.

    Args:
        order: the present letters of the options, in their new order.
    """
    choices = choices_of(question.fields)
    letters = list(choices)
    moved = dict(zip(order, letters))  # the new letter of each option, by its present one
    fields = {**_moved(question.fields, letters, order), ORDER: "".join(order)}
    right = {letter for text in question.references for letter in named_choices(text, choices)}
    places = sorted(moved[letter] for letter in right if letter in moved)
    subsets = {**question.subsets, **({POSITION: places[0]} if len(places) == 1 else {})}
    references = tuple(_reference(text, choices, moved) for text in question.references)
    return replace(question, fields=fields, references=references, subsets=subsets)


def _reference(text: str, choices: Mapping[str, str], moved: Mapping[str, str]) -> str:
    """An expected answer after reordering: its letter or label becomes the new one.

    Args:
        choices: texts of the options by present letter.
        moved: the new letters by present letter.
    """
    label, letters = label_of(text), named_choices(text, choices)
    if len(letters) != 1:
        return text
    (letter,) = letters
    bare = remove_label(text)
    if label is not None:
        return text[: len(text) - len(bare)].replace(label, moved[letter], 1) + bare
    if plain(choices[letter]) == plain(text):
        return text
    return re.sub("[A-Za-z]", moved[letter], text, count=1)


def _moved(fields: Mapping[str, Any], letters: Sequence[str], order: Sequence[str]) -> dict[str, Any]:
    """The fields of a question with its option texts reordered, in the same format.

    Args:
        letters, order: the present letters in the present and in the new order.
    """
    choices_field = fields.get("choices")
    if choices_field is None or isinstance(choices_field, Mapping):
        holder = fields if choices_field is None else choices_field
        keys = choice_keys(holder, separate=choices_field is None)
        changed = {**holder, **{keys[to]: holder[keys[of]] for to, of in zip(letters, order)}}
        return changed if choices_field is None else {**fields, "choices": changed}
    if isinstance(choices_field, str):
        read = parse_choices(choices_field)
        if isinstance(read, list):
            return {**fields, "choices": json.dumps(_listed(read, letters, order), ensure_ascii=False)}
        return {**fields, "choices": _written(choices_field, choices_of(fields), letters, order)}
    return {**fields, "choices": _listed(list(choices_field), letters, order)}


def _listed(texts: Sequence[Any], letters: Sequence[str], order: Sequence[str]) -> list[Any]:
    """A list of options in another order; labels such as `A.` keep their positions."""
    choices = choices_of({"choices": list(texts)})
    option_lines = {letter: str(text) for letter, text in zip(LETTERS, texts)}
    labels = {letter: option_lines[letter][: len(option_lines[letter]) - len(choices[letter])] for letter in letters}
    labelled = any(labels.values())
    return [labels[to] + choices[of] if labelled else texts[LETTERS.index(of)] for to, of in zip(letters, order)]


def _written(text: str, choices: Mapping[str, str], letters: Sequence[str], order: Sequence[str]) -> str:
    """A text such as `(A) first (B) second` with its options in another order."""
    out, at = "", 0
    for to, of in zip(letters, order):
        begin = text.index(choices[to], text.index(f"({to})", at) + len(to) + 2)
        out += text[at:begin] + choices[of]
        at = begin + len(choices[to])
    return out + text[at:]
