"""The record of a build: one row per finished item. A killed build continues."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from codec_bench.apps.building.item import BuildItem, Failure, ItemMaker
from codec_bench.apps.building.recipe_base import UNIT, BaseRecipe
from codec_bench.audio.clip import bytes_digest
from codec_bench.messages import Diagnostic, from_codes, read, to_codes
from codec_bench.messages.errors import DamagedRecord, RunMismatch, UserError
from codec_bench.store.integrity import check_journals

FOLDER, FILE = ".build", "record.sqlite"
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (key TEXT PRIMARY KEY, head TEXT NOT NULL, sound BLOB, material BLOB) WITHOUT ROWID;
"""


class BuildRecord:
    """The record of a build.

    Args:
        about: recipe, sources and tools. A record of another build is refused.

    Raises:
        RunMismatch: the folder holds another build; the message names the differences.
        DamagedRecord: the record cannot be read.
        UserError: the folder cannot be written.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self._file = folder / FOLDER / FILE
        check_journals(self._file)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self._file, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
            held = dict(self._db.execute("SELECT name, value FROM about"))
        except sqlite3.DatabaseError as error:
            raise DamagedRecord(
                "build_record_unusable",
                path=self._file,
                cause=error,
                hint="delete the folder and build again, or give another --out",
            ) from error
        except OSError as error:
            raise UserError(
                "file_not_writable", path=folder, cause=error.strerror, hint="give another --out"
            ) from error
        identity = {
            name: json.dumps(value, sort_keys=True, ensure_ascii=False) for name, value in to_codes(about).items()
        }
        if not held:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT INTO about VALUES (?, ?)", identity.items())
        elif held != identity:
            self._db.close()
            raise RunMismatch(
                "other_build",
                folder=folder,
                differences=", ".join(_differences(held, identity)),
                hint="give another --out, or build with the same settings",
            )

    def done(self) -> set[str]:
        """Return the keys of the finished items."""
        return {key for (key,) in self._db.execute("SELECT key FROM items")}

    def write(self, outcomes: Sequence[BuildItem]) -> None:
        """Write items in one transaction."""
        rows = [(one.key, _head(one), one.sound, one.material) for one in outcomes]
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)", rows)

    def outcomes(self, keys: Sequence[str], *, sounds: bool = False) -> Iterator[BuildItem]:
        """Yield finished items in the order of the keys, one after the other.

        Args:
            sounds: whether their audio is read too.

        Raises:
            DamagedRecord: an item is missing or damaged.
        """
        columns = "head, sound, material" if sounds else "head, NULL, NULL"
        for key in keys:
            try:
                row = self._db.execute(f"SELECT {columns} FROM items WHERE key = ?", (key,)).fetchone()
                head = json.loads(row[0])
                failures = tuple(
                    Failure(**{**one, "reason": read(one["reason"]), "detail": from_codes(one["detail"])})
                    for one in head["failures"]
                )
                yield BuildItem(key, head["groups"], failures, head["row"], row[1], row[2])
            except (sqlite3.DatabaseError, TypeError, ValueError, KeyError) as error:
                raise DamagedRecord(
                    "build_record_item", path=self._file, item=key, hint="delete the folder and build again"
                ) from error

    def sound_bytes(self) -> int:
        """Return the bytes of the audio of all usable items."""
        with closing(self._db.execute("SELECT TOTAL(LENGTH(sound)) FROM items")) as rows:
            return int(rows.fetchone()[0])

    def close(self) -> None:
        """Close the file without a log, which exposes one left by a copy."""
        with suppress(sqlite3.Error):  # another reader, or a full disk: the log stays
            self._db.execute("PRAGMA journal_mode=DELETE")
        self._db.close()


class Distinct:
    """The items of a record without repeated audio of another unit.

    Where the recipe keeps duplicates, items with the same text, audio or unit share one value in the column `unit`: the
    id of the first of them.
    """

    def __init__(self, record: BuildRecord, maker: ItemMaker, keys: Sequence[str], recipe: BaseRecipe) -> None:
        self._record, self._keeps = record, recipe.duplicates == "keep"
        self.sound_bytes = record.sound_bytes
        unit = recipe.form.unit
        marks: dict[str, list[str]] = {}
        seen_sounds: dict[str, tuple[str, Any]] = {}
        self._first: dict[str, str] = {}
        for item in record.outcomes(keys, sounds=True):
            if item.row is None or item.sound is None:
                continue
            sound, held = bytes_digest(item.sound), item.row[unit] if unit else item.key
            marks[item.key] = [f"sound {sound}", f"unit {held}", *maker.same(item.key)] if self._keeps else []
            first, of = seen_sounds.setdefault(sound, (item.key, held))
            if of != held:
                self._first[item.key] = first
        if self._keeps:
            self._first = _first_by_mark(marks)

    def outcomes(self, keys: Sequence[str], *, sounds: bool = False) -> Iterator[BuildItem]:
        """Implement `BuildRecord.outcomes`."""
        for item in self._record.outcomes(keys, sounds=sounds):
            first = self._first.get(item.key)
            if first is None or item.row is None:
                yield item
            elif self._keeps:
                yield replace(item, row={**item.row, UNIT: first})
            else:
                failure = Failure("duplicate", Diagnostic("same_sound"), first)
                yield BuildItem(item.key, item.groups, (*item.failures, failure), material=item.sound)


def _first_by_mark(marks: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Map each item to the first one that shares a mark, directly or by way of others.

    Args:
        marks: the marks of each item.
    """
    above: dict[str, str] = {}

    def top(mark: str) -> str:
        while above.setdefault(mark, mark) != mark:
            above[mark] = mark = above[above[mark]]
        return mark

    for group in marks.values():
        for mark in group[1:]:
            above[top(group[0])] = top(mark)
    firsts: dict[str, str] = {}
    return {key: firsts.setdefault(top(group[0]), key) for key, group in marks.items()}


def _head(outcome: BuildItem) -> str:
    failures = [
        {**asdict(one), "reason": to_codes(one.reason), "detail": to_codes(one.detail)} for one in outcome.failures
    ]
    row = None if outcome.row is None else dict(outcome.row)
    return json.dumps({"groups": dict(outcome.groups), "failures": failures, "row": row}, ensure_ascii=False)


def _differences(held: Mapping[str, str], requested: Mapping[str, str]) -> list[str]:
    """List the fields in which two builds differ; both are JSON by name."""
    differences = []
    for name in sorted({*held, *requested}):
        old, new = (json.loads(one[name]) if name in one else None for one in (held, requested))
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            fields = [f"{name}.{key}" for key in sorted({*old, *new}) if old.get(key) != new.get(key)]
            differences += [f"{field} ({_short(old, field)} there, {_short(new, field)} now)" for field in fields]
        else:
            differences.append(name)
    return differences


def _short(held: Mapping[str, Any], field: str) -> str:
    text = json.dumps(held.get(field.partition(".")[2]), ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
