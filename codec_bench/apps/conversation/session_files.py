"""Sessions on disk: a folder each, with both tracks as FLAC and `session.json`, which is written last and holds the
tracks' hashes.
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
from codec_bench.errors import UserError, on_disk
from codec_bench.store.files import read_json, write_text

VERSION = 1


def folder_of(run: Path, system: str, name: str) -> Path:
    """The folder of a session."""
    return run / "sessions" / system / name


def write_session(folder: Path, session: Session, about: Mapping[str, Any]) -> None:
    """Keeps a session in place of one that was there; `about` says what was asked. It is whole once this returns.

    Raises:
        UserError: the folder cannot be written.
    """
    import soundfile

    with on_disk(f"the session '{folder}' cannot be written"):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        hashes = {}
        for name in TRACKS:
            track = getattr(session, name)
            if (name == "clean" and np.array_equal(track, session.user)) or (name == "lost" and not track.size):
                continue
            rate_hz = session.heard_hz if name in ("heard", "lost") else session.rate_hz
            if track.size:
                soundfile.write(folder / f"{name}.flac", track, rate_hz, subtype="PCM_16")
            hashes[name] = _hash(track)
    held = {"version": VERSION, "about": dict(about), "hashes": hashes, **session.as_dict()}
    # In one line, which Python writes many times faster: other sessions wait for it meanwhile.
    write_text(folder / "session.json", json.dumps(held, ensure_ascii=False) + "\n")


def read_session(folder: Path, about: Mapping[str, Any] | None = None) -> Session | None:
    """A session that was kept; None if there is none, it is not whole, or it was asked otherwise than `about` says."""
    try:
        facts = read_json(folder / "session.json")
        if facts["version"] != VERSION or (about is not None and facts["about"] != dict(about)):
            return None
        tracks = {name: _track(folder, name) for name in facts["hashes"]}
        if any(_hash(tracks[name]) != known for name, known in facts["hashes"].items()):
            return None
        tracks.setdefault("clean", tracks["user"])
        return Session.from_dict(facts, **tracks)
    except (UserError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _track(folder: Path, name: str) -> np.ndarray:
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
