"""The second phase of a benchmark: from recorded answers to scores. The model is never asked again.

Conventions
    An answer is read (a spoken one through a recogniser), parsed by the benchmark's post-processing, and scored. One that
    is missing, or that cannot be parsed, has no score; what it would add if failures counted as wrong is in
    `detail["wrong"]`, as a numerator and a denominator (or as the sums that a corpus metric folds). A question that no
    answer can be scored for (it has no reference) has what the metric says of any answer, and counts as nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from codec_bench.benchmark.process import Chain, Unparsed
from codec_bench.engine.run import Engine
from codec_bench.engine.scheme import Scheme, transcript_of
from codec_bench.metrics.answers.base import Answer, AnswerMetric
from codec_bench.store.answers import AnswerWriter, Exchange, Reading, exchanges
from codec_bench.store.record import ItemRecord, Run
from codec_bench.types import SPOKEN, Sample, Score

WRONG = "wrong"
TRANSCRIPT = "transcript"
REASON_CHARACTERS = 300
CHUNK = 1000
ANY_ANSWERS = ("", "A")
"""A blank answer and one that is not: what a metric says of both, it says of the question."""


class Marker:
    """Reads and scores answers, those metrics left out that look at all answers or ask a judge.

    Args:
        system: the model's name in the record. scheme: how.
    """

    def __init__(self, system: str, scheme: Scheme) -> None:
        self._system, self._scheme = system, scheme

    def mark(
        self, exchanges: Sequence[Exchange], heard: Mapping[int, Mapping[str, Score]]
    ) -> tuple[list[tuple[int, ItemRecord]], dict[int, Reading]]:
        """Scores answers.

        Args:
            exchanges: questions with answers.
            heard: scores of an answer's sound by the question's number and the metric's name, transcripts included.

        Returns:
            (the finished items with their numbers, what the benchmark's post-processing made of each answer).
        """
        scheme = self._scheme
        read: dict[tuple[str, ...], dict[int, Reading]] = {}

        def readings(chain: Chain) -> dict[int, Reading]:
            if chain.names not in read:
                read[chain.names] = {
                    e.question.number: _read(e, chain, _transcript(chain, heard.get(e.question.number)))
                    for e in exchanges
                }
            return read[chain.names]

        scores: dict[int, dict[str, Score]] = {e.question.number: self._of_audio(e, heard) for e in exchanges}
        for name, metric in scheme.alone.items():
            for number, score in mark_answers(metric, exchanges, readings(scheme.chain_of(name))).items():
                scores[number][name] = score
        items = [(e.question.number, self._item(e, scores[e.question.number])) for e in exchanges]
        return items, readings(scheme.chain)

    def _of_audio(self, exchange: Exchange, heard: Mapping[int, Mapping[str, Score]]) -> dict[str, Score]:
        number, scores = exchange.question.number, {}
        for name, metric in self._scheme.spoken.items():
            score = heard.get(number, {}).get(name)
            if score is None:
                score = Score.failed(exchange.answer.reason or "there is no audio to score", metric.protocol)
            if score.status != "ok":
                worst = _safely(metric.worst, text=text_of(exchange), language=exchange.question.language)
                score = counting_wrong(score, worst)
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


def _transcript(chain: Chain, heard: Mapping[str, Score] | None) -> Score | None:
    """What the chain's recogniser heard, or None where it was not asked."""
    return (heard or {}).get(transcript_of(chain)) if chain.recogniser is not None else None


def _read(exchange: Exchange, chain: Chain, said: Score | None) -> Reading:
    """What a chain makes of an answer."""
    if exchange.answer.status != "ok":
        return Reading(None, None, exchange.answer.reason)
    text, transcript = exchange.answer.text, None
    if chain.recogniser is not None:
        if said is None or said.status != "ok":
            return Reading(None, None, (said.reason if said else None) or "there is no sound to transcribe")
        text = transcript = said.detail["transcript"]
    if text is None:
        return Reading(None, None, "the model gave no text")
    parsed = chain(text, exchange.question.fields)
    if isinstance(parsed, Unparsed):
        return Reading(transcript, None, parsed.reason[:REASON_CHARACTERS])
    return Reading(transcript, parsed.text)


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
    unread: list[tuple[int, Answer, Score]] = []
    for exchange in exchanges:
        number = exchange.question.number
        reading = readings[number]
        answer = answer_of(exchange, reading)
        absent = [name for name in metric.needs if answer.fields.get(name) is None]
        if absent:
            scores[number] = Score.refused(f"the question has no {' and no '.join(absent)}", metric.protocol)
        elif reading.parsed is None:
            status = "unparsed" if exchange.answer.status == "ok" else exchange.answer.status
            unread.append((number, answer, Score(None, status, reading.reason, metric.protocol)))
        else:
            asked.append((number, answer))
    given = [answer for _, answer in asked]
    scores.update(zip((number for number, _ in asked), _compute(metric, given)))
    of_any = _of_any_answer(metric, [answer for _, answer, _ in unread], given)
    for (number, answer, missing), unscorable in zip(unread, of_any):
        scores[number] = unscorable or counting_wrong(missing, _safely(metric.worst, answer))
    return scores


def _of_any_answer(metric: AnswerMetric, unread: Sequence[Answer], others: Sequence[Answer]) -> list[Score | None]:
    """What a metric says whatever is answered, or None where it depends on the answer.

    Args:
        others: answers to further questions, which a metric of the whole set looks at too.
    """
    if not unread:
        return []
    beside = others if metric.whole_set else ()
    tried = [
        _compute(metric, [*(replace(answer, text=text, raw=text) for answer in unread), *beside])[: len(unread)]
        for text in ANY_ANSWERS
    ]
    return [_unscorable(said) for said in zip(*tried)]


def _unscorable(said: Sequence[Score]) -> Score | None:
    """The last score that blames the question, without what was tried; None where some answer has a value."""
    blamed = [score for score in said if score.status in ("undefined", "refused")]
    if not blamed or any(score.status == "ok" for score in said):
        return None
    return replace(blamed[-1], detail={})


def _compute(metric: AnswerMetric, answers: Sequence[Answer]) -> list[Score]:
    """Scores; where one answer breaks a metric, that answer alone fails."""
    if not answers:
        return []
    try:
        scores = metric.compute(answers)
        if len(scores) != len(answers):
            raise ValueError(f"it gave {len(scores)} scores for {len(answers)} answers")
        return scores
    except Exception as error:  # answers are foreign text, and several metrics are code of a library
        if len(answers) == 1 or metric.whole_set:
            reason = f"{metric.name} broke: {type(error).__name__}: {error}"
            return [Score.failed(reason[:REASON_CHARACTERS], metric.protocol)] * len(answers)
    return [_compute(metric, [answer])[0] for answer in answers]


def _safely(worst: Callable[..., Score | None], *of: Answer, **about: str | None) -> Score | None:
    try:
        return worst(*of, **about)
    except Exception:  # what a wrong answer would add is not known then, and the score says that it failed
        return None


def counting_wrong(score: Score, worst: Score | None) -> Score:
    """A score without a value, with what it adds where failures count as wrong."""
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

    def __init__(self, run: Run, writer: AnswerWriter, marker: Marker, numbers: Sequence[int]) -> None:
        self._run, self._writer, self._marker, self._numbers = run, writer, marker, numbers
        self.folder = writer.folder

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Finished answers as the engine gives them: with the scores of their sound."""
        heard: dict[int, dict[str, Score]] = {}
        about: dict[int, ItemRecord] = {}
        for index, record in records:
            heard[self._numbers[index]], about[self._numbers[index]] = record.scores, record
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
    marker = Marker(next(iter(run.systems)), scheme)
    done = failed = 0
    hears = scheme.hears
    spoken: list[tuple[int, Sample]] = []
    for chunk in _chunks(todo):
        plain = []
        for exchange in exchanges(run, chunk):
            sample = _spoken_sample(exchange) if hears else None
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
    taker = _HeardAnswers(run, writer, marker, [number for number, _ in spoken])
    plan = scheme.plan(options, {sample.language for _, sample in spoken})
    with opened(plan) as (engine, _):
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
        extra={SPOKEN: spoken} if (spoken := question.fields.get(SPOKEN)) else {},
    )


def mark_sets(run: Run, writer: AnswerWriter, scheme: Scheme) -> None:
    """Scores every answer by the metrics that look at all of them; always anew, for one more answer changes the others."""
    if not scheme.sets:
        return
    every = list(exchanges(run))
    system = next(iter(run.systems))
    for name, metric in scheme.sets.items():
        readings = {e.question.number: _reading_again(e, scheme, name) for e in every}
        writer.write_scores(system, name, mark_answers(metric, every, readings))


def _reading_again(exchange: Exchange, scheme: Scheme, metric: str) -> Reading:
    """An answer as a metric reads it, from what the record holds."""
    kept = exchange.reading or Reading(None, None, "the answer was not read")
    chain = scheme.chains.get(metric)
    if chain is None:
        return kept
    said = None
    if kept.transcript is not None:
        said = Score.ok(0.0, TRANSCRIPT, detail={"transcript": kept.transcript})
    return _read(exchange, chain, said)


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), CHUNK):
        yield numbers[start : start + CHUNK]
