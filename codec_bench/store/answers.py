"""Questions and answers of a model: the record of a benchmark's first phase.

A run of a benchmark has one system, the model, and one sample per question, in the benchmark's order. A question and
its answer are one transaction, and no recorded question is sent again. Scores come from these tables alone. Each of
several draws is a sample with its own id. Earlier answers of a conversation are in `turns`, written one by one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from codec_bench.messages import Diagnostic, as_reason, as_remark
from codec_bench.messages.errors import RunMismatch
from codec_bench.store import integrity
from codec_bench.store.integrity import DATABASE
from codec_bench.store.record import REQUEST, Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.tables import QUESTIONS, TABLES, json_text, notes_text, reason_text, storable
from codec_bench.store.writer import SCORES, RunWriter, set_entries
from codec_bench.types import Answered, Score

BATCHES = "batches"
"""Entry of the record with the batches submitted to a service."""
CALLS = "calls"
"""Key of a judge's calls in the detail of a score; absent if the judge was not called."""
TOO_LONG = "too_long"
"""`AnswerRecord.finish` of a question that was not sent because its sound is too long for the model."""
UNUSABLE_ROW = "unusable_row"
"""`AnswerRecord.finish` of a question that was not sent because its row in the data is unusable."""
SOUNDS = ("audio", "other_audio", "prompt_audio", "reference_audio", "source_audio")
"""Names of fields that hold sounds; `audio` may hold several."""
_SAMPLES = ("number", "id", "audio", "text", "speaker", "language", "duration_s", "sample_rate_hz", "channels", "sound")
_QUESTIONS = ("number", "fields", "expected", "subsets", "prompt", "audio", "draw_of", "draw")
_READINGS = ("number", "transcript", "parsed", "reason", "turns", "code")
_ANSWERS = ("number", *(one.name for one in fields(Answered)))
_QUESTION_COLUMNS = (
    "p.id, q.fields, q.expected, q.subsets, p.language, q.prompt, p.audio, q.audio, p.duration_s, p.sample_rate_hz, "
    "p.channels, p.speaker, q.draw_of, q.draw"
)


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question in the record.

    Args:
        fields: its columns as JSON values, without sounds.
        subsets: its value in each column by which results are split.
        prompt: the text sent to the model, with `<audio>` for a sound; None if not sent.
        source: path of the sound in the data.
        audio: path of its copy in the run folder.
        duration_s, sample_rate_hz, channels: of the decoded sound.
        sound: a hash of the question's sounds.
        draw_of, draw: the question's id and the number of this draw from 0, if several are drawn.
    """

    number: int
    id: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    subsets: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    prompt: str | None = None
    source: str | None = None
    audio: str | None = None
    duration_s: float | None = None
    sample_rate_hz: int | None = None
    channels: int | None = None
    speaker: str | None = None
    draw_of: str | None = None
    draw: int | None = None
    sound: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerRecord(Answered[str]):
    """An answer in the record; audio is a path relative to the run folder."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The post-processed form of an answer.

    Args:
        transcript: of a spoken answer, by a recogniser.
        parsed: the final text; None if unparsable.
        reason: why it is unparsable.
        turns: texts of the earlier answers of a conversation.
        code: of the reason or of an unexpected format (`benchmark.reading.base`).
    """

    transcript: str | None = None
    parsed: str | None = None
    reason: str | None = None
    turns: tuple[str, ...] = ()
    code: str | None = None


class NewPosition(NamedTuple):
    """New number, question id and draw of an answer after more samples were added."""

    number: int
    draw_of: str | None
    draw: int


class AnswerWriter(RunWriter):
    """A run record with questions and answers; arguments as `RunWriter`."""

    tables: ClassVar[str] = TABLES + QUESTIONS
    _grown = 0

    def _open(self, fingerprint: dict[str, Any], replacing: Sequence[str]) -> None:
        """Open the record; without scores, forget the numbers of its metrics."""
        super()._open(fingerprint, replacing)
        self._grown = self.meta("grown") or 0
        if not self._scored():
            # Metrics are numbered by their order: names that were never used would take the numbers of others.
            with self._transaction() as rows:
                rows.delete("metrics", "TRUE")

    def _check_settings(self, before: Any, now: dict[str, Any], replacing: Sequence[str]) -> None:
        # Before there is a score, the rules of scoring may still change.
        super()._check_settings(before, now, replacing if self._scored() else (*replacing, "scored"))

    def _scored(self) -> bool:
        return self._db.execute("SELECT 1 FROM items LIMIT 1").fetchone() is not None

    def first_texts(self, most: int) -> dict[int, str]:
        """Texts of the first `most` written answers, by the question's number."""
        written = "FROM answers WHERE status = 'ok' AND audio IS NULL AND text != '' ORDER BY number LIMIT ?"
        return dict(self._db.execute(f"SELECT number, text {written}", (most,)).fetchall())

    def fresh_answers(self) -> tuple[int, Counter[tuple[str, str]]]:
        """Count the ok answers not from a cache: in all, and by (subset column, value)."""
        fresh = "FROM answers a JOIN questions q ON q.number = a.number{} WHERE a.status = 'ok' AND NOT a.cached"
        (count,) = self._db.execute(f"SELECT COUNT(*) {fresh.format('')}").fetchone()
        rows = self._db.execute(
            f"SELECT j.key, j.value, COUNT(*) {fresh.format(', json_each(q.subsets) j')} GROUP BY 1, 2"
        )
        return count, Counter({(column, str(value)): n for column, value, n in rows})

    def answered(self) -> dict[int, str]:
        """The status of every recorded answer, by the question's number."""
        return dict(self._db.execute("SELECT number, status FROM answers").fetchall())

    def question_sounds(self) -> dict[int, str]:
        """Hashes of the sounds of answered questions, by the question's number."""
        return dict(self._db.execute("SELECT number, sound FROM samples WHERE sound IS NOT NULL").fetchall())

    def has_requests(self) -> bool:
        """Whether an answer is recorded, or pending in a batch of a service."""
        there = "SELECT 1 FROM answers UNION ALL SELECT 1 FROM turns LIMIT 1"
        return bool(self._db.execute(there).fetchone() or self.meta(BATCHES))

    def sound_name(self, folder: str, number: int, turn: int | None = None) -> str:
        """A sound's path in the run folder, without hash and suffix.

        Args:
            folder: `questions` or `answers`.
            number: of the question; once a run has grown, the name begins with how many times it has.
            turn: number of an earlier answer from 1; None for the last.
        """
        name = f"{number:07d}" if turn is None else f"{number:07d}-{turn}"
        return f"audio/{folder}/{f'{self._grown}-' if self._grown else ''}{name}"

    def turns(self, id: str) -> list[AnswerRecord]:
        """The answers before the last in the conversation `id`, in order; [] if none."""
        row = self._db.execute("SELECT answers FROM turns WHERE id = ?", (storable(id),)).fetchone()
        where = f"the turns of '{id}'"
        read = partial(integrity.diagnostic_of, path=self.folder / DATABASE, where=where)
        return [] if row is None else _turns(self._json_cell(row[0], where), read)

    def write_turns(self, id: str, earlier: Sequence[AnswerRecord]) -> None:
        """Replace the earlier answers of a question of several rounds."""
        with self._transaction() as rows:
            if not earlier:
                rows.delete("turns", "id = ?", [(storable(id),)])
                return
            held = json_text([{**asdict(one), **_codes(one)} for one in earlier])
            rows.insert("turns", ("id", "answers"), [(storable(id), held)], clash="replace")

    def questions(self) -> dict[str, tuple[int, str]]:
        """The recorded questions: {id: (number, content hash by `content_of`)}."""
        rows = self._db.execute(
            "SELECT p.id, q.number, q.fields, q.expected FROM questions q JOIN samples p ON p.number = q.number"
        )
        read = self._json_cell
        columns = lambda id, text: read(text, f"the fields of '{id}'")  # noqa: E731
        answers = lambda id, text: read(text, f"the expected answers of '{id}'")  # noqa: E731
        return {id: (n, content_of(columns(id, fields), answers(id, right))) for id, n, fields, right in rows}

    def renumber(self, places: Mapping[int, NewPosition], request: Mapping[str, Any]) -> None:
        """Renumber all answers for a larger set of questions or draws.

        Args:
            places: new position of each recorded number, in the same order and never smaller.
            request: of the larger run.

        Raises:
            RunMismatch: the order would change.
            UserError: the record cannot be written.
        """
        rising = sorted(places)
        moved = [places[number].number for number in rising]
        if moved != sorted(set(moved)) or any(new < old for old, new in zip(rising, moved)):
            raise RunMismatch("order_changed", folder=self.folder, hint="give another --out")
        fingerprint = {**self.meta("fingerprint"), REQUEST: dict(request)}
        with self._transaction() as rows:
            for table in ("samples", "answers", "readings", "extras"):
                # From the last to the first, so that no row takes the number of one that has not moved yet.
                rows.change(table, ("number",), ((old, places[old].number) for old in reversed(rising)))
            drawn = (
                (old, *places[old]) if places[old].draw_of else (old, places[old].number, None, None)
                for old in reversed(rising)
            )
            rows.change("questions", ("number", "draw_of", "draw"), drawn)
            for table, key in (("items", "system, sample"), ("scores", "system, metric, sample")):
                keys = self._db.execute(f"SELECT {key} FROM {table} ORDER BY sample DESC").fetchall()
                rows.change(table, ("sample",), ((*held, places[held[-1]].number) for held in keys))
            set_entries(rows, fingerprint=json.loads(json.dumps(fingerprint)), grown=self._grown + 1)
        self._grown += 1

    def write_answers(self, pairs: Sequence[tuple[QuestionRecord, AnswerRecord]]) -> None:
        """Write questions and answers in one transaction; earlier answers are replaced."""
        samples, questions, answers = [], [], []
        for q, a in pairs:
            id, text = storable(q.id), storable(q.expected[0] if q.expected else None)
            about = (q.language, q.duration_s, q.sample_rate_hz, q.channels, q.sound)
            samples.append((q.number, id, q.source, text, storable(q.speaker), *about))
            texts = (_json(q.fields), _json(q.expected), _json(q.subsets), storable(q.prompt))
            questions.append((q.number, *texts, q.audio, storable(q.draw_of), q.draw))
            cells = {
                "reason": reason_text(a.reason), "text": storable(a.text), "usage": _json(a.usage),
                "notes": notes_text(a.notes), "served": _json(a.served) if a.served else None,
                "reasoning": storable(a.reasoning),
            }  # fmt: skip
            answers.append((q.number, *(cells[n] if n in cells else getattr(a, n) for n in _ANSWERS[1:])))
        with self._transaction() as rows:
            # Replaced by number and not by name, so that a question never replaces another question.
            rows.insert("samples", _SAMPLES, samples, clash="replace")
            rows.insert("questions", _QUESTIONS, questions, clash="replace")
            rows.insert("answers", _ANSWERS, answers, clash="replace")

    def write_subsets(self, subsets: Mapping[int, Mapping[str, Any]]) -> None:
        """Replace the subsets of questions, by the question's number."""
        with self._transaction() as rows:
            rows.change("questions", ("subsets",), [(number, _json(held)) for number, held in subsets.items()])

    def write_lengths(self, sounds: Sequence[tuple[int, float, int, int]]) -> None:
        """Record seconds, sample rate in Hz and channels of questions' sounds, by number."""
        with self._transaction() as rows:
            rows.change("samples", ("duration_s", "sample_rate_hz", "channels"), sounds)

    def write_marked(self, items: Sequence[tuple[int, ItemRecord]], readings: Mapping[int, Reading]) -> None:
        """Write scored answers with their post-processed texts, so every item has one."""
        if not items:
            return
        text = lambda r: (storable(r.transcript), storable(r.parsed), reason_text(r.reason))  # noqa: E731
        read = [(n, *text(r), _json(r.turns) if r.turns else None, r.code) for n, r in readings.items()]
        with self._transaction() as rows:
            rows.insert("readings", _READINGS, read, clash="replace")
        self.write(items)

    def write_scores(self, system: str, metric: str, scores: Mapping[int, Score]) -> None:
        """Write or replace one metric's scores, by the question's number."""
        rows_of_scores = [self._score_row(system, metric, number, score) for number, score in scores.items()]
        with self._transaction() as rows:
            rows.insert("scores", SCORES, rows_of_scores, clash="replace")

    def scored(self, metric: str) -> set[int]:
        """Numbers of the questions with a score of a metric, whatever its status."""
        number = self._metrics[metric]
        return {n for (n,) in self._db.execute("SELECT sample FROM scores WHERE metric = ?", (number,))}

    def delete_scores(self) -> None:
        """Delete everything derived from the answers."""
        with self._transaction() as rows:
            for table in ("readings", "scores", "items", "metrics"):
                rows.delete(table, "TRUE")

    def delete_failed_scores(self, metric: str) -> None:
        """Delete one metric's failed scores."""
        with self._transaction() as rows:
            rows.delete("scores", "metric = ? AND status = 'failed'", [(self._metrics[metric],)])

    def delete_failed_answers(self) -> int:
        """Delete failed answers and everything derived from them; returns how many."""
        with self._transaction() as rows:
            bad = self._db.execute("SELECT number FROM answers WHERE status = 'failed'").fetchall()
            for table in ("scores", "items", "readings", "answers"):
                rows.delete(table, f"{'sample' if table in ('scores', 'items') else 'number'} = ?", bad)
        return len(bad)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question, its answer and its reading.

    Args:
        audio_path, answer_path: files with the question's and the answer's sound, or None.
        turns: earlier answers of a conversation, each with the file of its sound.
    """

    question: QuestionRecord
    answer: AnswerRecord
    reading: Reading | None
    audio_path: Path | None
    answer_path: Path | None
    turns: tuple[tuple[AnswerRecord, Path | None], ...] = ()


def has_answers(run: Run) -> bool:
    """Whether a run has questions and answers of a model."""
    return run.has_questions


def draws_of(run: Run) -> dict[int, tuple[str, int]]:
    """The {answer number: (question id, draw)} of a run that repeats questions.

    A draw counts the repetitions of a question from 0. Empty if each question is sent once.
    """
    if not run.has_questions:
        return {}
    rows = run.query("SELECT number, draw_of, draw FROM questions WHERE draw_of IS NOT NULL ORDER BY number")
    return {number: (question, draw) for number, question, draw in rows}


def turn_counts(run: Run) -> tuple[int, int]:
    """Number of conversations' earlier answers, and how many lack a last one."""
    ((turns, unfinished),) = run.query("""
        SELECT COALESCE(SUM(json_array_length(t.answers)), 0),
               COALESCE(SUM(json_array_length(t.answers)) FILTER (WHERE a.number IS NULL), 0)
        FROM turns t LEFT JOIN samples p ON p.id = t.id LEFT JOIN answers a ON a.number = p.number""")
    return turns, unfinished


def content_of(fields: Mapping[str, Any], expected: Sequence[str]) -> str:
    """A hash of a question's content and expected answers: 160 bits in hexadecimal."""
    text = json.dumps([json.loads(_json(fields)), json.loads(_json(expected))], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def digest_of(questions: Iterable[tuple[Mapping[str, Any], Sequence[str]]]) -> str:
    """A hash of questions with expected answers: 160 bits, hex.

    Their order and their audio do not count.
    """
    texts = lambda fields: {k: v for k, v in fields.items() if k not in SOUNDS and v is not None}  # noqa: E731
    contents = sorted(content_of(texts(fields), expected) for fields, expected in questions)
    return hashlib.blake2b("\n".join(contents).encode(), digest_size=20).hexdigest()


def exchanges(run: Run, numbers: Sequence[int] | None = None) -> Iterator[Exchange]:
    """Yield a run's questions with answers, in order: all, or those with `numbers`."""
    chosen = "" if numbers is None else f"WHERE a.number IN ({','.join(str(int(n)) for n in numbers)})"
    for number, id, *row in run.query_lazily(
        f"SELECT a.number, {_QUESTION_COLUMNS}, {', '.join(f'a.{name}' for name in _ANSWERS[1:])}, "
        "r.number, r.transcript, r.parsed, r.reason, r.turns, r.code, t.answers FROM answers a "
        "JOIN questions q ON q.number = a.number JOIN samples p ON p.number = a.number "
        f"LEFT JOIN readings r ON r.number = a.number LEFT JOIN turns t ON t.id = p.id {chosen} ORDER BY a.number"
    ):
        cell = partial(run.json, where=f"the record of question {number}")
        columns, expected, subsets, *more = row[:13]
        question = QuestionRecord(number, id, cell(columns), tuple(cell(expected)), cell(subsets), *more)
        held = dict(zip(_ANSWERS[1:], row[13:-7]))
        held |= {
            "reason": run.diagnostic(held["reason"], id), "usage": cell(held["usage"]), "cached": bool(held["cached"]),
            "notes": tuple(run.diagnostic_of(one, id) for one in (cell(held["notes"]) if held["notes"] else ())),
            "served": cell(held["served"]) if held["served"] is not None else {},
        }  # fmt: skip
        answer = AnswerRecord(**held)
        read, transcript, parsed, reason, turns, code, earlier = row[-7:]
        rounds = tuple(cell(turns)) if turns is not None else ()
        why = run.diagnostic(reason, id)
        reading = Reading(transcript, parsed, why, rounds, code) if read is not None else None
        answers = _turns(cell(earlier), partial(run.diagnostic_of, sample=id)) if earlier is not None else []
        before = tuple((one, run.sound_path(one.audio) if one.audio else None) for one in answers)
        sound_file = run.sound_path(answer.audio) if answer.audio else None
        yield Exchange(question, answer, reading, _sound(run, question), sound_file, before)


def _codes(answer: AnswerRecord) -> dict[str, Any]:
    reason = as_reason(answer.reason)
    return {
        "reason": None if reason is None else reason.as_dict(),
        "notes": [as_remark(note).as_dict() for note in answer.notes],
    }


def _turns(held: Sequence[Mapping[str, Any]], read: Callable[[Any], Diagnostic]) -> list[AnswerRecord]:
    reason = lambda one: None if one["reason"] is None else read(one["reason"])  # noqa: E731
    return [AnswerRecord(**{**one, "reason": reason(one), "notes": tuple(map(read, one["notes"]))}) for one in held]


def _sound(run: Run, question: QuestionRecord) -> Path | None:
    if question.audio is not None:
        return run.sound_path(question.audio)
    return Path(question.source) if question.source is not None else None


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    plain = value if isinstance(value, (dict, tuple)) else dict(value) if isinstance(value, Mapping) else list(value)
    return json_text(plain)
