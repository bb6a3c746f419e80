"""The folder of a run: named by the caller, found, or new; one writer locks it.

A run without a named folder gets one under `runs/`, where `STARTED` holds a hash of the request. The same request
continues that folder, unless it is finished or in use.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from codec_bench.config.paths import hint_for_path
from codec_bench.messages.errors import RunLocked, UserError, on_disk
from codec_bench.store import integrity
from codec_bench.store.files import write_json
from codec_bench.store.integrity import DATABASE
from codec_bench.store.tables import layouts

RUNS = Path("runs")
STARTED = "begun.json"
_REQUEST, _STARTED_AT = "asked", "begun"
LOCK = "run.lock"


class FolderLock:
    """A folder for this process alone, created if missing; else RunLocked."""

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        with on_disk("file_not_writable", path=folder):
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(handle, 32, 0).decode(errors="replace").strip()
            os.close(handle)
            raise RunLocked(
                "run_locked", folder=folder, owner=owner, hint="wait until it ends, or give another --out"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"pid {os.getpid()}".encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Let other processes write the folder."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


class RunFolder:
    """The folder of a run, locked until the `with` block ends.

    Attributes:
        words: a sentence on which folder it is, and why.
        is_own: under `runs/`, without a named folder.
        is_new: made for this run, and removed if an error ends the block before anything began.
    """

    def __init__(self, path: Path, words: str, *, lock: FolderLock | None, is_own: bool, is_new: bool = False) -> None:
        self.path, self.words, self.lock, self.is_own, self.is_new = path, words, lock, is_own, is_new

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None and self.is_new:
            with suppress(OSError):
                held = [
                    path
                    for path in self.path.iterdir()
                    if path.name not in (STARTED, LOCK) and (path.is_dir() or path.stat().st_size)
                ]
                if self.lock is None:
                    self.path.rmdir()  # others may be using it, so that only an empty one is removed
                elif not held:
                    shutil.rmtree(self.path)
                    if self.is_own:
                        self.path.parent.rmdir()  # unless it holds other runs
        if self.lock is not None:
            self.lock.release()


def named_folder(out: str | os.PathLike[str], *, shared: bool = False) -> RunFolder:
    """The folder that the caller named; `shared`, or locked (else RunLocked)."""
    path, words = Path(out), f"run folder: {Path(out)}"
    is_new = not path.exists()
    return RunFolder(path, words, lock=None if shared else FolderLock(path), is_own=False, is_new=is_new)


def own_folder(command: str, request: Mapping[str, Any], *, also_finished: bool = False) -> RunFolder:
    """A folder under `runs/`: that of the same unfinished request, or a new one.

    Args:
        command: start of a new folder's name.
        request: JSON values that identify the request.
        also_finished: whether a finished run of the same request is continued too.
    """
    why = ""
    for path, started in _started_runs(command, request):
        if started.get("finished") and not also_finished:
            why = why or f"; the same run in {path} is finished"
            continue
        try:
            lock = FolderLock(path)
        except RunLocked:
            why = why or f"; the same run in {path} is being written by another process"
            continue
        status = "finished" if started.get("finished") else "unfinished"
        words = f"run folder: {path} (continues the {status} run of {started[_STARTED_AT].replace('T', ' ')})"
        return RunFolder(path, words, lock=lock, is_own=True)
    return new_folder(command, request, why)


def new_folder(command: str, request: Mapping[str, Any], why: str = "") -> RunFolder:
    """A new folder under `runs/`, named by command and time; `why` adds words."""
    now = datetime.now()
    stem, number = f"{command}-{now.strftime('%Y%m%d-%H%M%S')}", 1
    while True:
        path = RUNS / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir(parents=True)
            break
        except FileExistsError:  # another process made it in the same second
            number += 1
        except OSError as error:
            raise UserError("file_not_writable", path=path, cause=error.strerror) from error
    lock = FolderLock(path)
    started = {
        "command": command,
        _REQUEST: request_hash(request),
        _STARTED_AT: now.isoformat(timespec="seconds"),
        "finished": None,
    }
    write_json(path / STARTED, started)
    return RunFolder(path, f"run folder: {path} (new{why})", lock=lock, is_own=True, is_new=True)


def request_hash(request: Mapping[str, Any]) -> str:
    """A hash of a request, whose options may be private."""
    return hashlib.blake2b(json.dumps(request, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()


def mark_finished(path: Path) -> None:
    """Mark the request of a folder under `runs/` as finished."""
    started = _read_started(path / STARTED)
    if started is not None:
        write_json(path / STARTED, {**started, "finished": datetime.now().isoformat(timespec="seconds")})


def _started_runs(command: str, request: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Run folders started by the same request, newest first, with their start facts."""
    folders = [(path.parent, _read_started(path)) for path in RUNS.glob(f"*/{STARTED}")]
    identity = (command, request_hash(request))
    same = [
        (path, started) for path, started in folders if started and (started["command"], started[_REQUEST]) == identity
    ]
    yield from sorted(same, key=lambda one: (one[1][_STARTED_AT], one[0].name), reverse=True)


def _read_started(path: Path) -> dict[str, Any] | None:
    """Read the file of a started command; None if missing or incomplete."""
    try:
        started = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    is_complete = (
        isinstance(started, dict)
        and isinstance(started.get(_STARTED_AT), str)
        and {"command", _REQUEST} <= started.keys()
    )
    return started if is_complete else None


def started_fingerprint(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Fingerprint of the run in a folder; empty without a run, or raise UserError."""
    path = Path(folder) / DATABASE
    if not path.is_file() or not path.stat().st_size:
        return {}
    with closing(integrity.connect(path)) as db, integrity.reading(path):
        if "meta" not in layouts(db):  # a run that was killed while it made its tables has no items
            return {}
        row = db.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
    fingerprint: dict[str, Any] = {} if row is None else integrity.json_cell(row[0], path, "its fingerprint")
    return fingerprint


def run_folders(folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The run folders at or under one or several folders, or raise UserError."""
    out = []
    for folder in [folders] if isinstance(folders, (str, os.PathLike)) else folders:
        runs = sorted(path.parent for path in Path(folder).rglob(DATABASE))
        if not runs:
            raise UserError("holds_no_run", folder=folder, hint=hint_for_path(folder, "name the folder of --out"))
        out += runs
    return out
