"""The run record: what was asked, what ran, every sample's scores and failures.

Conventions
    A run folder holds `run.sqlite` (the record), `run.json` (what was asked and what ran), `summary.json`, `report.html`
    and, where audio was kept, `audio/`.
    Everything about one item (one sample through one system) is written in one transaction: an item is either wholly
    in the record or not at all, which is what makes a killed run continue without losing or doubling anything.
    One process writes a run folder at a time; readers need no lock.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.errors import RunLocked, RunMismatch, UnknownName, UserError
from codec_bench.types import Sample, Score

SCHEMA = 1
DATABASE = "run.sqlite"
_HALVES = re.compile("[\ud800-\udfff]")
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS systems (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS metrics (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS samples (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, audio TEXT, text TEXT, speaker TEXT, language TEXT,
    duration_s REAL, sample_rate_hz INTEGER, channels INTEGER, notes TEXT);
CREATE TABLE IF NOT EXISTS items (
    system INTEGER NOT NULL, sample INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, bits REAL, notes TEXT,
    audio TEXT, PRIMARY KEY (system, sample)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS scores (
    system INTEGER NOT NULL, metric INTEGER NOT NULL, sample INTEGER NOT NULL, value REAL, status TEXT NOT NULL,
    reason TEXT, numerator REAL, denominator REAL, detail TEXT, PRIMARY KEY (system, metric, sample)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One sample through one system: everything the record keeps of it.

    Args:
        system, sample: names as in the record.
        status, reason: `ok`, or `failed` and why where no estimate came out.
        scores: by metric name.
        bits: what the codec sent, or None.
        audio: path of the kept estimate, relative to the run folder, or None.
        notes: things worth knowing that are not failures (estimate cut to the reference's length, clipped samples).
        duration_s, sample_rate_hz, channels: the reference audio's, or None where it could not be read.
        reference_audio: path of the kept reference, relative to the run folder, or None.
    """

    system: str
    sample: str
    status: str
    reason: str | None
    scores: Mapping[str, Score]
    bits: float | None = None
    audio: str | None = None
    notes: Sequence[str] = ()
    duration_s: float | None = None
    sample_rate_hz: int | None = None
    channels: int | None = None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One score as the record holds it; `id` is the sample's."""

    system: str
    id: str
    metric: str
    value: float | None
    status: str
    reason: str | None
    protocol: str
    numerator: float | None
    denominator: float | None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as the record holds it; `audio` is the kept estimate's absolute path, or None."""

    system: str
    id: str
    status: str
    reason: str | None
    bits: float | None
    notes: Sequence[str]
    audio: Path | None


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One sample as the record holds it; `audio` is the reference's path as the data named it."""

    id: str
    audio: str | None
    text: str | None
    speaker: str | None
    language: str | None
    duration_s: float | None
    sample_rate_hz: int | None
    channels: int | None


class Run:
    """A run folder, opened for reading.

    Args:
        folder: the run folder.

    Raises:
        UserError: it holds no run record, or one of a newer version.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        path = self.folder / DATABASE
        if not path.is_file():
            inside = sorted(str(p.parent) for p in self.folder.glob(f"*/**/{DATABASE}"))
            hint = f"it holds {', '.join(inside[:5])}{' and more' if len(inside) > 5 else ''}" if inside else None
            raise UserError(f"'{self.folder}' is not a run folder: it holds no {DATABASE}", hint=hint)
        address = path.resolve().as_posix().replace("?", "%3f").replace("#", "%23")
        # Read only, so threads may share it: SQLite itself serialises them.
        self._db = sqlite3.connect(f"file:{address}?mode=ro", uri=True, check_same_thread=False)
        try:
            schema = self.meta.get("schema")
        except sqlite3.DatabaseError as error:
            raise UserError(f"'{path}' is not a run record ({error})") from error
        if schema != SCHEMA:
            raise UserError(f"'{path}' has schema {schema}; this version reads schema {SCHEMA}")

    @property
    def meta(self) -> dict[str, Any]:
        """What was asked and what ran: `config`, `fingerprint`, `versions`, `machine`, `timings`, `state`, ..."""
        return {key: json.loads(value) for key, value in self._db.execute("SELECT key, value FROM meta")}

    @property
    def systems(self) -> dict[str, dict[str, Any]]:
        """The systems in the order asked for, with their facts."""
        return {n: json.loads(f) for n, f in self._db.execute("SELECT name, facts FROM systems ORDER BY number")}

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The metrics in the order asked for, with unit, higher_is_better, protocol, aggregate, kind, paper, source."""
        return {n: json.loads(f) for n, f in self._db.execute("SELECT name, facts FROM metrics ORDER BY number")}

    def samples(self) -> Iterator[SampleRow]:
        """The samples in the data's order."""
        yield from (
            SampleRow(*row)
            for row in self._db.execute(
                "SELECT id, audio, text, speaker, language, duration_s, sample_rate_hz, channels FROM samples ORDER BY number"
            )
        )

    def items(self, system: str | None = None) -> Iterator[ItemRow]:
        """The finished items, all or one system's."""
        for name, sample, status, reason, bits, notes, audio in self._db.execute(
            "SELECT s.name, p.id, i.status, i.reason, i.bits, i.notes, i.audio FROM items i JOIN systems s ON s.number = i.system "
            "JOIN samples p ON p.number = i.sample WHERE (?1 IS NULL OR s.name = ?1) ORDER BY i.system, i.sample",
            (system,),
        ):
            yield ItemRow(
                name,
                sample,
                status,
                reason,
                bits,
                json.loads(notes) if notes else [],
                self.folder / audio if audio else None,
            )

    def reference_audio(self, sample: str) -> Path | None:
        """The kept copy of a sample's reference audio, else the file the data named, else None."""
        row = self._db.execute("SELECT number, audio FROM samples WHERE id = ?", (sample,)).fetchone()
        if row is None:
            raise UnknownName("sample", sample, [])
        for folder in ("reference", "questions"):
            kept = self.folder / "audio" / folder / f"{row[0]:07d}.flac"
            if kept.is_file():
                return kept
        return Path(row[1]) if row[1] and Path(row[1]).is_file() else None

    def scores(
        self, system: str | None = None, metric: str | None = None, *, without_value: bool = False
    ) -> Iterator[ScoreRow]:
        """Every score, or those of one system or metric, or only those that are not ok; by system, metric and sample."""
        protocols = {name: facts["protocol"] for name, facts in self.metrics.items()}
        for name, sample, of, value, status, reason, num, den, detail in self._db.execute(
            "SELECT s.name, p.id, m.name, c.value, c.status, c.reason, c.numerator, c.denominator, c.detail FROM scores c "
            "JOIN systems s ON s.number = c.system JOIN samples p ON p.number = c.sample JOIN metrics m ON m.number = c.metric "
            "WHERE (?1 IS NULL OR s.name = ?1) AND (?2 IS NULL OR m.name = ?2) AND (NOT ?3 OR c.status != 'ok') ORDER BY c.system, c.metric, c.sample",
            (system, metric, without_value),
        ):
            yield ScoreRow(
                name, sample, of, value, status, reason, protocols[of], num, den, json.loads(detail) if detail else {}
            )

    def columns(
        self, system: str, metric: str
    ) -> tuple[list[int], list[float], list[float], list[str], dict[str, int]]:
        """One system's scores of one metric as columns, for statistics over many samples.

        Returns:
            (sample numbers, numerators, denominators, speakers ("" where unknown)) of the scores that are ok, ordered by
            sample id, and a count per status of the others.
        """
        key = (self._number("systems", "system", system), self._number("metrics", "metric", metric))
        rows = self._db.execute(
            "SELECT c.sample, c.numerator, c.denominator, COALESCE(p.speaker, '') FROM scores c JOIN samples p ON p.number = c.sample "
            "WHERE c.system = ? AND c.metric = ? AND c.status = 'ok' ORDER BY p.id",
            key,
        ).fetchall()
        missing = dict(
            self._db.execute(
                "SELECT status, COUNT(*) FROM scores WHERE system = ? AND metric = ? AND status != 'ok' GROUP BY status",
                key,
            ).fetchall()
        )
        columns = list(zip(*rows)) or [(), (), (), ()]
        return list(columns[0]), list(columns[1]), list(columns[2]), list(columns[3]), missing

    def counted_parts(self, system: str, metric: str) -> Iterator[tuple[int, list[float]]]:
        """What each score that is ok adds to a corpus metric, by sample number (`detail["counts"]`)."""
        yield from self._parts(system, metric, "c.status = 'ok'", "counts")

    def wrong_parts(self, system: str, metric: str) -> Iterator[tuple[int, list[float]]]:
        """What each item without a score would add if failures counted as wrong, by sample number (`detail["wrong"]`)."""
        yield from self._parts(system, metric, "c.status != 'ok'", "wrong")

    def _parts(self, system: str, metric: str, which: str, name: str) -> Iterator[tuple[int, list[float]]]:
        key = (self._number("systems", "system", system), self._number("metrics", "metric", metric))
        for number, parts in self._db.execute(
            f"SELECT c.sample, json_extract(c.detail, '$.{name}') AS parts FROM scores c WHERE c.system = ? AND c.metric = ? "
            f"AND {which} AND c.detail LIKE '%\"{name}\"%' AND parts IS NOT NULL",
            key,
        ):
            yield number, json.loads(parts)

    def flags(self, system: str, metric: str) -> list[tuple[str, int, str]]:
        """What was noted beside one system's scores that are ok: (flag, how many, the id of one such sample)."""
        return self._db.execute(
            "SELECT json_extract(c.detail, '$.flag') AS flag, COUNT(*), MIN(p.id) FROM scores c JOIN samples p ON p.number = c.sample "
            "WHERE c.system = ? AND c.metric = ? AND c.status = 'ok' AND c.detail LIKE '%\"flag\"%' AND flag IS NOT NULL GROUP BY flag",
            (self._number("systems", "system", system), self._number("metrics", "metric", metric)),
        ).fetchall()

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Rows of a question to the record, for the other modules of the store."""
        return self._db.execute(sql, values).fetchall()

    def query_lazily(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """As `query`, row by row, for tables that need not fit into memory."""
        yield from self._db.execute(sql, values)

    def counts(self) -> dict[str, int]:
        """Samples, items asked for, items finished, items that failed, and scores that failed."""
        one = lambda sql: self._db.execute(sql).fetchone()[0]  # noqa: E731
        samples, systems = one("SELECT COUNT(*) FROM samples"), one("SELECT COUNT(*) FROM systems")
        return {
            "samples": samples,
            "items": samples * systems,
            "finished": one("SELECT COUNT(*) FROM items"),
            "failed_items": one("SELECT COUNT(*) FROM items WHERE status != 'ok'"),
            "failed_scores": one("SELECT COUNT(*) FROM scores WHERE status = 'failed'"),
        }

    def _number(self, table: str, room: str, name: str) -> int:
        row = self._db.execute(f"SELECT number FROM {table} WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise UnknownName(room, name, [n for (n,) in self._db.execute(f"SELECT name FROM {table}")])
        return row[0]

    def close(self) -> None:
        """Closes the record."""
        self._db.close()


class RunWriter:
    """A run folder, opened for writing by this process alone.

    Args:
        folder: made where it is not there.
        fingerprint: everything that a continued run must share, by name; values are JSON.
        replacing: names in the fingerprint that may differ from what the record was begun with and take its place; the
            caller drops what rested on them.

    Raises:
        RunLocked: another process is writing it.
        RunMismatch: it was begun under another fingerprint; the message says what differs.
        UserError: the folder cannot be written.
    """

    def __init__(
        self, folder: str | os.PathLike[str], fingerprint: Mapping[str, Any], *, replacing: Sequence[str] = ()
    ) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.folder)
        except OSError as error:
            raise UserError(f"the run folder '{self.folder}' cannot be written: {error.strerror}") from error
        try:
            self._db = sqlite3.connect(self.folder / DATABASE, isolation_level=None)
            self._execute("PRAGMA journal_mode = WAL")
            self._execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_TABLES)
            self._check(json.loads(json.dumps(dict(fingerprint))), replacing)
        except sqlite3.Error as error:
            self.close()
            raise self._trouble(error) from error
        except BaseException:
            self.close()
            raise
        self._systems: dict[str, int] = {}
        self._metrics: dict[str, int] = {}

    def _check(self, fingerprint: dict[str, Any], replacing: Sequence[str]) -> None:
        row = self._db.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
        if row is None:
            self.set_meta(schema=SCHEMA, fingerprint=fingerprint)
            return
        before = json.loads(row[0])
        begun = before | {name: fingerprint[name] for name in replacing}
        if begun != fingerprint:
            raise RunMismatch(
                f"'{self.folder}' was begun differently: {'; '.join(_differences(begun, fingerprint))}",
                hint="give another --out, or the settings it was begun with",
            )
        if begun != before:
            self.set_meta(fingerprint=begun)

    def begin(
        self, systems: Mapping[str, Any], metrics: Mapping[str, Any], samples: Iterable[Sample]
    ) -> set[tuple[int, int]]:
        """Writes what will run, where it is not there yet.

        Returns:
            (system number, sample number) of the items already finished; numbers are positions in the arguments.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            insert = "INSERT INTO {} VALUES (?, ?, ?) ON CONFLICT (number) DO UPDATE SET facts = excluded.facts"
            for table, entries in (("systems", systems), ("metrics", metrics)):
                self._db.executemany(
                    insert.format(table), [(n, k, json.dumps(f)) for n, (k, f) in enumerate(entries.items())]
                )
            self._db.executemany(
                "INSERT OR IGNORE INTO samples (number, id, audio, text, speaker, language) VALUES (?, ?, ?, ?, ?, ?)",
                ((n, s.id, s.audio, s.text, s.speaker, s.language) for n, s in enumerate(samples)),
            )
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        self._systems = {name: n for n, name in enumerate(systems)}
        self._metrics = {name: n for n, name in enumerate(metrics)}
        return set(self._db.execute("SELECT system, sample FROM items").fetchall())

    def forget_failures(self) -> int:
        """Drops the items that failed, or that hold a failed score, so that they run again; returns how many."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            bad = self._db.execute(
                "SELECT system, sample FROM items WHERE status != 'ok' UNION SELECT system, sample FROM scores WHERE status = 'failed'"
            ).fetchall()
            self._db.executemany("DELETE FROM scores WHERE system = ? AND sample = ?", bad)
            self._db.executemany("DELETE FROM items WHERE system = ? AND sample = ?", bad)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        return len(bad)

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Writes finished items, each with its sample's number, in one transaction."""
        items, scores, samples = [], [], []
        for number, r in records:
            system = self._systems[r.system]
            items.append(
                (
                    system,
                    number,
                    r.status,
                    storable(r.reason),
                    r.bits,
                    json.dumps(list(r.notes)) if r.notes else None,
                    r.audio,
                )
            )
            scores += [self._score_row(r.system, name, number, s) for name, s in r.scores.items()]
            if r.duration_s is not None:
                samples.append((r.duration_s, r.sample_rate_hz, r.channels, number))
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?)", items)
            self._db.executemany("INSERT INTO scores VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", scores)
            self._db.executemany(
                "UPDATE samples SET duration_s = ?, sample_rate_hz = ?, channels = ? WHERE number = ?", samples
            )
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._trouble(error) from error

    def _score_row(self, system: str, metric: str, sample: int, s: Score) -> tuple[Any, ...]:
        detail = storable(json.dumps(dict(s.detail), ensure_ascii=False)) if s.detail else None
        numbers = (self._systems[system], self._metrics[metric], sample)
        return (*numbers, s.value, s.status, storable(s.reason), s.numerator, s.denominator, detail)

    def set_meta(self, **values: Any) -> None:
        """Sets entries of `Run.meta`; values are JSON."""
        try:
            self._db.executemany(
                "INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in values.items()]
            )
        except sqlite3.Error as error:
            raise self._trouble(error) from error

    def _execute(self, sql: str) -> None:
        self._db.execute(sql)

    def _trouble(self, error: sqlite3.Error) -> UserError:
        if isinstance(error, sqlite3.IntegrityError):
            raise error  # a doubled item is a defect of ours, not of the caller's disk
        return UserError(
            f"the run record '{self.folder / DATABASE}' cannot be written: {error}",
            hint="everything finished so far is kept; make room and run the same command again",
        )

    def close(self) -> None:
        """Closes the record and lets others write it."""
        if getattr(self, "_db", None) is not None:
            with suppress(sqlite3.Error):  # a reader holds it, or the disk is full: the two side files just stay
                self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()
        os.close(self._lock)


def storable(text: str | None) -> str | None:
    """A text as the record can hold it: half a character, as an answer that was cut within one ends in, becomes U+FFFD."""
    return text if text is None or text.isascii() else _HALVES.sub("\ufffd", text)


def _lock(folder: Path) -> int:
    import fcntl

    handle = os.open(folder / "run.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.pread(handle, 32, 0).decode(errors="replace").strip()
        os.close(handle)
        raise RunLocked(
            f"'{folder}' is being written by another process{f' ({owner})' if owner else ''}",
            hint="wait until it ends, or give another --out",
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"pid {os.getpid()}".encode(), 0)
    return handle


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        out = []
        for key in [*before, *(k for k in now if k not in before)]:
            where = f"{path}.{key}" if path else str(key)
            if key not in before or key not in now:
                out.append(f"{where} was {_brief(before.get(key, 'absent'))}, now {_brief(now.get(key, 'absent'))}")
            else:
                out += _differences(before[key], now[key], where)
        return out
    return [] if before == now else [f"{path} was {_brief(before)}, now {_brief(now)}"]


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."


def open_run(folder: str | os.PathLike[str]) -> Run:
    """Opens a run folder for reading.

    Raises:
        UserError: it holds no run record.
    """
    return Run(folder)


def run_folders(folder: str | os.PathLike[str]) -> list[Path]:
    """The run folders at or under a folder.

    Raises:
        UserError: there is none.
    """
    found = sorted(path.parent for path in Path(folder).rglob(DATABASE))
    if not found:
        raise UserError(
            f"'{folder}' is not a run folder and holds none", hint="name the folder that a command was given as --out"
        )
    return found
