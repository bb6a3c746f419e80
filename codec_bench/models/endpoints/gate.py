"""Limits how many requests are sent at once. The limit is found by trying.

Conventions
    The limit grows by one each time that as many requests as it allows were answered; until the first complaint it
    doubles instead. After a complaint ("too many requests"), the limit is the number of other requests that are still in
    flight, so that a service with a fixed number of places is filled and not overfilled. A request without an answer in
    time halves the limit, once for all requests that were sent before. This is additive increase and multiplicative
    decrease (Chiu and Jain 1989, doi:10.1016/0169-7552(89)90019-6).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Literal

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
        self.busy = self.most = 0
        self._clock, self._sleep = clock, sleep
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._doubling, self._cuts, self._closed_until = True, 0, 0.0

    async def enter(self) -> int:
        """Waits for a place. Pass the number that it returns to `leave`."""
        while True:
            while (pause := self._closed_until - self._clock()) > 0:
                await self._sleep(pause)
            if self.busy < int(self.limit):
                break
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self._wake()  # gives the place to the next request
                raise
        self.busy += 1
        self.most = max(self.most, self.busy)
        return self._cuts

    def leave(self, ticket: int, outcome: Outcome) -> None:
        """Gives the place back.

        Args:
            ticket: what `enter` returned.
            outcome: how the request went.
        """
        full = self.busy >= int(self.limit)
        self.busy -= 1
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

    def lower_ceiling(self, most: int) -> None:
        """Never lets more than `most` requests through at once, because the service said that it takes no more."""
        self.ceiling = max(1, min(self.ceiling, most))
        self.limit = min(self.limit, float(self.ceiling))

    def close_for(self, seconds: float) -> None:
        """Lets no request through for some seconds, because the service said when it takes requests again."""
        self._closed_until = max(self._closed_until, self._clock() + seconds)

    def _wake(self) -> None:
        free = int(self.limit) - self.busy
        while self._waiting and free > 0:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1
