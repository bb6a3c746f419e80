"""The runs of the shards of one data set, and the mark of a finished one.

Each shard has a folder. A finished one holds `part.json`: which shard it is, its row counts, and the hash of its
record. Two parts belong together if their fingerprints differ in the shard alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.store import integrity
from codec_bench.store.files import read_json, write_json
from codec_bench.store.integrity import DATABASE
from codec_bench.store.record import Run
from codec_bench.store.tables import checksum_of, identity_of
from codec_bench.store.writer import differences

MARK = "part.json"
MERGED = "merged"
"""Entry of `Run.meta` with the parts of a merged record."""


@dataclass(frozen=True, slots=True)
class ShardRun:
    """One shard's run.

    Args:
        number, of: which shard, from 1, and how many.
        fingerprint: without the shard.
        finished: and the record unchanged since.
        content: a digest of its rows, without times.
    """

    folder: Path
    number: int
    of: int
    fingerprint: Mapping[str, Any]
    finished: bool
    content: str

    @property
    def shard(self) -> str:
        """The shard as in the request."""
        return f"{self.number}/{self.of}"


def mark_part(run: Run) -> None:
    """Mark the run of a shard as finished; a run of all samples gets no mark."""
    shard = (run.meta.get("fingerprint") or {}).get("shard")
    if shard is None:
        return
    seal = integrity.read_seal(run.folder) or integrity.seal_of(run.folder / DATABASE)
    mark = {
        "shard": shard, "fingerprint": _digest(run.meta["fingerprint"]), "counts": run.counts(), "bytes": seal.bytes,
        "blake2b": seal.hash,
    }  # fmt: skip
    write_json(run.folder / MARK, mark)


def items_now(folder: Path) -> tuple[int, int, int]:
    """Count all, finished and failed items of a run in progress, without checks."""
    path = folder / DATABASE
    Run(folder).close()
    with closing(integrity.connect(path)) as db, integrity.reading(path):
        every = "(SELECT COUNT(*) FROM samples) * (SELECT COUNT(*) FROM systems)"
        rows = db.execute(f"SELECT {every}, COUNT(*), COALESCE(SUM(status != 'ok'), 0) FROM items")
        items, done, failed = rows.fetchone()
    return items, done, failed


def read_part(folder: Path) -> ShardRun:
    """Read which shard a run folder contains, and check its record; or UserError."""
    with closing(Run(folder)) as run:
        run.check()
        meta = run.meta
        fingerprint = dict(meta.get("fingerprint") or {})
        number, of = _shard_of(fingerprint.pop("shard", None), folder)
        content = _content(run)
    seal = integrity.read_seal(folder) or integrity.seal_of(folder / DATABASE)
    mark: dict[str, Any] = {}
    with suppress(UserError):
        mark = read_json(folder / MARK)
    finished = meta.get("state") == "finished" and mark.get("blake2b") == seal.hash
    return ShardRun(folder, number, of, fingerprint, finished, content)


def _content(run: Run) -> str:
    """A digest of a record's row counts and checksums, equal for equal rows."""
    with closing(integrity.connect(run.folder / DATABASE)) as db:
        checksum = checksum_of(identity_of(db))
    tables = [name for (name,) in run.query("SELECT name FROM counts ORDER BY name") if name != "meta"]
    sums = {name: run.query(f"SELECT COUNT(*), SUM({checksum}) FROM {name}")[0] for name in tables}
    return hashlib.blake2b(json.dumps(sums).encode(), digest_size=16).hexdigest()


def _shard_of(entry: Any, folder: Path) -> tuple[int, int]:
    """Parse a run's shard `K/N`; raises UserError for a run without one."""
    if entry is None:
        raise UserError("run_without_shard", folder=folder, hint="name the folders of runs that had --shard K/N")
    try:
        number, of = map(int, entry.split("/"))
    except (AttributeError, ValueError) as error:
        raise integrity.damaged(folder / DATABASE, "shard_entry", entry=repr(entry)) from error
    return number, of


def _digest(fingerprint: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(fingerprint, sort_keys=True).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class ShardRuns:
    """The shards of a run in order, each once; missing numbers; unfinished runs."""

    parts: tuple[ShardRun, ...]
    missing: tuple[int, ...]
    unfinished: tuple[ShardRun, ...]

    @property
    def of(self) -> int:
        """How many shards there are."""
        return self.parts[0].of


def read_parts(folders: Sequence[Path]) -> ShardRuns:
    """Read the parts of one run, or raise a UserError that names each wrong one."""
    shards: list[ShardRun] = []
    wrong: list[str] = []
    for folder in folders:
        try:
            shards.append(read_part(folder))
        except UserError as error:
            wrong.append(error.message)
    if shards:
        wrong += _foreign(shards)
        wrong += _list_duplicates(shards)
    if wrong or not shards:
        more = f"; and {len(wrong) - 10} more" if len(wrong) > 10 else ""
        causes = "; ".join(wrong[:10]) + more
        raise UserError(
            Diagnostic("parts_wrong", wrong=len(wrong), parts=len(folders), causes=causes)
            if folders
            else Diagnostic("no_part_named"),
            hint="name the folders of one run's shards, each once",
        )
    by_number = {shard.number: shard for shard in shards}
    return ShardRuns(
        tuple(by_number[number] for number in sorted(by_number)),
        tuple(number for number in range(1, shards[0].of + 1) if number not in by_number),
        tuple(shard for shard in shards if not shard.finished),
    )


def _foreign(shards: Sequence[ShardRun]) -> list[str]:
    """Describe the shards whose fingerprint differs from that of the majority."""
    kinds: dict[str, list[ShardRun]] = {}
    for shard in shards:
        kinds.setdefault(_digest({**shard.fingerprint, "of": shard.of}), []).append(shard)
    most = max(kinds.values(), key=len)
    return [
        f"'{shard.folder}' is of another run than '{most[0].folder}': "
        + "; ".join(
            differences({**most[0].fingerprint, "shards": most[0].of}, {**shard.fingerprint, "shards": shard.of})
        )
        for parts in kinds.values()
        if parts is not most
        for shard in parts
    ]


def _list_duplicates(shards: Sequence[ShardRun]) -> list[str]:
    """Describe the shards that several folders have."""
    places: dict[tuple[str, str], list[str]] = {}
    for run in shards:
        places.setdefault((_digest(run.fingerprint), run.shard), []).append(f"'{run.folder}'")
    return [
        f"shard {shard} is there {len(folders)} times: {', '.join(folders)}"
        for (_, shard), folders in places.items()
        if len(folders) > 1
    ]
