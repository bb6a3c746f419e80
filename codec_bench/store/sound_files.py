"""Sounds in a run folder, with content hashes in names to detect stale files."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from codec_bench.audio.encode import flac_bytes
from codec_bench.messages.errors import DamagedRecord
from codec_bench.types import Audio

_HASH = re.compile(r"-([0-9a-f]{16})\.flac")


def keep_sound(folder: Path, stem: str, audio: Audio) -> str:
    """Write a sound atomically, in place of an earlier one; return its path.

    Args:
        stem: path in the run folder, without hash and suffix.
    """
    content = flac_bytes(audio)
    target = folder / f"{stem}-{_hash(content)}.flac"
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(f".{os.getpid()}.part")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    for other in target.parent.glob(f"{Path(stem).name}-*.flac"):
        if other != target and _HASH.fullmatch(other.name.removeprefix(Path(stem).name)):
            other.unlink()
    return target.relative_to(folder).as_posix()


def check_sound(path: Path) -> Path:
    """Return a path, or raise DamagedRecord if its name has another content hash."""
    match = _HASH.search(path.name)
    if match is not None and path.is_file() and _hash(path.read_bytes()) != match[1]:
        raise DamagedRecord("sound_unexpected", path=path, hint="copy the folder again, into an empty one")
    return path


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
