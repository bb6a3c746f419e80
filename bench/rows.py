"""The rows of data/: which belong to one run, which were measured on a quiet machine, and whether a hand changed them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import common
from common import FIELDS, digest, read_rows

OLDER = Path(__file__).parent / "older_rows.json"
OLD_FIELDS = FIELDS[: FIELDS.index("run")]
QUIET_LOAD = 0.5
"""The load average over one minute before a bench begins, up to which a machine is quiet."""
NOT_QUIET = "not measured on a quiet machine yet"
Row = dict[str, str]


@cache
def rows_of(stem: str) -> list[Row]:
    """The rows of a bench; none where it has no file."""
    return read_rows(stem) if (common.DATA / f"{stem}.csv").exists() else []


def quiet(row: Row) -> bool:
    """Whether a row counts as measured on a quiet machine: little load before the bench began, and a clean tree."""
    return bool(row["run"]) and row["tree"] == "clean" and float(row["load"]) <= QUIET_LOAD


def stems() -> list[str]:
    """The benches that have rows."""
    return sorted(path.stem for path in common.DATA.glob("*.csv"))


def runs(stem: str) -> Iterator[tuple[str, list[Row]]]:
    """The runs of a bench in their order, each with its rows."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(stem):
        if row["run"]:
            found.setdefault(row["run"], []).append(row)
    yield from found.items()


def older_digests() -> dict[str, dict[str, Any]]:
    """Count and hash of the rows from before runs had ids, by bench."""
    found = {}
    for stem in stems():
        cells = [[row[name] for name in OLD_FIELDS] for row in rows_of(stem) if not row["run"]]
        if cells:
            found[stem] = {"rows": len(cells), "sha256": hashlib.sha256(json.dumps(cells).encode()).hexdigest()}
    return found


def damaged() -> Iterator[str]:
    """What was changed in the rows by another hand than a bench's."""
    for stem in stems():
        for run, rows in runs(stem):
            if run.rpartition("-")[2] != digest(rows):
                yield f"bench/data/{stem}.csv: the rows of run {run} are not those that the bench wrote; measure it again"
    older = json.loads(OLDER.read_text("utf-8"))
    now = older_digests()
    for stem in older.keys() | now.keys():
        if older.get(stem) != now.get(stem):
            yield f"bench/data/{stem}.csv: rows from before runs had ids were changed or removed; restore them"
