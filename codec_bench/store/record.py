"""The run record: the request, what ran, and every sample's scores and failures.

A run folder holds `run.sqlite` (the record), `run.json`, `summary.json`, `report.html` and perhaps `audio/`. An item is
one sample through one system, written in one transaction, so a killed run continues without loss or repetition. One
process writes a folder at a time; readers need no lock. Only a whole record is read (`store.integrity`).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.config.paths import hint_for_path
from codec_bench.messages import Diagnostic, from_codes
from codec_bench.messages.errors import UnknownName, UserError, optional_package
from codec_bench.store import integrity
from codec_bench.store.integrity import DATABASE
from codec_bench.store.judge_tests import judge_words
from codec_bench.store.rows import (
    NUMBERS,
    SAMPLE_DURATION,
    SOUND,
    TABLE_COLUMNS,
    Cells,
    ItemRow,
    SampleRow,
    ScoreRow,
    TableRow,
)
from codec_bench.store.statuses import FAILURES

REQUEST = "asked"
"""The key of the request in a fingerprint."""
_SHARED = "SELECT sound FROM samples WHERE sound IS NOT NULL GROUP BY sound HAVING COUNT(*) > 1"
OF_FIRST = (
    "LEFT JOIN (SELECT sample, duration_s, MIN(system) FROM items WHERE duration_s IS NOT NULL GROUP BY sample) first "
    "ON first.sample = p.number"
)
DURATION = f"COALESCE(first.duration_s, {SAMPLE_DURATION})"
"""Seconds of a sample `p`: audio of the first system with some, else the reference if it is no prompt."""
_SAME = "q.fields || q.expected || COALESCE(q.prompt, '') || COALESCE(p.audio, q.audio, '')"
"""Identity of a question `q` of a sample `p` besides its id: texts, expected answers, path of the sound."""
_REPEATABLE = (
    "FROM questions q JOIN samples p ON p.number = q.number WHERE q.draw_of IS NULL AND q.fields != '{}' "
    # The record names one sound of a question. With more or unnamed sounds, or without a prompt, it repeats none.
    f"AND (LENGTH(q.prompt) - LENGTH(REPLACE(q.prompt, '{SOUND}', ''))) / {len(SOUND)} "
    "<= (COALESCE(p.audio, q.audio) IS NOT NULL)"
)
_REPEATED = f"SELECT {_SAME} {_REPEATABLE} GROUP BY 1 HAVING COUNT(*) > 1"


class Run:
    """A run folder, opened for reading; a UserError for other folders.

    Methods that read rows raise DamagedRecord if the record is not as written.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / DATABASE
        if not path.is_file():
            inside = sorted(str(p.parent) for p in self.folder.glob(f"*/**/{DATABASE}"))
            hint = hint_for_path(self.folder, "name the folder of --out")
            if inside:
                hint = f"it holds {', '.join(inside[:5])}{' and more' if len(inside) > 5 else ''}"
            raise UserError("not_a_run_folder", folder=self.folder, database=DATABASE, hint=hint)
        self._path = path
        self._lock, self._checked = threading.Lock(), False
        integrity.check_header(path)
        with integrity.reading(path):
            self._db = integrity.connect(path)
        try:
            integrity.check_opened(self._db, path)
            self._facts_are_whole()
            integrity.check_results(path, self.meta)
        except BaseException:
            self._db.close()
            raise

    def _facts_are_whole(self) -> None:
        """Raise DamagedRecord for malformed entries or facts of systems and metrics."""
        meta = self.meta
        for name in integrity.MAPPINGS:
            if not isinstance(meta.get(name, {}), dict | None):
                raise integrity.damaged(self._path, "entry_no_mapping", entry=name)
        for kind, table in (("system", self.systems), ("metric", self.metrics)):
            for name, facts in table.items():
                known = isinstance(facts, dict | None)
                if not known or (kind == "metric" and not isinstance((facts or {}).get("protocol"), str)):
                    raise integrity.damaged(self._path, "facts_changed", kind=kind, name=name)

    def check(self) -> None:
        """Check the content of the record, once; all readers of rows do."""
        with self._lock:
            if not self._checked:
                integrity.check_content(self._path)
                self._checked = True

    def query_lazily(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """As `query`, row by row, for tables that may not fit into memory."""
        self.check()
        with integrity.reading(self._path):
            yield from self._db.execute(sql, values)

    def _facts(self, sql: str, where: str) -> dict[str, Any]:
        with integrity.reading(self._path):
            return {name: self.json(text, f"{where} '{name}'") for name, text in self._db.execute(sql)}

    @property
    def meta(self) -> dict[str, Any]:
        """The request and the run: `config`, `fingerprint`, `versions`, `timings`, ..."""
        meta = self._facts("SELECT key, value FROM meta", "its entry")
        return {**meta, "checks": from_codes(meta["checks"])} if "checks" in meta else meta

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """The systems in the order of the request, with their facts."""
        return self._facts("SELECT name, facts FROM systems ORDER BY number", "the facts of the system")

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The metrics in the order of the request, with protocol, unit and further facts."""
        return self._facts("SELECT name, facts FROM metrics ORDER BY number", "the facts of the metric")

    def samples(self) -> Iterator[SampleRow]:
        """The samples in the order of the data."""
        yield from (
            SampleRow(*row)
            for row in self.query_lazily(
                f"SELECT p.id, p.audio, p.text, p.speaker, p.language, {DURATION}, p.sample_rate_hz, p.channels "
                f"FROM samples p {OF_FIRST} ORDER BY p.number"
            )
        )

    def items(self, system: str | None = None) -> Iterator[ItemRow]:
        """The finished items of all systems, or of one."""
        for name, sample, status, reason, bits, notes, audio, duration_s in self.query_lazily(
            "SELECT s.name, p.id, i.status, i.reason, i.bits, i.notes, i.audio, i.duration_s FROM items i "
            "JOIN systems s ON s.number = i.system JOIN samples p ON p.number = i.sample "
            "WHERE (?1 IS NULL OR s.name = ?1) ORDER BY i.system, i.sample",
            (system,),
        ):
            path = self.sound_path(audio) if audio else None
            why, remarks = self.diagnostic(reason, sample), self._notes(notes, sample)
            yield ItemRow(name, sample, status, why, bits, remarks, path, duration_s)

    def saved_audio(self) -> Iterator[tuple[str, Path]]:
        """Yield (sample id, path in the run folder) of saved output audio."""
        rows = self.query_lazily(
            "SELECT p.id, i.audio FROM items i JOIN samples p ON p.number = i.sample "
            "WHERE i.audio IS NOT NULL ORDER BY i.system, i.sample"
        )
        yield from ((sample, self.sound_path(path)) for sample, path in rows)

    def reference_audio(self, sample: str) -> Path | None:
        """A sample's reference audio: the saved copy, else the original file, or None."""
        row = next(self.query_lazily("SELECT number, audio FROM samples WHERE id = ?", (sample,)), None)
        if row is None:
            raise UnknownName("sample", sample, [])
        names = [f"audio/reference/{row[0]:07d}.flac"]
        if self.has_questions:
            names += [
                name for (name,) in self.query_lazily("SELECT audio FROM questions WHERE number = ?", row[:1]) if name
            ]
        places = [*map(self.sound_path, names), *([Path(row[1])] if row[1] else [])]
        return next((path for path in places if path.is_file()), None)

    def sound_path(self, path: str) -> Path:
        """Path of a sound in the run folder, or raise DamagedRecord."""
        if os.path.isabs(path) or os.path.normpath(path).startswith(".."):
            raise integrity.damaged(self._path, "sound_elsewhere", sound=path)
        return self.folder / path

    def scores(
        self,
        system: str | None = None,
        metric: str | None = None,
        *,
        without_value: bool = False,
        samples: Collection[str] | None = None,
    ) -> Iterator[ScoreRow]:
        """Scores, ordered by system, metric and sample.

        Args:
            without_value: only the scores that are not ok.
            samples: ids; no other row is read.
        """
        protocols = {name: facts["protocol"] for name, facts in self.metrics.items()}
        for name, sample, of, value, status, reason, num, den, detail in self.query_lazily(
            "SELECT s.name, p.id, m.name, c.value, c.status, c.reason, c.numerator, c.denominator, c.detail "
            "FROM scores c JOIN systems s ON s.number = c.system JOIN samples p ON p.number = c.sample "
            "JOIN metrics m ON m.number = c.metric "
            "WHERE (?1 IS NULL OR s.name = ?1) AND (?2 IS NULL OR m.name = ?2) AND (NOT ?3 OR c.status != 'ok') "
            + ("" if samples is None else "AND p.id IN (SELECT value FROM json_each(?4)) ")
            + "ORDER BY c.system, c.metric, c.sample",
            (system, metric, without_value, *(() if samples is None else (json.dumps(list(samples)),))),
        ):
            held = self._detail(detail, sample) if detail else {}
            for key in held.keys() & {"flag", "note"}:
                if isinstance(held[key], Mapping):
                    held[key] = self.diagnostic_of(held[key], sample)
            why = self.diagnostic(reason, sample)
            yield ScoreRow(name, sample, of, value, status, why, protocols[of], num, den, held)

    def served(self, metric: str) -> tuple[str, ...]:
        """The model names that the service of a metric's judge reported."""
        calls = (score.detail.get("calls", {}) for score in self.scores(metric=metric))
        return tuple(sorted({str(model) for of in calls for model in of.get("served", ())}))

    def judge(self, metric: str) -> str:
        """A metric's judge model and how it did in the judge test, in words; "" if none."""
        facts = self.metrics[metric]
        if not facts.get("judge"):
            return ""
        served, known = self.served(metric), self.meta.get("judge_tests")
        text = judge_words(facts["judge"], str(facts.get("protocol", "")), bool(facts.get("hears")), served, known)
        state = f" as {' and '.join(served)}" if set(served) - {facts["judge"]} else ""
        return f"marked by {facts['judge']}{state}; {text}"

    def rows(self) -> Iterator[TableRow]:
        """The run as a table: a row per system, metric and finished sample, also unscored."""
        has_questions = self.has_questions
        columns = TABLE_COLUMNS.values()
        cells = ", ".join(
            column.questions_sql if has_questions and column.questions_sql else column.sql for column in columns
        )
        conversions = [(position, column.convert) for position, column in enumerate(columns) if column.convert]
        protocols = {name: facts.get("protocol", "") for name, facts in self.metrics.items()}
        judges = {name: self.judge(name) or None for name in protocols}
        held = Cells(protocols, judges, self.meta.get("checks") or {}, self._detail, self._reason)
        # The joins are nested in the order of the result, so that SQLite neither sorts nor stores it.
        for row in self.query_lazily(
            f"SELECT p.id, {cells} FROM systems s CROSS JOIN metrics m "
            "CROSS JOIN items i ON i.system = s.number CROSS JOIN samples p ON p.number = i.sample "
            "LEFT JOIN scores c ON c.system = s.number AND c.metric = m.number AND c.sample = i.sample "
            "LEFT JOIN extras ON extras.number = i.sample "
            f"{'LEFT JOIN questions ON questions.number = i.sample ' if has_questions else ''}"
            "ORDER BY s.number, m.number, i.sample"
        ):
            held.sample, *row_cells = row
            for position, make in conversions:
                row_cells[position] = make(held, row_cells[position])
            yield TableRow._make(row_cells)

    def diagnostic(self, text: str | None, sample: str) -> Diagnostic | None:
        """Parse the reason of an item or a score from its cell."""
        return None if text is None else self._reason(text, sample)

    def diagnostic_of(self, held: Any, sample: str) -> Diagnostic:
        """A reason or note of a sample from its JSON value."""
        return integrity.diagnostic_of(held, self._path, f"what is recorded of '{sample}'")

    def _reason(self, text: str, sample: str) -> Diagnostic:
        return self.diagnostic_of(self.json(text, f"the reason of '{sample}'"), sample)

    def _notes(self, text: str | None, sample: str) -> list[Diagnostic]:
        """Parse the cell with a sample's notes, or raise DamagedRecord."""
        where = f"the notes of '{sample}'"
        held = self.json(text, where) if text else []
        if not isinstance(held, list):
            raise integrity.damaged(self._path, "notes_no_list", sample=sample)
        return [self.diagnostic_of(one, sample) for one in held]

    def _detail(self, text: str, sample: str) -> dict[str, Any]:
        held = self.json(text, f"the detail of '{sample}'")
        if not isinstance(held, dict):
            raise integrity.damaged(self._path, "detail_no_mapping", sample=sample)
        return held

    def to_pandas(self) -> Any:
        """The rows of `rows` as a `pandas.DataFrame`, or raise UserError."""
        frame = _package("pandas").DataFrame.from_records(list(self.rows()), columns=list(TableRow._fields))
        return frame.astype(dict.fromkeys(NUMBERS, "float64"))

    def to_polars(self) -> Any:
        """The rows of `rows` as a `polars.DataFrame`, or raise UserError."""
        polars = _package("polars")
        kinds = {name: polars.Float64 if name in NUMBERS else polars.String for name in TableRow._fields}
        return polars.DataFrame(list(self.rows()), schema=kinds, orient="row")

    def columns(
        self, system: str, metric: str
    ) -> tuple[list[int], list[float], list[float], list[str], dict[str, int]]:
        """Load one system's ok scores of one metric as columns, ordered by sample id.

        Returns:
            Sample numbers, numerators, denominators, independent units ("" for none), and a count of the others per
            status.
        """
        unit, join = self._unit
        key = (self._number("systems", "system", system), self._number("metrics", "metric", metric))
        rows = self.query_lazily(
            f"SELECT c.sample, c.numerator, c.denominator, COALESCE({unit}, '') FROM scores c JOIN samples p "
            f"ON p.number = c.sample {join} WHERE c.system = ? AND c.metric = ? AND c.status = 'ok' ORDER BY p.id",
            key,
        )
        others = "FROM scores WHERE system = ? AND metric = ? AND status != 'ok' GROUP BY status"
        missing = dict(self.query_lazily(f"SELECT status, COUNT(*) {others}", key))
        columns = list(zip(*rows)) or [(), (), (), ()]
        return list(columns[0]), list(columns[1]), list(columns[2]), list(columns[3]), missing

    @property
    def has_questions(self) -> bool:
        """Whether the run has questions and answers of a model."""
        count = self.query_lazily("SELECT COUNT(*) FROM sqlite_master WHERE name = 'questions'")
        return bool(next(count)[0])

    @property
    def _unit(self) -> tuple[str, str]:
        """SQL expression of the independent unit of a sample `p`, and its join."""
        if self.has_questions:
            repeated = f"CASE WHEN {_SAME} IN ({_REPEATED}) THEN {_SAME} END"
            return f"COALESCE(p.speaker, q.draw_of, {repeated})", "LEFT JOIN questions q ON q.number = p.number"
        return f"COALESCE(p.speaker, CASE WHEN p.sound IN ({_SHARED}) THEN p.sound END)", ""

    def shared_sounds(self) -> tuple[int, int, int]:
        """Count samples with repeated audio, their distinct audio, and all samples.

        For questions: those with equal content and sound under several ids. Questions with several sounds are not
        counted.
        """
        expression, of = "sound", f"FROM samples WHERE sound IN ({_SHARED})"
        if self.has_questions:
            expression, of = _SAME, f"{_REPEATABLE} AND {_SAME} IN ({_REPEATED})"
        ((samples, sounds, every),) = self.query_lazily(
            f"SELECT COUNT(*), COUNT(DISTINCT {expression}), (SELECT COUNT(*) FROM samples) {of}"
        )
        return samples, sounds, every

    def repeated_estimates(self, system: str) -> tuple[int, int, str]:
        """Look for estimates with equal audio for different texts.

        Returns:
            Number of such estimates, number of all estimates of the system, and the id of one such (or "").
        """
        of = "FROM items i JOIN samples p ON p.number = i.sample WHERE i.system = ?1 AND i.sound IS NOT NULL"
        repeated = f"SELECT i.sound {of} GROUP BY i.sound HAVING COUNT(DISTINCT COALESCE(p.text, p.sound, p.id)) > 1"
        query = f"SELECT COUNT(*), (SELECT COUNT(*) {of}), COALESCE(MIN(p.id), '') {of} AND i.sound IN ({repeated})"
        ((items, every, example),) = self.query_lazily(query, (self._number("systems", "system", system),))
        return items, every, example

    def other_sounds(self, other: Run) -> tuple[int, int]:
        """Compare references with another run: (ids whose audio differs, ids in both)."""
        if self.has_questions:
            return 0, 0
        query = "SELECT id, sound FROM samples WHERE sound IS NOT NULL"
        held = dict(self.query_lazily(query))
        both = [held[id] != sound for id, sound in other.query_lazily(query) if id in held]
        return sum(both), len(both)

    def units(self) -> dict[str, str | None]:
        """Independent unit by sample id: speaker, drawn question, shared sound, or None."""
        unit, join = self._unit
        return dict(self.query_lazily(f"SELECT p.id, {unit} FROM samples p {join}"))

    def sample_units(self) -> Iterator[tuple[int, str, int | None, float | None]]:
        """Samples by id: number, independent unit ("" for none), channels, seconds."""
        unit, join = self._unit
        yield from self.query_lazily(
            f"SELECT p.number, COALESCE({unit}, ''), p.channels, p.duration_s FROM samples p {join} ORDER BY p.id"
        )

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of an SQL query with bound `values`."""
        return list(self.query_lazily(sql, values))

    def json(self, text: str, where: str) -> Any:
        """Parse a cell of JSON, or raise DamagedRecord."""
        return integrity.json_cell(text, self._path, where)

    def counts(self) -> dict[str, int]:
        """Counts of samples, items, finished and failed items, and failed scores."""
        one = lambda sql: next(self.query_lazily(sql))[0]  # noqa: E731
        samples, systems = one("SELECT COUNT(*) FROM samples"), one("SELECT COUNT(*) FROM systems")
        return {
            "samples": samples,
            "items": samples * systems,
            "finished": one("SELECT COUNT(*) FROM items"),
            "failed_items": one("SELECT COUNT(*) FROM items WHERE status != 'ok'"),
            "failed_scores": one(f"SELECT COUNT(*) FROM scores WHERE status IN {FAILURES}"),
        }

    def _number(self, table: str, room: str, name: str) -> int:
        row = next(self.query_lazily(f"SELECT number FROM {table} WHERE name = ?", (name,)), None)
        if row is None:
            raise UnknownName(room, name, [n for (n,) in self.query_lazily(f"SELECT name FROM {table}")])
        return row[0]

    def close(self) -> None:
        """Close the record."""
        self._db.close()


def recorded_request(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request of a benchmark's run, from its fingerprint; empty if unknown."""
    request = (meta.get("fingerprint") or {}).get(REQUEST)
    return request if isinstance(request, Mapping) else {}


def _package(name: str) -> Any:
    return optional_package(
        name,
        UserError("package_not_installed", feature="table", name=name, package=name, hint=f"pip install {name}"),
    )
