"""The model that answers the questions of one run: whether it is still the same one, and which answers are kept for it.

Conventions
    Where a model's identity tells two checkpoints apart (weights on this machine, a dated name at a vendor), answers are
    shared by all runs. Where it does not (an address of one's own, a name without a date), an answer is reused within its run
    alone, unless the caller says otherwise: a run that shares finds the answers of all runs, also of those that do not share.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from codec_bench.benchmark.asking.batched import Batched
from codec_bench.benchmark.asking.requests import Lookup, Pair, ask_all
from codec_bench.benchmark.asking.spending import Spending
from codec_bench.errors import RunMismatch, UserError
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter
from codec_bench.types import Request, Response

if TYPE_CHECKING:
    from codec_bench.models.cache import ResponseCache


class Answering:
    """Asks one model for one run.

    Args:
        model: the model. begin: starts it; awaited before the first question of each run.
        writer: the record of the run.
        cache: where answers are kept, or None.
        identity: everything that is known to change an answer before the model is started.
        shared: whether answers of other runs are taken although the service may serve another checkpoint now.
        spending: what the command spends, or None.
        noted_as: the entry of the record that holds what the service says of itself; a judge has one of its own.
    """

    def __init__(
        self,
        model: Model,
        begin: Callable[[], Awaitable[None]],
        writer: AnswerWriter,
        cache: ResponseCache | None,
        identity: Mapping[str, Any],
        *,
        shared: bool = False,
        spending: Spending | None = None,
        noted_as: str = "service",
    ) -> None:
        self._spending, self._noted_as = spending, noted_as
        self._batched: Batched | None = None
        self._model, self._begin, self._writer, self._cache = model, begin, writer, cache
        self._identity, self._shared = dict(identity), shared or model.tells_apart
        self._alias: dict[str, Any] | None = None

    def in_batches(self, tell: Callable[[str], None], *, anew: bool = False) -> Batched:
        """From now on the questions are asked in batches.

        Args:
            tell: called with a sentence on what is being done.
            anew: whether questions whose answers failed in earlier batches are asked again.

        Raises:
            UserError: the model cannot be asked in batches.
        """
        self._batched = Batched(self._model, self._writer, tell, spending=self._spending)
        if anew:
            self._batched.forget_collected()
        return self._batched

    async def start(self) -> None:
        """Starts the model and notes what its service says of itself.

        Raises:
            RunMismatch: the service serves another model than when the run was begun.
            UserError: the model cannot be started.
        """
        await self._begin()
        facts = dict(await self._model.describe())
        if facts:
            self._identity["service"] = facts.get("model", {})
        if not self._shared:
            self._alias = dict(self._identity)
            self._identity["run"] = self._token()
        if not facts:
            return
        before = self._writer.meta(self._noted_as) or []
        if before:
            self._compare(before[-1], facts)
        if not before or {**before[-1], "when": None} != {**facts, "when": None}:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            self._writer.set_meta(**{self._noted_as: [*before, {**facts, "when": now}]})

    async def ask_some(
        self, model: Model, requests: Iterable[Request]
    ) -> AsyncGenerator[tuple[Request, Response | None], None]:
        """As `ask_all`, or in batches if that was asked for: then a request that is answered later is yielded with None.

        Raises:
            UserError: as `ask_all` and `Batched.ask_all`.
        """
        if self._batched is None:
            async with aclosing(self.ask_all(model, requests)) as pairs:
                async for pair in pairs:
                    yield pair
            return
        lookup = Lookup(self._cache, model, self._identity, self._alias) if self._cache is not None else None
        try:
            async with aclosing(self._batched.ask_all(requests, lookup)) as some:
                async for one in some:
                    yield one
        finally:
            if lookup is not None:
                await lookup.close()

    async def ask_all(self, model: Model, requests: Iterable[Request]) -> AsyncGenerator[Pair, None]:
        """As `requests.ask_all`, with the answers that are kept for this model.

        Raises:
            UserError: as `requests.ask_all`, or a limit is reached. What was answered before is yielded first.
        """
        spending = self._spending
        pairs = ask_all(
            model, requests, cache=self._cache, identity=self._identity, alias=self._alias, spending=spending
        )
        async with aclosing(pairs):
            async for pair in pairs:
                yield pair
        if spending is not None and spending.why is not None:
            raise UserError(spending.why, hint=spending.hint)

    def _token(self) -> str:
        """A word that is this run's alone."""
        token = self._writer.meta("token")
        if token is None:
            token = secrets.token_hex(16)
            self._writer.set_meta(token=token)
        return str(token)

    def _compare(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        was, is_now = before.get("model", {}), now.get("model", {})
        changed = [f"{n} was {was[n]!r}, now {is_now[n]!r}" for n in was if n in is_now and was[n] != is_now[n]]
        if changed:
            raise RunMismatch(
                f"'{self._writer.folder}' was begun with another model behind the same name: {'; '.join(changed)}",
                hint="give another --out, or serve the model that it was begun with",
            )


__all__ = ["Answering"]
