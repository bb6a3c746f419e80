"""Archives of sound files that belong to a data set, unpacked once into the user's cache.

Conventions
    An archive is known by its path, size and time; one that has changed is unpacked anew. Nothing is written outside of
    its folder, and links are left out.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any

from codec_bench.config.paths import cache_folder
from codec_bench.errors import UserError

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


def is_archive(name: str) -> bool:
    """Whether a file is an archive, by its name."""
    return name.lower().endswith(SUFFIXES)


def unpacked(archive: str) -> Path:
    """The folder that holds the files of an archive, which is unpacked if it was not before.

    Args:
        archive: path of a ZIP or tar file, which may be compressed.

    Raises:
        UserError: the archive cannot be read, or there is no room for its files.
    """
    found = os.stat(archive)
    return _unpacked(os.path.realpath(archive), found.st_size, found.st_mtime_ns)


@cache
def _unpacked(archive: str, size: int, time_ns: int) -> Path:
    named = hashlib.blake2b(f"{archive}\0{size}\0{time_ns}".encode(), digest_size=12).hexdigest()
    folder = cache_folder() / "unpacked" / named
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            whole = Path(scratch, "files")
            whole.mkdir()
            for name, file in _members(archive):
                with file:
                    _write(whole, name, file)
            try:
                whole.rename(folder)
            except OSError:
                if not folder.is_dir():  # or another process has unpacked it meanwhile
                    raise
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        hint = f"its files go to {folder.parent}; another place is set with CODEC_BENCH_CACHE"
        raise UserError(f"'{archive}' cannot be unpacked: {error}", hint=hint) from error
    return folder


def _members(archive: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The ordinary files of an archive in order, each with its name."""
    if archive.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if not info.is_dir():
                    yield info.filename, opened.open(info)
        return
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            file: Any = tar.extractfile(member) if member.isreg() else None
            if file is not None:
                yield member.name, file


def _write(folder: Path, name: str, file: IO[bytes]) -> None:
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("", ".")]
    if not parts or ".." in parts or parts[0] == "/":
        return
    to = folder.joinpath(*parts)
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb") as out:
        shutil.copyfileobj(file, out)
