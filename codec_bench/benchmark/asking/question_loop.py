"""The answering phase: send every question to the model and record every answer.

Questions are read as the model takes them, so memory does not grow with the benchmark. A question that cannot be sent,
for example without its audio, is recorded as failed, with the reason, and counts like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.asking.canaries import Watch
from codec_bench.benchmark.asking.question_sounds import sounds_hash
from codec_bench.benchmark.asking.rounds import QuestionRounds, readable_answers
from codec_bench.benchmark.asking.sending import AskSome
from codec_bench.benchmark.definition.base import Question
from codec_bench.data.shard import Shard
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import AudioError, RunMismatch, UserError
from codec_bench.models import has_option, option_hint
from codec_bench.models.audio_payloads import clips_of
from codec_bench.models.base import Model, ModelInfo
from codec_bench.store.answers import TOO_LONG, UNUSABLE_ROW, AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.rows import SOUND
from codec_bench.store.sound_files import keep_sound
from codec_bench.types import Audio, Request, Response

WRITE_ANSWERS = 64
WRITE_S = 1.0
MOST_EMPTY = 8
"""With this many empty answers at the limit of length before any other, the settings are wrong."""

OWN_ANSWER = "(what the model answers)"
"""The placeholder of the model's own answer in a displayed prompt."""

Render = Callable[[Question], Request]


@dataclass(slots=True)
class Counts:
    """Questions sent, failures, cached answers, and seconds of spoken answers."""

    sent: int = 0
    failed: int = 0
    cached: int = 0
    audio_s: float = 0.0

    def add(self, answer: AnswerRecord, audio_s: float) -> None:
        """Count one answer with the seconds of its audio (0 for a text)."""
        self.sent += 1
        self.failed += answer.status != "ok"
        self.cached += answer.cached
        self.audio_s += audio_s


class Asking:
    """Sends one model every question that has no answer in the record.

    Args:
        start: makes the model ready; awaited before the first question, if there is one.
        render: renders the request of a question.
        keep_question: whether a question's sound is copied into the run folder, by the question's number.
        send_requests: sends many requests to a model at once (`codec_bench.benchmark.asking.sending`).
        progress: called with (questions finished by this call, failed, seconds of answers).
        watch: detects a change of the model; None if there can be none.
        in_rounds: whether questions may have several rounds, each sent after the answer to the one before.
    """

    def __init__(
        self,
        model: Model,
        start: Callable[[], Awaitable[None]],
        render: Render,
        writer: AnswerWriter,
        keep_question: Callable[[int], bool],
        send_requests: AskSome,
        progress: Callable[[int, int, float], None],
        watch: Watch | None = None,
        *,
        in_rounds: bool = False,
    ) -> None:
        self._watch = watch
        self._model, self._start, self._render, self._writer = model, start, render, writer
        self._keep_question, self.send_requests, self._progress = keep_question, send_requests, progress
        self._in_rounds = in_rounds
        self._waiting: dict[str, QuestionRounds] = {}
        self._next: dict[str, Request] = {}
        self._ready: list[tuple[QuestionRecord, AnswerRecord]] = []
        self._unproven: dict[str, list[AnswerRecord]] = {}
        """The turns before those that no answer has proven yet."""
        self._sounds: dict[int, str] = {}
        """The hashes of the sounds of answered questions, by number."""
        self._last_write = perf_counter()
        self._proven = False
        self._empty = 0
        self.counts = Counts()

    async def run(
        self, questions: Iterable[Question], answered: dict[int, str], shard: Shard | None = None
    ) -> dict[str, Any]:
        """Send the unanswered questions, record the answers, and return the timings.

        Args:
            questions: all questions of the benchmark, in order.
            answered: status of recorded answers, by the question's number; these questions are skipped.
            shard: the part of the questions to send; None for all.

        Returns:
            `wall_s`, `per_s`, and the counts `asked`, `failed` and `cached`.

        Raises:
            UserError: the model cannot be used at all, or the record cannot be written. Earlier answers are recorded.
        """
        start = perf_counter()
        try:
            self._sounds = self._writer.question_sounds() if answered else {}
            requests = self._requests(questions, answered, shard)
            first = next(requests, None)
            if first is not None:
                await self._start()
                self._progress(0, 0, 0.0)  # the model is ready, and its first answer may take long
                if self._watch is not None:
                    await self._watch.look_back(questions, self._render)
                follows = {"then": lambda request: self._next.pop(request.id, None)} if self._in_rounds else {}
                async with aclosing(
                    self.send_requests(self._model, chain((first,), requests), on_stored=self._flush_paid, **follows)
                ) as answers:
                    async for request, response in answers:
                        conversation = self._waiting.pop(request.id)
                        if response is None:
                            continue
                        self._take_response(conversation, request, response)
                        self._check_room(request)
                        if self._watch is not None:
                            await self._watch.note(conversation.question, request, response)
        except UserError:
            # Without any answer, the refusals have nothing to do with the questions.
            if not self._proven:
                self._ready = []
                for id, turns in self._unproven.items():
                    self._writer.write_turns(id, turns)
            raise
        finally:
            self._write(force=True)
        wall_s, counts = perf_counter() - start, self.counts
        return {
            "wall_s": wall_s, "asked": counts.sent, "failed": counts.failed, "cached": counts.cached,
            "per_s": counts.sent / wall_s if wall_s else None,
        }  # fmt: skip

    def _requests(
        self, questions: Iterable[Question], answered: dict[int, str], shard: Shard | None
    ) -> Iterator[Request]:
        """Yield the requests of unanswered questions; record those that cannot be sent."""
        for number, question in enumerate(questions):
            if shard is not None and not shard.holds(question.draw_of or question.id):
                continue
            if number in answered:
                self._check_sounds(number, question)
                continue
            if question.problem is not None:
                response = Response.failed(as_reason(question.problem, "unusable_row"), finish=UNUSABLE_ROW)
                self._finish_question(number, question, None, self._record(number, None, response))
                continue
            try:
                request = self._render(question)
            except TooLong as error:
                refused = Response.refused(error.message, finish=TOO_LONG)
                self._finish_question(number, question, None, self._record(number, None, refused))
                continue
            except UserError as error:
                self._finish_question(
                    number, question, None, self._record(number, None, Response.failed(error.message))
                )
                continue
            turns = self._earlier_turns(question.id) if self._in_rounds else []
            yield self._request_of(QuestionRounds(number, question, request, self._writer.folder, turns))

    def _check_sounds(self, number: int, question: Question) -> None:
        """Refuse a question whose sounds have changed since its answer."""
        before = self._sounds.get(number)
        if before is not None and before != sounds_hash(question):
            raise RunMismatch(
                "question_changed",
                id=question.id,
                folder=self._writer.folder,
                hint="use another --out, or the data of the run",
            )

    def _earlier_turns(self, id: str) -> list[AnswerRecord]:
        """The recorded answers of a conversation, up to the first whose audio is missing.

        The later ones are removed from the record.
        """
        turns = self._writer.turns(id)
        there = readable_answers(turns, self._writer.folder)
        if len(there) < len(turns):
            self._writer.write_turns(id, there)
        return there

    def _request_of(self, conversation: QuestionRounds) -> Request:
        request = conversation.request()
        self._waiting[request.id] = conversation
        return request

    def _take_response(self, conversation: QuestionRounds, request: Request, response: Response) -> None:
        """Record the response of a conversation's round; queue the next round if any."""
        answer = self._record(
            conversation.number, request, response, None if conversation.is_last else len(conversation.earlier) + 1
        )
        if conversation.is_last or answer.status != "ok":
            audio_s = response.audio.duration_s if response.audio is not None else 0.0
            self._finish_question(
                conversation.number, conversation.question, request, conversation.final_record(answer), audio_s
            )
            return
        if not self._proven:
            self._unproven.setdefault(conversation.question.id, list(conversation.earlier))
        conversation.earlier.append(answer)
        self._writer.write_turns(conversation.question.id, conversation.earlier)
        self._next[request.id] = self._request_of(conversation)

    def _record(
        self, number: int, request: Request | None, response: Response, turn: int | None = None
    ) -> AnswerRecord:
        """Build the record of a response and save its audio; without content it failed.

        Args:
            number: of the question.
            request: None if none was sent.
            turn: number of an earlier answer in the conversation, from 1; None for the last.
        """
        audio, reason = None, response.reason
        status = response.status
        if status == "ok" and response.audio is not None:
            audio, reason = self._save_audio(number, response.audio, turn)
            status = "ok" if reason is None else "failed"
        elif status == "ok" and request is not None and request.wants == "audio":
            status, reason = "failed", Diagnostic("no_audio_answer")
        elif status == "ok" and response.text is None:
            status, reason = "failed", Diagnostic("no_answer")
        ok = status == "ok"
        empty = ok and audio is None and not (response.text or "").strip() and response.finish == "length"
        self._empty += empty
        self._proven = self._proven or (ok and not empty)
        return AnswerRecord(
            status=status, reason=reason, text=response.text, audio=audio, usage=dict(response.usage),
            latency_s=response.latency_s, first_s=response.first_s, finish=response.finish, cut_s=response.cut_s,
            attempts=response.attempts, cached=response.cached, notes=response.notes,
            served=response.served, sound_s=response.sound_s, reasoning=response.reasoning,
        )  # fmt: skip

    def _finish_question(
        self, number: int, question: Question, request: Request | None, answer: AnswerRecord, audio_s: float = 0.0
    ) -> None:
        """Count a finished question, and queue it and its answer for the record."""
        self._ready.append((self._question(number, question, request), answer))
        self.counts.add(answer, audio_s)
        self._write(force=False)

    def _check_room(self, request: Request) -> None:
        """Raise if all answers so far were cut before their first word; none is recorded."""
        if self._proven or self._empty < MOST_EMPTY:
            return
        name, room = self._model.info.name, request.parameters.get("max_tokens")
        hint = option_hint(self._model, "max_tokens", 4 * (room or 1024))
        if has_option(self._model, "reasons") and not self._model.reasons:
            hint = f"--set {name}.reasons=true if it thinks before it answers, or {hint}"
        raise UserError("answers_empty_at_limit", count=self._empty, model=name, tokens=room, hint=hint)

    def _question(self, number: int, question: Question, request: Request | None) -> QuestionRecord:
        """Build the record of a question, and save its audio if the run keeps it."""
        source = question.audio.source if question.audio is not None else None
        stored_sound: str | None = None
        about: tuple[Any, Any, Any] = (None, None, None)
        if question.audio is not None and (self._keep_question(number) or not isinstance(source, str)):
            stored_sound, about = _store_question(self._writer, number - question.draw, question.audio)
        return QuestionRecord(
            number, question.id, plain_fields(question.fields), question.references, dict(question.subsets),
            question.language, format_request(request) if request is not None else None,
            source if isinstance(source, str) else None, stored_sound, *about,
            speaker=question.speaker, draw_of=question.draw_of, draw=question.draw if question.draw_of else None,
            sound=sounds_hash(question),
        )  # fmt: skip

    def _save_audio(self, number: int, audio: Audio, turn: int | None = None) -> tuple[str | None, Diagnostic | None]:
        """Write an answer's audio: (path in the run folder, None), or (None, the reason)."""
        stem, folder = self._writer.sound_name("answers", number, turn), self._writer.folder
        try:
            return keep_sound(folder, stem, audio), None
        except AudioError as error:
            return None, Diagnostic("answer_audio_not_stored", cause=error.message)
        except (OSError, RuntimeError) as error:
            raise UserError(
                "answer_audio_not_written",
                path=folder / stem,
                cause=error,
                hint="answers so far are recorded; free some disk space and run the same command again",
            ) from error

    def _flush_paid(self) -> None:
        """Write answers that may have cost money, so a kill never makes them cost twice."""
        self._write(force=self._proven and self._model.charges)

    def _write(self, force: bool) -> None:
        """Write answers if enough have gathered, enough time passed, or by force."""
        is_late = self._proven and perf_counter() - self._last_write >= WRITE_S
        if self._ready and (force or is_late or len(self._ready) >= WRITE_ANSWERS):
            self._writer.write_answers(self._ready)
            self._ready = []
            self._last_write = perf_counter()
            self._progress(self.counts.sent, self.counts.failed, self.counts.audio_s)


def _store_question(writer: AnswerWriter, number: int, clip: Clip) -> tuple[str | None, tuple[Any, Any, Any]]:
    """Copy a question's audio into the run folder, once for all of its repeats.

    Returns:
        (path there, (seconds, sample rate in Hz, channels)), as `_copy_sound`. An unreadable sound is not copied; the
        model's answer then has the reason.
    """
    name = writer.sound_name("questions", number)
    return clip.once(("copied", name), lambda: _copy_sound(writer, name, clip))


def _copy_sound(writer: AnswerWriter, name: str, clip: Clip) -> tuple[str | None, tuple[Any, Any, Any]]:
    """Save a question's audio in the run folder.

    Returns:
        (path in the folder, (seconds, sample rate in Hz, channels)). The path is None if the audio cannot be stored;
        all are None if it cannot be read.
    """
    try:
        audio = clip.read()
    except UserError:
        return None, (None, None, None)
    try:
        stored_sound = keep_sound(writer.folder, name, audio)
    except AudioError:
        return None, (audio.duration_s, audio.sample_rate_hz, audio.channels)
    except (OSError, RuntimeError) as error:
        raise UserError("question_audio_not_written", path=writer.folder / name, cause=error) from error
    return stored_sound, (audio.duration_s, audio.sample_rate_hz, audio.channels)


def plain_fields(fields: Any) -> dict[str, Any]:
    """Return the fields of a question that JSON can represent, without audio."""
    return {name: value for name, value in fields.items() if not _is_sound(value)}


def _is_sound(value: Any) -> bool:
    return isinstance(value, (Clip, bytes)) or (isinstance(value, (list, tuple)) and any(map(_is_sound, value)))


def format_request(request: Request) -> str:
    """Format a request for display: a paragraph per turn or field; audio is `<audio>`."""
    turns = [f"{m.role}: {' '.join(map(_shown_part, m.content)) or OWN_ANSWER}" for m in request.messages]
    turns += [f"{name}: {_shown_part(value)}" for name, value in request.fields.items()]
    return "\n\n".join(turns)


def _shown_part(content_part: Any) -> str:
    return SOUND if _is_sound(content_part) else str(content_part)


class TooLong(UserError):
    """A question's sound is too long for the model, and the benchmark forbids cutting."""


def check_length(request: Request, info: ModelInfo) -> Request:
    """Return the request unchanged if its audio is no longer than the model accepts.

    Args:
        request: its audio is decoded if the model has a limit. The model reports unreadable audio itself.
        info: the facts of the model. One that reads long audio in windows accepts any length.

    Raises:
        TooLong: a recording is longer than `info.limit_s`.
    """
    if info.limit_s is None or info.window_s is not None:
        return request
    for clip in clips_of(request):
        try:
            seconds = clip.duration_s
        except AudioError:
            continue
        if seconds > info.limit_s:
            raise TooLong(Diagnostic("sound_not_to_be_cut", s=seconds, model=info.name, limit_s=info.limit_s))
    return request
