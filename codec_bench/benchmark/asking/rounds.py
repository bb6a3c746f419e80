"""Questions of several rounds, each of which contains the model's earlier answers.

The request has an assistant's turn without content for each answer (`Prompt.render`). It is sent up to the first of
them, then up to the second with the first filled, and so on. A turn gets the model's words, as in URO-Bench's programs,
or its sound without words. The record has every answer; the last one counts as the answer, with the cost and time of
all rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.definition.base import Question
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import AudioError
from codec_bench.store.answers import AnswerRecord
from codec_bench.store.sound_files import check_sound
from codec_bench.types import Message, Request


@dataclass(slots=True)
class QuestionRounds:
    """A question and its rounds, each a turn of the model; most have one.

    Args:
        full_request: with an empty assistant turn for each answer but the last.
        earlier: the recorded answers to the first rounds.
    """

    number: int
    question: Question
    full_request: Request
    folder: Path
    earlier: list[AnswerRecord] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        """Number of answers in the conversation of this question."""
        return rounds_of(self.full_request)

    @property
    def is_last(self) -> bool:
        """Whether the next answer is the last one."""
        return len(self.earlier) + 1 >= self.rounds

    def request(self) -> Request:
        """Build the request of the next round, with the answers to the earlier ones.

        Only the request of the last round has the id of the question.
        """
        filled, left = list[Message](), list(self.earlier)
        for turn in self.full_request.messages:
            if turn.content:
                filled.append(turn)
            elif left:
                filled.append(Message("assistant", (_content(left.pop(0), self.folder),)))
            else:
                break
        id = self.full_request.id if self.is_last else f"{self.full_request.id} (round {len(self.earlier) + 1})"
        return replace(self.full_request, id=id, messages=tuple(filled))

    def final_record(self, answer: AnswerRecord) -> AnswerRecord:
        """The record of the question: `answer`, with the cost and time of all rounds.

        Args:
            answer: to the last round, or the one that failed.
        """
        if self.rounds == 1:
            return answer
        every, used = [*self.earlier, answer], Counter[str]()
        for one in every:
            used.update(one.usage)
        reason = answer.reason
        if answer.status != "ok":
            reason = Diagnostic("in_round", round=len(every), rounds=self.rounds, cause=reason)
        return replace(
            answer, reason=reason, usage=dict(used), latency_s=_total([one.latency_s for one in every]),
            cut_s=sum(one.cut_s for one in every), attempts=sum(one.attempts for one in every),
            cached=all(one.cached for one in every),
            notes=tuple(dict.fromkeys(note for one in every for note in one.notes)),
            sound_s=_total([one.sound_s for one in every]),
        )  # fmt: skip


def rounds_of(request: Request) -> int:
    """Return the number of answers to a request: its empty turns, and the last one."""
    return 1 + sum(not turn.content for turn in request.messages)


def readable_answers(earlier: Sequence[AnswerRecord], folder: Path) -> list[AnswerRecord]:
    """The answers before the first unreadable sound; `folder` is that of the run.

    Raises:
        DamagedRecord: a sound is another one.
    """
    for at, one in enumerate(earlier):
        try:
            if one.audio is not None:
                Clip(str(folder / one.audio)).read()
                check_sound(folder / one.audio)
        except AudioError:
            return list(earlier[:at])
    return list(earlier)


def _content(answer: AnswerRecord, folder: Path) -> str | Clip:
    return Clip(str(folder / answer.audio)) if answer.text is None and answer.audio is not None else answer.text or ""


def _total(of: Sequence[float | None]) -> float | None:
    known = [one for one in of if one is not None]
    return sum(known) if known else None
