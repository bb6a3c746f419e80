"""Limits of cost and of time: what is in flight counts, and nothing more is sent once a limit is reached."""

import asyncio

import pytest
from refusals import refuses

from codec_bench.benchmark.asking.sending import Answering, send_requests
from codec_bench.benchmark.asking.spending import Budget
from codec_bench.messages import Diagnostic
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Request, Response


class Dear(Model):
    """Answers for a price, several at once."""

    identity = property(lambda self: {})

    def __init__(self, cost, concurrency=4):
        self.info, self.concurrency, self.cost, self.requests, self.busy, self.most = (
            ModelInfo("dear"),
            concurrency,
            cost,
            0,
            0,
            0,
        )

    async def ask(self, request):
        self.requests += 1
        self.busy += 1
        self.most = max(self.most, self.busy)
        for _ in range(3):
            await asyncio.sleep(0)
        self.busy -= 1
        return Response(text="x", usage={} if self.cost is None else {"cost_usd": self.cost})


def send_all(model, spending, n=50):
    """What was answered of n questions."""

    async def run():
        questions = (Request(f"q{k}", fields={"text": "x"}) for k in range(n))
        return [pair async for pair in send_requests(model, questions, spending=spending)]

    return asyncio.run(run())


@pytest.mark.parametrize("concurrency", [1, 4, 16])
def test_a_limit_of_cost_is_never_exceeded_and_is_used_up(concurrency):
    model = Dear(0.3, concurrency)
    spending = Budget(max_cost_usd=5.0).open_account()
    answered = send_all(model, spending)
    assert len(answered) == model.requests == 16 and spending.budget.spent_usd == pytest.approx(4.8)
    spent = {"limit_usd": 5.0, "spent_usd": pytest.approx(4.8)}
    assert spending.budget.stop_reason.as_dict() == {"code": "cost_limit_reached", **spent}


def test_without_a_limit_reached_everything_is_sent_at_once():
    model = Dear(0.01)
    spending = Budget(max_cost_usd=5.0, max_hours=1.0).open_account()
    assert len(send_all(model, spending)) == 50 and spending.budget.stop_reason is None and model.most == 4


def test_an_unknown_cost_ends_it_after_one_answer():
    model = Dear(None)
    spending = Budget(max_cost_usd=5.0).open_account()
    assert len(send_all(model, spending)) == model.requests == 1
    assert spending.budget.stop_reason == Diagnostic("cost_unknown", model="NAME", missing=[], spent_usd=0.0)
    assert "prices=" in spending.budget.hint


def test_a_limit_of_hours():
    now = iter(range(0, 10**9, 600))  # every look at the clock is ten minutes later
    model = Dear(None, concurrency=1)
    spending = Budget(max_hours=1.0, clock=lambda: next(now)).open_account()
    assert len(send_all(model, spending)) == 5 and spending.budget.stop_reason.code == "hour_limit_reached"


def test_the_price_that_is_missing_is_named():
    model = Dear(None)
    model.unpriced = lambda response: ("audio_input",)
    spending = Budget(max_cost_usd=5.0).open_account(model)
    send_all(model, spending)
    assert spending.budget.stop_reason.parameters["missing"] == ["audio_input"]
    assert "--set dear.prices='{audio_input: PRICE}'" in spending.budget.hint


@pytest.mark.parametrize("n", [17, 50])
def test_what_a_limit_holds_back_is_counted(n):
    """Five dollars pay for 16 answers of 0.3; the rest of the questions were not sent."""
    model = Dear(0.3)
    answering = Answering(model, None, None, None, {}, spending=Budget(max_cost_usd=5.0).open_account(), shared=True)

    async def run():
        questions = (Request(f"q{k}", fields={"text": "x"}) for k in range(n))
        return [pair async for pair in answering.send_requests(model, questions)]

    with refuses(
        "spending_stopped", cause={"code": "cost_limit_reached", "limit_usd": 5}, count=n - 16, unit="question"
    ):
        asyncio.run(run())
    assert model.requests == 16
