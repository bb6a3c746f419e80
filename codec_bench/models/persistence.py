"""Asking a service again: what is worth another attempt, how long to wait before it, and when to give up.

Conventions
    Waiting grows exponentially with full jitter (a uniform share of it), so that requests that failed together do not come
    back together. What the service itself says (Retry-After) goes before that.
    "Too many requests" is not the request's fault: it is repeated until `throttled_s` have passed, whatever `attempts` says.
    A wrong key, address or model name shows with the first request and ends the run: every other would fail alike. Once
    something was answered, it is that one request's failure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from codec_bench.errors import UserError
from codec_bench.models.gate import Gate, Outcome

T = TypeVar("T")
# An answer that takes longer than the limit once will most likely do so again.
TIMEOUTS = 2
# So many requests given up in a row without one answer: the service is gone, and further ones are tried once only.
GONE = 8


class Again(Exception):
    """An attempt that failed in a way that another may not.

    Args:
        reason: one sentence.
        wait_s: how long the service asks to wait, or None.
        crowded: the service takes no more requests now. slow: no answer within the time limit.
        lost: nobody answered at all.
    """

    def __init__(
        self,
        reason: str,
        *,
        wait_s: float | None = None,
        crowded: bool = False,
        slow: bool = False,
        lost: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason, self.wait_s, self.crowded, self.slow, self.lost = reason, wait_s, crowded, slow, lost


class GivenUp(Exception):
    """A request that has no answer: `refused` where the service does not take it, else failed."""

    def __init__(self, reason: str, *, refused: bool = False, text: str | None = None, attempts: int = 1) -> None:
        super().__init__(reason)
        self.reason, self.refused, self.text, self.attempts = reason, refused, text, attempts


class Denied(Exception):
    """The service turns down the caller, not the request: a wrong key, address or name."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to insist.

    Args:
        attempts: at most so many for one request.
        timeout_s: limit for one attempt, from sending it to the whole answer.
        throttled_s: limit for one request that the service puts off, waiting included.
        first_s, longest_s: the first and the longest wait between attempts, before jitter.
    """

    attempts: int = 5
    timeout_s: float = 300.0
    throttled_s: float = 900.0
    first_s: float = 0.5
    longest_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """What came back: the value, seconds of the attempt that brought it, and how many it took."""

    value: T
    latency_s: float
    attempts: int


class Persistence:
    """Makes attempts until one succeeds or patience ends, through a gate that learns how many fit at once.

    Args:
        concurrency: never more attempts at once.
        patience: how long to insist.
        clock, sleep, rng: seconds, waiting and chance; tests put their own.
    """

    def __init__(
        self,
        concurrency: int,
        patience: Patience | None = None,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self.patience = patience or Patience()
        self.gate = Gate(concurrency, clock=clock, sleep=sleep)
        self.answered = 0
        self._clock, self._sleep, self._rng = clock, sleep, rng or random.Random()
        self._given_up = 0

    async def insist(self, attempt: Callable[[], Awaitable[T]]) -> Reply[T]:
        """Awaits `attempt()` until it returns.

        Args:
            attempt: raises `Again` for what may pass, `GivenUp` for what will not, `Denied` for what no request survives.

        Raises:
            GivenUp: no answer, with the last reason.
            UserError: the first request of all was denied, or nobody answered it.
        """
        began, attempts, timeouts = self._clock(), 0, 0
        while True:
            attempts += 1
            try:
                return await self._once(attempt, attempts)
            except Again as again:
                timeouts += again.slow
                tries = 1 if self._given_up >= GONE else self.patience.attempts
                spent = attempts >= tries or timeouts >= TIMEOUTS
                wait = again.wait_s if again.wait_s is not None else self._jitter(attempts)
                if again.crowded:
                    spent = self._clock() - began + wait > self.patience.throttled_s
                if spent:
                    raise self._end(again, attempts) from None
            except GivenUp as given_up:
                given_up.attempts = attempts
                raise
            except Denied as denied:
                if not self.answered:
                    raise UserError(denied.reason, hint=denied.hint) from None
                raise GivenUp(denied.reason, attempts=attempts) from None
            await self._sleep(wait)

    async def _once(self, attempt: Callable[[], Awaitable[T]], number: int) -> Reply[T]:
        ticket = await self.gate.enter()
        outcome: Outcome = "neutral"
        began = self._clock()
        try:
            async with asyncio.timeout(self.patience.timeout_s):
                value = await attempt()
            outcome = "good"
            self.answered += 1
            self._given_up = 0
            return Reply(value, self._clock() - began, number)
        except TimeoutError:
            outcome = "slow"
            raise Again(f"no whole answer within {self.patience.timeout_s:g} s", slow=True) from None
        except Again as again:
            outcome = "crowded" if again.crowded else "neutral"
            raise
        finally:
            self.gate.leave(ticket, outcome)

    def _jitter(self, attempts: int) -> float:
        longest = min(self.patience.longest_s, self.patience.first_s * 2 ** min(attempts - 1, 16))
        return self._rng.uniform(0.0, longest)

    def _end(self, again: Again, attempts: int) -> Exception:
        self._given_up += 1
        if again.lost and not self.answered:
            return UserError(again.reason, hint="is the server running, and is base_url right?")
        return GivenUp(again.reason, attempts=attempts)
