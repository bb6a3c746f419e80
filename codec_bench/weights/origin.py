"""Where the files of a checkpoint came from, and what their source said about them.

Conventions
    `codec-bench-weights.json` describes the files that codec-bench fetched into a folder of its own, and is next to
    them. The Hugging Face cache and hub folders describe themselves: a file in the hub's large-file storage is named by
    its SHA-256, and any other file by the id that git gives its content.
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
    """What a source says about one file.

    Args:
        by: the source, in words. size: in bytes, or None. sha256, git_id: of the content; at most one of them is known.
    """

    by: str
    size: int | None = None
    sha256: str | None = None
    git_id: str | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The content of `codec-bench-weights.json`.

    Args:
        name: of the checkpoint. source: a repository or URL. revision: of the repository, or None.
        files: by path, each with `size`, `sha256` and `url`.
    """

    name: str
    source: str
    revision: str | None = None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def used(self) -> str:
        """The name of these weights for a record: repository and revision, else the name and the start of the SHA-256."""
        if self.revision:
            return f"{self.source}@{self.revision}"
        sha256 = next((file["sha256"] for file in self.files.values() if file.get("sha256")), None)
        return f"{self.name}@sha256:{sha256[:12]}" if sha256 else f"{self.name}@local"

    def write(self, folder: Path) -> None:
        """Writes the description into the folder of the files. It is written whole or not at all."""
        partial = folder / f"{RECORD}.part"
        partial.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")
        partial.replace(folder / RECORD)


def read_origin(folder: Path, name: str) -> Origin | None:
    """The description in a folder, or None if there is none, it cannot be read, or it is another checkpoint's."""
    try:
        return parse_origin((folder / RECORD).read_text("utf-8"), name)
    except OSError:
        return None


def parse_origin(text: str, name: str) -> Origin | None:
    """A description from its text, or None if it is broken or another checkpoint's."""
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
    """What the hub said about a file in its cache or in a folder to which it was downloaded; None for other files."""
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
        return Declaration("what the hub said when it was fetched", sha256=etag)
    return Declaration("what the hub said when it was fetched", git_id=etag) if _GIT_ID.match(etag) else None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content."""
    return _digest(hashlib.sha256(), path)


def git_id_of(path: Path) -> str:
    """The id that git gives a file's content."""
    # git hashes a header and the content, with SHA-1.
    return _digest(hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False), path)


def _digest(digest: Any, path: Path) -> str:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
