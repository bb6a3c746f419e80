"""How far the parts of a run are, from their records."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from codec_bench.errors import UserError
from codec_bench.store.parts import MARK, items_now
from codec_bench.store.record import DATABASE

State = Literal["waiting", "running", "finished", "unreadable"]


@dataclass(frozen=True, slots=True)
class PartProgress:
    """How far one part is.

    Args:
        folder: of its run. state: `waiting` has no record yet, `running` has begun and is not finished.
        items: how many there are; 0 before it has begun. done: how many are finished. failed: how many of these failed.
        reason: why it cannot be read; None otherwise.
    """

    folder: Path
    state: State
    items: int = 0
    done: int = 0
    failed: int = 0
    reason: str | None = None


def progress_of(folders: list[Path]) -> list[PartProgress]:
    """How far each part is. A part that is being written is read as it is in this moment."""
    return [_progress_of(folder) for folder in folders]


def _progress_of(folder: Path) -> PartProgress:
    """The sum over the runs at or below the part's folder: a benchmark's command makes one for each benchmark and model."""
    runs = [path.parent for path in sorted(folder.rglob(DATABASE)) if path.stat().st_size]
    if not runs:
        return PartProgress(folder, "waiting")
    try:
        counts = [items_now(run) for run in runs]
    except (UserError, sqlite3.Error) as error:
        return PartProgress(folder, "unreadable", reason=str(getattr(error, "message", error)))
    state: State = "finished" if all((run / MARK).is_file() for run in runs) else "running"
    items, done, failed = (sum(column) for column in zip(*counts, strict=True))
    return PartProgress(folder, state, items, done, failed)
