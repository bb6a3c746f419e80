"""A judge's verdicts on recorded answers.

They are written as they come, so that a run that was stopped asks only for the missing ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from time import perf_counter

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.asking.sending import AskAll
from codec_bench.benchmark.judge.metric import JudgeMetric, id_of
from codec_bench.benchmark.judge.published import ASKS_AGAIN, MOST_ASKED
from codec_bench.benchmark.judging.ask_again import AskedAgain
from codec_bench.benchmark.scoring.scoring import answer_of, unread_score
from codec_bench.errors import UserError
from codec_bench.models.base import Model
from codec_bench.store.answers import AnswerWriter, Exchange, Reading, exchanges
from codec_bench.store.record import Run
from codec_bench.types import Request, Response, Score

WRITE_VERDICTS = 64
WRITE_S = 1.0


async def judge_all(
    run: Run,
    writer: AnswerWriter,
    metrics: Mapping[str, JudgeMetric],
    judge: Model,
    ask_all: AskAll,
    progress: Callable[[int, int, int], None],
    seed: int,
) -> None:
    """Asks the judge for every verdict that the record does not hold yet.

    Args:
        run, writer: the record, for reading and for writing.
        metrics: the metrics whose numbers are the judge's verdicts, by name.
        judge: the model, started.
        ask_all: sends requests to the judge, as many at once as it takes.
        progress: called with (verdicts in the record, verdicts wanted, failed).
        seed: the run's seed, for what the judge draws.

    Raises:
        UserError: the judge cannot be used at all, or the record cannot be written. Verdicts that came are kept.
    """
    for name, metric in metrics.items():
        unreadable = ASKS_AGAIN.get(metric.rubric.reply)
        asked = judge if unreadable is None else AskedAgain(judge, unreadable, MOST_ASKED)
        await _Verdicts(run, writer, name, metric, progress, seed).run(asked, ask_all)


class _Verdicts:
    """Asks for all verdicts of one metric; arguments as `judge_all`."""

    def __init__(
        self,
        run: Run,
        writer: AnswerWriter,
        name: str,
        metric: JudgeMetric,
        progress: Callable[[int, int, int], None],
        seed: int,
    ) -> None:
        self._run, self._writer, self._name, self._metric, self._progress = run, writer, name, metric, progress
        self._seed, self._system = seed, next(iter(run.systems))
        self._waiting: dict[str, tuple[Exchange, int, dict[str, Response]]] = {}
        self._ready: dict[int, Score] = {}
        self._last_write = perf_counter()
        self._done = self._failed = self._total = 0

    async def run(self, judge: Model, ask_all: AskAll) -> None:
        """Asks for the verdicts that are missing."""
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
                        answer = answer_of(exchange, self._reading(exchange))
                        self._take(exchange, self._metric.score(answer, expected, responses))
        finally:
            self._write(force=True)

    def _requests(self, todo: set[int]) -> Iterator[Request]:
        for exchange in exchanges(self._run):
            if exchange.question.number not in todo:
                continue
            reading = self._reading(exchange)
            if exchange.answer.status != "ok" or reading.parsed is None:
                self._take(exchange, unread_score(exchange, reading, self._metric.protocol))
                continue
            sound = Clip(str(exchange.answer_path)) if exchange.answer_path is not None else None
            try:
                asked = self._metric.requests(answer_of(exchange, reading), sound, self._seed)
            except UserError as error:  # the rubric names a column that this question does not have
                asked = Score.failed(error.message, self._metric.protocol)
            if isinstance(asked, Score):
                self._take(exchange, asked)
                continue
            self._waiting[exchange.question.id] = (exchange, len(asked), {})
            yield from asked

    def _reading(self, exchange: Exchange) -> Reading:
        """What the judge is given of an answer: what was read of it when it was scored, or all of it."""
        reading = exchange.reading or Reading(None, None, "the answer was not read")
        if not self._metric.reads_raw:
            return reading
        whole = reading.transcript or exchange.answer.text
        return Reading(reading.transcript, whole, None if whole is not None else "the model gave no text")

    def _take(self, exchange: Exchange, score: Score) -> None:
        if score.status != "ok":
            self._failed += 1
            # A question that the rubric does not fit, or that no answer is right to, was answered neither well nor badly.
            if score.status not in ("refused", "undefined") or exchange.answer.status != "ok":
                score = score.counting_wrong(self._metric.worst(answer_of(exchange, self._reading(exchange))))
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
