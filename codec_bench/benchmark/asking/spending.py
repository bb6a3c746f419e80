"""What a command spends on answers, in money and in time, and when it asks nothing more.

Conventions
    Requests in flight count as much as the dearest answer so far, so that the limit is not exceeded while they are answered.
    Until the first cost is known, only one request is in flight. Answers that are kept from before cost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

from codec_bench.models.base import Model
from codec_bench.types import Response

KEPT = "everything that was answered is kept, and the same command goes on with the rest"


class Spending:
    """Counts what is spent and says when a limit is reached.

    Args:
        max_cost_usd: US dollars that may be spent; None for no limit.
        max_hours: hours that asking may take; None for no limit.
        clock: seconds; tests pass their own.
        model: the model that is asked, whose prices are named where one is missing; or None.

    Attributes:
        spent_usd: what the answers have cost. hint: what to do once nothing more is asked.
    """

    def __init__(
        self,
        max_cost_usd: float | None = None,
        max_hours: float | None = None,
        clock: Callable[[], float] = monotonic,
        model: Model | None = None,
    ) -> None:
        self._model = model
        self._most_usd, self._most_s = max_cost_usd, None if max_hours is None else 3600.0 * max_hours
        self._clock, self._began = clock, clock()
        self._in_flight, self._dearest_usd = 0, None if max_cost_usd is not None else 0.0
        self._known = asyncio.Event()
        self.spent_usd = 0.0
        self._stopped: str | None = None
        self.hint = KEPT

    @property
    def why(self) -> str | None:
        """Why nothing more is asked, with what was spent until now; None if more may be asked."""
        spent = f": {self.spent_usd:.4g} USD are spent" if self.spent_usd else ""
        return None if self._stopped is None else self._stopped + spent

    async def begin(self) -> bool:
        """Waits until it is known whether one more request may be sent; returns whether it may."""
        while self.why is None and self._dearest_usd is None and self._in_flight:
            self._known.clear()
            await self._known.wait()
        if not self.allows(1):
            return False
        self._in_flight += 1
        return True

    def allows(self, more: int, share: float = 1.0) -> bool:
        """Whether so many further requests may be in flight; those that are batched cost a share of the usual price."""
        if self.why is None:
            self._check(more, share)
        return self.why is None

    def end(self, response: Response) -> None:
        """Takes the answer to a request that began."""
        self._in_flight -= 1
        self.add(response)

    def add(self, response: Response) -> None:
        """Takes an answer, whenever it was asked for."""
        cost = response.usage.get("cost_usd")
        if cost is not None:
            self.spent_usd += cost
            self._dearest_usd = max(self._dearest_usd or 0.0, cost)
        elif self._most_usd is not None and response.status == "ok" and not response.cached:
            self._unknown(response)
        self._known.set()

    def _unknown(self, response: Response) -> None:
        """Stops because nobody knows what an answer cost."""
        missing = self._model.unpriced(response) if self._model is not None else ()
        name = self._model.info.name if self._model is not None else "NAME"
        what = f" (unknown: {', '.join(missing)})" if missing else ""
        self._stopped = self._stopped or (
            f"the cost of an answer is not known{what}, so that a limit of cost cannot be kept"
        )
        unnamed = [part for part in missing if not part.endswith("_tokens")] or ["input", "output"]
        example = "{" + ", ".join(f"{part}: PRICE" for part in unnamed) + "}"
        self.hint = f"--set {name}.prices='{example}', in US dollars per million tokens (audio_minute: per minute, characters: per million); {KEPT}"

    def _check(self, more: int, share: float) -> None:
        if self._most_usd is not None:
            ahead = (self._in_flight + more) * share * (self._dearest_usd or 0.0)
            if self.spent_usd + ahead > self._most_usd:
                self._stopped = f"the limit of {self._most_usd:g} USD is reached"
                self.hint = f"{KEPT}, with a new limit"
        if self._most_s is not None and self._clock() - self._began >= self._most_s:
            self._stopped = f"the limit of {self._most_s / 3600:g} hours is reached"
            self.hint = f"{KEPT}, with a new limit"


__all__ = ["Spending"]
