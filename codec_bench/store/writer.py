"""Write a run record: one process at a time, each item in one transaction."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from codec_bench.data.columns import recorded_columns, recorded_path, recorded_values
from codec_bench.messages import to_codes
from codec_bench.messages.errors import RunMismatch, UserError
from codec_bench.store import integrity
from codec_bench.store.folders import FolderLock
from codec_bench.store.integrity import DATABASE, GENERATION, SCHEMA
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.tables import (
    IDENTITY,
    TABLES,
    RowWriter,
    address,
    detail_text,
    gather,
    identity_of,
    json_text,
    notes_text,
    reason_text,
    storable,
)
from codec_bench.types import Sample, Score

SCORES = ("system", "metric", "sample", "value", "status", "reason", "numerator", "denominator", "detail")
_SAMPLES = ("number", "id", "audio", "text", "speaker", "language")
_ADD_SYSTEMS = (
    "name the systems of the run and the new ones to add to it, or give another --out and run `codec-bench compare A B`"
)
_ITEMS = ("system", "sample", "status", "reason", "bits", "notes", "audio", "sound", "duration_s")
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_AT_ONCE = 10_000
"""Scores in memory while they are flagged."""
_HELD = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class RunWriter:
    """A run folder, opened for writing by this process alone.

    Args:
        fingerprint: JSON values that must be equal when a run is continued, by name.
        replacing: names in the fingerprint that may differ; the caller deletes what depends on the old values.

    Raises:
        RunLocked: another process is writing the folder.
        RunMismatch: the record has another fingerprint; the message names the differences.
        DamagedRecord: the record is not as written; it is not changed.
        UserError: the folder cannot be written.
    """

    tables: ClassVar[str] = TABLES
    """SQL statements that create the tables of the record."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        fingerprint: Mapping[str, Any],
        *,
        replacing: Sequence[str] = (),
        lock: FolderLock | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._lock = FolderLock(self.folder) if lock is None else None
        self._writing = False
        self.took_up = False
        """Whether `begin` has noted more of the samples than the record held."""
        try:
            self._open(json.loads(json.dumps(dict(fingerprint))), replacing)
        except sqlite3.Error as error:
            self.close()
            raise self._trouble(error) from error
        except BaseException:
            self.close()
            raise
        self._systems: dict[str, int] = {}
        self._metrics: dict[str, int] = {}

    def _open(self, fingerprint: dict[str, Any], replacing: Sequence[str]) -> None:
        """Open the record to write; check it, with its settings, or create it.

        Its seal is removed. Arguments and errors are those of the class.
        """
        path = self.folder / DATABASE
        integrity.check_journals(path)
        has_started, meta = integrity.has_started(path), dict[str, Any]()
        if has_started or integrity.read_seal(self.folder) is not None:
            with closing(Run(self.folder)) as run:
                run.check()
                meta = run.meta
        else:
            integrity.check_results(path, meta)
        # Only now: SQLite merges its journal into a file that is opened for writing.
        self._db = sqlite3.connect(address(path, "rwc"), uri=True, isolation_level=None)
        if has_started:
            self._check_settings(meta.get("fingerprint"), fingerprint, replacing)
        self._identity = identity_of(self._db) if has_started else secrets.randbits(32)
        integrity.remove_seal(self.folder)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        rows = RowWriter(self._db, self._identity)
        with rows.transaction():
            if not has_started:
                rows.make_tables(self.tables)
                set_entries(rows, **{IDENTITY: self._identity})
            set_entries(rows, schema=SCHEMA, fingerprint=fingerprint, **{GENERATION: (meta.get(GENERATION) or 0) + 1})
        self._writing = True  # a record whose tables the disk had no room for gets no seal: it is empty
        self._layouts = rows.layouts

    def _json_cell(self, text: Any, where: str) -> Any:
        return integrity.json_cell(text, self.folder / DATABASE, where)

    def _check_settings(self, before: Any, now: dict[str, Any], replacing: Sequence[str]) -> None:
        """Raise RunMismatch if settings differ from those of the run."""
        started = None if before is None else before | {name: now[name] for name in replacing}
        if started is not None and started != now:
            raise RunMismatch(
                "other_settings",
                folder=self.folder,
                differences="; ".join(differences(started, now)),
                hint=_ADD_SYSTEMS
                if list(started.get("systems", ())) != list(now.get("systems", ()))
                else "use another --out, or the settings of the run",
            )

    @contextmanager
    def _transaction(self) -> Iterator[RowWriter]:
        """Write everything inside or nothing; UserError if it cannot be written."""
        rows = RowWriter(self._db, self._identity, self._layouts)
        try:
            with rows.transaction():
                yield rows
        except sqlite3.Error as error:
            raise self._trouble(error) from error

    def begin(
        self,
        systems: Mapping[str, Any],
        metrics: Mapping[str, Any],
        samples: Iterable[Sample],
        numbers: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
    ) -> set[tuple[int, int]]:
        """Write the systems, metrics and samples that are not in the record yet.

        Further columns of the samples are merged into the record; they change no score.

        Args:
            systems, metrics: the facts by name.
            numbers: of the samples, in rising order; None numbers them from 0.
            columns: further columns of the samples to keep; None for those of `recorded_columns`.

        Returns:
            (system number, sample number) of the finished items; systems are numbered by position.

        Raises:
            RunMismatch: the record holds other samples, or the same in another order.
            UserError: the record cannot be written.
        """
        samples = list(samples)
        numbers = range(len(samples)) if numbers is None else numbers
        numbered = dict(zip(numbers, samples, strict=True))
        with self._transaction() as rows:
            for table, entries in (("systems", systems), ("metrics", metrics)):
                facts = [(n, name, json.dumps(f)) for n, (name, f) in enumerate(entries.items())]
                rows.insert(table, ("number", "name", "facts"), facts, clash="replace")
            held = self._db.execute("SELECT COUNT(*) FROM samples").fetchone()[0]
            if held != len(samples):
                named = ((n, s.id, recorded_path(s), s.text, s.speaker, s.language) for n, s in numbered.items())
                rows.insert("samples", _SAMPLES, named, clash="ignore")
            self._check_order(samples)
            extras = list(self._extras(numbered, columns))
            rows.insert("extras", ("number", "columns"), extras, clash="replace")
            self.took_up = held != len(samples) or bool(extras)
        self._systems = {name: n for n, name in enumerate(systems)}
        self._metrics = {name: n for n, name in enumerate(metrics)}
        return set(self._db.execute("SELECT system, sample FROM items").fetchall())

    def _check_order(self, samples: Sequence[Sample]) -> None:
        """Raise RunMismatch if a sample is not at its recorded position."""
        held = self._db.execute("SELECT id FROM samples ORDER BY number LIMIT ?", (len(samples),))
        for number, ((id,), sample) in enumerate(zip(held, samples), 1):
            if id != sample.id:
                raise RunMismatch(
                    "samples_reordered",
                    folder=self.folder,
                    number=number,
                    id=id,
                    now=sample.id,
                    hint="use another --out, or the data in the order of the run",
                )

    def _extras(self, samples: Mapping[int, Sample], columns: Sequence[str] | None) -> Iterator[tuple[int, str]]:
        """Merged further columns of the samples, where the record lacks some."""
        extra_columns = recorded_columns(samples.values()) if columns is None else columns
        if not extra_columns:
            return
        held = dict(self._db.execute("SELECT number, columns FROM extras").fetchall())
        for number, sample in samples.items():
            before = held.get(number)
            held_values = self._json_cell(before or "{}", f"the columns of sample {number}")
            now = json_text({**held_values, **recorded_values(sample, extra_columns)})
            if now not in (before, "{}"):
                yield number, now

    def delete_failures(self) -> int:
        """Delete items that failed or have a failed score; returns their number."""
        with self._transaction() as rows:
            bad = self._db.execute(
                "SELECT system, sample FROM items WHERE status != 'ok' "
                "UNION SELECT system, sample FROM scores WHERE status = 'failed'"
            ).fetchall()
            for table in ("scores", "items"):
                rows.delete(table, "system = ? AND sample = ?", bad)
        return len(bad)

    def write(self, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Write finished items by sample number in one transaction, or raise RunMismatch."""
        with self._transaction() as rows:
            self._write_items(rows, records)

    def append(self, records: Sequence[tuple[Sample, ItemRecord]]) -> None:
        """Add samples with their items at the end, in one transaction.

        A known id gets the number of its sample as a suffix.
        """
        with self._transaction() as rows:
            (first,) = self._db.execute("SELECT COALESCE(MAX(number) + 1, 0) FROM samples").fetchone()
            for number, (sample, _) in enumerate(records, first):
                id, text, speaker, language = map(storable, (sample.id, sample.text, sample.speaker, sample.language))
                is_known = self._db.execute("SELECT 1 FROM samples WHERE id = ?", (id,)).fetchone()
                id = f"{id}#{number}" if is_known or not id else id
                rows.insert("samples", _SAMPLES, [(number, id, recorded_path(sample), text, speaker, language)])
            self._write_items(rows, [(number, record) for number, (_, record) in enumerate(records, first)])

    def _write_items(self, rows: RowWriter, records: Sequence[tuple[int, ItemRecord]]) -> None:
        """Insert the rows of finished items, their scores and the samples' lengths."""
        items, scores, samples = [], [], []
        for number, r in records:
            about = (r.status, reason_text(r.reason), r.bits, notes_text(r.notes), r.audio)
            items.append((self._systems[r.system], number, *about, r.estimate_sound, r.estimate_s))
            scores += [self._score_row(r.system, name, number, s) for name, s in r.scores.items()]
            if r.duration_s is not None:
                samples.append((number, r.duration_s, r.sample_rate_hz, r.channels, r.sound))
                self._check_sound(number, r)
        rows.insert("items", _ITEMS, items)
        rows.insert("scores", SCORES, scores)
        rows.change("samples", ("duration_s", "sample_rate_hz", "channels", "sound"), samples)

    def _check_sound(self, number: int, record: ItemRecord) -> None:
        """Raise RunMismatch if a sample's recorded audio hash is another."""
        (held,) = self._db.execute("SELECT sound FROM samples WHERE number = ?", (number,)).fetchone() or (None,)
        if None not in (held, record.sound) and held != record.sound:
            raise RunMismatch(
                "sample_changed",
                sample=record.sample,
                folder=self.folder,
                hint="use another --out, or the data of the run",
            )

    def _score_row(self, system: str, metric: str, sample: int, s: Score) -> tuple[Any, ...]:
        numbers = (self._systems[system], self._metrics[metric], sample)
        return (*numbers, s.value, s.status, reason_text(s.reason), s.numerator, s.denominator, detail_text(s.detail))

    def flag_unchecked(
        self, checks: Mapping[str, Any], *, check: str, metrics: Sequence[str], flag: Mapping[str, Any]
    ) -> None:
        """Flag ok scores of systems without a result of a check, and unflag all others.

        Args:
            checks: results by system.
            check: its name.
            metrics: to flag.
            flag: its code and parameters.
        """
        for system in self._systems:
            unchecked = any(one["check"] == check for one in checks.get(system, {}).get("unchecked", ()))
            for metric in metrics:
                self._flag((self._systems[system], self._metrics[metric]), flag, unchecked)

    def _flag(self, key: tuple[int, int], flag: Mapping[str, Any], is_set: bool) -> None:
        """Set or remove a flag in the detail of one system's ok scores of one metric."""
        query = (
            "SELECT sample, detail FROM scores WHERE system = ? AND metric = ? AND sample > ? AND status = 'ok' "
            f"AND instr(COALESCE(detail, ''), ?) {'=' if is_set else '>'} 0 ORDER BY sample LIMIT {_AT_ONCE}"
        )
        last = -1
        while held := self._db.execute(query, (*key, last, json_text(flag))).fetchall():
            last = held[-1][0]
            read = [(n, self._json_cell(d or "{}", f"the detail of sample {n}")) for n, d in held]
            changed = []
            for n, d in read:
                if d.get("flag") == (None if is_set else flag):
                    now = {**{k: v for k, v in d.items() if k != "flag"}, **({"flag": flag} if is_set else {})}
                    changed.append((*key, n, json_text(now) if now else None))
            with self._transaction() as rows:
                rows.change("scores", ("detail",), changed)

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows from another record, with cells in the order of `columns`."""
        with self._transaction() as writing:
            writing.insert(table, columns, rows, clash="replace")

    def gather(self, records: Sequence[Path], *, leave_out: Sequence[str]) -> None:
        """Write all rows of other records with disjoint keys, in the order of their keys.

        The record must be new and unused: it is written without a journal, so a kill leaves it unusable.

        Args:
            records: the databases.
            leave_out: tables that are not copied.
        """
        try:
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("PRAGMA synchronous = OFF")
            copied = [one for name, one in self._layouts.items() if one.summed and name not in leave_out]
            gather(self._db, copied, records)
        except sqlite3.Error as error:
            raise self._trouble(error) from error

    def meta(self, key: str) -> Any:
        """Return the entry `key` of `Run.meta`, or None."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._json_cell(row[0], f"its entry '{key}'")

    def sounds(self) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
        """Hashes of audio: of references by sample, of estimates by system and sample."""
        references = self._db.execute(
            "SELECT number, sound FROM samples WHERE sound IS NOT NULL AND number IN (SELECT sample FROM items)"
        )
        estimates = self._db.execute("SELECT system, sample, sound FROM items WHERE sound IS NOT NULL")
        return dict(references.fetchall()), {(system, sample): sound for system, sample, sound in estimates}

    def count(self, table: str) -> int:
        """How many rows a table has."""
        ((rows,),) = self._db.execute(f"SELECT COUNT(*) FROM {table}")
        return int(rows)

    def set_meta(self, **values: Any) -> None:
        """Set entries of `Run.meta`; values are JSON and diagnostics."""
        with self._transaction() as rows:
            set_entries(rows, **values)

    def _trouble(self, error: sqlite3.Error) -> UserError:
        """Convert an SQLite error to a UserError with a hint; defects are raised again."""
        path = self.folder / DATABASE
        if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
            raise error  # the same item twice is a defect of this program, not of the disk
        if integrity.is_damage(error):
            self._writing = False  # a record that is damaged gets no seal
            return integrity.damaged(path, str(error))
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        do = "make sure that you may write the folder"
        if code in _NO_ROOM:
            do = "make room on the disk"
        elif code in _HELD:
            do = "close the program that holds the record"
        return UserError(
            "record_not_writable",
            path=path,
            cause=error,
            hint=f"finished items are recorded; {do} and run the same command again",
        )

    def close(self) -> None:
        """Close the record, seal it and release its lock.

        There is no seal if nothing was written, or while a reader holds the record.
        """
        db, writing = getattr(self, "_db", None), self._writing
        self._writing = False
        if db is not None:
            alone = False
            with suppress(sqlite3.Error):  # if a reader holds it, or the disk is full, the two side files stay
                alone = db.execute("PRAGMA journal_mode = DELETE").fetchone()[0] == "delete" if writing else False
            db.close()
            if alone:
                with suppress(UserError, OSError):  # a record without a seal is checked row by row
                    integrity.write_seal(self.folder)
        if self._lock is not None:
            self._lock.release()


def set_entries(rows: RowWriter, **values: Any) -> None:
    """Set entries of `Run.meta` inside a transaction; values are JSON and diagnostics."""
    rows.insert(
        "meta", ("key", "value"), [(key, json.dumps(to_codes(value))) for key, value in values.items()], clash="replace"
    )


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """List the differences of two fingerprints in words; `path` names a nested entry."""
    if isinstance(before, dict) and isinstance(now, dict):
        out = []
        for key in [*before, *(k for k in now if k not in before)]:
            where = f"{path}.{key}" if path else str(key)
            if key not in before or key not in now:
                out.append(f"{where} was {_brief(before.get(key, 'absent'))}, now {_brief(now.get(key, 'absent'))}")
            else:
                out += differences(before[key], now[key], where)
        return out
    return [] if before == now else [f"{path} was {_brief(before)}, now {_brief(now)}"]


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:117]}..."
