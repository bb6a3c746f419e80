"""A simulated network in both directions, with delays drawn by seed.

A WebSocket runs over TCP: loss is a further delay, and no message overtakes another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from codec_bench.apps.conversation.script import Network


class NetworkLink:
    """One direction; `random` draws per message and transmission, `act` receives."""

    def __init__(self, network: Network, random: np.random.Generator, act: Callable[[Any], Awaitable[None]]) -> None:
        self.network, self.random, self.act = network, random, act
        self._waiting: asyncio.Queue[tuple[float, Any]] = asyncio.Queue()
        self._last_s = 0.0

    def put(self, message: Any) -> None:
        """Send a message."""
        late_s = self.network.delay_s + self.network.jitter_s * self.random.random()
        while self.random.random() < self.network.loss:
            late_s += self.network.again_s
        self._last_s = max(self._last_s, asyncio.get_running_loop().time() + late_s)
        self._waiting.put_nowait((self._last_s, message))

    async def run(self) -> None:
        """Deliver every message at its time, until cancelled."""
        while True:
            when_s, message = await self._waiting.get()
            await asyncio.sleep(when_s - asyncio.get_running_loop().time())
            await self.act(message)
