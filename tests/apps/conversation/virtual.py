"""An event loop whose clock stands still while anything is on its way, and jumps to the next timer otherwise.

Messages over a WebSocket take no time on it, and waiting takes none of the test's. What is on its way is known: a
message that was sent and not received, and a connection that is being opened or closed.
"""

from __future__ import annotations

import asyncio
import selectors
from collections import Counter

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection

STUCK_S = 0.3
"""Real seconds after which nothing is taken to be on its way any more."""


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self.loop = loop

    def select(self, timeout=None):
        result = super().select(0)
        if result or timeout == 0:
            return result
        if timeout is None:
            return super().select(None)
        while self.loop.on_its_way():
            if result := super().select(STUCK_S):
                return result
            self.loop.messages.clear()
            self.loop.changing = 0
        self.loop.now += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        self.now, self.messages, self.changing, self.left = 1000.0, Counter(), 0, set()
        super().__init__(_Selector(self))

    def time(self):
        return self.now

    def on_its_way(self):
        return self.changing > 0 or any(
            count > 0 and variant not in self.left for variant, count in self.messages.items()
        )


def patched(monkeypatch):
    """Counts the messages and connections of every virtual loop."""
    send, recv, dropped = Connection.send, Connection.recv, Connection.connection_lost
    enter, leave = connect.__aenter__, connect.__aexit__

    def variant(one, *, back=False):
        try:
            here, there = one.local_address, one.remote_address
        except OSError:
            return None
        return (there, here) if back else (here, there)

    async def counted_send(self, message, **more):
        if isinstance(self.loop, VirtualLoop):
            self.loop.messages[variant(self)] += 1
        await send(self, message, **more)

    async def counted_recv(self, *args, **more):
        message = await recv(self, *args, **more)
        if isinstance(self.loop, VirtualLoop):
            self.loop.messages[variant(self, back=True)] -= 1
        return message

    def forgotten(self, error):
        if isinstance(self.loop, VirtualLoop):
            for key in self.ways if hasattr(self, "ways") else ():
                self.loop.messages.pop(key, None)
        dropped(self, error)

    built = Connection.connection_made

    def noted(self, transport):
        built(self, transport)
        self.ways = (variant(self), variant(self, back=True))

    def changing(call):
        async def counted(self, *args):
            loop = asyncio.get_running_loop()
            virtual = isinstance(loop, VirtualLoop)
            loop.changing = loop.changing + 1 if virtual else 0
            try:
                return await call(self, *args)
            finally:
                loop.changing = max(0, loop.changing - 1)

        return counted

    monkeypatch.setattr(Connection, "send", counted_send)
    monkeypatch.setattr(Connection, "recv", counted_recv)
    monkeypatch.setattr(Connection, "connection_lost", forgotten)
    monkeypatch.setattr(Connection, "connection_made", noted)
    monkeypatch.setattr(connect, "__aenter__", changing(enter))

    async def left(self, *args):
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):  # nobody reads what still comes
            loop.left.update(self.connection.ways)
        return await leave(self, *args)

    monkeypatch.setattr(connect, "__aexit__", changing(left))


def run(main):
    """Runs a coroutine on the virtual clock."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
