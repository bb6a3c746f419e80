"""A folder as a data set: one row for every sound file below it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from codec_bench.data.rows import Row, distinct_ids, without_suffix
from codec_bench.decoding.decode import SUFFIXES
from codec_bench.messages import Diagnostic

RECORD = "run.sqlite"
"""The file that makes a folder the folder of a run."""


def all_files(folder: str) -> Iterator[str]:
    """The files below `folder`, as relative paths with `/`.

    Links to folders are followed, and each folder is visited once. Names that begin with a dot are skipped (thumbnails,
    version control, companion files). So are the files of a run, next to its record or in `audio`: its estimates are no
    data.
    """
    seen = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        status = os.stat(here)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if RECORD in files and "audio" in folders:
            folders.remove("audio")
        inside = os.path.relpath(here, folder).replace(os.sep, "/")
        for name in files:
            if not name.startswith(".") and (RECORD not in files or is_sound(name)):
                yield name if inside == "." else f"{inside}/{name}"


def is_sound(name: str) -> bool:
    """Whether a name has the suffix of a sound file."""
    return os.path.splitext(name)[1].lower() in SUFFIXES


def sound_files(folder: str) -> Iterator[str]:
    """The sound files below `folder`, by suffix, as `all_files` yields them."""
    return filter(is_sound, all_files(folder))


def read_folder(folder: str, names: Iterable[str] | None = None) -> Iterator[Row]:
    """Yield a row per audio file below a folder, sorted by path.

    The id is the path without its suffix. Files that differ only in the suffix keep it: `a.wav` and `a.flac` are two
    items. A file whose name is not UTF-8 gives a row with a problem.

    Args:
        names: the files, if they are known already.
    """
    names = sorted(sound_files(folder) if names is None else names)
    ids = distinct_ids(names, lambda name: (without_suffix(name), name))
    for number, (name, id) in enumerate(zip(names, ids), 1):
        problem = None
        if not name.isascii():
            shown = name.encode("utf-8", "backslashreplace").decode()
            if shown != name:  # an id must be text, in a record and in a table
                id, problem = shown, Diagnostic("file_name_not_utf8", file=shown)
        yield Row(number, id, name, os.path.join(folder, name), problem=problem)
