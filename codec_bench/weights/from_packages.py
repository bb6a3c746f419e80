"""Checkpoints that lie in installed packages, found by the digests in the packages' lists of files.

A package says in its RECORD which files it installed, with size and SHA-256 of each. So a published file is found whatever the
package that carries it is called, and no file is read for it.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

from codec_bench.weights.catalogue import Checkpoint

_LARGE = re.compile(rb",sha256=([\w-]{43})=*,\d{6,}\r?$", re.MULTILINE)
"""The end of a line about a file of at least 100,000 bytes: packages have many smaller ones, and few are weights."""


def folder_in_a_package(entry: Checkpoint) -> Path | None:
    """The folder of an installed package that holds a checkpoint, or None.

    The checkpoint's first file must have the digest of the catalogue, and each other file the size of the catalogue.
    """
    first = entry.files[0]
    if first.sha256 is None:
        return None
    digest = base64.urlsafe_b64encode(bytes.fromhex(first.sha256)).rstrip(b"=")
    for distribution, name in _installed().get(digest, ()):
        path = Path(str(distribution.locate_file(name.decode().strip('"'))))
        if not path.as_posix().endswith(f"/{first.path}"):
            continue
        folder = path.parents[len(Path(first.path).parts) - 1]
        here = entry.inside(folder)
        sizes = ((entry.variant(name), (folder / name).stat().st_size) for name in here or ())
        if here is not None and all(known is None or known.size in (None, size) for known, size in sizes):
            return folder
    return None


@cache
def _installed() -> dict[bytes, list[tuple[Distribution, bytes]]]:
    """The large files of all installed packages by their SHA-256 as packages write it, in base64: each with its package."""
    found: dict[bytes, list[tuple[Distribution, bytes]]] = {}
    for distribution in distributions():
        record = (distribution.read_text("RECORD") or "").encode()
        for line in _LARGE.finditer(record):
            path = record[record.rfind(b"\n", 0, line.start()) + 1 : line.start()]
            found.setdefault(line[1], []).append((distribution, path))
    return found
