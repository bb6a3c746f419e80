"""Effects of the order of options: consistency, and preference of positions.

An answer names an option by letter or text, as the step `option-letter` reads it; others count as unnamed. The unit of
intervals is the question, because its rotations share a sound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codec_bench.benchmark.reading.base import Parsed
from codec_bench.benchmark.reading.choices import choices_of, named_choices
from codec_bench.benchmark.reading.option import option_letter
from codec_bench.stats.intervals import interval
from codec_bench.store.answers import Exchange, exchanges
from codec_bench.store.draws import ALL_ROTATIONS, ORDER, SHUFFLED
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import Run

_READ = option_letter(None)


@dataclass(frozen=True, slots=True)
class Choice:
    """A model's choice in one order of the options.

    Args:
        order: the data's letters of the options, in the order of this question.
        at: the position of the named option, from 0; None if none was named.
        right: the position of the right one.
        failed: whether there is no answer.
    """

    question: str
    order: str
    at: int | None
    right: int | None
    failed: bool = False


def choice_facts(run: Run) -> dict[str, Any] | None:
    """Summarise the choices of a run with reordered options; None for other runs.

    Returns:
        `how`, `questions` (with reordered options), `kept` (questions in the old order), and the values of
        `choices_summary`.
    """
    order = (run.meta.get("config") or {}).get("choices")
    if order not in (SHUFFLED, ALL_ROTATIONS):
        return None
    held: list[Choice] = []
    stored_questions: set[str] = set()
    for exchange in exchanges(run):
        if (choice := choice_of(exchange)) is not None:
            held.append(choice)
        else:
            stored_questions.add(exchange.question.draw_of or exchange.question.id)
    questions = len({one.question for one in held})
    return {
        "how": order,
        "questions": questions,
        "kept": len(stored_questions),
        **choices_summary(held, rotated=order == ALL_ROTATIONS),
    }


def choice_of(exchange: Exchange) -> Choice | None:
    """The option that a recorded answer chooses; None without reordered options."""
    question, answer = exchange.question, exchange.answer
    order = question.fields.get(ORDER)
    if not isinstance(order, str):
        return None
    id, choices = question.draw_of or question.id, choices_of(question.fields)
    letters = list(choices)
    expected = {letter for text in question.expected for letter in named_choices(text, choices)}
    right = letters.index(min(expected)) if len(expected) == 1 else None
    if answer.status != "ok":
        return Choice(id, order, None, right, failed=True)
    text = (exchange.reading.transcript if exchange.reading else None) or cut_reasoning(answer.text or "").text
    named_letters = named_choices(text, choices)
    if len(named_letters) != 1:
        read = _READ(text, question.fields)
        named_letters = {read.text} if isinstance(read, Parsed) else set()
    is_choice = bool(named_letters) and named_letters <= choices.keys()
    return Choice(id, order, letters.index(min(named_letters)) if is_choice else None, right)


def choices_summary(held: Sequence[Choice], *, rotated: bool) -> dict[str, Any]:
    """Measure the consistency over rotations, and the preference for positions.

    Args:
        held: the choices, one for each answer.
        rotated: whether every question was sent in all rotations.

    Returns:
        `unnamed` (answers that name no option: `n`, `share`), `consistent` (None unless `rotated`: the share of
        questions with the same option in all rotations, as `value`, `ci95`, `n` and `failed` questions that lack an
        answer), and `places`: by the letter of a position `named` (the share of the answers that name this one, as
        `value` and `ci95`), `expected` (that share without a preference), and `right` (the share of right answers
        where the right one is there, as `value`, `ci95`, `n`).
    """
    answered = [one for one in held if not one.failed]
    unnamed = sum(one.at is None for one in answered)
    most = max((len(one.order) for one in held), default=0)
    naming = [one for one in answered if one.at is not None]
    places = {}
    for at in range(most):
        able = [one for one in naming if len(one.order) > at]
        keyed = [one for one in answered if one.right == at]
        places["ABCDEFGHIJKLMNOPQRSTUVWXYZ"[at]] = {
            "named": _share([(one.question, one.at == at) for one in able]),
            "expected": sum(1 / len(one.order) for one in able) / len(able) if able else None,
            "right": {**_share([(one.question, one.at == at) for one in keyed]), "n": len(keyed)},
        }
    return {
        "unnamed": {"n": unnamed, "share": unnamed / len(answered) if answered else 0.0},
        "consistent": _consistent(held) if rotated else None,
        "places": places,
    }


def _consistent(held: Sequence[Choice]) -> dict[str, Any]:
    """The share of questions whose answers name the same option in all rotations."""
    by_question: defaultdict[str, list[Choice]] = defaultdict(list)
    for one in held:
        by_question[one.question].append(one)
    complete = [
        (question, rotations)
        for question, rotations in by_question.items()
        if len(rotations) == len(rotations[0].order) and not any(one.failed for one in rotations)
    ]
    same = [(question, _same(rotations)) for question, rotations in complete]
    return {**_share(same), "n": len(same), "failed": len(by_question) - len(same)}


def _same(rotations: Iterable[Choice]) -> bool:
    """Whether all rotations name one option."""
    options = {None if one.at is None else one.order[one.at] for one in rotations}
    return len(options) == 1 and None not in options


def _share(of: Sequence[tuple[str, bool]]) -> Mapping[str, Any]:
    """The share of true values with its 95% interval; pairs of (question, value)."""
    if not of:
        return {"value": None, "ci95": None}
    values = [float(holds) for _, holds in of]
    return {
        "value": sum(values) / len(values),
        "ci95": interval(values, clusters=[question for question, _ in of]).ends,
    }
