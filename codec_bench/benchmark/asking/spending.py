"""A command's budget of money and time for answers and verdicts.

A request in flight counts as much as its model's dearest answer so far, to keep the limit. Until the first cost of a
model is known, only one request to it is in flight. Cached answers cost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model
from codec_bench.types import Response

RESUME_HINT = "answers so far are recorded; the same command continues"


class Budget:
    """The budget of one command, for all its models and judges.

    Args:
        max_cost_usd: US dollars that may be spent; None for no limit.
        max_hours: hours that requests may take; None for no limit.

    Attributes:
        spent_usd: the cost of the answers.
        stopped: the reached limit, or None.
        hint: advice for that case.
    """

    def __init__(
        self, max_cost_usd: float | None = None, max_hours: float | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self.most_usd, self._most_s = max_cost_usd, None if max_hours is None else 3600.0 * max_hours
        self._clock, self._began = clock, clock()
        self._all: list[Spending] = []
        self.spent_usd = 0.0
        self.stopped: Diagnostic | None = None
        self.hint = RESUME_HINT

    @property
    def stop_reason(self) -> Diagnostic | None:
        """Why no more requests are sent, with the amount spent; None if more may be sent."""
        if self.stopped is None:
            return None
        return Diagnostic(self.stopped.code, **{**self.stopped.parameters, "spent_usd": self.spent_usd})

    def limit_error(self, held_back: int, unit: str = "question") -> UserError:
        """Return the error of a reached limit; `held_back`: questions that were not sent."""
        return UserError("spending_stopped", cause=self.stop_reason, count=held_back, unit=unit, hint=self.hint)

    def open_account(self, model: Model | None = None) -> Spending:
        """Open one model's account; a missing price is reported with its model."""
        self._all.append(Spending(self, model))
        return self._all[-1]

    def check(self, ahead_usd: float) -> None:
        """Note whether an additional amount would reach a limit."""
        if self.most_usd is not None:
            ahead_usd += sum(one.in_flight_usd for one in self._all)
            if self.spent_usd + ahead_usd > self.most_usd:
                self.stopped = Diagnostic("cost_limit_reached", limit_usd=self.most_usd)
                self.hint = f"{RESUME_HINT}, with a new limit"
        if self._most_s is not None and self._clock() - self._began >= self._most_s:
            self.stopped = Diagnostic("hour_limit_reached", limit_hours=self._most_s / 3600)
            self.hint = f"{RESUME_HINT}, with a new limit"


class Spending:
    """One model's account in a budget; built by `Budget.open_account`."""

    def __init__(self, budget: Budget, model: Model | None) -> None:
        self.budget, self._model = budget, model
        self._in_flight, self._dearest_usd = 0, None if budget.most_usd is not None else 0.0
        self._known = asyncio.Event()

    @property
    def in_flight_usd(self) -> float:
        """The possible cost of the requests in flight."""
        return self._in_flight * (self._dearest_usd or 0.0)

    async def begin(self) -> bool:
        """Reserve budget for one request; returns False if a limit is reached.

        Until the first cost is known, it waits for the request in flight.
        """
        while self.budget.stop_reason is None and self._dearest_usd is None and self._in_flight:
            self._known.clear()
            await self._known.wait()
        if not self.allows(1):
            return False
        self._in_flight += 1
        return True

    def allows(self, more: int, share: float = 1.0) -> bool:
        """Whether so many more requests may be in flight; `share` of the price is paid."""
        if self.budget.stop_reason is None:
            self.budget.check(more * share * (self._dearest_usd or 0.0))
        return self.budget.stop_reason is None

    def end(self, response: Response) -> None:
        """Charge the answer to a request that `begin` allowed."""
        self._in_flight -= 1
        self.add(response)

    def add(self, response: Response) -> None:
        """Charge an answer to the budget; an unknown cost stops one with a cost limit."""
        cost = response.usage.get("cost_usd")
        if cost is not None:
            self.budget.spent_usd += cost
            self._dearest_usd = max(self._dearest_usd or 0.0, cost)
        elif self.budget.most_usd is not None and response.status == "ok" and not response.cached:
            self._unknown(response)
        self._known.set()

    def _unknown(self, response: Response) -> None:
        """Stop the budget: an answer's cost is unknown. The hint says how to state prices."""
        missing = self._model.unpriced(response) if self._model is not None else ()
        name = self._model.info.name if self._model is not None else "NAME"
        self.budget.stopped = self.budget.stopped or Diagnostic("cost_unknown", model=name, missing=missing)
        if self._model is not None and not missing and not hasattr(self._model, "prices"):
            self.budget.hint = (
                f"let its answers say what they cost, 0 for nothing (usage={{'cost_usd': 0}}); {RESUME_HINT}"
            )
            return
        unnamed = [kind for kind in missing if not kind.endswith("_tokens")] or ["input", "output"]
        example = "{" + ", ".join(f"{kind}: PRICE" for kind in unnamed) + "}"
        self.budget.hint = (
            f"--set {name}.prices='{example}', in US dollars per million tokens (audio_minute: per minute, "
            f"characters: per million); {RESUME_HINT}"
        )
