"""Retries requests: which errors, waits, when to give up, how many at once.

Waits grow exponentially with full jitter and respect Retry-After; throttled requests are retried until `throttled_s`. A
question is sent at most `MOST_REQUESTS` times (code `TOO_OFTEN`). An error that would fail every request ends the run;
it can be resumed. Concurrency follows additive increase, multiplicative decrease (Chiu and Jain 1989,
doi:10.1016/0169-7552(89)90019-6): it doubles until the first throttling, then drops to the other requests in flight; a
timeout halves it once.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, Literal, TypeVar

from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError
from codec_bench.models.endpoints.error_texts import cause_of

Outcome = Literal["good", "crowded", "slow", "neutral"]
START = 64
CUT = 0.5


class RequestGate:
    """Admits requests in order of arrival, at most `limit` at once.

    Args:
        ceiling: the maximum of the limit.

    Attributes:
        limit: how many requests may be in flight now.
        busy: how many are.
        most: the peak.
        held: slots reserved for answers that are not yet on the disk.
    """

    def __init__(
        self,
        ceiling: int,
        *,
        start: int = START,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.ceiling = max(1, int(ceiling))
        self.limit = float(min(self.ceiling, start))
        self.busy = self.most = self.held = 0
        self._clock, self._sleep = clock, sleep
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._waiting_to_hold: deque[asyncio.Future[None]] = deque()
        self._doubling, self._cuts, self._closed_until = True, 0, 0.0

    async def enter(self, slots: HeldSlots | None = None) -> int:
        """Wait until a request may start; return the ticket for `leave`.

        Args:
            slots: of the question (one sample for one model); a held one is reused; None if its answer
                is not stored.
        """
        while True:
            while (pause := self._closed_until - self._clock()) > 0:
                await self._sleep(pause)
            if (slots is not None and slots.take(self)) or self._free(slots is not None) > 0:
                break
            slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if slots is None:
                self._waiting.append(slot)
            else:
                self._waiting_to_hold.append(slot)
                slots.wait(self, slot)
            try:
                await slot
            except asyncio.CancelledError:
                if slot.done() and not slot.cancelled():
                    self._wake()  # gives the place to the next request
                raise
        self.busy += 1
        self.most = max(self.most, self.busy)
        return self._cuts

    def leave(self, ticket: int, outcome: Outcome, slots: HeldSlots | None = None) -> None:
        """End a request, and adapt the limit of concurrent requests to its outcome.

        Args:
            ticket: the result of `enter`.
            outcome: `good` raises the limit, `crowded` and `slow` lower it.
            slots: slots of the question, which keeps this one after a good outcome until its answer is stored.
        """
        full = self.busy + self.held >= int(self.limit)
        self.busy -= 1
        if slots is not None and outcome == "good":
            slots.hold(self)
        if outcome == "good" and full:  # a limit that was not reached says nothing
            self.limit = min(float(self.ceiling), self.limit + (1.0 if self._doubling else 1.0 / self.limit))
        elif outcome == "crowded":
            self.limit = max(1.0, min(self.limit, float(self.busy)))
            self._doubling = False
        elif outcome == "slow" and ticket == self._cuts:
            self.limit = max(1.0, self.limit * CUT)
            self._doubling = False
            self._cuts += 1
        self._wake()

    def release(self) -> None:
        """Free a held slot for another request."""
        self.held -= 1
        self._wake()

    def lower_ceiling(self, most: int) -> None:
        """Cap the concurrency at `most`, the service's stated maximum."""
        self.ceiling = max(1, min(self.ceiling, most))
        self.limit = min(self.limit, float(self.ceiling))

    def close_for(self, seconds: float) -> None:
        """Admit no request for some seconds, as the service demands."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _free(self, holds: bool) -> int:
        return int(self.limit) - self.busy - (self.held if holds else 0)

    def _wake(self) -> None:
        """Let waiting requests start while slots are free."""
        woken = 0
        for waiting, holds in ((self._waiting, False), (self._waiting_to_hold, True)):
            while waiting and self._free(holds) > woken:
                slot = waiting.popleft()
                if not slot.done():
                    slot.set_result(None)
                    woken += 1


class HeldSlots:
    """Slots of the request gate that a question occupies until its answer is stored."""

    def __init__(self) -> None:
        self._at: list[RequestGate] = []
        self._waiting: list[tuple[RequestGate, asyncio.Future[None]]] = []
        self._over = False

    def wait(self, gate: RequestGate, slot: asyncio.Future[None]) -> None:
        """Register a further request of the question for the next occupied slot."""
        self._waiting.append((gate, slot))

    def hold(self, gate: RequestGate) -> None:
        """Occupy one more slot of a gate, unless the question is finished."""
        if self._over:
            return
        gate.held += 1
        self._at.append(gate)
        self._waiting = [one for one in self._waiting if not one[1].done()]
        slot = next((slot for at, slot in self._waiting if at is gate), None)
        if slot is not None:  # nobody else gives this question a place while it holds them all
            slot.set_result(None)

    def take(self, gate: RequestGate) -> bool:
        """Give back an occupied slot for the next request; return whether there was one."""
        if gate not in self._at:
            return False
        self._at.remove(gate)
        gate.held -= 1
        return True

    def release_all(self) -> None:
        """Release all slots. Call it once the question is finished."""
        self._over = True
        while self._at:
            self._at.pop().release()


HELD_SLOTS: ContextVar[HeldSlots | None] = ContextVar("held_slots", default=None)
"""Slots of the current question; None if its answer is not stored."""

MOST_REQUESTS = 10
TOO_OFTEN = "sent_too_often"
"""`finish` of a question that was sent `MOST_REQUESTS` times."""
PATIENT_GROWTH, PATIENT_S, DAILY_S = 4.0, 3600.0, 3 * 3600.0
"""Waits of a patient client: growth, maximum, and interval for a daily quota."""


class RemainingAttempts:
    """The remaining attempts of one question, for any reason."""

    def __init__(self) -> None:
        self.left = MOST_REQUESTS - 1

    def take(self) -> bool:
        """Use one attempt; returns whether any was left."""
        self.left -= 1
        return self.left >= 0


REPEATS: ContextVar[RemainingAttempts | None] = ContextVar("repeats", default=None)
"""Attempts of the current question; None if each request counts alone."""

T = TypeVar("T")
# Attempts of one request that may reach the time limit: a request that reached it once will probably do so again.
TIMEOUTS = 2
# After this many requests in a row without an answer, the service is taken to be down and each request is tried once.
GONE = 8
# So many equal refusals, with no answer between them, are no property of the questions.
ALIKE = 8
_SHOWN = 160  # characters of a service's message, on the line of the progress
_CHANGING = re.compile(r"[0-9a-f-]{8,}|\d+")
RESUME_HINT = "answers so far are recorded; the same command continues"


class Retryable(Exception):
    """A failed attempt that may succeed when repeated.

    Args:
        wait_s: the wait that the service requests, in seconds, or None.
        crowded: the service accepts no more requests now.
        slow: the attempt reached the time limit.
        disconnected: the service is unreachable.
        daily: the daily quota is used up.
        hint: advice about an unreachable service, or None.
    """

    def __init__(
        self,
        reason: str,
        *,
        wait_s: float | None = None,
        crowded: bool = False,
        slow: bool = False,
        disconnected: bool = False,
        daily: bool = False,
        hint: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.wait_s, self.hint = reason, wait_s, hint
        self.crowded, self.slow, self.disconnected, self.daily = crowded, slow, disconnected, daily


class RequestFailed(Exception):
    """A request without an answer: refused by the service, or every attempt failed.

    `message` is the raw text of the refusal. `code` is `TOO_OFTEN` or None.
    """

    def __init__(
        self,
        reason: str,
        *,
        refused: bool = False,
        text: str | None = None,
        attempts: int = 1,
        message: str = "",
        code: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason, self.refused, self.text, self.attempts, self.message = reason, refused, text, attempts, message
        self.code = code


class Denied(Exception):
    """The service denies access: the key, the URL or the model name is wrong.

    `final`: it would deny every request, because the key is invalid or the account has no credit.
    """

    def __init__(self, reason: str, hint: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.final = reason, hint, final


@dataclass(frozen=True, slots=True)
class Patience:
    """When to give up.

    Args:
        attempts: the most attempts for one request.
        timeout_s: time limit of one attempt, up to the complete answer.
        throttled_s: time limit of one throttled request, waits included.
        first_s, longest_s: the first and the longest wait between attempts before jitter, in seconds.
        stops_s: the run ends if the service requests a longer wait, or throttles without any answer for as long. None
            waits forever, also for a daily quota.
    """

    attempts: int = 5
    timeout_s: float = 300.0
    throttled_s: float = 900.0
    first_s: float = 0.5
    longest_s: float = 30.0
    stops_s: float | None = 300.0


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """A value with the latency of its attempt and the service's request id."""

    value: T
    latency_s: float
    attempts: int
    request: str | None = None

    def served(self, **more: str | None) -> dict[str, str]:
        """Return the known facts about the serving side: `more` and the request id."""
        return {name: value for name, value in {**more, "request": self.request}.items() if value}

    def about(self, **more: str | None) -> dict[str, Any]:
        """Return the fields of a response about the request; `more` as for `served`."""
        return {"latency_s": self.latency_s, "attempts": self.attempts, "served": self.served(**more)}


def is_temporary(status: int) -> bool:
    """Whether another attempt may succeed after this HTTP status."""
    return status in (408, 409, 425, 429) or status >= 500


def is_crowded(status: int) -> bool:
    """Whether this HTTP status means too many requests."""
    return status in (429, 503, 529)


class RetryPolicy:
    """Repeats attempts until success or until `patience` ends, through a gate.

    Attributes:
        notify: called with a sentence when the service throttles.
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
        self.gate = RequestGate(concurrency, clock=clock, sleep=sleep)
        self.answered = 0
        self._clock, self._sleep, self._rng = clock, sleep, rng or random.Random()
        self._failures = 0
        self._alike, self._alike_count = "", 0
        self._good_at: float | None = None
        self.notify: Callable[[str], None] = lambda sentence: None

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> Reply[T]:
        """Await `attempt()` until it returns.

        Args:
            attempt: raises `Retryable` if a repetition may succeed, `RequestFailed` if none will, and `Denied` without
                access.

        Raises:
            RequestFailed: there is no answer; the reason is that of the last attempt.
            UserError: every other request would fail too.
        """
        began, attempts, timeouts, repeats = self._clock(), 0, 0, REPEATS.get() or RemainingAttempts()
        self._good_at = began if self._good_at is None else self._good_at
        while True:
            attempts += 1
            try:
                return await self._once(attempt, attempts)
            except Retryable as error:
                timeouts += error.slow
                tries = 1 if self._failures >= GONE else self.patience.attempts
                spent = attempts >= tries or timeouts >= TIMEOUTS
                wait = self._wait_s(error, attempts)
                if (error.crowded or not spent) and not repeats.take():
                    raise self._end(error, attempts, TOO_OFTEN) from None
                if error.crowded:
                    spent = self._on_throttled(error, wait, began)
                elif self.patience.stops_s is not None:
                    spent = spent or wait > self.patience.stops_s
                if spent:
                    raise self._end(error, attempts) from None
                if not (error.crowded or self.answered):
                    self.notify(f"no answer yet, next try in {max(1, round(wait))} s; {_brief(error.reason)}")
            except RequestFailed as failure:
                failure.attempts = attempts
                if failure.refused and not self.answered:
                    self._count(failure.reason, cause_of(failure.reason))
                raise
            except Denied as denied:
                if denied.final or not self.answered:
                    raise UserError(
                        as_reason(denied.reason, "service_refusal"),
                        hint=denied.hint + (f"; {RESUME_HINT}" if self.answered else ""),
                    ) from None
                self._count(denied.reason, f"{denied.hint}; {RESUME_HINT}")
                raise RequestFailed(denied.reason, attempts=attempts) from None
            await self._sleep(wait)

    def _on_throttled(self, error: Retryable, wait_s: float, began_s: float) -> bool:
        """Report a rate limit; return whether to give up this request.

        UserError ends the run, if the service stays closed for too long.

        Args:
            wait_s: seconds until the next attempt.
            began_s: when the first attempt began.
        """
        now, limit_s = self._clock(), self.patience.stops_s
        if limit_s is not None:
            silent_s = now + wait_s - (self._good_at or 0.0)
            if error.daily or wait_s > limit_s or silent_s > limit_s:
                raise UserError(
                    "service_stopped",
                    cause=Diagnostic("quota_used_up", cause=error.reason) if error.daily else error.reason,
                    wait_s=wait_s if error.wait_s is not None and wait_s > limit_s else None,
                    hint=f"{RESUME_HINT}; --wait waits for as long as it takes",
                )
        places = int(self.gate.limit)
        slots = f"{places} slot{'s' if places != 1 else ''}"
        # Before the first answer it is not known that the service will ever take a request.
        detail = "" if self.answered else f"; {_brief(error.reason)}"
        self.notify(f"rate limited, next try in {max(1, round(wait_s))} s, {slots}{detail}")
        return limit_s is not None and now - began_s + wait_s > self.patience.throttled_s

    def _count(self, reason: str, hint: str) -> None:
        """Count a refusal; UserError for the eighth in a row with the same words."""
        words = _CHANGING.sub("#", reason)
        self._alike_count = self._alike_count + 1 if words == self._alike else 1
        self._alike = words
        if self._alike_count >= ALIKE:
            raise UserError("refused_alike", count=ALIKE, cause=reason, hint=hint)

    async def _once(self, attempt: Callable[[], Awaitable[T]], number: int) -> Reply[T]:
        """Make one attempt within the time limit, and report its outcome to the gate."""
        places = HELD_SLOTS.get()
        ticket = await self.gate.enter(places)
        outcome: Outcome = "neutral"
        began = self._clock()
        try:
            async with asyncio.timeout(self.patience.timeout_s):
                value = await attempt()
            outcome = "good"
            self.answered += 1
            self._failures = self._alike_count = 0
            self._good_at = self._clock()
            return Reply(value, self._clock() - began, number)
        except TimeoutError:
            outcome = "slow"
            raise Retryable(Diagnostic("no_complete_answer", limit_s=self.patience.timeout_s), slow=True) from None
        except Retryable as error:
            outcome = "crowded" if error.crowded else "neutral"
            raise
        finally:
            self.gate.leave(ticket, outcome, places)

    def _wait_s(self, error: Retryable, attempts: int) -> float:
        """Return the seconds before the next attempt, random and growing with attempts."""
        if not error.crowded:
            return self._jitter(attempts) if error.wait_s is None else error.wait_s
        patient = self.patience.stops_s is None
        longest = self.patience.first_s * (PATIENT_GROWTH if patient else 2.0) ** min(attempts - 1, 16)
        longest = min(longest, PATIENT_S) if patient else longest
        least = DAILY_S if patient and error.daily else self._rng.uniform(longest / 2, longest)
        return max(error.wait_s or 0.0, least)

    def _jitter(self, attempts: int) -> float:
        longest = min(self.patience.longest_s, self.patience.first_s * 2 ** min(attempts - 1, 16))
        return self._rng.uniform(0.0, longest)

    def _end(self, error: Retryable, attempts: int, code: str | None = None) -> Exception:
        """Return the exception that ends a request after its last attempt.

        UserError if no connection was ever possible, else RequestFailed.
        """
        self._failures += 1
        if error.disconnected and not self.answered:
            return UserError(
                as_reason(error.reason, "service_refusal"),
                hint=error.hint or "is the server running, and is base_url right?",
            )
        sent_often = code is not None
        reason = Diagnostic("sent_often", cause=error.reason, times=MOST_REQUESTS) if sent_often else error.reason
        return RequestFailed(reason, attempts=attempts, code=code)


def _brief(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
