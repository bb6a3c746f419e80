"""What a model was asked and what it answered: the part of a run record that a benchmark's first phase writes.

Conventions
    A run of a benchmark holds one system, which is the model, and one sample per question, numbered in the benchmark's
    order. A question and its answer are written in one transaction. A question whose answer is in the record is not
    asked again. Scores are made from these tables alone, so they can be made later, repeatedly, and on another machine.
    Where several answers are drawn to a question, each draw is a sample with an id of its own and names its question. A
    question of several rounds is one sample. The answers before its last are in the table `turns`, by the question's
    id: each is written before the next is asked for, so that none is asked for twice.
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

from codec_bench.errors import RunMismatch
from codec_bench.messages import Diagnostic, as_reason, as_remark
from codec_bench.store import integrity
from codec_bench.store.integrity import DATABASE
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.tables import QUESTIONS, TABLES, json_text, notes_text, reason_text, storable
from codec_bench.store.writer import SCORES, RunWriter, set_entries
from codec_bench.types import Answered, Score

BATCHES = "batches"
"""The entry of the record that holds what was submitted in batches."""
CALLS = "calls"
"""The key in the detail of a judge's score under which its calls stand; what the judge was not asked about has none."""
TOO_LONG = "too_long"
"""Why an answer ended (`AnswerRecord.finish`) that was not asked for, because the sound is longer than the model takes.
"""
SOUNDS = ("audio", "other_audio", "prompt_audio", "reference_audio", "source_audio")
"""Names of fields that hold sounds. `audio` may hold several."""
_SAMPLES = ("number", "id", "audio", "text", "speaker", "language", "duration_s", "sample_rate_hz", "channels", "sound")
_QUESTIONS = ("number", "fields", "expected", "subsets", "prompt", "audio", "draw_of", "draw")
_READINGS = ("number", "transcript", "parsed", "reason", "turns", "code")
_ANSWERS = ("number", *(one.name for one in fields(Answered)))


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question as the record keeps it.

    Args:
        number: its place in the benchmark. id: its name in the benchmark.
        fields: its columns, as JSON values, without sounds.
        expected: the right answers; each of them counts as right.
        subsets: its value in each column by which results are split. language: of the answer, or None.
        prompt: the text that the model was given, with `<audio>` for a sound; None if it was not asked.
        source: path of the sound as the data names it, or None.
        audio: path of the copy of the sound, relative to the run folder, or None.
        duration_s, sample_rate_hz, channels: of the sound, if it was decoded.
        sound: a hash of the sounds that the question is about; None if there is none.
        speaker: who speaks in the sound, or None.
        draw_of, draw: where several answers are drawn to a question, the question's id and which of them this one is,
            from 0; else None.
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
    """An answer as the record keeps it: a spoken one is a path relative to the run folder."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was made of an answer before it was scored.

    Args:
        transcript: what a recogniser heard in a spoken answer, or None.
        parsed: the text after post-processing; None if it could not be parsed.
        reason: why it could not be parsed, or None.
        turns: the words of the answers before the last one, of a question of several rounds: as heard, or as the model
            wrote them.
        code: why it could not be parsed, or that it came in another format than was asked for
            (`benchmark.reading.base`); None if there is nothing to say.
    """

    transcript: str | None = None
    parsed: str | None = None
    reason: str | None = None
    turns: tuple[str, ...] = ()
    code: str | None = None


class NewPosition(NamedTuple):
    """The place of an answer among more questions or draws: its number, its question's id and which draw it is."""

    number: int
    draw_of: str | None
    draw: int


class AnswerWriter(RunWriter):
    """A run record with questions and answers; arguments as `RunWriter`."""

    tables: ClassVar[str] = TABLES + QUESTIONS
    _grown = 0

    def _open(self, fingerprint: dict[str, Any], replacing: Sequence[str]) -> None:
        super()._open(fingerprint, replacing)
        self._grown = self.meta("grown") or 0
        if not self._scored():
            # Metrics are numbered by their order: names that were never used would take the numbers of others.
            with self._transaction() as rows:
                rows.delete("metrics", "TRUE")

    def _check(self, before: Any, now: dict[str, Any], replacing: Sequence[str]) -> None:
        # Before there is a score, the rules of scoring may still change.
        super()._check(before, now, replacing if self._scored() else (*replacing, "scored"))

    def _scored(self) -> bool:
        return self._db.execute("SELECT 1 FROM items LIMIT 1").fetchone() is not None

    def first_texts(self, most: int) -> dict[int, str]:
        """The first written answers of the record, by the question's number."""
        query = "SELECT number, text FROM answers WHERE status = 'ok' AND audio IS NULL AND text != '' ORDER BY number LIMIT ?"
        return dict(self._db.execute(query, (most,)).fetchall())

    def fresh_answers(self) -> tuple[int, Counter[tuple[str, str]]]:
        """How many recorded answers a model gave for this run: in all, and by column and value of the questions'
        subsets.
        """
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
        """The hashes of the sounds that answered questions are about, by the question's number."""
        return dict(self._db.execute("SELECT number, sound FROM samples WHERE sound IS NOT NULL").fetchall())

    def has_requests(self) -> bool:
        """Whether an answer is recorded, or one waits in a batch of a service."""
        there = "SELECT 1 FROM answers UNION ALL SELECT 1 FROM turns LIMIT 1"
        return bool(self._db.execute(there).fetchone() or self.meta(BATCHES))

    def sound_name(self, folder: str, number: int, turn: int | None = None) -> str:
        """The path of the sound of a question or an answer, relative to the run folder, without its hash and suffix.

        Args:
            folder: `questions` or `answers`. number: of the question. Numbers change when a run grows, and the files
                that are there keep their names: the names of later ones begin with how often it grew.
            turn: which answer before the last one it is, from 1; None for the last.
        """
        name = f"{number:07d}" if turn is None else f"{number:07d}-{turn}"
        return f"audio/{folder}/{f'{self._grown}-' if self._grown else ''}{name}"

    def turns(self, id: str) -> list[AnswerRecord]:
        """The answers of a question of several rounds that were given before its last one."""
        row = self._db.execute("SELECT answers FROM turns WHERE id = ?", (storable(id),)).fetchone()
        where = f"the turns of '{id}'"
        read = partial(integrity.diagnostic_of, path=self.folder / DATABASE, where=where)
        return [] if row is None else _turns(self._json_cell(row[0], where), read)

    def write_turns(self, id: str, earlier: Sequence[AnswerRecord]) -> None:
        """Writes the answers of a question of several rounds that were given before its last one, in place of those
        that are there.
        """
        with self._transaction() as rows:
            if not earlier:
                rows.delete("turns", "id = ?", [(storable(id),)])
                return
            held = json_text([{**asdict(one), **_codes(one)} for one in earlier])
            rows.insert("turns", ("id", "answers"), [(storable(id), held)], clash="replace")

    def questions(self) -> dict[str, tuple[int, str]]:
        """The recorded questions by id: number and `content_of`."""
        rows = self._db.execute(
            "SELECT p.id, q.number, q.fields, q.expected FROM questions q JOIN samples p ON p.number = q.number"
        )
        read = self._json_cell
        return {
            id: (
                number,
                content_of(read(fields, f"the fields of '{id}'"), read(expected, f"what is expected of '{id}'")),
            )
            for id, number, fields, expected in rows
        }

    def renumber(self, places: Mapping[int, NewPosition], request: Mapping[str, Any]) -> None:
        """Gives every answer its place among more questions or draws, together with what is asked now.

        Args:
            places: the new place of each number in the record. The order stays, and no number becomes smaller.
            request: what the record is from now on a run of.

        Raises:
            RunMismatch: the order would change. UserError: the record cannot be written.
        """
        rising = sorted(places)
        moved = [places[number].number for number in rising]
        if moved != sorted(set(moved)) or any(new < old for old, new in zip(rising, moved)):
            raise RunMismatch(
                f"'{self.folder}' cannot grow: its questions are in another order now", hint="give another --out"
            )
        fingerprint = {**self.meta("fingerprint"), "asked": dict(request)}
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
        """Writes questions with their answers in one transaction. An earlier answer to the same question is replaced.

        Raises:
            UserError: the record cannot be written.
        """
        samples, questions, answers = [], [], []
        for q, a in pairs:
            id, text = storable(q.id), storable(q.expected[0] if q.expected else None)
            about = (q.language, q.duration_s, q.sample_rate_hz, q.channels, q.sound)
            samples.append((q.number, id, q.source, text, storable(q.speaker), *about))
            texts = (_json(q.fields), _json(q.expected), _json(q.subsets), storable(q.prompt))
            questions.append((q.number, *texts, q.audio, storable(q.draw_of), q.draw))
            cells = {
                "reason": reason_text(a.reason), "text": storable(a.text), "usage": _json(a.usage), "notes": notes_text(a.notes),
                "served": _json(a.served) if a.served else None, "reasoning": storable(a.reasoning),
            }  # fmt: skip
            answers.append((q.number, *(cells[n] if n in cells else getattr(a, n) for n in _ANSWERS[1:])))
        with self._transaction() as rows:
            # Replaced by number and not by name, so that a question never replaces another question.
            rows.insert("samples", _SAMPLES, samples, clash="replace")
            rows.insert("questions", _QUESTIONS, questions, clash="replace")
            rows.insert("answers", _ANSWERS, answers, clash="replace")

    def write_subsets(self, subsets: Mapping[int, Mapping[str, Any]]) -> None:
        """Notes the subsets of questions, by the question's number, in place of those that the record holds."""
        with self._transaction() as rows:
            rows.change("questions", ("subsets",), [(number, _json(held)) for number, held in subsets.items()])

    def write_lengths(self, sounds: Sequence[tuple[int, float, int, int]]) -> None:
        """Notes the seconds, sample rate in Hz and channels of questions' sounds, by the question's number."""
        with self._transaction() as rows:
            rows.change("samples", ("duration_s", "sample_rate_hz", "channels"), sounds)

    def write_marked(self, items: Sequence[tuple[int, ItemRecord]], readings: Mapping[int, Reading]) -> None:
        """Writes scored answers and their readings, by the question's number.

        The readings are written first, so that every item in the record has its reading.
        """
        if not items:
            return
        read = [
            (
                n,
                storable(r.transcript),
                storable(r.parsed),
                reason_text(r.reason),
                _json(r.turns) if r.turns else None,
                r.code,
            )
            for n, r in readings.items()
        ]
        with self._transaction() as rows:
            rows.insert("readings", _READINGS, read, clash="replace")
        self.write(items)

    def write_scores(self, system: str, metric: str, scores: Mapping[int, Score]) -> None:
        """Writes one metric's scores by the question's number, and replaces those that are there."""
        rows_of_scores = [self._score_row(system, metric, number, score) for number, score in scores.items()]
        with self._transaction() as rows:
            rows.insert("scores", SCORES, rows_of_scores, clash="replace")

    def scored(self, metric: str) -> set[int]:
        """The numbers of the questions that have a score of a metric, whatever its status."""
        number = self._metrics[metric]
        return {n for (n,) in self._db.execute("SELECT sample FROM scores WHERE metric = ?", (number,))}

    def delete_scores(self) -> None:
        """Deletes everything that was made from the answers, so that it is made again."""
        with self._transaction() as rows:
            for table in ("readings", "scores", "items", "metrics"):
                rows.delete(table, "TRUE")

    def delete_failed_scores(self, metric: str) -> None:
        """Deletes one metric's failed scores, so that they are made again."""
        with self._transaction() as rows:
            rows.delete("scores", "metric = ? AND status = 'failed'", [(self._metrics[metric],)])

    def delete_failed_answers(self) -> int:
        """Deletes failed answers and what was made from them, so that they are asked again; returns how many."""
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
        turns: the answers before this one, of a question of several rounds, each with the file of its sound.
    """

    question: QuestionRecord
    answer: AnswerRecord
    reading: Reading | None
    audio_path: Path | None
    answer_path: Path | None
    turns: tuple[tuple[AnswerRecord, Path | None], ...] = ()


def has_answers(run: Run) -> bool:
    """Whether a run is of a benchmark that asks a model, so that it holds questions and answers."""
    return run.has_questions


def draws_of(run: Run) -> dict[int, tuple[str, int]]:
    """By the number of each answer, its question's id and which draw it is; empty if each question was asked once."""
    if not run.has_questions:
        return {}
    rows = run.query("SELECT number, draw_of, draw FROM questions WHERE draw_of IS NOT NULL ORDER BY number")
    return {number: (question, draw) for number, question, draw in rows}


def turn_counts(run: Run) -> tuple[int, int]:
    """How many answers of conversations came before a last one, and how many of them are of conversations without a
    last one.
    """
    ((turns, unfinished),) = run.query("""
        SELECT COALESCE(SUM(json_array_length(t.answers)), 0),
               COALESCE(SUM(json_array_length(t.answers)) FILTER (WHERE a.number IS NULL), 0)
        FROM turns t LEFT JOIN samples p ON p.id = t.id LEFT JOIN answers a ON a.number = p.number""")
    return turns, unfinished


def content_of(fields: Mapping[str, Any], expected: Sequence[str]) -> str:
    """A hash of what a question says and of its expected answers, by which it is known again: 160 bits in hexadecimal."""
    text = json.dumps([json.loads(_json(fields)), json.loads(_json(expected))], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def digest_of(questions: Iterable[tuple[Mapping[str, Any], Sequence[str]]]) -> str:
    """A hash of what questions say and of their expected answers, in any order and without their sounds: 160 bits in
    hexadecimal.
    """
    contents = sorted(
        content_of(
            {name: value for name, value in fields.items() if name not in SOUNDS and value is not None}, expected
        )
        for fields, expected in questions
    )
    return hashlib.blake2b("\n".join(contents).encode(), digest_size=20).hexdigest()


def exchanges(run: Run, numbers: Sequence[int] | None = None) -> Iterator[Exchange]:
    """Questions and answers of a run in the benchmark's order: all of them, or those with the given numbers."""
    chosen = "" if numbers is None else f"WHERE a.number IN ({','.join(str(int(n)) for n in numbers)})"
    for row in run.query_lazily(
        "SELECT a.number, p.id, q.fields, q.expected, q.subsets, p.language, q.prompt, p.audio, q.audio, p.duration_s, "
        "p.sample_rate_hz, p.channels, p.speaker, a.status, a.reason, a.text, a.audio, a.usage, a.latency_s, a.first_s, a.finish, "
        "a.cut_s, a.attempts, a.cached, a.notes, a.served, r.number, r.transcript, r.parsed, r.reason, q.draw_of, q.draw, r.turns, t.answers, r.code, a.sound_s, a.reasoning FROM answers a "
        "JOIN questions q ON q.number = a.number JOIN samples p ON p.number = a.number "
        f"LEFT JOIN readings r ON r.number = a.number LEFT JOIN turns t ON t.id = p.id {chosen} ORDER BY a.number"
    ):
        cell = partial(run.json, where=f"the record of question {row[0]}")
        question = QuestionRecord(
            row[0], row[1], cell(row[2]), tuple(cell(row[3])), cell(row[4]), *row[5:13], *row[30:32]
        )
        usage, cached, notes, who = row[17], row[23], row[24], row[25]
        served = cell(who) if who is not None else {}
        notes_of_answer = [run.diagnostic_of(one, row[1]) for one in (cell(notes) if notes else ())]
        texts = (row[13], run.diagnostic(row[14], row[1]), *row[15:17])
        cells = (*texts, cell(usage), *row[18:23], bool(cached), tuple(notes_of_answer), served, *row[35:37])
        answer = AnswerRecord(*cells)
        turns = tuple(cell(row[32])) if row[32] is not None else ()
        why = run.diagnostic(row[29], row[1])
        reading = Reading(row[27], row[28], why, turns, row[34]) if row[26] is not None else None
        earlier = _turns(cell(row[33]), partial(run.diagnostic_of, sample=row[1])) if row[33] is not None else []
        before = tuple((one, run.sound_path(one.audio) if one.audio else None) for one in earlier)
        sound_file = run.sound_path(answer.audio) if answer.audio else None
        yield Exchange(question, answer, reading, _sound(run, question), sound_file, before)


def _codes(answer: AnswerRecord) -> dict[str, Any]:
    """The reason and the notes of an answer as JSON values."""
    reason = as_reason(answer.reason)
    return {
        "reason": None if reason is None else reason.as_dict(),
        "notes": [as_remark(note).as_dict() for note in answer.notes],
    }


def _turns(held: Sequence[Mapping[str, Any]], read: Callable[[Any], Diagnostic]) -> list[AnswerRecord]:
    return [
        AnswerRecord(
            **{
                **one,
                "reason": None if one["reason"] is None else read(one["reason"]),
                "notes": tuple(map(read, one["notes"])),
            }
        )
        for one in held
    ]


def _sound(run: Run, question: QuestionRecord) -> Path | None:
    if question.audio is not None:
        return run.sound_path(question.audio)
    return Path(question.source) if question.source is not None else None


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    plain = value if isinstance(value, (dict, tuple)) else dict(value) if isinstance(value, Mapping) else list(value)
    return json_text(plain)
