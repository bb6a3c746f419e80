"""Checking whether the files of a checkpoint have the expected content, and who says what is expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from codec_bench.errors import WeightsError
from codec_bench.weights.catalogue import Checkpoint, checkpoint
from codec_bench.weights.find import Found, find
from codec_bench.weights.origin import Said, git_id_of, read_origin, said_by_hub, sha256_of

State = Literal["same", "differs", "unknown"]


@dataclass(frozen=True, slots=True)
class Checked:
    """One file that was checked.

    Args:
        path: its path in the checkpoint's folder. size: its size in bytes on this machine.
        state: `same`, `differs`, or `unknown` if no source says what the content should be.
        against: the source that says what the content should be, in words; empty if there is none.
        reason: what differs, one sentence; empty if nothing does.
    """

    path: str
    size: int
    state: State
    against: str = ""
    reason: str = ""


def verify(name: str, found: Found | None = None) -> list[Checked]:
    """Compares the files of a checkpoint with the catalogue, else with what their source said when they were fetched.

    Args:
        name: a name of the catalogue.
        found: the place of the files, or None for the place that `find` gives.

    Raises:
        WeightsError: the checkpoint is not on this machine.
    """
    entry = checkpoint(name)
    found = found or find(name)
    return [_check(entry, found, path) for path in found.files]


def _check(entry: Checkpoint, found: Found, path: str) -> Checked:
    file = found.folder / path
    sized = ""
    try:
        size = file.stat().st_size
        for said in _said(entry, found, path):
            if said.size is not None and said.size != size:
                return Checked(path, size, "differs", said.by, f"'{file}' has {size} bytes; expected {said.size}")
            if said.size is not None:
                sized = sized or f"the size only: {said.by}"
            for expected, digest, what in (
                (said.sha256, sha256_of, "the SHA-256"),
                (said.git_id, git_id_of, "the git id"),
            ):
                if expected is not None:
                    got = digest(file)
                    if got != expected:
                        reason = f"'{file}' has {what} {got}; expected {expected}"
                        return Checked(path, size, "differs", said.by, reason)
                    return Checked(path, size, "same", said.by)
    except OSError as error:
        raise WeightsError(f"'{file}' cannot be read: {error.strerror or error}") from error
    return Checked(path, size, "unknown", sized)


def _said(entry: Checkpoint, found: Found, path: str) -> list[Said]:
    """All that sources say about a file, the catalogue first."""
    said = []
    pinned = entry.variant(path)
    if pinned is not None and (pinned.size or pinned.sha256) and _is_of_the_catalogue(entry, found.used):
        said.append(Said("the catalogue", pinned.size, pinned.sha256))
    hub = said_by_hub(found.folder / path)
    if hub is not None:
        said.append(hub)
    origin = read_origin(found.folder, entry.name)
    if origin is not None and path in origin.files:
        of = origin.files[path]
        said.append(Said("what was recorded when it was fetched", of["size"], of["sha256"]))
    return said


def _is_of_the_catalogue(entry: Checkpoint, used: str) -> bool:
    """Whether weights must equal the files of the catalogue. Another revision or another hub may have other files."""
    if entry.hub is not None and entry.modelscope is not None and used.partition("@")[0] == entry.modelscope:
        return False
    repository, _, revision = used.rpartition("@")
    return repository != entry.hub or entry.revision in (None, revision)
