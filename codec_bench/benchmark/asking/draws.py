"""Several answers to each question: every draw is a row of the record, with an id and a seed of its own.

Conventions
    The draws of a question follow each other. The first has the question's id, so that it is the same request as without
    repeats. The others have an id of their own, from which their seed is made, so that no draw depends on the order or on how
    many there are.
    Draws of one question are no independent observations. Whatever computes an interval takes the question as its unit.
    The draws of a question share its sounds, which are read, converted and encoded once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codec_bench.audio.clip import Clip, SharedSounds
from codec_bench.benchmark.definition.base import Question
from codec_bench.errors import UserError
from codec_bench.store.draws import WORDING
from codec_bench.types import Request

MOST = 1_000


class Draws:
    """Questions, each as often as answers are drawn to it. Every iteration starts from the first question.

    Args:
        questions: the questions. repeats: how many answers are drawn to each.
        wording: gives the number of the wording that a question is asked in, or None where its prompt has one alone. The
            numbers form the subsets `wording`.
        arranged: gives a question with its options in each order in which it is asked; None where they stay as they are.
        rotated: whether every order is a draw of the question. There are no further draws then.
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
                yield self._worded(question if self._arranged is None else self._arranged(question)[0])
                continue
            shared = _sharing(question, sounds)
            orders = [shared] if self._arranged is None else self._arranged(shared)
            draws = orders if self._rotated else [orders[0]] * self._repeats
            for draw, one in enumerate(draws):
                yield self._worded(_drawn(one, draw))

    def _worded(self, question: Question) -> Question:
        number = self._wording(question)
        if number is None:
            return question
        return replace(question, subsets={**question.subsets, WORDING: f"{number:02d}"})


def _sharing(question: Question, sounds: SharedSounds) -> Question:
    """The question with sounds that all of its draws share."""

    def share(name: str, value: Any) -> Any:
        return sounds.share(value, (question.id, name)) if isinstance(value, Clip) else value

    fields = {name: share(name, value) for name, value in question.fields.items()}
    own = next((fields[name] for name, value in question.fields.items() if value is question.audio), None)
    audio = own if isinstance(own, Clip) else share("", question.audio)
    return replace(question, fields=fields, audio=audio)


def _drawn(question: Question, draw: int) -> Question:
    id = question.id if draw == 0 else f"{question.id} (draw {draw + 1})"
    return replace(question, id=id, draw_of=question.id, draw=draw)


def check_repeats(repeats: object) -> None:
    """Checks how many answers are to be drawn to each question.

    Raises:
        UserError: it is not a whole number from 1 to 1,000.
    """
    if not isinstance(repeats, int) or isinstance(repeats, bool) or not 1 <= repeats <= MOST:
        raise UserError(f"repeats is {repeats!r}; expected a whole number from 1 to {MOST:,}")


def check_drawn(repeats: int, decoding: Mapping[str, Any], benchmark: str, model: str) -> None:
    """Checks that answers differ from draw to draw.

    Raises:
        UserError: several answers are wanted, and the model takes the most probable token each time.
    """
    if repeats > 1 and decoding.get("temperature") == 0:
        raise UserError(
            f"'{benchmark}' is answered greedily, so that all {repeats} answers of '{model}' to a question would be the same",
            hint=f"--set {model}.parameters.temperature=0.7 draws answers at random; without --repeats each question is asked once",
        )


def with_seed(request: Request, seed: int, draw: int = 0) -> Request:
    """Gives a request that samples a seed of its own, so that its answer does not depend on the order.

    Args:
        request: its id decides the seed. seed: of the run. draw: which answer to its question this is. Every draw after the
            first has a seed, also where the parameters leave the temperature to the model or state a seed for the first.
    """
    stated = request.parameters.get("seed")
    if draw == 0 and ("seed" in request.parameters or not request.parameters.get("temperature")):
        return request
    base = seed if stated is None else stated
    drawn = int.from_bytes(hashlib.blake2b(f"{base}:{request.id}".encode(), digest_size=4).digest(), "big") >> 1
    return replace(request, parameters={**request.parameters, "seed": drawn})


__all__ = ["Draws", "check_drawn", "check_repeats", "with_seed"]
