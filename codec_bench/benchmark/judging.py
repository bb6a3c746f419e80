"""Judging: send recorded answers to all judges at once, and record the verdicts.

A stopped run requests only the missing verdicts. If one judge cannot be used at all, the others are stopped too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark import Benchmark
from codec_bench.benchmark.asking.sending import Answering, SendRequests
from codec_bench.benchmark.asking.spending import Budget
from codec_bench.benchmark.asking.user_model_process import load_apart
from codec_bench.benchmark.baselines import Baseline
from codec_bench.benchmark.judge.metric import (
    FINISHES,
    Alternative,
    JudgeMetric,
    id_of,
    is_judge_metric,
    load_judge_metric,
    published_judge,
)
from codec_bench.benchmark.judge.published import ASKS_AGAIN, MOST_REQUESTS
from codec_bench.benchmark.judge.spoken_answers import warning_of
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.reading import Unparsed, load_steps
from codec_bench.benchmark.reading.base import TRUNCATED
from codec_bench.benchmark.run_request import BenchmarkRequest, labelled_judges, started_model
from codec_bench.benchmark.scoring.scheme import Scheme
from codec_bench.benchmark.scoring.scoring import answer_of, answer_text, unread_score
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.models import check_served, code_identity, describe_service_end
from codec_bench.models.base import Model
from codec_bench.models.cache import ResponseCache
from codec_bench.store.answers import CALLS, AnswerWriter, Exchange, Reading, exchanges
from codec_bench.store.judge_tests import saved_test
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import Run
from codec_bench.store.sound_files import check_sound
from codec_bench.store.statuses import FAILURES
from codec_bench.types import Audio, Request, Response, Score

BASELINE = "baseline"
"""The column of the other answer, if neither the command nor the rubric names a baseline."""
WRITE_VERDICTS = 64
WRITE_S = 1.0


async def judge_all(
    run: Run,
    writer: AnswerWriter,
    metrics: Mapping[str, JudgeMetric],
    judge: Model,
    send_requests: SendRequests,
    progress: Callable[[int, int, int], None],
    seed: int,
    baseline: Baseline | None = None,
) -> None:
    """Request every verdict that the record lacks.

    Args:
        run, writer: the record, for reading and for writing.
        metrics: the judged metrics, by name.
        judge: the model, started.
        send_requests: sends many requests to the judge at once.
        progress: called with (verdicts in the record, verdicts in all, failed).
        seed: the run's seed, for the judge's sampling.
        baseline: the other answers, for rubrics that prefer one of two.

    Raises:
        UserError: the judge cannot be used at all, or the record cannot be written. Earlier verdicts are recorded.
    """
    first: dict[str, str] = {}
    for name, metric in metrics.items():
        unreadable = ASKS_AGAIN.get(metric.rubric.reply)
        repeating = judge if unreadable is None else RepeatingJudge(judge, unreadable, MOST_REQUESTS)
        # Rubrics that differ only in the reading or combination of replies share those in the first one's scores.
        reply = "rating" if unreadable is None else metric.rubric.reply
        question = metric.rubric.model_copy(update={"reply": reply, "combine": "mean"}).digest
        verdicts = _JudgeVerdicts(run, writer, name, metric, progress, seed, first.setdefault(question, name), baseline)
        await verdicts.run(repeating, send_requests)


class _JudgeVerdicts:
    """Requests one metric's verdicts; reuses replies recorded for the metric `like`."""

    def __init__(
        self,
        run: Run,
        writer: AnswerWriter,
        name: str,
        metric: JudgeMetric,
        progress: Callable[[int, int, int], None],
        seed: int,
        like: str,
        baseline: Baseline | None = None,
    ) -> None:
        self._like, self._baseline = like, baseline
        self._run, self._writer, self._name, self._metric, self._progress = run, writer, name, metric, progress
        self._seed, self._system = seed, next(iter(run.systems))
        self._process = (run.meta["fingerprint"].get("scored") or {}).get("process", ())
        self._waiting: dict[str, tuple[Exchange, int, dict[str, Response]]] = {}
        self._ready: dict[int, Score] = {}
        self._doubts: dict[int, str | None] = {}
        self._last_write = perf_counter()
        self._done = self._failed = self._total = 0

    async def run(self, judge: Model, send_requests: SendRequests) -> None:
        """Request and record the verdicts that the record lacks."""
        answered = self._writer.answered()
        there = self._writer.scored(self._name)
        self._done, self._total = len(there), len(answered)
        store_verdict = partial(self._write, force=judge.charges)
        try:
            async with aclosing(
                send_requests(judge, self._requests(set(answered) - there), on_stored=store_verdict)
            ) as replies:
                async for request, response in replies:
                    exchange, expected, responses = self._waiting[id_of(request)]
                    responses[request.id] = response
                    if len(responses) == expected:
                        del self._waiting[exchange.question.id]
                        answer = self._answer(exchange, self._reading(exchange))
                        self._take(exchange, self._metric.score(answer, expected, responses))
        finally:
            self._write(force=True)

    def _requests(self, todo: set[int]) -> Iterator[Request]:
        """Yield the judge's requests; score at once answers that need no request.

        Args:
            todo: numbers of the questions without a verdict.
        """
        twins = self._run.scores(metric=self._like) if self._like != self._name and todo else ()
        there = {score.id: score.detail for score in twins}
        for exchange in exchanges(self._run):
            if exchange.question.number not in todo:
                continue
            reading = self._reading(exchange)
            if exchange.answer.status != "ok" or reading.parsed is None:
                self._take(exchange, unread_score(exchange, reading, self._metric.protocol))
                continue
            sound = _clip(exchange.answer_path)
            earlier = [_clip(path) for _, path in exchange.turns] if self._metric.rubric.hears == "every" else []
            try:
                requests = self._requests_of(exchange, self._answer(exchange, reading), sound, earlier)
            except UserError as error:  # the rubric names a column that this question does not have
                requests = Score.failed(error.message, self._metric.protocol)
            if isinstance(requests, Score):
                self._take(exchange, requests)
                continue
            if sound is not None and self._metric.rubric.hears:
                clips = [one for one in (*earlier, sound) if one is not None]
                doubts = (_warning_of(one, exchange) for one in clips)
                self._doubts[exchange.question.number] = next(filter(None, doubts), None)
            held = there.get(exchange.question.id, {})
            stored_replies = held.get("replies", ())
            if len(stored_replies) == len(requests):
                keys = sorted(request.id for request in requests)
                replies = {
                    key: Response(text=text, finish=end, cached=True)
                    for key, text, end in zip(keys, stored_replies, held.get(FINISHES) or [None] * len(stored_replies))
                }
                score = self._metric.score(self._answer(exchange, reading), len(requests), replies)
                if served := held.get(CALLS, {}).get("served"):
                    score = replace(score, detail={**score.detail, CALLS: {**score.detail[CALLS], "served": served}})
                self._take(exchange, score)
                continue
            self._waiting[exchange.question.id] = (exchange, len(requests), {})
            yield from requests

    def _requests_of(
        self, exchange: Exchange, answer: Answer, sound: Clip | None, earlier: Sequence[Clip | None]
    ) -> list[Request] | Score:
        """The requests about one answer, or its score if the judge is not needed.

        Args:
            exchange: the recorded question and answer, to find the baseline's.
            sound, earlier: the audio of the answer and of earlier rounds.
        """
        metric = self._metric
        column = metric.rubric.baseline or (BASELINE if BASELINE in answer.fields else None)
        if not metric.prefers:
            return metric.requests(answer, sound, self._seed, earlier=earlier)
        if self._baseline is not None and self._baseline.folder.resolve() == self._run.folder.resolve():
            return Score.refused(Diagnostic("is_baseline"), metric.protocol)
        alternative = None
        if self._baseline is not None:
            if (alternative := self._baseline.of(exchange)) is None:
                return Score.refused(Diagnostic("baseline_without_answer"), metric.protocol)
        elif column == "audio":
            alternative = Alternative("", _clip(exchange.audio_path))
        elif column is not None and isinstance(text := answer.fields.get(column), str):
            alternative = Alternative(text)
        elif column is not None:
            return Score.refused(Diagnostic("no_text_in_column", column=column), metric.protocol)
        return metric.requests(answer, sound, self._seed, alternative)

    def _answer(self, exchange: Exchange, reading: Reading) -> Answer:
        return answer_of(exchange, reading, keep_reasoning=self._metric.is_official)

    def _reading(self, exchange: Exchange) -> Reading:
        """The answer's text for the judge: post-processed, raw or transcribed.

        A judge that `reads_raw` gets the transcript, or else the raw text. So does one that hears an answer which could
        not be parsed. All others get the post-processed text.
        """
        reading = exchange.reading or Reading(None, None, Diagnostic("not_read"))
        official, text = self._metric.is_official, exchange.answer.text
        text_now = None if text is None else answer_text(text, keep_reasoning=official)
        if self._metric.rubric.hears and exchange.answer_path is not None and reading.parsed is None:
            return replace(reading, parsed=reading.transcript or text_now or "", reason=None)
        truncated = reading.code == TRUNCATED and not official
        if not self._metric.reads_raw or exchange.answer.status != "ok" or truncated:
            return self._official_reading(exchange, reading) if official else reading
        transcript = reading.transcript or text_now
        return replace(reading, parsed=transcript, reason=None if transcript is not None else Diagnostic("no_text"))

    def _official_reading(self, exchange: Exchange, reading: Reading) -> Reading:
        """The text as a published program reads it, with the model's reasoning.

        Without reasoning, or for a spoken answer, `reading` is returned.
        """
        text = exchange.answer.text
        if text is None or exchange.answer.status != "ok" or reading.transcript is not None:
            return reading
        if cut_reasoning(text).text == text:
            return reading
        chain = replace(load_steps(self._process), keeps_reasoning=True)
        parsed = chain(text, exchange.question.fields)
        if isinstance(parsed, Unparsed):
            return replace(reading, parsed=None, reason=parsed.reason, code=parsed.code)
        return replace(reading, parsed=parsed.text, reason=None, code=None)

    def _take(self, exchange: Exchange, score: Score) -> None:
        """Queue a question's verdict for the record; failures get the worst score too."""
        warning = self._doubts.pop(exchange.question.number, None)
        if warning is not None and score.status == "ok":
            score = replace(score, detail={**score.detail, "flag": warning})
        if score.status != "ok":
            self._failed += 1
            # An unscorable question was answered neither well nor badly.
            if score.status in FAILURES or exchange.answer.status != "ok":
                score = score.counting_wrong(self._metric.worst(self._answer(exchange, self._reading(exchange))))
        self._ready[exchange.question.number] = score
        self._done += 1
        self._write(force=False)

    def _write(self, force: bool) -> None:
        """Write verdicts if enough have gathered, enough time passed, or by force."""
        due = force or len(self._ready) >= WRITE_VERDICTS or perf_counter() - self._last_write >= WRITE_S
        if self._ready and due:
            self._writer.write_scores(self._system, self._name, self._ready)
            self._ready = {}
            self._last_write = perf_counter()
            self._progress(self._done, self._total, self._failed)


def _clip(path: Path | None) -> Clip | None:
    return None if path is None else Clip(str(check_sound(path)))


def _warning_of(sound: Clip, exchange: Exchange) -> str | None:
    """A warning about a spoken answer; None also if its audio is unreadable."""
    try:
        question = Audio.read(exchange.audio_path) if exchange.audio_path is not None else None
    except AudioError:
        question = None
    try:
        return warning_of(sound.read(), question)
    except AudioError:
        return None


class RepeatingJudge(Model):
    """Repeats a judge's request until its reply is readable. The last reply counts.

    Failed calls are not repeated here: models repeat those themselves.

    Args:
        judge: the model; the caller starts and closes it.
        unreadable: whether a reply cannot be read.
        most: the most repetitions of one request.
    """

    def __init__(self, judge: Model, unreadable: Callable[[str], bool], most: int) -> None:
        self.info, self.concurrency, self.charges = judge.info, judge.concurrency, judge.charges
        self._judge, self._unreadable, self._most = judge, unreadable, most

    @property
    def identity(self) -> Mapping[str, Any]:
        """The judge's identity and the limit: one call's reply is not the last of many."""
        return {**self._judge.identity, "asked_at_most": self._most}

    async def ask(self, request: Request) -> Response:
        """Repeat the request until a reply is readable, or `most` times.

        Returns:
            The last response, with `attempts` and `usage` of all calls.
        """
        attempts, used = 0, Counter[str]()
        for _ in range(self._most):
            response = await self._judge.ask(request)
            attempts += response.attempts
            used.update(response.usage)
            if response.status != "ok" or response.text is None or not self._unreadable(response.text):
                break
        return replace(response, attempts=attempts, usage=dict(used))


async def judge_at_once(
    run: Run,
    writer: AnswerWriter,
    scheme: Scheme,
    request: BenchmarkRequest,
    budget: Budget,
    name: str,
    baseline: Baseline | None = None,
) -> None:
    """Request all missing verdicts from all judges at the same time and record them.

    Args:
        run, writer: the record, for reading and for writing.
        scheme: the metrics; judged ones name their judges.
        budget: the command's budget.
        name: of the benchmark, for the progress.
        baseline: the other answers for rubrics that compare two, or None.

    Raises:
        UserError: a judge cannot be used, or a limit is reached. Earlier verdicts are recorded.
    """
    judges = labelled_judges(request)
    cache = ResponseCache.of_user() if request.running.cache else None
    several = len(judges) > 1
    progress = _JudgingProgress(request, f"{name}: judging" + (f" by {len(judges)} judges" if several else ""))
    unsupported: dict[str, dict[str, Any]] = {label: {} for label in judges}

    async def ask(label: str, judge_name: str) -> None:
        """Request one judge's verdicts, all metrics in turn; `label` is its recorded name."""
        options, by = request.options.get(judge_name), f" by {label}" if several else ""
        if not request.terms.anyway:
            check_served(judge_name, options)
        judge = load_apart(judge_name, options, request.running.device)
        try:
            judge.set_waiting(lambda text: progress.waits(f"{by.strip()} {text}".strip()), patient=request.terms.wait)
            answering = Answering(
                judge,
                lambda: started_model(judge),
                writer,
                cache,
                {**judge.identity, **code_identity(judge_name, options)},
                shared=request.terms.reuse_answers,
                spending=budget.open_account(judge),
                noted_as=f"service of {label}",
                unit="verdict",
            )
            await answering.start()
            mine = {n: m for n, m in scheme.judged.items() if m.judge == label}
            send_requests = _watched(
                answering.send_requests, lambda text: progress.waits(f"{by.strip()} {text}".strip())
            )
            await judge_all(run, writer, mine, judge, send_requests, progress.of(label), request.seed, baseline)
            unsupported[label] = {
                f"{parameter}{by}": as_reason(why).as_dict() for parameter, why in judge.unsupported.items()
            }
        finally:
            await judge.close()

    try:
        async with asyncio.TaskGroup() as group:
            for label, judge_name in judges.items():
                group.create_task(ask(label, judge_name))
    except BaseExceptionGroup as errors:  # the first is why the others were stopped
        raise errors.exceptions[0] from None
    finally:
        if tests := {label: known.as_dict() for label in judges if (known := saved_test(label)).parts}:
            writer.set_meta(judge_tests=tests)  # for readers without a test of the judge
        if unstated := {parameter: why for one in unsupported.values() for parameter, why in one.items()}:
            writer.set_meta(judging={"untold": unstated})
        if cache is not None:
            cache.close()


def _watched(send_requests: SendRequests, notify: Callable[[str], None]) -> SendRequests:
    """Wrap `send_requests` so that a change of the service's model notifies the user."""
    seen: dict[str, None] = {}

    async def send(*arguments: Any, **named: Any) -> AsyncGenerator[tuple[Request, Response], None]:
        async with aclosing(send_requests(*arguments, **named)) as replies:
            async for request, response in replies:
                if response.state and response.state not in seen:
                    if seen:
                        notify(f"the service now says that {response.state} judges, and not {' or '.join(seen)}")
                    seen[response.state] = None
                yield request, response

    return send


def judge_notices(benchmarks: Sequence[Benchmark], request: BenchmarkRequest) -> list[str]:
    """Return lines on judges: their tests, published judges, and ends of service.

    One for each judge and metric says how the judge was tested; one for each metric, whose verdicts its published
    numbers are; one for each judge that ends soon or has ended, when.
    """
    notices: dict[str, None] = {}
    named = dict.fromkeys(name for one in benchmarks for name in one.metrics if is_judge_metric(name))
    for label, judge in labelled_judges(request).items():
        for name in named:
            metric = load_judge_metric(name, label)
            words = f"the judge {label} for {name}: {metric.tested}"
            untested = f"; codec-bench judge check {judge} tests it" if metric.tested.severity == "warning" else ""
            notices[words + untested] = None
            if (published := published_judge(name)) is not None:
                notices[f"the published numbers of {name} are by the judge {': '.join(published)}"] = None
        if ends := describe_service_end(judge):
            notices[f"the judge {label}: {ends}"] = None
    return list(notices)


class _JudgingProgress:
    """Reports the progress of all judges together, and that one waits for its service."""

    def __init__(self, request: BenchmarkRequest, stage: str) -> None:
        self._progress, self._stage = request.running.progress, stage
        self._counts: dict[str, tuple[int, int, int]] = {}

    def of(self, label: str) -> Callable[[int, int, int], None]:
        """A callback for (verdicts in the record, verdicts in all, failed) of one judge."""

        def notify(done: int, total: int, failed: int) -> None:
            self._counts[label] = (done, total, failed)
            self._progress(self._stage, *self._sums(), 0.0)

        return notify

    def waits(self, sentence: str) -> None:
        """Show a sentence next to the stage until the next verdicts are written."""
        self._progress(f"{self._stage}; {sentence}", *self._sums(), 0.0)

    def _sums(self) -> tuple[int, int, int]:
        done, total, failed = (sum(counts) for counts in zip(*self._counts.values(), (0, 0, 0)))
        return done, total, failed
