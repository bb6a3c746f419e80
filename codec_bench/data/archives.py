"""Archives of sound files, unpacked once into the user's cache.

A compressed archive is read to its end, to verify its checksum, before any file of it counts. Its unpacked size is
limited to 100 times its own size, and at least 1 GiB; CODEC_BENCH_MOST_UNPACKED_GIB sets another limit. The key is a
hash of the content. Nothing is written outside of its folder, and links are ignored.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from codec_bench.config.file_content import file_hash
from codec_bench.config.paths import cache_folder
from codec_bench.messages.errors import UserError, on_disk

LIMIT_VARIABLE = "CODEC_BENCH_MOST_UNPACKED_GIB"
_MOST_RATIO, _LEAST_LIMIT_BYTES = 100, 1 << 30
_PACKERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
_NAME_DIGITS = 32
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")


def is_archive(name: str) -> bool:
    """Whether a file is an archive, by its name."""
    return name.lower().endswith(SUFFIXES)


def unpacked(archive: str) -> Path:
    """Unpack an archive into the cache on first use; return the folder of its files.

    Args:
        archive: path of a ZIP or tar file, which may be compressed.

    Raises:
        UserError: the archive cannot be read, or there is no room for its files.
    """
    with on_disk("file_not_readable", path=archive):
        content, size = file_hash(archive), os.path.getsize(archive)
    folder = cache_folder() / "unpacked" / content[:_NAME_DIGITS]
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            complete = Path(scratch, "files")
            complete.mkdir()
            left = _most_bytes(size)
            for name, file in _members(archive):
                with file:
                    left -= _write(complete, name, file, left)
                if left < 0:
                    raise UserError(
                        "archive_too_large",
                        archive=archive,
                        most_gib=_most_bytes(size) / 2**30,
                        size_bytes=size,
                        hint=f"if that is right, set {LIMIT_VARIABLE} to the GiB that it may take",
                    )
            if file_hash(archive) != content:
                raise UserError("archive_changed", archive=archive, hint="run the same command again")
            try:
                complete.rename(folder)
            except OSError:
                if not folder.is_dir():  # or another process has unpacked it meanwhile
                    raise
    except UserError:
        raise
    except (OSError, EOFError, *_DAMAGE, NotImplementedError, RuntimeError, ValueError) as error:
        hint = f"its files go to {folder.parent}; another place is set with CODEC_BENCH_CACHE"
        raise UserError("archive_damaged", archive=archive, cause=error, hint=hint) from error
    return folder


def _members(archive: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the ordinary files of an archive in order: (name, opened file)."""
    if archive.lower().endswith(".zip"):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if not info.is_dir():
                    yield info.filename, opened.open(info)
        return
    with open(archive, "rb") as file:
        head = file.read(6)
    opener = next((opener for magic, opener in _PACKERS.items() if head.startswith(magic)), open)
    with opener(archive, "rb") as stream:
        with tarfile.open(fileobj=stream, mode="r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is not None:
                    yield member.name, content
            if opener is open and not _has_end_mark(stream, tar.offset):
                raise tarfile.ReadError("the mark of its end is missing")
        while stream.read(1 << 20):  # the checksum follows the last member
            pass


def _has_end_mark(stream: IO[bytes], at: int) -> bool:
    stream.seek(at)
    return stream.read(tarfile.BLOCKSIZE) == bytes(tarfile.BLOCKSIZE)


def _most_bytes(packed: int) -> float:
    """The most bytes that an archive of `packed` bytes may unpack to, against bombs."""
    limit_gib = os.environ.get(LIMIT_VARIABLE, "")
    try:
        limit = float(limit_gib) * 2**30 if limit_gib else max(_LEAST_LIMIT_BYTES, _MOST_RATIO * packed)
    except ValueError:
        limit = 0.0
    if not limit > 0:  # also "nan"
        raise UserError("limit_not_a_number", variable=LIMIT_VARIABLE, value=limit_gib)
    return limit


def _write(folder: Path, name: str, file: IO[bytes], most: float) -> int:
    """Write a file of an archive below a folder; return the number of bytes.

    Args:
        name: in the archive; one that leads out of the folder is not written.
        most: writing stops beyond so many bytes.
    """
    parts = [component for component in PurePosixPath(name.replace("\\", "/")).parts if component not in ("", ".")]
    if not parts or ".." in parts or parts[0] == "/":
        return 0
    to = folder.joinpath(*parts)
    to.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with to.open("wb") as out:
        while count <= most and (block := file.read(1 << 20)):
            count += out.write(block)
    return count
