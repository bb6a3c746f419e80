"""The second phase of a benchmark: from recorded answers to scores. The model is never asked again.

Conventions
    An answer is read (a spoken one through a recogniser), parsed by the benchmark's post-processing, and scored. One that
    is missing, or that cannot be parsed, has no score; what it would add if failures counted as wrong is in
    `detail["wrong"]`, as a numerator and a denominator (or as the sums that a corpus metric folds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from codec_bench.benchmark.process import Chain, Unparsed
from codec_bench.engine.run import Engine
from codec_bench.engine.scheme import Scheme
from codec_bench.metrics.answers.base import Answer, AnswerMetric
from codec_bench.metrics.base import Metric
from codec_bench.store.answers import AnswerWriter, Exchange, Reading, exchanges
from codec_bench.store.record import ItemRecord, Run
from codec_bench.types import Sample, Score

WRONG = "wrong"
TRANSCRIPT = "transcript"
REASON_CHARACTERS = 300
CHUNK = 1000


class Marker:
    """Reads and scores answers.

    Args:
        system: the model's name in the record.
        chain: the benchmark's post-processing.
        metrics: metrics of answers that score one answer by itself, by name; those of whole sets and of judges come later.
        spoken: metrics of generated audio, by name, for what a missing answer would add.
    """

    def __init__(
        self, system: str, chain: Chain, metrics: Mapping[str, AnswerMetric], spoken: Mapping[str, Metric]
    ) -> None:
        self._system, self._chain, self._metrics, self._spoken = system, chain, metrics, spoken

    def mark(
        self, exchanges: Sequence[Exchange], heard: Mapping[int, Mapping[str, Score]]
    ) -> tuple[list[tuple[int, ItemRecord]], dict[int, Reading]]:
        """Scores answers.

        Args:
            exchanges: questions with answers.
            heard: scores of an answer's audio by the question's number and the metric's name; `transcript` holds what a
                recogniser heard, where the post-processing begins with one.

        Returns:
            (the finished items with their numbers, what was made of each answer by its question's number).
        """
        readings = {e.question.number: self._read(e, heard.get(e.question.number, {})) for e in exchanges}
        scores: dict[int, dict[str, Score]] = {number: {} for number in readings}
        for exchange in exchanges:
            scores[exchange.question.number].update(self._of_audio(exchange, heard))
        for name, metric in self._metrics.items():
            for number, score in mark_answers(metric, exchanges, readings).items():
                scores[number][name] = score
        return [(e.question.number, self._item(e, scores[e.question.number])) for e in exchanges], readings

    def _read(self, exchange: Exchange, heard: Mapping[str, Score]) -> Reading:
        if exchange.answer.status != "ok":
            return Reading(None, None, exchange.answer.reason)
        text, transcript = exchange.answer.text, None
        if self._chain.recogniser is not None:
            said = heard.get(TRANSCRIPT)
            if said is None or said.status != "ok":
                return Reading(None, None, (said.reason if said else None) or "the answer's audio was not transcribed")
            text = transcript = said.detail["transcript"]
        if text is None:
            return Reading(transcript, None, "the model gave no text")
        parsed = self._chain(text, exchange.question.fields)
        if isinstance(parsed, Unparsed):
            return Reading(transcript, None, parsed.reason[:REASON_CHARACTERS])
        return Reading(transcript, parsed.text)

    def _of_audio(self, exchange: Exchange, heard: Mapping[int, Mapping[str, Score]]) -> dict[str, Score]:
        number, scores = exchange.question.number, {}
        for name, metric in self._spoken.items():
            score = heard.get(number, {}).get(name)
            if score is None:
                score = Score.failed(exchange.answer.reason or "there is no audio to score", metric.protocol)
            if score.status != "ok":
                worst = metric.worst(text=text_of(exchange), language=exchange.question.language)
                score = _counting_wrong(score, worst)
            scores[name] = score
        return scores

    def _item(self, exchange: Exchange, scores: Mapping[str, Score]) -> ItemRecord:
        answer, question = exchange.answer, exchange.question
        notes = list(answer.notes)
        if answer.cut_s:
            notes.append(f"{answer.cut_s:.1f} s of its audio were not heard by the model")
        return ItemRecord(
            system=self._system, sample=question.id, status="ok" if answer.status == "ok" else "failed", reason=answer.reason,
            scores=scores, audio=answer.audio, notes=notes,
        )  # fmt: skip


def text_of(exchange: Exchange) -> str | None:
    """What a spoken answer should say: the question's `text`, else what is expected."""
    text = exchange.question.fields.get("text")
    return str(text) if text is not None else next(iter(exchange.question.expected), None)


def answer_of(exchange: Exchange, reading: Reading) -> Answer:
    """An answer as metrics see it."""
    question = exchange.question
    return Answer(
        question.id, reading.parsed or "", question.expected, question.fields, question.language, exchange.answer.text or ""
    )  # fmt: skip


def mark_answers(
    metric: AnswerMetric, exchanges: Sequence[Exchange], readings: Mapping[int, Reading]
) -> dict[int, Score]:
    """One metric's score of every answer, by the question's number; what has none says why and what it would add."""
    scores: dict[int, Score] = {}
    asked: list[tuple[int, Answer]] = []
    for exchange in exchanges:
        number = exchange.question.number
        reading = readings[number]
        answer = answer_of(exchange, reading)
        absent = [name for name in metric.needs if answer.fields.get(name) is None]
        if absent:
            scores[number] = Score.refused(f"the question has no {' and no '.join(absent)}", metric.protocol)
        elif reading.parsed is None:
            status = "unparsed" if exchange.answer.status == "ok" else exchange.answer.status
            missing = Score(None, status, reading.reason, metric.protocol)
            scores[number] = _counting_wrong(missing, _safely(metric.worst, answer))
        else:
            asked.append((number, answer))
    scores.update(zip((number for number, _ in asked), _compute(metric, [answer for _, answer in asked])))
    return scores


def _compute(metric: AnswerMetric, answers: Sequence[Answer]) -> list[Score]:
    """Scores; where one answer breaks a metric, that answer alone fails."""
    if not answers:
        return []
    try:
        return metric.compute(answers)
    except Exception as error:  # answers are foreign text, and several metrics are code of a library
        if len(answers) == 1 or metric.whole_set:
            reason = f"{metric.name} broke: {type(error).__name__}: {error}"
            return [Score.failed(reason[:REASON_CHARACTERS], metric.protocol)] * len(answers)
    return [_compute(metric, [answer])[0] for answer in answers]


def _safely(worst: Any, answer: Answer) -> Score | None:
    try:
        return worst(answer)
    except Exception:  # what a wrong answer would add is not known then, and the score says that it failed
        return None


def _counting_wrong(score: Score, worst: Score | None) -> Score:
    if worst is None or worst.status != "ok":
        return score
    counts = worst.detail.get("counts")
    wrong = list(counts) if counts is not None else [worst.numerator, worst.denominator]
    return replace(score, detail={**score.detail, WRONG: [float(part) for part in wrong]})


class _HeardAnswers:
    """Takes what the engine says of spoken answers, in place of a run record, and completes it.

    Args:
        numbers: of the questions, in the order in which the engine was given the answers.
    """

    def __init__(self, run: Run, writer: AnswerWriter, marker: Marker, scheme: Scheme, numbers: Sequence[int]) -> None:
        self._run, self._writer, self._marker, self._scheme, self._numbers = run, writer, marker, scheme, numbers
        self.folder = writer.folder

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Finished answers as the engine gives them: with the scores of their sound."""
        heard: dict[int, dict[str, Score]] = {}
        about: dict[int, ItemRecord] = {}
        for index, record in records:
            scores = dict(record.scores)
            if self._scheme.transcript is not None:
                scores[TRANSCRIPT] = scores.pop(self._scheme.transcript)
            heard[self._numbers[index]], about[self._numbers[index]] = scores, record
        items, readings = self._marker.mark(list(exchanges(self._run, list(heard))), heard)
        whole = [(n, replace(item, notes=[*item.notes, *about[n].notes])) for n, item in items]
        self._writer.write_marked(whole, readings)


def mark_all(
    run: Run,
    writer: AnswerWriter,
    scheme: Scheme,
    todo: Sequence[int],
    options: Mapping[str, Mapping[str, Any]],
    opened: Callable[..., AbstractContextManager[tuple[Engine, int]]],
    progress: Callable[[int, int, float], None],
) -> dict[str, Any]:
    """Scores the answers of some questions and writes them, those of whole sets and of judges left out.

    Args:
        run, writer: the record, for reading and for writing.
        todo: numbers of the questions.
        options: arguments of features by name.
        opened: gives an engine for a plan; called only where the sound of answers is needed.
        progress: called with (answers scored, failed, seconds of audio).

    Returns:
        Timings of the engine, or none.
    """
    marker = Marker(next(iter(run.systems)), scheme.chain, scheme.alone, scheme.spoken)
    done = failed = 0
    spoken: list[tuple[int, Sample]] = []
    for chunk in _chunks(todo):
        plain = []
        for exchange in exchanges(run, chunk):
            sample = _spoken_sample(exchange) if scheme.hears else None
            if sample is None:
                plain.append(exchange)
            else:
                spoken.append((exchange.question.number, sample))
        items, readings = marker.mark(plain, {})
        writer.write_marked(items, readings)
        done += len(plain)
        failed += sum(item.status != "ok" for _, item in items)
        progress(done, failed, 0.0)
    if not spoken:
        return {}
    taker = _HeardAnswers(run, writer, marker, scheme, [number for number, _ in spoken])
    with opened(scheme.plan(options)) as (engine, _):
        engine.load_codecs()
        return engine.run(
            [sample for _, sample in spoken], taker, set(),
            lambda n, bad, audio_s: progress(done + n, failed + bad, audio_s),
        )  # fmt: skip


def _spoken_sample(exchange: Exchange) -> Sample | None:
    """A spoken answer as the engine scores generated audio, or None where there is nothing to hear."""
    if exchange.answer.status != "ok" or exchange.answer_path is None:
        return None
    question = exchange.question
    return Sample(
        id=question.id,
        audio=str(exchange.audio_path) if exchange.audio_path is not None else None,
        text=text_of(exchange),
        language=question.language,
        estimate=str(exchange.answer_path),
    )


def mark_sets(run: Run, writer: AnswerWriter, scheme: Scheme) -> None:
    """Scores every answer by the metrics that look at all of them; always anew, for one more answer changes the others."""
    if not scheme.sets:
        return
    every = list(exchanges(run))
    readings = {e.question.number: e.reading or Reading(None, None, "the answer was not read") for e in every}
    system = next(iter(run.systems))
    for name, metric in scheme.sets.items():
        writer.write_scores(system, name, mark_answers(metric, every, readings))


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), CHUNK):
        yield numbers[start : start + CHUNK]
