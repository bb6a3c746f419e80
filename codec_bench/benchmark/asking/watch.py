"""Watches whether the same model answers: what its service calls it, and a few questions that are asked again (canaries).

A service may serve another checkpoint under the same name without a word. Greedy decoding gives the same text again, or
nearly always does, so that an answer which differs is a sign of another model. It is no proof: sums of floating-point numbers
depend on what else is in a batch. So the numbers are told and recorded, and nothing is concluded from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from codec_bench.benchmark.definition.base import Question
from codec_bench.errors import UserError
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter
from codec_bench.types import Request, Response

QUESTIONS = 5
EVERY = 500


class Watch:
    """Watches one model in one run. Its canaries are the first greedy questions that got a text.

    Args:
        model: the model that is asked.
        writer: the record, where each comparison is noted.
        tell: called with a sentence when another model answers, or an answer differs.
        canaries: whether questions are asked again.
    """

    def __init__(
        self, model: Model, writer: AnswerWriter, tell: Callable[[str], None], *, canaries: bool = True
    ) -> None:
        self._model, self._writer, self._tell = model, writer, tell
        self._known: dict[str, tuple[Request, str]] = {}
        self._answers = 0
        self._off, self._by = model.tells_apart or not canaries, ""

    async def look_back(self, questions: Iterable[Question], render: Callable[[Question], Request]) -> None:
        """Asks questions again that the record holds answers to, to see whether the model still answers so."""
        texts = {} if self._off else self._writer.first_texts(QUESTIONS)
        if not texts:
            return
        for number, question in enumerate(questions):
            if number > max(texts):
                break
            if number in texts:
                with suppress(UserError):  # the row has changed since
                    self._remember(render(question), texts[number])
        await self.compare()

    async def note(self, request: Request, response: Response) -> None:
        """Takes one more answer of this session. After every 500 the canaries are asked again."""
        if response.status != "ok" or response.cached:
            return
        by = " ".join(response.served.get(name, "") for name in ("model", "revision")).strip()
        if by and self._by and by != self._by:
            self._tell(f"the service now says that {by} answers, and not {self._by}")
        self._by = by or self._by
        self._remember(request, response.text)
        self._answers += 1
        if self._answers % EVERY == 0:
            await self.compare()

    async def compare(self) -> None:
        """Asks the canaries again and notes how many answers are the same."""
        if self._off or not self._known:
            return
        asked = same = 0
        for request, text in self._known.values():
            again = await self._model.ask(request)
            if again.status == "ok":
                asked += 1
                same += again.text == text
        if asked:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            noted: list[Mapping[str, Any]] = self._writer.meta("canary") or []
            self._writer.set_meta(canary=[*noted, {"when": now, "asked": asked, "same": same}])
        if same < asked:
            self._tell(f"{asked - same} of {asked} questions that were asked again got another answer than before")

    def _remember(self, request: Request, text: str | None) -> None:
        wanted = not self._off and len(self._known) < QUESTIONS
        if wanted and text and request.wants == "text" and request.parameters.get("temperature") == 0:
            self._known[request.id] = (request, text)


__all__ = ["EVERY", "QUESTIONS", "Watch"]
