"""Where a data set is: the hub, its cache, a mirror, or a folder.

No code of a repository is executed. A repository with a loading script is read from the hub's conversion to Parquet, or
refused. A path is relative to the repository's root, with `/`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.config.network import TIMEOUT_S, offline
from codec_bench.data.archives import is_archive, unpacked
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError, hub_fault, server_status

PREFIX = "hf:"
MIRROR_VARIABLE = "CODEC_BENCH_DATA"
"""The environment variable that names a folder of data sets as OWNER/NAME, which replaces the hub for them."""
CONVERTED = "refs/convert/parquet"
_CARD = "README.md"
_CONVERTED_PATH = re.compile(r"[^/]+/[^/]+/\d{4}\.parquet")
_COMMIT = re.compile("[0-9a-f]{40}")
_LISTINGS = "codec-bench"  # in the hub's cache, next to the snapshots
_CARD_COMMIT = ".cache/huggingface/download/README.md.metadata"


@dataclass(frozen=True, slots=True, eq=False)
class Repository:
    """The location of a data set's files.

    Args:
        root: the folder of the files, or None if they are on the hub.
        repo: OWNER/NAME on the hub, or None.
        revision: the commit, or None if it is not known.
        partial: whether the folder is the hub's cache, which holds only fetched files.
        converted: whether the files have the layout of the hub's own conversion to Parquet.
        files: the paths of all files on the hub, or in its cache if it has a list; else empty.
        sounds: an additional folder, or an archive, where paths of sounds may begin, or None.
        licence: as the hub states it; None if unknown.
        in_place: whether to read only the needed columns of a Parquet file on the hub, without a download, as long as
            none holds sound.
    """

    name: str
    root: str | None
    repo: str | None = None
    revision: str | None = None
    partial: bool = False
    converted: bool = False
    files: frozenset[str] = frozenset()
    sounds: str | None = None
    licence: str | None = None
    in_place: bool = False

    def path_of(self, file: str) -> str:
        """A file's path in the repository, from its name in the `datasets` library."""
        if self.root is None:
            return file.removeprefix(f"hf://datasets/{self.repo}@{self.revision}/")
        return os.path.relpath(file, self.root).replace(os.sep, "/") if os.path.isabs(file) else file

    def local(self, path: str) -> str:
        """The path of a local copy of a file; the hub's are fetched into the hub's cache.

        Raises:
            UserError: the file is missing, or could not be fetched.
        """
        if self.root is not None:
            file = os.path.join(self.root, path)
            if not os.path.isfile(file):
                cached = Diagnostic("not_in_commit_cache", path=path, name=self.name, revision=self.revision)
                raise UserError(
                    cached if self.partial else Diagnostic("no_file", path=file),
                    hint="unset HF_HUB_OFFLINE, or run once with a network" if self.partial else None,
                )
            return file
        from huggingface_hub import hf_hub_download

        try:
            return hf_hub_download(str(self.repo), path, repo_type="dataset", revision=self.revision)
        except Exception as error:  # the error classes of huggingface_hub and its HTTP library vary by release
            raise hub_trouble(error, str(self.repo), self.revision, f"'{path}' of ") from error

    def remote(self, path: str) -> Any:
        """Open a file on the hub in binary mode; only the parts that are read are fetched."""
        from huggingface_hub import HfFileSystem

        return HfFileSystem().open(
            f"datasets/{self.repo}@{self.revision}/{path}", block_size=1 << 16, cache_type="readahead"
        )

    def metadata(self, path: str) -> Any:
        """Read a Parquet file's footer; from the hub, only its last bytes are fetched.

        Raises:
            UserError: the file is missing, could not be fetched, or is not Parquet.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if self.root is not None:
                return pq.read_metadata(self.local(path))
            from huggingface_hub import try_to_load_from_cache

            here = try_to_load_from_cache(str(self.repo), path, repo_type="dataset", revision=self.revision)
            if isinstance(here, str):
                return pq.read_metadata(here)
            with self.remote(path) as file:
                return pq.read_metadata(file)
        except pa.ArrowException as error:
            raise UserError(
                "hub_file_not_parquet", path=path, name=self.name, cause=str(error).splitlines()[0]
            ) from error
        except UserError:
            raise
        except Exception as error:
            raise hub_trouble(error, str(self.repo), self.revision, f"the footer of '{path}' of ") from error

    def sound(self, named: str, table_path: str) -> str:
        """The local path of a sound that a row names; it is fetched or unpacked if needed.

        It is looked up in the table's folder, the root and the definition's folder of sounds. A missing file gets a
        path too: reading it fails, which affects only that row.

        Args:
            named: the path in the row.
            table_path: the path of the row's table.
        """
        if os.path.isabs(named) and self.repo is None:
            return named
        archived = self.sounds is not None and is_archive(self.sounds)
        folders = (os.path.dirname(table_path), "", *(() if self.sounds is None or archived else (self.sounds,)))
        candidates = [os.path.normpath(os.path.join(above, named)).replace(os.sep, "/") for above in folders]
        if self.repo is not None:
            candidates = [path for path in candidates if not path.startswith(("../", "/"))]
            if not candidates:
                return f"{named} of {self.name}, which leads out of the data set"
        match = next((path for path in candidates if self.has(path)), None)
        if match is None and archived and self.has(str(self.sounds)):
            folder = unpacked(self.local(str(self.sounds)))
            members = [_member(folder, path, str(self.sounds)) for path in candidates]
            return next((path for path in members if os.path.isfile(path)), members[-1])
        # A missing file gets a path too. Reading it fails, which affects only that row.
        return self.local(match) if match is not None else os.path.join(self.root or str(self.repo), candidates[0])

    def has(self, path: str) -> bool:
        """Whether a file exists in the repository or folder."""
        if self.root is None:
            return path in self.files
        return os.path.isfile(os.path.join(self.root, path))


def _member(folder: Path, named: str, archive: str) -> str:
    """The path of an archive's unpacked file, as a row names it.

    Some archives lack the top folder with their name.
    """
    top, _, rest = named.replace(os.sep, "/").partition("/")
    bare = not (folder / named).is_file() and top == os.path.basename(archive).partition(".")[0] and rest
    return str(folder / (rest if bare and (folder / rest).is_file() else named))


def parse_hub_name(where: str) -> tuple[str, str | None, list[str]]:
    """Parse `hf:REPO[@REVISION][:CONFIG][:SPLIT]`.

    Returns:
        (repository, revision or None, [CONFIG, SPLIT] as far as given).

    Raises:
        UserError: the name has another form.
    """
    repo, *names = where.removeprefix(PREFIX).split(":")
    repo, _, revision = repo.partition("@")
    parts = repo.split("/")
    if len(parts) > 2 or len(names) > 2 or not all(parts) or not all(names) or {".", ".."} & set(parts):
        raise UserError("not_a_data_set_name", name=where, hint="write hf:OWNER/NAME[:CONFIG][:SPLIT]")
    return repo, revision or None, names


def find_repository(repo: str, revision: str | None, mirror: str | os.PathLike[str] | None) -> Repository:
    """Find a repository: in the mirror, on the hub, or in the hub's cache.

    HF_HUB_OFFLINE selects the cache too.

    Args:
        repo: OWNER/NAME.
        revision: a commit, branch or tag; None takes `main`.
        mirror: a folder to use in place of the hub, or None.

    Raises:
        UserError: there is no such repository or revision, it is gated, or it is in none of these places.
    """
    named = os.environ.get(MIRROR_VARIABLE) if mirror is None else mirror
    if named:
        folder = os.path.join(os.path.expanduser(os.fspath(named)), repo)
        if os.path.isdir(folder):
            return folder_repository(folder, repo, revision)
        if mirror is not None:
            raise UserError(
                "mirror_without_data_set",
                name=repo,
                folder=folder,
                hint=f"hf download {repo} --repo-type dataset --local-dir {folder}",
            )
    if (forbidden := offline()) is not None:
        repository = _cached(repo, revision)
        if repository is None:
            raise UserError(
                "not_in_hub_cache",
                name=repo,
                revision=revision or "main",
                variable=forbidden,
                hint=f"unset {forbidden}, or name a folder that holds {repo} with {MIRROR_VARIABLE}",
            )
        return repository
    return _find_on_hub(repo, revision)


def folder_repository(folder: str, name: str, revision: str | None) -> Repository:
    """Open a downloaded data set in the hub's folder layout.

    Args:
        name: name of the data set for messages.
        revision: the requested commit or branch; only a different commit is an error.

    Raises:
        UserError: it was downloaded from another commit than the requested one.
    """
    root = os.path.realpath(folder)
    card = Path(root, _CARD_COMMIT)
    commit = card.read_text("utf-8").split("\n")[0].strip() if card.is_file() else os.path.basename(root)
    known = commit if _COMMIT.fullmatch(commit) else None
    if known is not None and revision is not None and _COMMIT.fullmatch(revision) and revision != known:
        raise UserError("other_commit", folder=folder, commit=known, name=name, revision=revision)
    converted = not os.path.isfile(os.path.join(root, _CARD)) and _is_converted(_files_in(root))
    return Repository(name, root, revision=known, converted=converted)


def _cache_folder(repo: str) -> str:
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    return os.path.join(constants.HF_HUB_CACHE, repo_folder_name(repo_id=repo, repo_type="dataset"))


def _cached(repo: str, revision: str | None) -> Repository | None:
    """The repository in the hub's cache at a revision; None if it does not exist.

    For a data set that is a script, it is the hub's conversion to Parquet.
    """
    folder = _cache_folder(repo)

    def snapshot(revision: str) -> tuple[str, str] | None:
        """(folder, commit) of a revision in the cache, or None."""
        ref = Path(folder, "refs", *revision.split("/"))
        commit = ref.read_text("utf-8").strip() if ref.is_file() else revision
        root = os.path.join(folder, "snapshots", commit)
        return (os.path.realpath(root), commit) if _COMMIT.fullmatch(commit) and os.path.isdir(root) else None

    cached = snapshot(revision or "main")
    if revision is None and (cached is None or os.path.isfile(os.path.join(cached[0], _script_of(repo)))):
        cached = snapshot(CONVERTED) or cached
    if cached is None:
        return None
    root, commit = cached
    files = _listing(folder, commit)
    return Repository(repo, root, repo, commit, True, _is_converted(files or _files_in(root)), files)


def _find_on_hub(repo: str, revision: str | None) -> Repository:
    """Find a data set on the hub, or in the cache if the hub does not answer."""
    from huggingface_hub import HfApi

    api = HfApi()
    try:
        info = api.dataset_info(repo, revision=revision, timeout=TIMEOUT_S)
        if info.gated:  # anybody may list the files of a gated repository; fetching them needs a permission
            api.auth_check(repo, repo_type="dataset")
    except Exception as error:
        repository = _cached(repo, revision) if server_status(error) is None else None
        if repository is not None:
            return repository
        raise hub_trouble(error, repo, revision) from error
    script, used_revision, licence = _script_of(repo), revision or "main", _licence(info.card_data)
    if any(file.rfilename == script for file in info.siblings or ()):
        if revision not in (None, "main"):
            raise UserError(
                "data_set_is_script", name=repo, hint=f"the hub's conversion to Parquet is its revision {CONVERTED}"
            )
        used_revision = CONVERTED
        try:
            info = api.dataset_info(repo, revision=CONVERTED, timeout=TIMEOUT_S)
        except Exception as error:
            raise UserError(
                "script_not_converted",
                name=repo,
                hint=f"convert it yourself and name the folder that holds it as {repo} with {MIRROR_VARIABLE}",
            ) from error
    files = frozenset(file.rfilename for file in info.siblings or ())
    commit = str(info.sha)
    _remember(repo, used_revision, commit, files)
    return Repository(repo, None, repo, commit, converted=_is_converted(files), files=files, licence=licence)


def _licence(card: Any) -> str | None:
    """The licence in the head of a card, several joined by commas."""
    named = None if card is None else card.get("license_name") or card.get("license")
    return ", ".join(map(str, named)) if isinstance(named, list) else named


def _script_of(repo: str) -> str:
    return f"{repo.rpartition('/')[2]}.py"


def _is_converted(files: Collection[str]) -> bool:
    """Whether files are the hub's conversion: CONFIG/SPLIT/0000.parquet and no card."""
    tables = [path for path in files if path.endswith(".parquet")]
    return bool(tables) and _CARD not in files and all(map(_CONVERTED_PATH.fullmatch, tables))


def _files_in(root: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in Path(root).rglob("*") if path.is_file()]


def _remember(repo: str, revision: str, commit: str, files: frozenset[str]) -> None:
    """Write a revision's commit and files into the hub's cache, for use offline."""
    folder = Path(_cache_folder(repo))
    notes = {folder / _LISTINGS / f"{commit}.json": json.dumps(sorted(files))}
    if not _COMMIT.fullmatch(revision):
        notes[folder.joinpath("refs", *revision.split("/"))] = commit
    try:
        for note, text in notes.items():
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(text, "utf-8")
    except OSError:  # a cache that cannot be written can still be read
        pass


def _listing(folder: str, commit: str) -> frozenset[str]:
    """The files of a commit by `_remember`; empty without a list."""
    try:
        return frozenset(json.loads(Path(folder, _LISTINGS, f"{commit}.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return frozenset()


def hub_trouble(error: Exception, repo: str, revision: str | None, subject: str = "") -> UserError:
    """Convert an exception of the hub's library to a UserError that says what to do.

    Args:
        repo: OWNER/NAME.
        revision: the commit, branch or tag, or None.
        subject: the requested part, such as `'a.parquet' of `.
    """
    from huggingface_hub import constants

    page, (fault, answer) = f"{constants.ENDPOINT}/datasets/{repo}", hub_fault(error)
    mirror = f"a folder that holds it as {repo}: {MIRROR_VARIABLE}=FOLDER"
    match fault:
        case "gated":
            token = "set HF_TOKEN to a token of that account (or: hf auth login)"
            return UserError("terms_not_accepted", name=repo, hint=f"accept them at {page}, then {token}; or {mirror}")
        case "revision":
            return UserError("data_set_revision", name=repo, revision=revision, hint=f"see {page}")
        case "missing":
            return UserError(
                "hub_missing",
                subject=f"{subject}'{page}'",
                answer=answer,
                hint=f"check the name; set HF_TOKEN if it needs a permission; or {mirror}",
            )
        case "server":
            return UserError("hub_not_fetched", subject=f"{subject}'{page}'", answer=answer, hint="try again later")
        case "disk":
            return UserError("hub_disk", cause=answer)
        case "network":
            return UserError(
                "hub_unreachable", subject=f"{subject}'{page}'", cause=answer, hint=f"check the network; or {mirror}"
            )
