"""A judge that is asked again while its reply cannot be read, as some published programs do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from codec_bench.models.base import Model
from codec_bench.types import Request, Response


class AskedAgain(Model):
    """Puts the same request to a judge until its reply can be read. The last reply counts, whatever it is.

    A call that fails is not repeated here: models repeat failed calls themselves.

    Args:
        judge: the model; the caller starts and closes it.
        unreadable: whether a reply cannot be read.
        most: how often one request is put at most.
    """

    def __init__(self, judge: Model, unreadable: Callable[[str], bool], most: int) -> None:
        self.info, self.concurrency = judge.info, judge.concurrency
        self._judge, self._unreadable, self._most = judge, unreadable, most

    @property
    def identity(self) -> Mapping[str, Any]:
        """The judge's identity and the limit: the cached reply of a single call does not stand for the last one."""
        return {**self._judge.identity, "asked_at_most": self._most}

    async def ask(self, request: Request) -> Response:
        """The first reply that can be read, or the last one; its `attempts` and `usage` are those of all calls together."""
        attempts, used = 0, Counter[str]()
        for _ in range(self._most):
            response = await self._judge.ask(request)
            attempts += response.attempts
            used.update(response.usage)
            if response.status != "ok" or response.text is None or not self._unreadable(response.text):
                break
        return replace(response, attempts=attempts, usage=dict(used))
