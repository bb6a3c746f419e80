"""The folders of a run's parts: progress, and the next folder of a Ray driver.

Shard K runs in `OUT/parts/K`, or in `OUT/parts/K.2` and so on while a lost actor still holds it. Pieces of a split
shard run in `OUT/pieces/`, and are joined when finished. `OUT/ray.json` has the number of shards.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from codec_bench.data.shard import Shard
from codec_bench.messages.errors import UserError
from codec_bench.store.files import read_json, write_json
from codec_bench.store.integrity import DATABASE
from codec_bench.store.merge import join_pieces
from codec_bench.store.parts import MARK, MERGED, items_now, read_part
from codec_bench.store.record import Run

STATE = "ray.json"


class PartFolders:
    """The folders of the shards of one run.

    Args:
        of: number of shards; None for that of the started run, or `otherwise`.

    Raises:
        UserError: the run was started with another number of shards, or without Ray.
    """

    def __init__(self, out: Path, of: int | None, otherwise: int) -> None:
        self.out = out
        started = read_json(out / STATE).get("shards") if (out / STATE).is_file() else None
        if isinstance(started, int) and of not in (None, started):
            raise UserError(
                "shard_count_differs",
                folder=out,
                started=started,
                shards=of,
                hint=f"give --shards {started}, or another --out",
            )
        _check_ours(out)
        self.of = started if isinstance(started, int) else of or otherwise
        write_json(out / STATE, {"shards": self.of})
        shutil.rmtree(out / "pieces", ignore_errors=True)  # of a driver that ended; their shards are run again
        self._finished: dict[Shard, Path] = {}

    def known(self, shards: Sequence[Shard]) -> list[Shard]:
        """Return the finished shards, by their marks."""
        for shard in shards:
            for folder in self._attempts(shard):
                if (folder / MARK).is_file() and (folder / DATABASE).is_file() and read_part(folder).finished:
                    self._finished[shard] = folder
        return list(self._finished)

    def next(self, shard: Shard, *, fresh: bool = False) -> Path:
        """Return the folder to run a shard in: that of its last try.

        Args:
            fresh: return a new folder in its place.
        """
        if shard.of != self.of:
            return self.out / "pieces" / f"{shard.number}-{shard.of}"
        attempts = self._attempts(shard)
        if not attempts:
            return self._parts / str(shard.number)
        return self._parts / f"{shard.number}.{len(attempts) + 1}" if fresh else attempts[-1]

    def finish(self, shard: Shard, folder: Path) -> None:
        """Note that a shard is finished in a folder."""
        self._finished[shard] = folder

    def join(self, shard: Shard, pieces: Sequence[Path]) -> None:
        """Join the runs of a split shard's `pieces` into a folder of that shard.

        Raises:
            UserError: they do not fit together.
        """
        folder = self.next(shard, fresh=True)
        join_pieces(pieces, folder, str(shard))
        self._finished[shard] = folder

    @property
    def finished(self) -> list[Path]:
        """Return the folders of the finished shards."""
        return list(self._finished.values())

    @property
    def _parts(self) -> Path:
        return self.out / "parts"

    def _attempts(self, shard: Shard) -> list[Path]:
        first = self._parts / str(shard.number)
        later = sorted(self._parts.glob(f"{shard.number}.*"), key=lambda path: int(path.suffix[1:]))
        return [*([first] if first.is_dir() else []), *later]


def _check_ours(out: Path) -> None:
    """Raise UserError if the folder has a run that was not merged from shards."""
    path = out / DATABASE
    if not path.is_file() or not path.stat().st_size:
        return
    run = Run(out)
    meta: Mapping[str, Any] = run.meta
    run.close()
    if not meta.get(MERGED):
        raise UserError("run_without_ray", folder=out, hint="give another --out, or continue it without --executor ray")


State = Literal["waiting", "running", "finished", "unreadable"]


@dataclass(frozen=True, slots=True)
class PartProgress:
    """The progress of one part.

    Args:
        state: `waiting` has no record yet, `running` is not finished.
        reason: why it cannot be read.
    """

    folder: Path
    state: State
    items: int = 0
    done: int = 0
    failed: int = 0
    reason: str | None = None


def progress_of(folders: list[Path]) -> list[PartProgress]:
    """Return the progress of each part, also while it is being written."""
    return [_progress_of(folder) for folder in folders]


def _progress_of(folder: Path) -> PartProgress:
    """Sum the progress of all runs (by benchmark and model) in a part's folder."""
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
