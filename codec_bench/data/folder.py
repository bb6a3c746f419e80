"""A folder as a data set: one row for every sound file below it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from codec_bench.data.rows import Row, distinct_ids, without_suffix
from codec_bench.decoding.decode import SUFFIXES

RECORD = "run.sqlite"
"""The file that makes a folder the folder of a run."""


def sound_files(folder: str) -> Iterator[str]:
    """The sound files below `folder`, told by their suffix. The paths are relative to `folder`, with `/`.

    Links to folders are followed, and each folder is visited once. Names that begin with a dot are skipped: they are
    thumbnails, version control, and the companion files that some systems write beside each file. So is the sound that
    a run keeps (`audio` beside its record): a run folder below the data would make its estimates data of the next run.
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
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in SUFFIXES:
                yield name if inside == "." else f"{inside}/{name}"


def read_folder(folder: str) -> Iterator[Row]:
    """One row per sound file, sorted by path.

    The id is the path without its suffix. Files that differ only in the suffix keep it: `a.wav` and `a.flac` are two
    items. A file whose name is not UTF-8 gives a row with a problem.
    """
    names = sorted(sound_files(folder))
    ids = distinct_ids(names, lambda name: (without_suffix(name), name))
    for number, (name, id) in enumerate(zip(names, ids), 1):
        problem = None
        if not name.isascii():
            shown = name.encode("utf-8", "backslashreplace").decode()
            if shown != name:  # an id must be text, in a record and in a table
                id, problem = shown, f"the name of the file '{shown}' is not UTF-8"
        yield Row(number, id, name, os.path.join(folder, name), problem=problem)
