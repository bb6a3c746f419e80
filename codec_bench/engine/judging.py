"""Verdicts of a judge on recorded answers, written as they come: a run that was stopped asks for the missing ones only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from time import perf_counter

from codec_bench.audio.clip import Clip
from codec_bench.engine.marking import answer_of, counting_wrong
from codec_bench.errors import UserError
from codec_bench.judges.rating import Rating, id_of
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter, Exchange, Reading, exchanges
from codec_bench.store.record import Run
from codec_bench.types import Request, Response, Score

WRITE_VERDICTS = 64
WRITE_S = 1.0

Asking = Callable[[Model, Iterable[Request]], AsyncIterator[tuple[Request, Response]]]


async def rate_all(
    run: Run,
    writer: AnswerWriter,
    ratings: Mapping[str, Rating],
    judge: Model,
    ask_all: Asking,
    progress: Callable[[int, int, int], None],
    seed: int,
) -> None:
    """Asks the judge for every verdict that the record does not hold.

    Args:
        run, writer: the record, for reading and for writing.
        judge: started. ask_all: sends requests to it, as many at once as it takes.
        progress: called with (verdicts there, in all, failed).
        seed: of what the judge draws.

    Raises:
        UserError: the judge cannot be used at all, or the record cannot be written. Verdicts that came are kept.
    """
    for name, rating in ratings.items():
        await _Rounds(run, writer, name, rating, progress, seed).run(judge, ask_all)


class _Rounds:
    """All verdicts of one rubric."""

    def __init__(
        self,
        run: Run,
        writer: AnswerWriter,
        name: str,
        rating: Rating,
        progress: Callable[[int, int, int], None],
        seed: int,
    ) -> None:
        self._run, self._writer, self._name, self._rating, self._progress = run, writer, name, rating, progress
        self._seed, self._system = seed, next(iter(run.systems))
        self._waiting: dict[str, tuple[Exchange, int, dict[str, Response]]] = {}
        self._ready: dict[int, Score] = {}
        self._last_write = perf_counter()
        self._done = self._failed = self._total = 0

    async def run(self, judge: Model, ask_all: Asking) -> None:
        """Asks for what is missing."""
        answered = self._writer.answered()
        there = self._writer.scored(self._name)
        self._done, self._total = len(there), len(answered)
        try:
            async with aclosing(ask_all(judge, self._requests(set(answered) - there))) as replies:
                async for request, response in replies:
                    exchange, expected, responses = self._waiting[id_of(request)]
                    responses[request.id] = response
                    if len(responses) == expected:
                        del self._waiting[exchange.question.id]
                        answer = answer_of(exchange, exchange.reading)
                        self._take(exchange, self._rating.score(answer, expected, responses))
        finally:
            self._write(force=True)

    def _requests(self, todo: set[int]) -> Iterator[Request]:
        for exchange in exchanges(self._run):
            if exchange.question.number not in todo:
                continue
            reading = exchange.reading or Reading(None, None, "the answer was not read")
            if exchange.answer.status != "ok" or reading.parsed is None:
                status = "unparsed" if exchange.answer.status == "ok" else exchange.answer.status
                self._take(exchange, Score(None, status, reading.reason, self._rating.protocol))
                continue
            sound = Clip(str(exchange.answer_path)) if exchange.answer_path is not None else None
            try:
                asked = self._rating.requests(answer_of(exchange, reading), sound, self._seed)
            except UserError as error:  # a rubric that this question does not fill
                asked = Score.failed(error.message, self._rating.protocol)
            if isinstance(asked, Score):
                self._take(exchange, asked)
                continue
            self._waiting[exchange.question.id] = (exchange, len(asked), {})
            yield from asked

    def _take(self, exchange: Exchange, score: Score) -> None:
        if score.status != "ok":
            self._failed += 1
            reading = exchange.reading or Reading()
            # A question that the rubric does not fit was answered neither well nor badly.
            if score.status != "refused" or exchange.answer.status != "ok":
                score = counting_wrong(score, self._rating.worst(answer_of(exchange, reading)))
        self._ready[exchange.question.number] = score
        self._done += 1
        self._write(force=False)

    def _write(self, force: bool) -> None:
        due = force or len(self._ready) >= WRITE_VERDICTS or perf_counter() - self._last_write >= WRITE_S
        if self._ready and due:
            self._writer.write_scores(self._system, self._name, self._ready)
            self._ready = {}
            self._last_write = perf_counter()
            self._progress(self._done, self._total, self._failed)
