"""Repeats requests to a service: which errors are worth another attempt, how long to wait, when to give up, how many to
send at once.

Conventions
    The wait before the next attempt grows exponentially with full jitter (a random share of it), so that requests that
    failed together are not sent again together. A service that takes no requests is tried again after at least half of
    that wait, and after the wait that it requests (Retry-After) if this is longer, until `throttled_s` have passed,
    whatever `attempts` is. No service gets a question more than `MOST_REQUESTS` times, whatever the reasons are: the
    answer is then a failure with the code `TOO_OFTEN`. What would fail every other request too ends the run: a key that
    is wrong or has expired, a wrong URL or name of the model, a quota that is used up for the day, a service that asks
    for a longer wait than `stops_s` or answers nothing for as long, and the same refusal of the first eight requests.
    What was answered is kept, and the run can be continued.

    How many requests are sent at once is found by trying. The limit grows by one each time that as many requests as it
    allows were answered; until the first complaint it doubles instead. After a complaint ("too many requests"), the
    limit is the number of other requests that are still in flight, so that a service with a fixed number of places is
    filled and not overfilled. A request without an answer in time halves the limit, once for all requests that were
    sent before. This is additive increase and multiplicative decrease (Chiu and Jain 1989,
    doi:10.1016/0169-7552(89)90019-6).

    A question whose answer is to be kept before the next is asked holds its place at the gate after the answer has come
    (`Places`). So a kill never costs more paid answers than there are places.
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
from typing import Generic, Literal, TypeVar

from codec_bench.errors import UserError
from codec_bench.models.endpoints.error_texts import cause_of

Outcome = Literal["good", "crowded", "slow", "neutral"]
START = 64
CUT = 0.5


class Gate:
    """Lets requests through in order of arrival, at most `limit` at once.

    Args:
        ceiling: the limit never grows beyond this.
        start: the first limit.
        clock, sleep: the clock and the wait; tests pass their own.

    Attributes:
        limit: how many requests may be in flight now. busy: how many are. most: the most that ever were.
        held: how many places are kept free, because their answers have come and are not yet on the disk.
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

    async def enter(self, places: Places | None = None) -> int:
        """Waits for a place. Pass the number that it returns to `leave`.

        Args:
            places: those of the question. One that it holds here is taken again. Without `places`, as for a question
                that is only asked to see what comes, held places do not count.
        """
        while True:
            while (pause := self._closed_until - self._clock()) > 0:
                await self._sleep(pause)
            if (places is not None and places.take(self)) or self._free(places is not None) > 0:
                break
            slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if places is None:
                self._waiting.append(slot)
            else:
                self._waiting_to_hold.append(slot)
                places.wait(self, slot)
            try:
                await slot
            except asyncio.CancelledError:
                if slot.done() and not slot.cancelled():
                    self._wake()  # gives the place to the next request
                raise
        self.busy += 1
        self.most = max(self.most, self.busy)
        return self._cuts

    def leave(self, ticket: int, outcome: Outcome, places: Places | None = None) -> None:
        """Gives the place back.

        Args:
            ticket: what `enter` returned.
            outcome: how the request went.
            places: those of the question, which holds the place of a good outcome until its answer is kept.
        """
        full = self.busy + self.held >= int(self.limit)
        self.busy -= 1
        if places is not None and outcome == "good":
            places.hold(self)
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
        """Lets another request into a place that was held."""
        self.held -= 1
        self._wake()

    def lower_ceiling(self, most: int) -> None:
        """Never lets more than `most` requests through at once, because the service said that it takes no more."""
        self.ceiling = max(1, min(self.ceiling, most))
        self.limit = min(self.limit, float(self.ceiling))

    def close_for(self, seconds: float) -> None:
        """Lets no request through for some seconds, because the service said when it takes requests again."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _free(self, holds: bool) -> int:
        """How many places are free for a request that will hold its place, or for another."""
        return int(self.limit) - self.busy - (self.held if holds else 0)

    def _wake(self) -> None:
        woken = 0
        for waiting, holds in ((self._waiting, False), (self._waiting_to_hold, True)):
            while waiting and self._free(holds) > woken:
                slot = waiting.popleft()
                if not slot.done():
                    slot.set_result(None)
                    woken += 1


class Places:
    """The places at gates that one question holds after its answer has come, until the answer is kept."""

    def __init__(self) -> None:
        self._at: list[Gate] = []
        self._waiting: list[tuple[Gate, asyncio.Future[None]]] = []
        self._over = False

    def wait(self, gate: Gate, slot: asyncio.Future[None]) -> None:
        """Lets a further request of the question, which waits at a gate, go on with the next place that is held there."""
        self._waiting.append((gate, slot))

    def hold(self, gate: Gate) -> None:
        """Holds one more place, unless the question is over: a request may end after it."""
        if self._over:
            return
        gate.held += 1
        self._at.append(gate)
        self._waiting = [one for one in self._waiting if not one[1].done()]
        slot = next((slot for at, slot in self._waiting if at is gate), None)
        if slot is not None:  # nobody else gives this question a place while it holds them all
            slot.set_result(None)

    def take(self, gate: Gate) -> bool:
        """Takes a place that is held there for a further request of the same question; whether there was one."""
        if gate not in self._at:
            return False
        self._at.remove(gate)
        gate.held -= 1
        return True

    def give_back(self) -> None:
        """Gives all places back, because the answer is kept or will never be; the question is over."""
        self._over = True
        while self._at:
            self._at.pop().release()


PLACES: ContextVar[Places | None] = ContextVar("places", default=None)
"""Of the question that is being asked; None where nobody keeps its answer."""

MOST_REQUESTS = 10
TOO_OFTEN = "sent_too_often"
"""How the answer to a question that was sent `MOST_REQUESTS` times ended."""
PATIENT_GROWTH, PATIENT_S, DAILY_S = 4.0, 3600.0, 3 * 3600.0
"""Waits of a patient client: their growth, the longest, and between two attempts at a used-up quota of a day."""


class Repeats:
    """How often one question may still be sent again, for whatever reason."""

    def __init__(self) -> None:
        self.left = MOST_REQUESTS - 1

    def take(self) -> bool:
        """Takes one of them; whether there was one."""
        self.left -= 1
        return self.left >= 0


REPEATS: ContextVar[Repeats | None] = ContextVar("repeats", default=None)
"""Of the question that is being sent; None where each request counts alone."""

T = TypeVar("T")
# Attempts of one request that may reach the time limit: a request that reached it once will probably do so again.
TIMEOUTS = 2
# After this many requests in a row without an answer, the service is taken to be down and each request is tried once.
GONE = 8
# So many equal refusals, with no answer between them, are no property of the questions.
ALIKE = 8
_SHOWN = 160  # characters of what a service says, on the line of the progress
_CHANGING = re.compile(r"[0-9a-f-]{8,}|\d+")
RESUME_HINT = "what was answered is kept, and the same command goes on with the rest"


class Again(Exception):
    """An attempt failed, and another one may succeed.

    Args:
        reason: one sentence.
        wait_s: how long the service asks to wait, in seconds; None if it does not say.
        crowded: whether the service takes no more requests now. slow: whether the attempt reached the time limit.
        lost: whether the service could not be reached. daily: whether a quota is used up for the day.
        hint: what to do about a service that could not be reached; None if there is nothing special.
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
        self.reason, self.wait_s, self.crowded, self.slow, self.disconnected = (
            reason,
            wait_s,
            crowded,
            slow,
            disconnected,
        )
        self.daily, self.hint = daily, hint


class RequestFailed(Exception):
    """There will be no answer to a request: the service refuses it (`refused`), or every attempt failed.

    `said` is what the service sent with its refusal, unread. `code` is `TOO_OFTEN` or None.
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
    """The service denies access: the key, the URL or the name of the model is wrong.

    `final` says that it would deny every other request too: the key is not valid, or the account has no credit.
    """

    def __init__(self, reason: str, hint: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.hint, self.final = reason, hint, final


@dataclass(frozen=True, slots=True)
class Patience:
    """When to give up.

    Args:
        attempts: the most attempts for one request.
        timeout_s: time limit of one attempt, from sending it to the complete answer.
        throttled_s: time limit of one request that the service answers with "too many requests", waiting included.
        first_s, longest_s: the first and the longest wait between attempts, before jitter; in seconds.
        stops_s: the run ends if the service requests a longer wait, or if it has answered nothing for as long because
            it takes no requests. None waits for as long as it takes, also for a quota of the day.
    """

    attempts: int = 5
    timeout_s: float = 300.0
    throttled_s: float = 900.0
    first_s: float = 0.5
    longest_s: float = 30.0
    stops_s: float | None = 300.0


@dataclass(frozen=True, slots=True)
class Reply(Generic[T]):
    """A value, the seconds of the attempt that gave it, the number of attempts, and the service's id of the request."""

    value: T
    latency_s: float
    attempts: int
    request: str | None = None

    def served(self, **more: str | None) -> dict[str, str]:
        """What the service said of itself: `more` and the id of the request, as far as they are known."""
        return {name: value for name, value in {**more, "request": self.request}.items() if value}


def is_temporary(status: int) -> bool:
    """Whether another attempt may succeed after this HTTP status."""
    return status in (408, 409, 425, 429) or status >= 500


def is_crowded(status: int) -> bool:
    """Whether this HTTP status says that the service gets too many requests."""
    return status in (429, 503, 529)


class Persistence:
    """Repeats attempts until one succeeds or `patience` ends. A gate limits how many run at once.

    Args:
        concurrency: the most attempts at once.
        patience: when to give up.
        clock, sleep, rng: the clock, the wait and the random numbers; tests pass their own.

    Attributes:
        tell: called with a sentence when the service takes no requests.
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
        self._failures = 0
        self._alike, self._alike_count = "", 0
        self._good_at: float | None = None
        self.notify: Callable[[str], None] = lambda sentence: None

    async def insist(self, attempt: Callable[[], Awaitable[T]]) -> Reply[T]:
        """Awaits `attempt()` until it returns.

        Args:
            attempt: raises `Again` if another attempt may succeed, `RequestFailed` if none will, and `Denied` if the
                service denies access.

        Raises:
            RequestFailed: there is no answer; the reason is that of the last attempt.
            UserError: every other request would fail too.
        """
        began, attempts, timeouts, repeats = self._clock(), 0, 0, REPEATS.get() or Repeats()
        self._good_at = began if self._good_at is None else self._good_at
        while True:
            attempts += 1
            try:
                return await self._once(attempt, attempts)
            except Again as again:
                timeouts += again.slow
                tries = 1 if self._failures >= GONE else self.patience.attempts
                spent = attempts >= tries or timeouts >= TIMEOUTS
                wait = self._wait_s(again, attempts)
                if (again.crowded or not spent) and not repeats.take():
                    raise self._end(again, attempts, TOO_OFTEN) from None
                if again.crowded:
                    spent = self._throttled(again, wait, began)
                elif self.patience.stops_s is not None:
                    spent = spent or wait > self.patience.stops_s
                if spent:
                    raise self._end(again, attempts) from None
                if not (again.crowded or self.answered):
                    self.notify(f"no answer yet, next try in {max(1, round(wait))} s; {_brief(again.reason)}")
            except RequestFailed as failure:
                failure.attempts = attempts
                if failure.refused and not self.answered:
                    self._count(failure.reason, cause_of(failure.reason))
                raise
            except Denied as denied:
                if denied.final or not self.answered:
                    raise UserError(
                        denied.reason, hint=denied.hint + (f"; {RESUME_HINT}" if self.answered else "")
                    ) from None
                self._count(denied.reason, f"{denied.hint}; {RESUME_HINT}")
                raise RequestFailed(denied.reason, attempts=attempts) from None
            await self._sleep(wait)

    def _throttled(self, again: Again, wait: float, began: float) -> bool:
        """Tells that the service takes no requests now; returns whether to give up this request.

        Raises:
            UserError: it takes none for so long that the run should end.
        """
        now, limit_s = self._clock(), self.patience.stops_s
        if limit_s is not None:
            silent_s = now + wait - (self._good_at or 0.0)
            if again.daily or wait > limit_s or silent_s > limit_s:
                why = f"the quota of the day is used up: {again.reason}" if again.daily else again.reason
                asks = f", and asks to wait {wait:.0f} s" if again.wait_s is not None and wait > limit_s else ""
                raise UserError(f"{why}{asks}", hint=f"{RESUME_HINT}; --wait waits for as long as it takes")
        places = int(self.gate.limit)
        slots = f"{places} slot{'s' if places != 1 else ''}"
        # Before the first answer it is not known that the service will ever take a request.
        detail = "" if self.answered else f"; {_brief(again.reason)}"
        self.notify(f"rate limited, next try in {max(1, round(wait))} s, {slots}{detail}")
        return limit_s is not None and now - began + wait > self.patience.throttled_s

    def _count(self, reason: str, hint: str) -> None:
        """Counts a refusal.

        Raises:
            UserError: it is the eighth in the same words, with no answer between them.
        """
        words = _CHANGING.sub("#", reason)
        self._alike_count = self._alike_count + 1 if words == self._alike else 1
        self._alike = words
        if self._alike_count >= ALIKE:
            raise UserError(f"{ALIKE} questions in a row were refused in the same words: {reason}", hint=hint)

    async def _once(self, attempt: Callable[[], Awaitable[T]], number: int) -> Reply[T]:
        places = PLACES.get()
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
            raise Again(f"no complete answer within {self.patience.timeout_s:g} s", slow=True) from None
        except Again as again:
            outcome = "crowded" if again.crowded else "neutral"
            raise
        finally:
            self.gate.leave(ticket, outcome, places)

    def _wait_s(self, again: Again, attempts: int) -> float:
        """How long to wait before the next attempt."""
        if not again.crowded:
            return self._jitter(attempts) if again.wait_s is None else again.wait_s
        patient = self.patience.stops_s is None
        longest = self.patience.first_s * (PATIENT_GROWTH if patient else 2.0) ** min(attempts - 1, 16)
        longest = min(longest, PATIENT_S) if patient else longest
        least = DAILY_S if patient and again.daily else self._rng.uniform(longest / 2, longest)
        return max(again.wait_s or 0.0, least)

    def _jitter(self, attempts: int) -> float:
        longest = min(self.patience.longest_s, self.patience.first_s * 2 ** min(attempts - 1, 16))
        return self._rng.uniform(0.0, longest)

    def _end(self, again: Again, attempts: int, code: str | None = None) -> Exception:
        self._failures += 1
        if again.disconnected and not self.answered:
            return UserError(again.reason, hint=again.hint or "is the server running, and is base_url right?")
        sent = f"; the question was sent {MOST_REQUESTS} times" if code is not None else ""
        return RequestFailed(again.reason + sent, attempts=attempts, code=code)


def _brief(text: str) -> str:
    """What a service said, for the line of the progress."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
