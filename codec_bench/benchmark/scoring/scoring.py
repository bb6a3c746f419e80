"""Score recorded answers, also after a merge. The model gets no requests.

Reading an answer means transcribing a spoken one and applying the benchmark's post-processing. Scoring follows. A
missing or unparsed answer has no score. `detail["wrong"]` holds its numerator and denominator (or corpus sums) for the
case that failures count as wrong. A question without a reference never counts as wrong, unless its row is unusable.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.judge.metric import is_judge_metric
from codec_bench.benchmark.metrics import is_answer_metric, load_answer_metric
from codec_bench.benchmark.metrics.base import Answer, AnswerMetric
from codec_bench.benchmark.reading import Chain, Unparsed
from codec_bench.benchmark.reading.base import FORMAT_IGNORED, OFFICIAL, REFUSAL, TRUNCATED
from codec_bench.benchmark.reading.choices import choices_of
from codec_bench.benchmark.scoring.scheme import Scheme, transcript_of
from codec_bench.config.registry import is_foreign, lent
from codec_bench.engine.run import Engine
from codec_bench.engine.timings import RUNNING
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import AudioError
from codec_bench.store.answers import UNUSABLE_ROW, AnswerWriter, Exchange, Reading, exchanges
from codec_bench.store.reasoning import cut_reasoning
from codec_bench.store.record import Run
from codec_bench.store.rows import IGNORED_FORMAT, NO_ANSWER, SOUND, ItemRecord
from codec_bench.store.sound_files import check_sound
from codec_bench.store.statuses import FAILURES, NO_FAILURE
from codec_bench.text.degenerate_answers import find_degeneracies
from codec_bench.types import SPOKEN, Sample, Score, Status

TRANSCRIPT, TURNS = "transcript", "turns"
SCORING = "scoring"
REASON_CHARACTERS = 300
CHUNK = 1000
ANY_ANSWERS = ("", "A")
"""A blank answer and another one. If a metric has a value for neither, the question is the reason."""


class AnswerScorer:
    """Score answers by the metrics that need neither the whole set nor a judge."""

    def __init__(self, system: str, scheme: Scheme) -> None:
        self._system, self._scheme = system, scheme

    def score(
        self, exchanges: Sequence[Exchange], sound_scores: Mapping[int, Mapping[str, Score]]
    ) -> tuple[list[tuple[int, ItemRecord]], dict[int, Reading]]:
        """Post-process answers and score them.

        Args:
            exchanges: recorded questions with their answers.
            sound_scores: scores of spoken answers, transcripts included, by question number and metric name.

        Returns:
            (finished items with their questions' numbers, post-processed answers by question number).
        """
        scheme = self._scheme
        read: dict[tuple[tuple[str, ...], bool], dict[int, Reading]] = {}

        def readings(chain: Chain) -> dict[int, Reading]:
            key = chain.names, chain.keeps_reasoning
            if key not in read:
                read[key] = {
                    e.question.number: _read(e, chain, _transcript(chain, sound_scores.get(e.question.number)))
                    for e in exchanges
                }
            return read[key]

        scores: dict[int, dict[str, Score]] = {
            e.question.number: self._audio_scores(e, sound_scores) for e in exchanges
        }
        for name, metric in scheme.alone.items():
            for number, score in score_answers(
                metric, exchanges, readings(scheme.chain_of(name)), sound_scores
            ).items():
                scores[number][name] = score
        read_as = readings(scheme.chain)
        items = [
            (e.question.number, self._item(e, scores[e.question.number], read_as[e.question.number])) for e in exchanges
        ]
        return items, read_as

    def _audio_scores(self, exchange: Exchange, sound_scores: Mapping[int, Mapping[str, Score]]) -> dict[str, Score]:
        """The audio metrics' scores of an answer; missing ones count as the worst."""
        number, scores = exchange.question.number, {}
        for name, metric in self._scheme.spoken.items():
            score = sound_scores.get(number, {}).get(name)
            if score is None:
                score = Score.failed(exchange.answer.reason or Diagnostic("no_audio_to_score"), metric.protocol)
            if score.status != "ok":
                worst = _safely(metric.worst, text=text_of(exchange), language=exchange.question.language)
                score = score.counting_wrong(worst)
            scores[name] = score
        return scores

    def _item(self, exchange: Exchange, scores: Mapping[str, Score], reading: Reading) -> ItemRecord:
        """Build the record of a scored answer with its notes."""
        answer, question = exchange.answer, exchange.question
        declined = [NO_ANSWER[REFUSAL]] if reading.code == REFUSAL else []
        notes = list(dict.fromkeys([*answer.notes, *_no_answer(exchange), *declined]))
        if answer.cut_s:
            notes.append(Diagnostic("not_heard", s=round(answer.cut_s, 1)))
        return ItemRecord(
            system=self._system, sample=question.id, status=answer.status, reason=answer.reason,
            scores=scores, audio=answer.audio, notes=notes,
        )  # fmt: skip


def _no_answer(exchange: Exchange) -> list[Diagnostic]:
    """Warnings of empty, endless, copied, phonemic or wrong-language text answers."""
    answer, question = exchange.answer, exchange.question
    if answer.status != "ok" or answer.text is None or answer.audio is not None:
        return []
    question_text = (question.prompt or "").rpartition("user: ")[2].replace(SOUND, " ")
    cut = cut_reasoning(answer.text)
    if cut.unfinished or (not cut.text.strip() and answer.reasoning and answer.finish == "length"):
        return [NO_ANSWER[TRUNCATED]]
    ways = find_degeneracies(
        cut.text,
        prompt=question_text,
        known=[*question.expected, *choices_of(question.fields).values()],
        language=question.language,
        at_limit=answer.finish == "length",
    )
    return [NO_ANSWER[variant] for variant in ways]


def _transcript(chain: Chain, sound_scores: Mapping[str, Score] | None) -> Score | None:
    return (sound_scores or {}).get(transcript_of(chain)) if chain.recogniser is not None else None


def _read(exchange: Exchange, chain: Chain, spoken: Score | None) -> Reading:
    """Post-process an answer; `spoken` is the score with a spoken answer's transcript."""
    if exchange.answer.status != "ok":
        return Reading(None, None, exchange.answer.reason)
    text, transcript = exchange.answer.text, None
    turns = tuple(
        answer_text(turns_text.text or "", keep_reasoning=chain.keeps_reasoning) for turns_text, _ in exchange.turns
    )
    if chain.recogniser is not None:
        if spoken is None or spoken.status != "ok":
            return Reading(None, None, (spoken.reason if spoken else None) or Diagnostic("no_sound_to_transcribe"))
        text = transcript = spoken.detail[TRANSCRIPT]
        turns = tuple(spoken.detail.get(TURNS, ()))
    if text is None:
        return Reading(None, None, Diagnostic("no_text"), turns)
    if (
        not chain.keeps_reasoning
        and not text.strip()
        and exchange.answer.reasoning
        and exchange.answer.finish == "length"
    ):
        return Reading(None, None, Diagnostic("answer_ends_in_reasoning"), turns, TRUNCATED)
    parsed = chain(text, exchange.question.fields)
    if isinstance(parsed, Unparsed):
        is_diagnostic = isinstance(parsed.reason, Diagnostic)
        reason = parsed.reason if is_diagnostic else parsed.reason[:REASON_CHARACTERS]
        return Reading(transcript, None, reason, turns, parsed.code)
    return Reading(transcript, parsed.text, None, turns, parsed.code)


def text_of(exchange: Exchange) -> str | None:
    """A spoken answer's reference: the question's `text`, or its first answer."""
    text = exchange.question.fields.get("text")
    return str(text) if text is not None else next(iter(exchange.question.expected), None)


def answer_text(text: str, *, keep_reasoning: bool) -> str:
    """Remove the model's reasoning from an answer, unless `keep_reasoning`."""
    return text if keep_reasoning else cut_reasoning(text).text


def answer_of(
    exchange: Exchange, reading: Reading, *, empty_references: bool = False, keep_reasoning: bool = False
) -> Answer:
    """Convert a recorded answer to the input of metrics.

    Args:
        exchange: the recorded question with its answer.
        reading: the post-processed answer.
        empty_references: whether empty expected answers stay.
        keep_reasoning: whether the raw answer keeps its reasoning.
    """
    question = exchange.question
    expected = tuple(text for text in question.expected if empty_references or text.strip())
    return Answer(
        question.id, reading.parsed or "", expected, question.fields, question.language,
        answer_text(exchange.answer.text or "", keep_reasoning=keep_reasoning), turns=reading.turns,
    )  # fmt: skip


def _with_sound(answer: Answer, exchange: Exchange, sound_scores: Mapping[str, Score]) -> Answer:
    """Add the scores of an answer's sound and both durations."""
    question_s = exchange.question.duration_s
    return replace(
        answer,
        sound_scores=sound_scores,
        question_s=_duration_s(exchange.audio_path) if question_s is None else question_s,
        answer_s=_duration_s(exchange.answer_path),
    )


def _duration_s(path: Path | None) -> float | None:
    """Duration of an audio file; None without a path, or if it is unreadable."""
    try:
        return None if path is None else Clip(str(path)).duration_s
    except AudioError:
        return None


def unread_score(exchange: Exchange, reading: Reading, protocol: str) -> Score:
    """Build the failed, refused or unparsed score of an answer that was not read."""
    status: Status = "failed"
    if exchange.answer.status == "ok":
        status = "unparsed"
    elif exchange.answer.status == "refused":
        status = "refused"
    detail = {"code": reading.code} if status == "unparsed" and reading.code is not None else {}
    return Score(None, status, reading.reason, protocol, detail=detail)


def score_answers(
    metric: AnswerMetric,
    exchanges: Sequence[Exchange],
    readings: Mapping[int, Reading],
    sound_scores: Mapping[int, Mapping[str, Score]] = MappingProxyType({}),
) -> dict[int, Score]:
    """Score recorded answers by one metric.

    Args:
        readings: the post-processed answers, by question number.
        sound_scores: scores of the sound of spoken answers, for a metric that reads them.

    Returns:
        A score by question number. One without a value has a reason, and `detail["wrong"]` if failures may count as
        wrong.
    """
    scores: dict[int, Score] = {}
    numbered: list[tuple[int, Answer]] = []
    unread: list[tuple[int, Answer, Score]] = []
    for exchange in exchanges:
        number = exchange.question.number
        reading = readings[number]
        answer = answer_of(
            exchange, reading, empty_references=metric.empty_references, keep_reasoning=OFFICIAL in metric.name
        )
        if metric.sound_metrics:
            answer = _with_sound(answer, exchange, sound_scores.get(number, {}))
        if _lacks_content(exchange):
            failure = unread_score(exchange, reading, metric.protocol)
            scores[number] = failure.counting_wrong(_safely(metric.worst, answer))
            continue
        absent = [name for name in metric.needs if answer.fields.get(name) is None]
        if absent:
            scores[number] = Score.refused(Diagnostic("no_fields", fields=", ".join(absent)), metric.protocol)
        elif reading.parsed is None:
            unread.append((number, answer, unread_score(exchange, reading, metric.protocol)))
        else:
            numbered.append((number, answer))
    answers = [answer for _, answer in numbered]
    for (number, answer), score in zip(numbered, _compute(metric, answers)):
        if score.status == "ok" and readings[number].code == FORMAT_IGNORED:
            score = replace(score, detail={"flag": IGNORED_FORMAT, **score.detail})
        if score.status in FAILURES:  # a published rule may read nothing where the benchmark's steps do
            unread.append((number, answer, score))
        else:
            scores[number] = score
    of_any = _of_any_answer(metric, [answer for _, answer, _ in unread], answers)
    for (number, answer, missing), unscorable in zip(unread, of_any):
        scores[number] = unscorable or missing.counting_wrong(_safely(metric.worst, answer))
    return scores


def _lacks_content(exchange: Exchange) -> bool:
    """Whether a row could not be read, or lacks its reference or a text of the prompt.

    No metric can tell from such a row whether it applies.
    """
    reason = as_reason(exchange.answer.reason)
    lacks_text = reason is not None and reason.code == "row_without_value"
    return exchange.answer.finish == UNUSABLE_ROW and (lacks_text or not exchange.question.expected)


def _of_any_answer(metric: AnswerMetric, unread: Sequence[Answer], others: Sequence[Answer]) -> list[Score | None]:
    """The score without a value that any answer to a question would get, or None.

    This finds questions that cannot be scored.

    Args:
        unread: answers without a score.
        others: the other answers, which complete the set for a set metric.
    """
    if not unread:
        return []
    neighbours = others if metric.whole_set else ()
    tried = [
        _compute(metric, [*(replace(answer, text=text, raw=text) for answer in unread), *neighbours])[: len(unread)]
        for text in ANY_ANSWERS
    ]
    return [_unscorable(scores) for scores in zip(*tried)]


def _unscorable(tried: Sequence[Score]) -> Score | None:
    """The last undefined or refused score; None if some trial answer has a value."""
    blamed = [score for score in tried if score.status in NO_FAILURE]
    if not blamed or any(score.status == "ok" for score in tried):
        return None
    return replace(blamed[-1], detail={})


def _compute(metric: AnswerMetric, answers: Sequence[Answer]) -> list[Score]:
    """Compute scores; an exception on one answer fails only that answer.

    If the metric needs the whole set, it fails all.
    """
    if not answers:
        return []
    try:
        scores = metric.compute(lent(metric, answers))
        if len(scores) != len(answers):
            raise ValueError(f"it gave {len(scores)} scores for {len(answers)} answers")
        return [Score.of_result(score, metric.protocol) for score in scores] if is_foreign(metric) else scores
    except Exception as error:  # answers come from outside, and several metrics are code of other libraries
        if len(answers) == 1 or metric.whole_set:
            message = str(error)[:REASON_CHARACTERS]
            why = Diagnostic("metric_broke", metric=metric.name, type=type(error).__name__, message=message)
            return [Score.failed(why, metric.protocol)] * len(answers)
    return [_compute(metric, [answer])[0] for answer in answers]


def _safely(worst: Callable[..., Score | None], *of: Answer, **about: str | None) -> Score | None:
    """The score of a wrong answer, or None if the metric raises an exception."""
    try:
        return worst(*of, **about)
    except Exception:  # the score has failed already and says why
        return None


class _SpokenAnswers:
    """Gets the engine's scores of spoken answers; adds other metrics and writes items.

    Args:
        numbers: question numbers in the engine's order. A question of several rounds has several entries and is scored
            once all of them have scores.
    """

    def __init__(self, run: Run, writer: AnswerWriter, scorer: AnswerScorer, numbers: Sequence[int]) -> None:
        self._run, self._writer, self._scorer, self._numbers = run, writer, scorer, numbers
        self._rounds, self._parts = Counter(numbers), defaultdict[int, dict[int, ItemRecord]](dict)
        self.folder = writer.folder

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Write answers that the engine finished, with the scores of their audio.

        Args:
            records: (position in the engine's order, record of the audio) of each.
        """
        sound_scores: dict[int, Mapping[str, Score]] = {}
        about: dict[int, ItemRecord] = {}
        for index, record in records:
            number = self._numbers[index]
            self._parts[number][index] = record
            if len(self._parts[number]) == self._rounds[number]:
                parts = [scored for _, scored in sorted(self._parts.pop(number).items())]
                about[number] = _over_rounds(parts)
                sound_scores[number] = about[number].scores
        items, readings = self._scorer.score(list(exchanges(self._run, list(sound_scores))), sound_scores)
        items_with_notes = [(n, replace(item, notes=[*item.notes, *about[n].notes])) for n, item in items]
        self._writer.write_marked(items_with_notes, readings)


def score_all(
    run: Run,
    writer: AnswerWriter,
    scheme: Scheme,
    todo: Sequence[int],
    options: Mapping[str, Mapping[str, Any]],
    opened: Callable[..., AbstractContextManager[tuple[Engine, int]]],
    progress: Callable[[str, int, int, float], None],
    *,
    gpu: bool = False,
) -> dict[str, Any]:
    """Score answers by all metrics without a set or a judge, and write the scores.

    Args:
        run, writer: the record, for reading and for writing.
        todo: numbers of the questions.
        options: arguments of features, by name.
        opened: opens an engine for a plan; called only if the sound of answers is needed.
        progress: called with (stage, answers scored, failed, seconds of audio).

    Returns:
        Timings of the engine; empty if it was not needed.
    """
    scorer = AnswerScorer(next(iter(run.systems)), scheme)
    done = failed = 0
    reads_sound = scheme.reads_sound
    spoken: list[tuple[int, Sample]] = []
    for start in range(0, len(todo), CHUNK):
        plain = []
        for exchange in exchanges(run, todo[start : start + CHUNK]):
            samples = _spoken_samples(exchange) if reads_sound else []
            spoken += [(exchange.question.number, sample) for sample in samples]
            if not samples:
                plain.append(exchange)
        items, readings = scorer.score(plain, {})
        writer.write_marked(items, readings)
        done += len(plain)
        failed += sum(item.status != "ok" for _, item in items)
        progress(SCORING, done, failed, 0.0)
    if not spoken:
        return {}
    taker = _SpokenAnswers(run, writer, scorer, [number for number, _ in spoken])
    seed = (run.meta.get("config") or {}).get("seed")
    plan = scheme.plan(options, {sample.language for _, sample in spoken}, gpu=gpu, seed=seed)
    with opened(plan) as (engine, _):
        engine.load_codecs()
        return engine.run(
            [sample for _, sample in spoken], taker, set(),
            lambda phase, n, bad, audio_s: progress(
                SCORING if phase == RUNNING else f"{SCORING}, {phase}", done + n, failed + bad, audio_s
            ),
        )  # fmt: skip


def _over_rounds(parts: Sequence[ItemRecord]) -> ItemRecord:
    """Combine the rounds of a question: mean scores, and the transcript of each round."""
    if len(parts) == 1:
        return parts[0]
    scores = {}
    for name, last in parts[-1].scores.items():
        every = [scored.scores[name] for scored in parts]
        lacking = next((score for score in every if score.status != "ok"), None)
        value = fmean(score.value for score in every if score.value is not None) if lacking is None else None
        turns = {TURNS: [score.detail.get(TRANSCRIPT) for score in every[:-1]]} if TRANSCRIPT in last.detail else {}
        scores[name] = lacking or Score(value, "ok", None, last.protocol, detail={**last.detail, **turns})
    return replace(
        parts[-1], scores=scores, notes=list(dict.fromkeys(note for scored in parts for note in scored.notes))
    )


def _spoken_samples(exchange: Exchange) -> list[Sample]:
    """The spoken answers of all rounds as samples; empty if one is missing."""
    every = [*(path for _, path in exchange.turns), exchange.answer_path]
    paths = [check_sound(path) for path in every if path is not None]
    if exchange.answer.status != "ok" or len(paths) < len(every):
        return []
    question = exchange.question
    last = Sample(
        id=question.id,
        audio=str(check_sound(exchange.audio_path)) if exchange.audio_path is not None else None,
        text=text_of(exchange),
        language=question.language,
        extra={SPOKEN: spoken} if (spoken := question.fields.get(SPOKEN)) else {},
    )
    ids = [*(f"{question.id} (round {at})" for at in range(1, len(paths))), question.id]
    return [replace(last, id=id, estimate=str(path)) for id, path in zip(ids, paths)]


def score_sets(run: Run, writer: AnswerWriter, scheme: Scheme) -> None:
    """Score all answers again by metrics that need the whole set, such as CIDEr-D."""
    if not scheme.sets:
        return
    sets: dict[int, list[Exchange]] = {}
    for exchange in exchanges(run):  # each draw answers every question once, and is a separate set
        sets.setdefault(exchange.question.draw or 0, []).append(exchange)
    system = next(iter(run.systems))
    for name, metric in scheme.sets.items():
        for every in sets.values():
            readings = {e.question.number: _reading_again(e, scheme, name) for e in every}
            writer.write_scores(system, name, score_answers(metric, every, readings))


def _reading_again(exchange: Exchange, scheme: Scheme, metric: str) -> Reading:
    """Post-process an answer for one metric, from the recorded transcript."""
    reading = exchange.reading or Reading(None, None, Diagnostic("not_read"))
    chain = scheme.chain_of(metric)
    if chain == scheme.chain:
        return reading
    transcript = None
    if reading.transcript is not None:
        transcript = Score.ok(0.0, TRANSCRIPT, detail={TRANSCRIPT: reading.transcript, TURNS: reading.turns})
    return _read(exchange, chain, transcript)


def score_sets_again(folder: Path) -> tuple[str, ...]:
    """Score a merged record's answers by the set metrics; the others stay.

    The rules come from the record, without the benchmark's definition or the model.

    Returns:
        The names of these metrics.

    Raises:
        UserError: a package that one of them needs is missing, or the record cannot be written.
    """
    with closing(Run(folder)) as run:
        fingerprint, systems, metrics = run.meta["fingerprint"], run.systems, run.metrics
        rules = fingerprint.get("scored") or {}
        sets = [
            name
            for name in metrics
            if not is_judge_metric(name) and is_answer_metric(name) and load_answer_metric(name).whole_set
        ]
        if not sets:
            return ()
        chains = rules.get("chains", {})
        scheme = Scheme.of(rules.get("process", ()), {name: chains.get(name) for name in sets})
        with closing(AnswerWriter(folder, fingerprint)) as writer:
            writer.begin(systems, metrics, ())
            score_sets(run, writer, scheme)
    return tuple(sets)
