"""Verdicts of a language model on sessions of Full-Duplex-Bench and on answers.

Version 1 rates how an answer fits an interruption; version 1.5 sorts the behaviour after speech over an answer into
four kinds. The judge reads recognised words. `verdicts.json` holds verdicts with hashes of words, rubric and judge;
missing or outdated ones are requested again. Rubrics are `configs/judge/full-duplex-*.yaml`. Reference implementation:
`evaluation/eval_user_interruption.py` and `eval_behavior.py` of DanielLin94144/Full-Duplex-Bench, with our own wording.
Theirs repeats or omits unreadable replies; here they are no number.

The spoken questions of a benchmark, one conversation each.
The recognised answer (`--words`) is compared by the rule `answer-match`, and by a judge (`--judge`) with the rubric of
Big Bench Audio, which shows the two answers alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codec_bench.apps.conversation.full_duplex import INPUT, WORDS, Chunk, read_chunks, takes_turn
from codec_bench.apps.conversation.measures import BEHAVIOURS, OFFICIAL, OFFICIAL_15, Value
from codec_bench.apps.conversation.script import Conversation, Event, Script, UtteranceSpec
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.session_files import FACTS, content_hash
from codec_bench.audio.clip import Clip
from codec_bench.benchmark import has_benchmark, load_benchmark
from codec_bench.benchmark.definition.loader import FILE
from codec_bench.benchmark.judge.metric import JudgeMetric, load_judge_metric
from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.benchmark.run_request import started_model
from codec_bench.messages import Diagnostic, from_json, to_json
from codec_bench.messages.errors import DamagedRecord, UserError
from codec_bench.models.base import Model
from codec_bench.models.endpoints.remote import RemoteModel
from codec_bench.store.files import read_json, write_text
from codec_bench.types import Request, Response

VERDICTS = "verdicts.json"
RATING, BEHAVIOUR, RIGHT = "full-duplex-bench", "full-duplex-behaviour", "big-bench-audio"
RULE = "accuracy[answer-match]"
PATIENCE_S, LONGEST_S = 20.0, 600.0


@dataclass(frozen=True, slots=True)
class SessionQuestion:
    """One session's request to a judge; `clean` is without the event."""

    folder: Path
    index: int
    metric: JudgeMetric
    answer: Answer
    requests: Sequence[Request]
    clean: Path | None = None

    @property
    def mark(self) -> str:
        """Hash of the inputs of a verdict; a stored verdict with another one is stale."""
        messages = [[content for m in one.messages for content in m.content] for one in self.requests]
        return hashlib.blake2b(json.dumps([self.metric.protocol, messages]).encode(), digest_size=8).hexdigest()


def questions(
    session: Session, folder: Path, talk: Conversation | None, clean: Path | None, judge: str
) -> Iterator[SessionQuestion]:
    """Yield the requests to a judge about a session, by its transcripts.

    Args:
        folder: of the session.
        clean: of the session without the event, if there is one.
        judge: name of the model.
    """
    chunks = read_chunks(folder / WORDS) if session.status == "ok" else None
    if talk is None or chunks is None:
        return
    if clean is not None:
        lists = [read_chunks(path) for path in (clean / INPUT, folder / INPUT, clean / WORDS)]
        if all(one is not None for one in lists):
            names = ("user without the further speech", "user with it", "assistant without it")
            transcript_text = "\n\n".join(f"{name}:\n{_lines(one or ())}" for name, one in zip(names, lists))
            text = f"assistant with it:\n{_lines(chunks)}"
            yield replace(_question(session, folder, 0, BEHAVIOUR, judge, text, transcript_text), clean=clean)
        return
    if talk.references:
        yield _make_question(folder, 0, RIGHT, judge, answer_of(session, talk, chunks))
    for path, (event, marked) in enumerate(zip(session.events, talk.said)):
        if event.kind == "interruption" and marked.text and event.end_s is not None:
            later = [chunk for chunk in chunks if chunk[1] >= event.end_s]
            if takes_turn([(begin, end) for _, begin, end in later]):
                before = next((one.text for one in talk.said[:path] if one.text), "")
                transcript_text = f"before: {before}\ninterrupting: {marked.text}"
                text = " ".join(word for word, _, _ in later)
                yield _question(session, folder, path, RATING, judge, text, transcript_text)


def _question(session: Session, folder: Path, index: int, rubric: str, judge: str, text: str,
    transcript_text: str) -> SessionQuestion:  # fmt: skip
    return _make_question(
        folder, index, rubric, judge, Answer(f"{session.id}-{index}", text, fields={"question": transcript_text})
    )


def _make_question(folder: Path, index: int, rubric: str, judge: str, answer: Answer) -> SessionQuestion:
    metric = load_judge_metric(f"rating[{rubric}]", judge)
    requests = metric.requests(answer, None, 0)
    return SessionQuestion(folder, index, metric, answer, requests if isinstance(requests, list) else ())


def _lines(chunks: Sequence[Chunk]) -> str:
    return "\n".join(f"{begin:.2f} {end:.2f} {word}" for word, begin, end in chunks) or "(nothing)"


async def judge_all(judge: Model, questions: Sequence[SessionQuestion], notify: Callable[[str], None]) -> None:
    """Request missing verdicts, and store each; equal requests reuse stored ones.

    Raises:
        UserError: the judge cannot be started or used.
    """
    todo = [one for one in questions if not _read_verdict(one)]
    for answered in questions:
        if answered not in todo and (held := _read(answered.folder)) is not None:
            _keep(answered, held)  # the request is the same, be it of other files
    if not todo:
        return
    if words := price_words(judge, todo):
        notify(words)
    places = asyncio.Semaphore(judge.concurrency)

    async def ask(request: Request) -> Response:
        async with places:
            return await judge.ask(request)

    async def one(question: SessionQuestion) -> None:
        """Request the verdict on one question, and store it."""
        replies = {request.id: await ask(request) for request in question.requests}
        score = question.metric.score(question.answer, len(question.requests), replies)
        held = {"rubric": question.metric.rubric_name, "protocol": question.metric.protocol, "mark": question.mark}
        verdict = {**held, "place": question.index, "value": score.value, "status": score.status,
            **to_json({"reason": score.reason}), "detail": score.detail}  # fmt: skip
        _keep(question, verdict)

    await started_model(judge)
    try:
        await asyncio.gather(*map(one, todo))
    finally:
        await judge.close()


def price_words(judge: Model, questions: Sequence[SessionQuestion]) -> str:
    """Describe the expected cost of verdicts; empty for a judge without prices."""
    if not isinstance(judge, RemoteModel) or not judge.prices.has_prices:
        return ""
    requests = [request for one in questions for request in one.requests]
    texts = sum(len(text.encode()) for one in requests for m in one.messages for text in m.content if isinstance(text,
        str))  # fmt: skip
    limits = sum(one.metric.rubric.parameters["max_tokens"] * len(one.requests) for one in questions)
    least, most, unknown = judge.prices.bounds(
        sound_s=0.0, text_bytes=texts, characters=0, most_tokens=limits, speaks=False
    )
    missing = f"; not known: {', '.join(unknown)}" if unknown else ""
    return (
        f"{judge.info.name}: {len(requests)} verdicts will cost {least:.2g} to {most:.2g} USD by the prices of "
        f"{judge.prices.date or 'an unknown day'}{missing}"
    )


def _keep(question: SessionQuestion, verdict: Mapping[str, Any]) -> None:
    """Write a verdict, with the hash of the question's files."""
    held = {**verdict, "made_of": _files(question.folder, question.clean)}
    if held != _read(question.folder):
        write_text(question.folder / VERDICTS, json.dumps(held, ensure_ascii=False) + "\n")


def _files(folder: Path, clean: Path | None) -> str:
    also = () if clean is None else (folder / INPUT, clean / INPUT, clean / WORDS)
    return content_hash(folder / FACTS, folder / WORDS, *also)


def _read_verdict(question: SessionQuestion) -> bool:
    before = _read(question.folder)
    return before is not None and before.get("mark") == question.mark and before.get("status") == "ok"


def _read(folder: Path) -> Mapping[str, Any] | None:
    path = folder / VERDICTS
    return read_json(path) if path.exists() else None


def verdicts(session: Session, folder: Path, clean: Path | None = None) -> Iterator[Value]:
    """Yield the values of a session's verdict: a rating, or 1 or 0 for each behaviour.

    Args:
        clean: folder of the session without the event.

    Raises:
        DamagedRecord: the verdict belongs to other words, or to another session.
    """
    held = _read(folder) if session.status == "ok" else None
    if held is None:
        return
    if held.get("made_of") != _files(folder, clean if held["rubric"] == BEHAVIOUR else None):
        raise DamagedRecord(
            "verdict_of_other_session",
            path=folder / VERDICTS,
            hint="--judge NAME asks for it again; or delete the file",
        )
    value, index = held["value"], int(held["place"])
    cause = from_json({name: held[name] for name in ("reason", "reason_code") if name in held})["reason"]
    reason = "" if value is not None else Diagnostic("score_status", status=held["status"], cause=cause)
    at_s = session.events[index].end_s if index < len(session.events) else None
    if held["rubric"] in (RATING, RIGHT):
        name = f"{OFFICIAL}/rating" if held["rubric"] == RATING else "answer_right"
        yield Value(session.id, index, name, value, at_s, reason)
        return
    for number, name in enumerate(BEHAVIOURS, 1):
        is_match = None if value is None else float(value == number)
        yield Value(session.id, index, f"{OFFICIAL_15}/{name}", is_match, at_s, reason)


def sum_usage(folders: Sequence[Path]) -> dict[str, float]:
    """Sum the usage and costs of the stored verdicts."""
    total: dict[str, float] = {}
    for held in filter(None, map(_read, folders)):
        calls = held["detail"].get("calls") or {}
        for name, count in {"calls": calls.get("n", 0), **(calls.get("usage") or {})}.items():
            total[name] = total.get(name, 0.0) + float(count)
    return total


@dataclass(frozen=True, slots=True)
class SpokenQuestion:
    """The audio of a question, as `Clip` takes it."""

    id: str
    audio: object


def names_benchmark(folder: Path) -> bool:
    """Whether `--scripts` names a benchmark: a user's path, or a known name."""
    return folder.name == FILE or (folder / FILE).is_file() or (not folder.exists() and has_benchmark(str(folder)))


def questions_of(name: str, limit: int | None) -> tuple[Script, list[SpokenQuestion]]:
    """Convert a benchmark's first `limit` spoken questions to a script, with audio.

    Raises:
        UserError: there is no such benchmark, its data are missing, or its questions are not audio with expected
            answers.
    """
    talks, sounds = [], []
    for number, question in enumerate(load_benchmark(name).questions(limit=limit)):
        clip = question.audio or next((value for value in question.fields.values() if isinstance(value, Clip)), None)
        if question.problem is not None or clip is None or not question.references:
            raise UserError(
                "question_unspeakable",
                id=question.id,
                benchmark=name,
                cause=question.problem or Diagnostic("no_sound_or_answer"),
                hint="--scripts takes benchmarks of spoken questions with one answer, such as big-bench-audio",
            )
        id = f"{number:05d}-{re.sub(r'[^A-Za-z0-9._-]', '_', question.id)[:80]}"
        turn = Event(say=(UtteranceSpec(sound=id),), at_s=0.5)
        talks.append(Conversation(id=id, turns=(turn,), references=question.references))
        sounds.append(SpokenQuestion(id, clip.source))
    return Script(version=1, title=f"{name}, spoken in time", data="", patience_s=PATIENCE_S, longest_s=LONGEST_S,
        conversations=tuple(talks)), sounds  # fmt: skip


def answer_of(session: Session, talk: Conversation, chunks: Sequence[Chunk]) -> Answer:
    """Build the answer to judge: words after the question began, and accepted answers."""
    begin_s = next((event.speech[0][0] for event in session.events if event.speech), 0.0)
    answer = " ".join(word for word, begin, _ in chunks if begin >= begin_s)
    return Answer(session.id, answer, talk.references)


def by_rule(session: Session, talk: Conversation | None, chunks: Sequence[Chunk] | None) -> Iterator[Value]:
    """Yield whether the transcript contains an accepted answer of the conversation."""
    if session.status == "ok" and talk is not None and talk.references and chunks is not None:
        (score,) = load_answer_metric(RULE).compute([answer_of(session, talk, chunks)])
        reason = "" if score.value is not None else Diagnostic("score_status", status=score.status, cause=score.reason)
        yield Value(session.id, 0, "answer_matches", score.value, 0.0, reason)
