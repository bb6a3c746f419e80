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
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codec_bench.errors import UnknownName, UserError
from codec_bench.types import Score

SCHEMA = 1
DATABASE = "run.sqlite"


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
