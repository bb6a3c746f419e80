"""Manifests and folders behind URLs. Their sound is read when the run needs it."""

from __future__ import annotations

import hashlib
import os
import posixpath
from collections.abc import Iterator

from codec_bench.config.paths import cache_folder
from codec_bench.data.rows import Row, distinct_ids, without_suffix
from codec_bench.decoding.decode import SUFFIXES
from codec_bench.decoding.remote import filesystem, is_url, read_remote, shown, tried
from codec_bench.messages.errors import UserError, on_disk

_WEB = ("http://", "https://")


def joined(folder: str, path: str) -> str:
    """Join a manifest's folder and a path in it; either may be a URL."""
    if is_url(path):
        return path
    if is_url(folder):
        protocol, _, rest = folder.partition("://")
        return f"{protocol}://{posixpath.normpath(posixpath.join(rest, path))}"
    return os.path.normpath(os.path.join(folder, path))


def fetched(url: str) -> str:
    """Copy a small file, such as a manifest, into the cache, anew each time.

    Returns:
        The path of the copy, with the URL's file name.

    Raises:
        UserError: it is missing, may not be read, or cannot be stored.
    """
    data = read_remote(url)
    name = posixpath.basename(shown(url))
    content = hashlib.blake2b(data, digest_size=16).hexdigest()
    path = cache_folder() / "manifests" / content / name
    with on_disk("not_copied", path=shown(url), to=path.parent):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{name}.{os.getpid()}.part")
            temporary.write_bytes(data)
            os.replace(temporary, path)
    return str(path)


def read_listing(url: str) -> Iterator[Row]:
    """Yield a row per sound file below a URL, sorted by path; ids are as in a folder.

    Raises:
        UserError: there is no such folder, it may not be listed, or the protocol lists no files.
    """
    if url.startswith(_WEB):
        raise UserError(
            "url_lists_no_files",
            url=shown(url),
            hint="name a manifest, which ends in .jsonl, .csv, .tsv or .parquet, or tar files",
        )
    system = filesystem(url)
    root = system._strip_protocol(url).rstrip("/")
    protocol = url.partition("://")[0]
    names = []
    for path in tried(url, lambda: system.find(root)):
        name = path[len(root) + 1 :]
        if posixpath.splitext(name)[1].lower() in SUFFIXES and not posixpath.basename(name).startswith("."):
            names.append(name)
    names.sort()
    ids = distinct_ids(names, lambda name: (without_suffix(name), name))
    for number, (name, id) in enumerate(zip(names, ids), 1):
        yield Row(number, id, name, f"{protocol}://{root}/{name}")
