"""Canaries: a model that changes in the middle shows in the answers to repeated questions, once."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from scripted_models import Recording

from codec_bench.benchmark.asking import canaries as watching
from codec_bench.benchmark.asking.canaries import Watch, count_canaries
from codec_bench.benchmark.asking.spending import Budget
from codec_bench.benchmark.definition.base import Question
from codec_bench.report.answers import answer_notes
from codec_bench.stats.answers import answers_of
from codec_bench.stats.summary_types import Answers
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.record import Run
from codec_bench.types import Message, Request, Response

QUESTIONS = [Question(f"q{k}", {"question": f"{k}?"}, subsets={"half": "ab"[k // 12]}) for k in range(24)]


def render(question):
    return Request(question.id, (Message("user", (question.fields["question"],)),), parameters={"temperature": 0})


class Swapped(Recording):
    """Says whether it is the first or the second checkpoint; `served` is what its service calls it."""

    tells_apart = False

    def __init__(self):
        super().__init__(lambda request: f"{self.name} to {request.id}")
        self.name = "first"


def ask(folder, model, numbers, *, swap_at=None, every=8, served=False, spending=None):
    """One session: looks back, answers these questions one by one, and returns its messages."""
    messages = []
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:

        async def session():
            watch = Watch(model, writer, messages.append, every, spending=spending)
            await watch.look_back(QUESTIONS, render)
            for number in numbers:
                model.name = "second" if swap_at is not None and number >= swap_at else model.name
                question = QUESTIONS[number]
                options = await model.ask(render(question))
                by = {"model": "m", "revision": model.name} if served else {}
                options, usage = Response(text=options.text, served=by), dict(options.usage)
                record = QuestionRecord(number, question.id, question.fields, subsets=dict(question.subsets))
                writer.write_answers([(record, AnswerRecord("ok", text=options.text, served=by, usage=usage))])
                await watch.note(question, render(question), options)

        asyncio.run(session())
    return messages


def canary(folder):
    with closing(Run(folder)) as run:
        return answers_of(run).as_dict()["canary"]


def test_five_questions_are_sent_again_after_every_few_answers(tmp_path):
    model = Swapped()
    assert ask(tmp_path, model, range(24)) == []
    again = [id for index, id in enumerate(model.requests) if id in model.requests[:index]]
    assert again == ["q0", "q1", "q2", "q3", "q4"] * 3, "after 8, 16 and 24 answers"
    assert canary(tmp_path) == {"asked": 15, "same": 15, "changed": []}


def test_the_number_of_answers_is_500_by_default(tmp_path, monkeypatch):
    assert watching.EVERY == 500
    ask(tmp_path / "never", model := Swapped(), range(24), every=None)
    assert len(model.requests) == 24
    monkeypatch.setattr(watching, "EVERY", 12)
    ask(tmp_path / "twice", model := Swapped(), range(24), every=None)
    assert len(model.requests) == 24 + 2 * 5


@pytest.mark.parametrize("served", [False, True])
def test_a_swap_in_the_middle_is_reported_once_and_shown_with_its_subsets(tmp_path, served):
    messages = ask(tmp_path, Swapped(), range(24), swap_at=14, served=served)
    by_canary = "5 of 5 repeated questions got another answer than before"
    by_identity = "the service now says that m second answers, and not m first"
    assert messages == ([by_identity] if served else []) + [by_canary]
    result = canary(tmp_path)
    assert (result["asked"], result["same"]) == (15, 10), "the new answers are what is expected from then on"
    (changed,) = result["changed"]
    assert (changed["answers"], changed["subsets"]) == (8, {"half": {"a": 4, "b": 4}}), "numbers 8 to 15"
    with closing(Run(tmp_path)) as run:
        notes = " ".join(answer_notes(Answers.from_dict(answers_of(run).as_dict())))
    assert "the 8 answers before may be from either of two models (half: a 4, b 4)" in notes
    assert ("m first gave 14 answers (half: a 12, b 2); m second gave 10 answers (half: b 10)" in notes) == served


def test_a_swap_between_two_sessions_is_detected_when_the_run_goes_on(tmp_path):
    model = Swapped()
    ask(tmp_path, model, range(11))
    model.name = "second"
    assert len(ask(tmp_path, model, range(11, 15))) == 1
    (changed,) = canary(tmp_path)["changed"]
    assert (changed["answers"], changed["subsets"]) == (3, {"half": {"a": 3}}), "those after the comparison at 8"
    assert ask(tmp_path, model, range(15, 17)) == [], "the answers of the second checkpoint are remembered"
    assert canary(tmp_path) == {"asked": 15, "same": 10, "changed": [changed]}


def test_only_greedy_texts_are_sent_again_and_never_of_a_model_that_says_who_it_is(tmp_path):
    known = Swapped()
    known.tells_apart = True
    ask(tmp_path / "known", known, range(24))
    assert len(known.requests) == 24 and canary(tmp_path / "known") is None


def test_canaries_are_paid_for_and_none_is_sent_beyond_the_limit(tmp_path):
    class Paid(Swapped):
        async def ask(self, request):
            options = await super().ask(request)
            return Response(text=options.text, usage={"cost_usd": 0.1, "input_tokens": 10.0})

    ask(tmp_path, model := Paid(), range(6))
    assert len(model.requests) == 6
    spending = Budget(max_cost_usd=0.35).open_account(model)
    ask(tmp_path, model, (), spending=spending)
    with closing(Run(tmp_path)) as run:
        result = answers_of(run)
    assert (result.cost_usd, result.usage["input_tokens"]) == (pytest.approx(0.9), 90.0), "six answers and three again"
    assert len(model.requests) == 6 + 3 and spending.budget.spent_usd == pytest.approx(0.3)
    assert spending.budget.stop_reason.code == "cost_limit_reached"


def test_a_model_of_ones_own_that_raises_at_a_canary_ends_nothing(tmp_path):
    class Moody(Swapped):
        async def ask(self, request):
            if request.id in self.requests:
                raise ValueError("not again")
            return await super().ask(request)

    ask(tmp_path, model := Moody(), range(9))
    assert len(model.requests) == 9 and canary(tmp_path) is None


def test_what_is_sent_again_is_planned():
    """3,000 questions are compared after each 500, five at a time; a run that goes on compares once more."""
    requests, model = [render(question) for question in QUESTIONS], Swapped()
    assert count_canaries(model, requests, 3000, continues=False) == 30
    assert count_canaries(model, requests, 3000, continues=True) == 35
    assert count_canaries(model, requests[:2], 1499, continues=False) == 4
    model.tells_apart = True
    assert count_canaries(model, requests, 3000, continues=True) == 0
