"""Finds a checkpoint on this machine, without a download.

The first location with every file wins: 1. the caller's file, folder or hub id `OWNER/NAME[@REVISION]`; 2. the folders
in $CODEC_BENCH_WEIGHTS; 3. the folder of `codec-bench weights fetch`; 4. the Hugging Face cache ($HF_HUB_CACHE,
$HF_HOME), with the catalogue's revision, else the cached `main`; 5. ModelScope's cache ($MODELSCOPE_CACHE); 6.
installed packages with the published files, by their digests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from codec_bench.config.file_content import files_hash, path_hash
from codec_bench.config.paths import cache_folder
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import WeightsError
from codec_bench.weights.catalogue import Checkpoint, checkpoint, readable
from codec_bench.weights.from_packages import folder_in_a_package
from codec_bench.weights.origin import read_origin

WEIGHTS_VARIABLE = "CODEC_BENCH_WEIGHTS"
"""Folders, as in PATH; each holds OWNER/NAME/, our name/, or a hub cache."""

LOCAL = "@local"
"""Suffix of a checkpoint in a user's folder with unknown revision."""

PUBLISHED = "published"
"""In place of a revision, for files with the published digests."""

_HUB_ID = re.compile(r"^(?P<repo>\w[\w.-]*/[\w.-]+)(@(?P<revision>[\w./-]+))?$")


_NOTES: ContextVar[list[LocalCheckpoint] | None] = ContextVar("found", default=None)


@dataclass(frozen=True, slots=True)
class LocalCheckpoint:
    """A checkpoint on this machine.

    Args:
        used: its name for a record, with its revision if known.
        files: its paths in the folder, in the catalogue's order.
    """

    folder: Path
    used: str
    files: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The first file, which is the checkpoint itself if only one file matters."""
        return self.folder / self.files[0]

    @property
    def identity(self) -> str:
        """An identity of the weights: a hub snapshot's commit, else a hash of the files.

        Raises:
            WeightsError: a file cannot be read.
        """
        paths = [self.folder / file for file in self.files]
        known = "@" in self.used and not self.used.endswith(LOCAL) and not Path(self.used).exists()
        if known and all(map(_is_blob, paths)):
            return self.used
        try:
            content = files_hash(paths)
        except OSError as error:
            raise WeightsError("weights_unreadable", path=self.folder, cause=error.strerror or error) from error
        return f"{self.used}:{content}" if known else content


def _is_blob(path: Path) -> bool:
    """Whether a file is in the hub's cache, under the name of its hash."""
    return path.is_symlink() and path.resolve().parent.name == "blobs"


def weights_identity(checkpoints: Sequence[LocalCheckpoint], weights: str | None) -> str:
    """Return an identity of the weights that something was built from.

    Args:
        checkpoints: from `noting`. weights: the caller's weights, used without checkpoints: a file or folder by its
            content, any other text as it is.

    Raises:
        WeightsError: a file cannot be read.
    """
    if checkpoints or weights is None or not os.path.exists(weights):
        return "+".join(checkpoint.identity for checkpoint in checkpoints) or weights or ""
    try:
        return path_hash(weights)
    except OSError as error:
        raise WeightsError("weights_file_unreadable", path=weights, cause=error.strerror or error) from error


class WeightsMissing(WeightsError):
    """Checkpoints of the catalogue are missing here; the hint fetches all of them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        entries = [checkpoint(name) for name in self.names]
        size = entries[0].size_text
        if len(entries) > 1:
            size = f"{', '.join(f'{one.name} {one.size_text}' for one in entries)}{_in_all(entries)}"
        hub = entries[0].hub if len(entries) == 1 else None
        also = f" (or: {_hf_download(hub, entries[0].revision)})" if hub else ""
        super().__init__(
            Diagnostic("weights_missing", names=", ".join(map(repr, self.names))),
            hint=f"fetch them ({size}): codec-bench weights fetch {' '.join(self.names)}{also}; or name their folder "
            f"in {WEIGHTS_VARIABLE}",
        )


def _in_all(entries: Sequence[Checkpoint]) -> str:
    sizes = [one.size or one.about for one in entries]
    if not all(sizes):
        return ""
    about = "" if all(one.size for one in entries) else "about "
    return f"; {about}{readable(sum(size or 0 for size in sizes))} in all"


@contextmanager
def noting() -> Iterator[list[LocalCheckpoint]]:
    """Collect the checkpoints that `find` returns within the context, in order."""
    notes: list[LocalCheckpoint] = []
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def find(name: str, weights: str | None = None) -> LocalCheckpoint:
    """Find a checkpoint's files.

    Args:
        name: a name of the catalogue. weights: a file, a folder or a hub id in place of the published one, or None.

    Raises:
        WeightsMissing: the checkpoint is not on this machine. WeightsError: `weights` lacks files.
    """
    entry = checkpoint(name)
    located = _from_path(entry, weights) if weights is not None else lookup(name)
    if located is not None:
        if (notes := _NOTES.get()) is not None:
            notes.append(located)
        return located
    raise WeightsMissing([name])


def find_all(names: Iterable[str], weights: str | None = None) -> list[LocalCheckpoint]:
    """Find the files of several checkpoints, as `find` does for each.

    Raises:
        WeightsMissing: some are not on this machine; it names all of them. WeightsError: `weights` lacks files.
    """
    checkpoints: list[LocalCheckpoint] = []
    missing: list[str] = []
    for name in names:
        try:
            checkpoints.append(find(name, weights))
        except WeightsMissing as error:
            missing += error.names
    if missing:
        raise WeightsMissing(missing)
    return checkpoints


def lookup(name: str) -> LocalCheckpoint | None:
    """Return the published weights on this machine, or None."""
    entry = checkpoint(name)
    for folder, used in places(entry):
        files = entry.inside(folder)
        if files is not None:
            return LocalCheckpoint(folder, used, files)
    return None


def download_folder() -> Path:
    """Return the folder of `codec-bench weights fetch`, outside the hub's cache."""
    return cache_folder() / "weights"


def places(entry: Checkpoint) -> Iterator[tuple[Path, str]]:
    """Yield a checkpoint's candidate folders with its recorded name, users' first."""
    roots = filter(None, os.environ.get(WEIGHTS_VARIABLE, "").split(os.pathsep))
    for root in (*(Path(root).expanduser() for root in roots), download_folder()):
        yield from places_in(root, entry)
    if entry.hub is not None:
        yield from _hub_cache(entry, None)
    if entry.modelscope is not None:
        yield from _modelscope_cache(entry)
    if (folder := folder_in_a_package(entry)) is not None:
        yield folder, f"{entry.hub or entry.name}@{entry.revision or PUBLISHED}"


def places_in(root: Path, entry: Checkpoint) -> Iterator[tuple[Path, str]]:
    """Yield candidate folders of a checkpoint in one root, with its name for a record."""
    for repository in dict.fromkeys(filter(None, (entry.hub, entry.modelscope, entry.name))):
        folder = root / repository
        origin = read_origin(folder, entry.name)
        yield folder, origin.used if origin else f"{entry.name}{LOCAL}"
    if entry.hub is not None and (root / f"models--{entry.hub.replace('/', '--')}").is_dir():
        yield from _hub_cache(entry, root)


def cached_folder(
    repo: str, files: Sequence[Sequence[str]], revision: str | None = None, cache: Path | None = None
) -> Path | None:
    """Return the snapshot of a repository in a hub cache, or None if it lacks a file.

    Args:
        repo: OWNER/NAME. files: for each file, its possible names.
        revision: a commit, branch or tag; None is `main`. cache: None is the user's.
    """
    from huggingface_hub import try_to_load_from_cache

    folder = None
    for names in files:
        cached = ((name, try_to_load_from_cache(repo, name, cache_dir=cache, revision=revision)) for name in names)
        here = next(((name, path) for name, path in cached if isinstance(path, str)), None)
        if here is None:
            return None
        folder = Path(here[1]).parents[len(PurePosixPath(here[0]).parts) - 1]
    return folder


def _from_path(entry: Checkpoint, weights: str) -> LocalCheckpoint:
    """Find a checkpoint by file, folder or hub id; raises WeightsError."""
    path = Path(weights).expanduser()
    if path.is_file():
        first = " or ".join(v.path for v in entry.files[0].variants)
        if missing := [names for names in entry.missing(path.parent) if names != first]:
            raise WeightsError("weights_lack_siblings", path=path, names=", ".join(missing))
        others = (next((v.path for v in f.variants if (path.parent / v.path).is_file()), None) for f in entry.files[1:])
        return LocalCheckpoint(path.parent, str(path), (path.name, *filter(None, others)))
    if path.is_dir():
        files = entry.inside(path)
        if files is None:
            raise WeightsError("weights_folder_lacks", path=path, names=", ".join(entry.missing(path)))
        return LocalCheckpoint(path, str(path), files)
    match = _HUB_ID.match(weights)
    if match is None:
        names = ", ".join(" or ".join(v.path for v in file.variants) for file in entry.files)
        example = entry.hub or "OWNER/NAME"
        raise WeightsError(
            "no_such_weights",
            weights=weights,
            hint=f"give a file, a folder with {names}, or a hub id such as {example}",
        )
    repo, revision = match["repo"], match["revision"]
    folder = cached_folder(repo, _names(entry), revision)
    if folder is None:
        raise WeightsError("weights_not_local", weights=weights, hint=f"fetch them: {_hf_download(repo, revision)}")
    return LocalCheckpoint(folder, f"{repo}@{folder.name}", entry.inside(folder) or ())


def _names(entry: Checkpoint) -> list[list[str]]:
    return [[v.path for v in file.variants] for file in entry.files if not file.optional]


def _hf_download(repo: str, revision: str | None) -> str:
    return f"hf download {repo}" + (f" --revision {revision}" if revision else "")


def _hub_cache(entry: Checkpoint, cache: Path | None) -> Iterator[tuple[Path, str]]:
    for revision in dict.fromkeys((entry.revision, None)):
        folder = cached_folder(str(entry.hub), _names(entry), revision, cache)
        if folder is not None:
            yield folder, f"{entry.hub}@{folder.name}"  # a snapshot's folder is named by its commit


def _modelscope_cache(entry: Checkpoint) -> Iterator[tuple[Path, str]]:
    """Yield the possible folders in modelscope's cache, with their origin."""
    named = os.environ.get("MODELSCOPE_CACHE")
    base = Path(named).expanduser() if named else Path.home() / ".cache" / "modelscope"
    owner, _, name = str(entry.modelscope).partition("/")
    # Older releases of modelscope have one folder per model and write dots as ___; newer ones have snapshots.
    for root in (base / "hub" / "models", base / "models", base / "hub", base):
        for written in dict.fromkeys((name, name.replace(".", "___"))):
            yield root / owner / written, str(entry.modelscope)
        snapshots = root / f"{owner}--{name}" / "snapshots"
        for revision in dict.fromkeys(filter(None, (entry.modelscope_revision, "master"))):
            yield snapshots / revision, f"{entry.modelscope}@{revision}"
