"""Checks a checkpoint's files against the catalogue or their source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from codec_bench.messages.errors import WeightsError
from codec_bench.weights.catalogue import Checkpoint, checkpoint
from codec_bench.weights.find import LocalCheckpoint, find
from codec_bench.weights.origin import Declaration, git_id_of, read_hub_declaration, read_origin, sha256_of

State = Literal["same", "differs", "unknown"]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One checked file.

    Args:
        path: in the checkpoint's folder. size: in bytes on this machine.
        state: `same`, `differs`, or `unknown` without a declared content.
        against: the source of the declaration; empty without one. reason: the difference, one sentence; or empty.
    """

    path: str
    size: int
    state: State
    against: str = ""
    reason: str = ""


def verify(name: str, located: LocalCheckpoint | None = None) -> list[CheckedFile]:
    """Compare a checkpoint's files with the catalogue, else with their source.

    Args:
        located: the location of the files, or None to `find` them.

    Raises:
        WeightsError: the checkpoint is not on this machine.
    """
    entry = checkpoint(name)
    located = located or find(name)
    return [_check_file(entry, located, path) for path in located.files]


def _check_file(entry: Checkpoint, checkpoint: LocalCheckpoint, path: str) -> CheckedFile:
    """Compare one file with all that is declared of it."""
    file = checkpoint.folder / path
    sized = ""
    try:
        size = file.stat().st_size
        for declaration in _declarations(entry, checkpoint, path):
            if declaration.size is not None and declaration.size != size:
                return CheckedFile(
                    path, size, "differs", declaration.by, f"'{file}' has {size} bytes; expected {declaration.size}"
                )
            if declaration.size is not None:
                sized = sized or f"the size only: {declaration.by}"
            for expected, digest, kind in (
                (declaration.sha256, sha256_of, "the SHA-256"),
                (declaration.git_id, git_id_of, "the git id"),
            ):
                if expected is not None:
                    got = digest(file)
                    if got != expected:
                        reason = f"'{file}' has {kind} {got}; expected {expected}"
                        return CheckedFile(path, size, "differs", declaration.by, reason)
                    return CheckedFile(path, size, "same", declaration.by)
    except OSError as error:
        raise WeightsError("file_not_readable", path=file, cause=error.strerror or error) from error
    return CheckedFile(path, size, "unknown", sized)


def _declarations(entry: Checkpoint, checkpoint: LocalCheckpoint, path: str) -> list[Declaration]:
    """Collect the known sizes and hashes of a file: catalogue, hub, origin."""
    declarations = []
    pinned = entry.variant(path)
    if pinned is not None and (pinned.size or pinned.sha256) and _is_of_the_catalogue(entry, checkpoint.used):
        declarations.append(Declaration("the catalogue", pinned.size, pinned.sha256))
    hub = read_hub_declaration(checkpoint.folder / path)
    if hub is not None:
        declarations.append(hub)
    origin = read_origin(checkpoint.folder, entry.name)
    if origin is not None and path in origin.files:
        of = origin.files[path]
        declarations.append(Declaration("what was recorded when it was fetched", of["size"], of["sha256"]))
    return declarations


def _is_of_the_catalogue(entry: Checkpoint, used: str) -> bool:
    """Whether weights must equal the catalogue's: not for another revision or hub."""
    if entry.hub is not None and entry.modelscope is not None and used.partition("@")[0] == entry.modelscope:
        return False
    repository, _, revision = used.rpartition("@")
    return repository != entry.hub or entry.revision in (None, revision)
