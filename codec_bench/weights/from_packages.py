"""Finds checkpoints in installed packages, by the digests in the packages' RECORD.

RECORD lists size and SHA-256 of each file, so a published file is found in any package, without reading it.
"""

from __future__ import annotations

import base64
import re
import sys
from functools import cache
from pathlib import Path

from codec_bench.weights.catalogue import Checkpoint

_LARGE = re.compile(rb",\d{6,}\r?$", re.MULTILINE)
"""The end of a line about a file of 100,000 bytes or more."""
_LINE = re.compile(rb"(.+),sha256=([\w-]{43})=*")


def folder_in_a_package(entry: Checkpoint) -> Path | None:
    """Return the folder of an installed package that holds a checkpoint, or None.

    The checkpoint's first file must have the digest of the catalogue, and each other file the size of the catalogue.
    """
    first = entry.files[0]
    if first.sha256 is None:
        return None
    digest = base64.urlsafe_b64encode(bytes.fromhex(first.sha256)).rstrip(b"=")
    for packages, name in _installed().get(digest, ()):
        path = packages / name.decode().strip('"')
        if not path.as_posix().endswith(f"/{first.path}"):
            continue
        folder = path.parents[len(Path(first.path).parts) - 1]
        here = entry.inside(folder)
        sizes = ((entry.variant(name), (folder / name).stat().st_size) for name in here or ())
        if here is not None and all(known is None or known.size in (None, size) for known, size in sizes):
            return folder
    return None


@cache
def _installed() -> dict[bytes, list[tuple[Path, bytes]]]:
    """Map SHA-256 (base64) of large files to package folder and path."""
    by_digest: dict[bytes, list[tuple[Path, bytes]]] = {}
    for packages in map(Path, dict.fromkeys(sys.path)):
        # Bytes, because `importlib.metadata` decodes 7 MB of them, which takes longer than all else here.
        for listed in packages.glob("*.dist-info/RECORD"):
            try:
                record = listed.read_bytes()
            except OSError:  # of another user, or just uninstalled
                continue
            for end in _LARGE.finditer(record):
                line = _LINE.fullmatch(record, record.rfind(b"\n", 0, end.start()) + 1, end.start())
                if line is not None:
                    by_digest.setdefault(line[2], []).append((packages, line[1]))
    return by_digest
