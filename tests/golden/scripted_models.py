"""Models as tests use them: one with scripted answers, and requests to any model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Request, Response


class Recording(Model):
    """Answers with the result of a function of the request, and remembers the ids of the requests."""

    identity = property(lambda self: {})

    def __init__(self, reply: Callable[[Request], Any], concurrency: int = 1) -> None:
        self.info, self.reply, self.concurrency = ModelInfo("told"), reply, concurrency
        self.requests: list[str] = []

    async def ask(self, request: Request) -> Response:
        """What the function says: an answer, a text, or an exception to raise."""
        self.requests.append(request.id)
        await asyncio.sleep(0)
        text = self.reply(request)
        if isinstance(text, BaseException):
            raise text
        return text if isinstance(text, Response) else Response(text=text)


class Logged(Model):
    """Writes the text of each request into a file, as one line; `stop_after` may end it after some answers."""

    def __init__(self, log: str, stop_after: int = 0) -> None:
        self.log, self.left = log, stop_after or 10**9

    def output(self, request: Request) -> str:
        """The text of the request.

        Raises:
            UserError: it has given the configured number of answers.
        """
        if self.left == 0:
            raise UserError("the power is off")
        self.left -= 1
        requests = str(request.messages[-1].content[-1])
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(requests.replace("\n", " ") + "\n")
        return requests


def ask(model: Model, requests: Sequence[Request]) -> list[Response]:
    """Starts a model, gives it all requests at once, and closes it."""

    async def run() -> list[Response]:
        await model.start()
        try:
            return await asyncio.gather(*map(model.ask, requests))
        finally:
            await model.close()

    return asyncio.run(run())
