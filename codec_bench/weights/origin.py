"""The sources of a checkpoint's files, and their declared contents.

`codec-bench-weights.json` describes the files next to it that codec-bench fetched. The Hugging Face cache and hub
folders describe themselves: a file in large-file storage is named by its SHA-256, any other by its git id.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RECORD = "codec-bench-weights.json"
_SHA256 = re.compile(r"^[0-9a-f]{64}$")
_GIT_ID = re.compile(r"^[0-9a-f]{40}$")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Declaration:
    """A source's declaration of a file's size and content hash."""

    by: str
    size: int | None = None
    sha256: str | None = None
    git_id: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The content of `codec-bench-weights.json`."""

    name: str
    source: str
    revision: str | None = None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def used(self) -> str:
        """The name in records: repository and revision, else name and SHA-256 prefix."""
        if self.revision:
            return f"{self.source}@{self.revision}"
        sha256 = next((file["sha256"] for file in self.files.values() if file.get("sha256")), None)
        return f"{self.name}@sha256:{sha256[:12]}" if sha256 else f"{self.name}@local"

    def write(self, folder: Path) -> None:
        """Write the description atomically into the folder of the files."""
        partial = folder / f"{RECORD}.part"
        partial.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")
        partial.replace(folder / RECORD)


def read_origin(folder: Path, name: str) -> Origin | None:
    """Read a folder's description, or None if broken or another checkpoint's."""
    try:
        return parse_origin((folder / RECORD).read_text("utf-8"), name)
    except OSError:
        return None


def parse_origin(text: str, name: str) -> Origin | None:
    """Parse a description; None if it is broken or another checkpoint's."""
    try:
        fields = json.loads(text)
        files = {
            str(path): {"size": recorded.get("size"), "sha256": recorded.get("sha256"), "url": recorded.get("url")}
            for path, recorded in fields["files"].items()
        }
        origin = Origin(fields["name"], fields["source"], fields.get("revision"), files)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    sound = all(s["sha256"] is None or _SHA256.match(str(s["sha256"])) for s in files.values())
    return origin if origin.name == name and sound else None


def read_hub_declaration(path: Path) -> Declaration | None:
    """Return the hub's declaration of a file in its cache or a hub download, or None."""
    real = path.resolve()
    if path.is_symlink() and real.parent.name == "blobs":
        return _by_id(real.name)
    for folder in path.parents:
        note = folder / ".cache" / "huggingface" / "download" / f"{path.relative_to(folder).as_posix()}.metadata"
        if note.is_file():
            lines = note.read_text("utf-8", errors="replace").split("\n")
            return _by_id(lines[1].strip()) if len(lines) > 1 else None
    return None


def _by_id(etag: str) -> Declaration | None:
    if _SHA256.match(etag):
        return Declaration("the hub's digest when it was fetched", sha256=etag)
    return Declaration("the hub's digest when it was fetched", git_id=etag) if _GIT_ID.match(etag) else None


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    return _digest(hashlib.sha256(), path)


def git_id_of(path: Path) -> str:
    """Return git's id of a file's content."""
    # git hashes a header and the content with SHA-1.
    return _digest(hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False), path)


def _digest(digest: Any, path: Path) -> str:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
