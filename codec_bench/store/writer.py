"""Writes a run record: by one process at a time, and everything about one item in one transaction."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from codec_bench.data.columns import Value, kept_columns, kept_values
from codec_bench.errors import RunLocked, RunMismatch, UserError
from codec_bench.store.record import DATABASE, SCHEMA, ItemRecord
from codec_bench.types import Sample, Score

_HALVES = re.compile("[\ud800-\udfff]")
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS systems (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS metrics (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS samples (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, audio TEXT, text TEXT, speaker TEXT, language TEXT,
    duration_s REAL, sample_rate_hz INTEGER, channels INTEGER, notes TEXT);
CREATE TABLE IF NOT EXISTS extras (number INTEGER PRIMARY KEY, columns TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS items (
    system INTEGER NOT NULL, sample INTEGER NOT NULL, status TEXT NOT NULL, reason TEXT, bits REAL, notes TEXT,
    audio TEXT, PRIMARY KEY (system, sample)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS scores (
    system INTEGER NOT NULL, metric INTEGER NOT NULL, sample INTEGER NOT NULL, value REAL, status TEXT NOT NULL,
    reason TEXT, numerator REAL, denominator REAL, detail TEXT, PRIMARY KEY (system, metric, sample)) WITHOUT ROWID;
"""


class RunWriter:
    """A run folder, opened for writing by this process alone.

    Args:
        folder: the run folder; it is made if it does not exist.
        fingerprint: everything that must be the same when a run is continued, by name; values are JSON.
        replacing: names in the fingerprint whose values may differ from those in the record. The new values replace them,
            and the caller deletes what rested on the old ones.

    Raises:
        RunLocked: another process is writing the folder.
        RunMismatch: the record was begun with another fingerprint; the message says what differs.
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
                hint="give another --out, or the settings that it was begun with",
            )
        if begun != before:
            self.set_meta(fingerprint=begun)

    def begin(
        self, systems: Mapping[str, Any], metrics: Mapping[str, Any], samples: Iterable[Sample]
    ) -> set[tuple[int, int]]:
        """Writes the systems, metrics and samples of the run, if they are not in the record yet.

        The further columns of the samples are added to those in the record: they change no score, and a manifest may have
        got more of them since.

        Returns:
            (system number, sample number) of the items that are finished; numbers are positions in the arguments.

        Raises:
            RunMismatch: the record holds other samples, or the same in another order, so that their numbers differ.
            UserError: the record cannot be written.
        """
        samples = list(samples)
        kept = kept_columns(samples)
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
            self._check_order(samples)
            self._db.executemany(
                "INSERT INTO extras SELECT number, ? FROM samples WHERE id = ? "
                "ON CONFLICT (number) DO UPDATE SET columns = json_patch(columns, excluded.columns)",
                ((_columns(held), s.id) for s in samples if (held := kept_values(s, kept))),
            )
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        except RunMismatch:
            self._db.execute("ROLLBACK")
            raise
        self._systems = {name: n for n, name in enumerate(systems)}
        self._metrics = {name: n for n, name in enumerate(metrics)}
        return set(self._db.execute("SELECT system, sample FROM items").fetchall())

    def _check_order(self, samples: Sequence[Sample]) -> None:
        """Refuses samples that are not in the record under their numbers, since items are known by number."""
        held = self._db.execute("SELECT id FROM samples ORDER BY number LIMIT ?", (len(samples),))
        for number, ((id,), sample) in enumerate(zip(held, samples), 1):
            if id != sample.id:
                raise RunMismatch(
                    f"'{self.folder}' was begun with its samples in another order: sample {number} was '{id}', now '{sample.id}'",
                    hint="give another --out, or the data in the order that it was begun with",
                )

    def forget_failures(self) -> int:
        """Deletes the items that failed or hold a failed score, so that they run again; returns how many."""
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
            raise error  # the same item twice is a defect of this program, not of the disk
        return UserError(
            f"the run record '{self.folder / DATABASE}' cannot be written: {error}",
            hint="finished items are kept; make room on the disk and run the same command again",
        )

    def close(self) -> None:
        """Closes the record. Other processes may then write it."""
        if getattr(self, "_db", None) is not None:
            with suppress(sqlite3.Error):  # if a reader holds it, or the disk is full, the two side files stay
                self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.close()
        os.close(self._lock)


def storable(text: str | None) -> str | None:
    """A text as the record can hold it: halves of surrogate pairs, as in an answer that was cut, become U+FFFD."""
    return text if text is None or text.isascii() else _HALVES.sub("\ufffd", text)


def _columns(held: Mapping[str, Value]) -> str:
    return storable(json.dumps(held, ensure_ascii=False)) or ""


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
