"""Sessions on disk: FLAC tracks and `session.json`, written last with hashes.

Derived files hold the hash of their sources (`content_hash`). `check_states` finds outdated files, as in mixed copies.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.conversation.session import TRACKS, Session
from codec_bench.messages.errors import DamagedRecord, UserError, on_disk
from codec_bench.store.files import read_json, write_text

VERSION = 1
FACTS = "session.json"
_AGAIN = "copy the run again, into an empty folder"


def folder_of(run: Path, system: str, name: str) -> Path:
    """Return the folder of a system's session in a run folder; `name` is its id."""
    return run / "sessions" / system / name


def write_session(folder: Path, session: Session, about: Mapping[str, Any]) -> None:
    """Write a session atomically.

    Args:
        about: JSON values that must be equal for its reuse, such as the script.
    """
    import soundfile

    with on_disk("file_not_writable", path=folder):
        (folder / FACTS).unlink(missing_ok=True)  # first, so that no kill leaves it without its tracks
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        hashes = {}
        for name in TRACKS:
            track = getattr(session, name)
            if (name == "clean" and np.array_equal(track, session.user)) or (name == "discarded" and not track.size):
                continue
            rate_hz = session.output_rate_hz if name in ("output", "discarded") else session.rate_hz
            if track.size:
                soundfile.write(folder / f"{name}.flac", track, rate_hz, subtype="PCM_16")
            hashes[name] = _hash(track)
    held = {"version": VERSION, "about": dict(about), "hashes": hashes, **session.as_dict()}
    # One line is many times faster to write, and other sessions wait.
    write_text(folder / FACTS, json.dumps(held, ensure_ascii=False) + "\n")


def read_session(folder: Path, about: Mapping[str, Any] | None = None) -> Session | None:
    """Read a session; None if missing, or written with other values of `about`.

    Raises:
        DamagedRecord: a file is damaged.
    """
    if not (folder / FACTS).exists():
        return None
    try:
        facts = read_json(folder / FACTS)
        tracks = {name: _track(folder, name) for name in facts["hashes"]}
        is_current = facts["version"] == VERSION
        if is_current and all(_hash(tracks[name]) == known for name, known in facts["hashes"].items()):
            tracks.setdefault("clean", tracks["user"])
            session = Session.from_dict(facts, **tracks)
            return session if about is None or facts["about"] == dict(about) else None
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        pass
    raise DamagedRecord(
        "session_changed", folder=folder, hint=f"{_AGAIN}; or delete the session and summary.json, and it is held again"
    )


def content_hash(*paths: Path) -> str:
    """Hash the content of files; a missing one counts as empty."""
    digest = hashlib.blake2b(digest_size=20)
    for path in paths:
        content = path.read_bytes() if path.exists() else b""
        digest.update(b"%d:%b" % (len(content), content))
    return digest.hexdigest()


def check_states(run: Path, facts: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Check that no file of a run is older than its derivatives.

    Starts of the command are numbered in `run.json`, sessions and `summary.json`.

    Args:
        facts: the content of `run.json`.
        summary: of `summary.json`; both are empty if missing.

    Raises:
        DamagedRecord: a file is older than another one.
    """
    systems, talks = facts.get("systems") or {}, facts.get("conversations") or ()
    known = {folder_of(run, system, name) for system in systems for name in talks}
    older: list[str] = []
    numbers = {}
    for path in run.glob(f"sessions/*/*/{FACTS}"):
        folder = path.parent
        numbers[folder] = _number(read_json(path, hint=_AGAIN))
        if folder not in known or numbers[folder] > _number(facts):
            older.append(f"'run.json' than the session '{folder}'")
    generations = summary.get("generations") or {}
    for system, names in generations.items() if isinstance(generations, Mapping) else ():
        for name, number in names.items():
            if numbers.get(folder_of(run, system, name), -1) < number:
                older.append(f"the session '{folder_of(run, system, name)}' than 'summary.json'")
    if older:
        raise DamagedRecord(
            "session_files_mixed",
            run=run,
            file=older[0],
            hint=f"{_AGAIN}; or delete summary.json to go on from what is there",
        )


def _number(facts: Mapping[str, Any]) -> int:
    number = facts.get("generation")
    return number if isinstance(number, int) else 0


def _track(folder: Path, name: str) -> np.ndarray:
    """Read a track as int16 `(samples,)`; empty if it has no file."""
    import soundfile

    path = folder / f"{name}.flac"
    if not path.exists():
        return np.zeros(0, np.int16)
    try:
        return soundfile.read(path, dtype="int16")[0]
    except (soundfile.SoundFileError, RuntimeError) as error:
        raise ValueError(str(error)) from None


def _hash(track: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(track, "<i2").tobytes()).hexdigest()
