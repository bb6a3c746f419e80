"""The spoken questions of a benchmark, each asked in a conversation of its own.

The recognised answer (`--words`) is compared by the rule `answer-match`, and by a judge (`--judge`) with the rubric of
Big Bench Audio, which shows the two answers alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from codec_bench.apps.conversation.measures import Value
from codec_bench.apps.conversation.official import Chunk
from codec_bench.apps.conversation.script import Conversation, Event, Script, UtteranceSpec
from codec_bench.apps.conversation.session import Session
from codec_bench.audio.clip import Clip
from codec_bench.benchmark import has_benchmark, load_benchmark
from codec_bench.benchmark.definition.loader import FILE
from codec_bench.benchmark.metrics import load_answer_metric
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.errors import UserError

RULE = "accuracy[answer-match]"
PATIENCE_S, LONGEST_S = 20.0, 600.0


@dataclass(frozen=True, slots=True)
class SpokenQuestion:
    """The audio of a question, as `Clip` takes it."""

    id: str
    audio: object


def asks(folder: Path) -> bool:
    """Whether `--scripts` names a benchmark: a user's path, or a known name."""
    return folder.name == FILE or (folder / FILE).is_file() or (not folder.exists() and has_benchmark(str(folder)))


def questions_of(name: str, limit: int | None) -> tuple[Script, list[SpokenQuestion]]:
    """Return the script of a benchmark's questions, and their audio.

    Raises:
        UserError: there is no such benchmark, its data are missing, or its questions are not audio with expected
            answers.
    """
    talks, sounds = [], []
    for number, question in enumerate(load_benchmark(name).questions(limit=limit)):
        clip = question.audio or next((value for value in question.fields.values() if isinstance(value, Clip)), None)
        if question.problem is not None or clip is None or not question.references:
            raise UserError(
                f"the question '{question.id}' of '{name}' cannot be spoken: "
                f"{question.problem or 'it has no sound or no expected answer'}",
                hint="--scripts takes benchmarks of spoken questions with one answer, such as big-bench-audio",
            )
        id = f"{number:05d}-{re.sub(r'[^A-Za-z0-9._-]', '_', question.id)[:80]}"
        turn = Event(say=(UtteranceSpec(sound=id),), at_s=0.5)
        talks.append(Conversation(id=id, turns=(turn,), references=question.references))
        sounds.append(SpokenQuestion(id, clip.source))
    return Script(version=1, title=f"{name}, spoken in time", data="", patience_s=PATIENCE_S, longest_s=LONGEST_S,
        conversations=tuple(talks)), sounds  # fmt: skip


def answer_of(session: Session, talk: Conversation, chunks: Sequence[Chunk]) -> Answer:
    """Return the transcript after the question's start, with accepted answers."""
    begin_s = next((event.speech[0][0] for event in session.events if event.speech), 0.0)
    answer = " ".join(word for word, begin, _ in chunks if begin >= begin_s)
    return Answer(session.id, answer, talk.references)


def by_rule(session: Session, talk: Conversation | None, chunks: Sequence[Chunk] | None) -> Iterator[Value]:
    """Yield whether the answer contains an accepted one, by rule."""
    if session.status == "ok" and talk is not None and talk.references and chunks is not None:
        (score,) = load_answer_metric(RULE).compute([answer_of(session, talk, chunks)])
        reason = "" if score.value is not None else f"{score.status}: {score.reason}"
        yield Value(session.id, 0, "answer_matches", score.value, 0.0, reason)
