"""Detect a change of the model behind a service: by its name and by canaries.

Greedy decoding nearly always repeats a text, so a different answer is a sign of another model, but no proof:
floating-point sums depend on the rest of a batch. The numbers are reported and recorded without a conclusion.

A canary with another answer is expected to repeat that one, so one change is reported once. Each comparison is recorded
with the answers since the previous one, which may be from either model if canaries differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from codec_bench.benchmark.asking.sending import send_request as answer_to
from codec_bench.benchmark.asking.spending import Spending
from codec_bench.benchmark.definition.base import Question
from codec_bench.messages.errors import UserError
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter
from codec_bench.types import Request, Response

QUESTIONS = 5
EVERY = 500


class Watch:
    """Detects a change of the model during a run, by repeating some questions.

    These canaries are the first questions for a text that are decoded greedily.

    Args:
        notify: called with a sentence when another model answers, or an answer differs.
        every: after how many answers the canaries are repeated.
        spending: the budget, which a canary needs like any question; None for no limits.
    """

    def __init__(
        self,
        model: Model,
        writer: AnswerWriter,
        notify: Callable[[str], None],
        every: int | None = None,
        *,
        canaries: bool = True,
        spending: Spending | None = None,
    ) -> None:
        self._model, self._writer, self.notify = model, writer, notify
        self._every = EVERY if every is None else every
        self._known: dict[str, tuple[Request, str]] = {}
        self._answers, self._since = 0, Counter[tuple[str, str]]()
        self._off, self._by = model.tells_apart or not canaries, ""
        self._spending = spending

    async def look_back(self, questions: Iterable[Question], render: Callable[[Question], Request]) -> None:
        """Repeat questions that an earlier call recorded, to detect a change since then.

        Args:
            questions: all questions of the run, in order.
        """
        texts = {} if self._off else self._writer.first_texts(QUESTIONS)
        if not texts:
            return
        later = self._writer.meta("canary_texts") or {}
        for number, question in enumerate(questions):
            if number > max(texts):
                break
            if number in texts:
                with suppress(UserError):  # the row has changed since
                    self._remember(render(question), later.get(question.id, texts[number]))
        self._answers, self._since = self._writer.fresh_answers()
        for noted in self._noted():
            self._answers -= noted.get("answers", 0)
            for column, values in noted.get("subsets", {}).items():
                self._since.subtract({(column, value): n for value, n in values.items()})
        await self.compare()

    async def note(self, question: Question, request: Request, response: Response) -> None:
        """Count a new answer; after `every` answers, repeat the canary questions.

        Notifies the user if the service reports another model than before. Cached and failed answers do not count.
        """
        if response.status != "ok" or response.cached:
            return
        by = response.state
        if by and self._by and by != self._by:
            self.notify(f"the service now says that {by} answers, and not {self._by}")
        self._by = by or self._by
        self._remember(request, response.text)
        self._answers += 1
        self._since.update(question.subsets.items())
        if self._answers >= self._every:
            await self.compare()

    async def compare(self) -> None:
        """Repeat the canaries and record how many answers are the same.

        Notifies the user of different answers, which are the expected ones from then on.
        """
        if self._off or not self._known:
            return
        repeated, other, usage, unpriced = 0, {}, Counter[str](), 0
        for id, (request, text) in self._known.items():
            if self._spending is not None and not await self._spending.begin():
                break
            again = await answer_to(self._model, request)
            if self._spending is not None:
                self._spending.end(again)
            if again.status == "ok":
                repeated += 1
                usage.update(again.usage)
                unpriced += "cost_usd" not in again.usage
                if again.text != text:
                    other[id] = (request, again.text or "")
        if not repeated:
            return
        subsets: dict[str, dict[str, int]] = {}
        for (column, value), n in sorted(self._since.items()):
            if n > 0:
                subsets.setdefault(column, {})[value] = n
        now = datetime.now(UTC).isoformat(timespec="seconds")
        comparison = {
            "when": now, "asked": repeated, "same": repeated - len(other), "answers": self._answers, "subsets": subsets,
            "usage": dict(usage), "unpriced": unpriced,
        }  # fmt: skip
        self._writer.set_meta(canary=[*self._noted(), comparison])
        self._answers, self._since = 0, Counter()
        if other:
            self._known |= other
            self._writer.set_meta(canary_texts={id: text for id, (_, text) in self._known.items()})
            self.notify(f"{len(other)} of {repeated} repeated questions got another answer than before")

    def _noted(self) -> Sequence[Mapping[str, Any]]:
        return self._writer.meta("canary") or []

    def _remember(self, request: Request, text: str | None) -> None:
        if not self._off and len(self._known) < QUESTIONS and text and can_repeat(request):
            self._known[request.id] = (request, text)


def can_repeat(request: Request) -> bool:
    """Whether a request can be a canary: its answer is a text without sampling."""
    return request.wants == "text" and request.parameters.get("temperature") == 0


def count_canaries(model: Model, requests: Sequence[Request], questions: int, *, continues: bool) -> int:
    """The number of canaries in addition to the questions.

    Args:
        requests: the first questions.
        questions: how many there are.
        continues: whether the record already has answers, which are compared first.
    """
    if model.tells_apart:
        return 0
    return min(QUESTIONS, sum(map(can_repeat, requests))) * (questions // EVERY + continues)
