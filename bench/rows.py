"""The rows of data/: which belong to one run, which were measured on a quiet machine, and whether a hand changed them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import common
from common import digest, git, read_rows

QUIET_SHARE = 0.25
"""The load average over one minute before a bench begins, up to which a machine is quiet: of each core."""
NOT_QUIET = "not measured on a quiet machine yet"
Row = dict[str, str]


@cache
def rows_of(stem: str) -> list[Row]:
    """The rows of a bench; none where it has no file."""
    return read_rows(stem) if (common.DATA / f"{stem}.csv").exists() else []


def quiet(row: Row) -> bool:
    """Whether a row counts as measured on a quiet machine: little load before the bench began, and a clean tree."""
    return row["tree"] == "clean" and float(row["load"]) <= QUIET_SHARE * int(row["cores"])


def stems() -> list[str]:
    """The benches that have rows."""
    return sorted(path.stem for path in common.DATA.glob("*.csv"))


def runs(stem: str) -> dict[str, list[Row]]:
    """The runs of a bench in their order, each with its rows."""
    found: dict[str, list[Row]] = {}
    for row in rows_of(stem):
        found.setdefault(row["run"], []).append(row)
    return found


def damaged() -> Iterator[str]:
    """What was changed in the rows by another hand than a bench's: since the last commit, and within a run."""
    for line in (git("diff", "--numstat", "HEAD", "--", str(common.DATA / "*.csv")) or "").splitlines():
        _, removed, file = line.split("\t")
        if removed != "0":
            yield f"{file}: {removed} committed rows were changed or removed; restore them"
    for stem in stems():
        for run, rows in runs(stem).items():
            if run.rpartition("-")[2] != digest(rows):
                yield f"bench/data/{stem}.csv: the rows of run {run} are not those that the bench wrote; measure it again"
