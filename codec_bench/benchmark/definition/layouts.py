"""Data sets that are not tables, read as rows.

`minimax` (MiniMaxAI/TTS-Multilingual-Test-Set) has these files:
    `text/LANGUAGE.txt`: one `SPEAKER|SENTENCE` a line.
    `speaker/LANGUAGE/SPEAKER/*.mp3`: recordings of the speaker's voice; the first by name is used.
    `speaker/prompt_text.txt`: the words of these recordings, one `FILE.mp3|TEXT` a line.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.data.hub import PREFIX, Place, find_place, folder_place
from codec_bench.errors import UserError

_SPOKEN = "speaker/prompt_text.txt"
COLUMNS = ("text", "audio", "prompt_text", "speaker", "language")


class FileRows:
    """Rows that were read from files; iterating gives `(key, row)`.

    Args:
        name, revision: name and revision of the data set.
        columns: the columns that every row has.
        rows: `(key, row)` for each row.

    Attributes:
        name, revision, columns: as given.
        total: how many rows there are.
    """

    def __init__(
        self, name: str, revision: str | None, columns: tuple[str, ...], rows: list[tuple[str, dict[str, Any]]]
    ) -> None:
        self.name, self.revision, self.columns, self._rows = name, revision, columns, rows
        self.total = len(rows)

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        return iter(self._rows)


def open_minimax(
    where: str,
    *,
    language: str,
    revision: str | None = None,
    mirror: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    seed: int | None = None,
) -> FileRows:
    """The sentences of one language, each with a recording of its speaker.

    Args:
        where: `hf:REPOSITORY` or a folder.
        language: the language as its file is called, such as `english`.
        revision, mirror: as for `open_table`.
        limit: the highest number of sentences; None for all.
        seed: with a limit, take a random part that this seed determines; None takes the first sentences.

    Raises:
        UserError: the files cannot be found.
    """
    if where.startswith(PREFIX):
        place = find_place(where.removeprefix(PREFIX), revision, mirror)
    else:
        path = os.path.abspath(os.path.expanduser(where))
        if not os.path.isdir(path):
            raise UserError(f"there is no folder '{path}'")
        place = folder_place(path, os.path.basename(path), revision)
    files = _files(place)
    sentences = f"text/{language}.txt"
    if sentences not in files:
        there = sorted(file[5:-4] for file in files if file.startswith("text/") and file.endswith(".txt"))
        raise UserError(f"'{where}' has no {sentences}", hint=f"it has {', '.join(there) or 'no text/LANGUAGE.txt'}")
    spoken_in = dict(_pairs(place, _SPOKEN)) if _SPOKEN in files else {}
    prompts: dict[str, Clip | None] = {}
    spoken: dict[str, str | None] = {}
    rows = []
    for number, (speaker, text) in enumerate(_pairs(place, sentences), 1):
        if speaker not in prompts:
            file = _prompt(files, speaker)
            prompts[speaker] = None if file is None else Clip(place.local(file))
            spoken[speaker] = None if file is None else spoken_in.get(os.path.basename(file))
        row = {
            "text": text,
            "audio": prompts[speaker],
            "prompt_text": spoken[speaker],
            "speaker": speaker,
            "language": language,
        }
        rows.append((f"{language}-{number:03d}", row))
    return FileRows(place.name, place.revision, COLUMNS, _part(rows, limit, seed))


def _files(place: Place) -> frozenset[str]:
    """Paths of the files, from the repository's root."""
    if place.root is None:
        return place.files
    root = Path(place.root)
    return frozenset(
        file.relative_to(root).as_posix() for part in ("text", "speaker") for file in root.glob(f"{part}/**/*")
    )


def _pairs(place: Place, file: str) -> Iterator[tuple[str, str]]:
    """Left and right of every line of the form `LEFT|RIGHT`."""
    for line in Path(place.local(file)).read_text(encoding="utf-8-sig").splitlines():
        left, bar, right = line.partition("|")
        if bar and left.strip():
            yield left.strip(), right.strip()


def _prompt(files: frozenset[str], speaker: str) -> str | None:
    """The first recording of a speaker; the speaker `LANGUAGE_NAME` has a folder in the folder of the language."""
    inside = f"speaker/{speaker.rpartition('_')[0]}/{speaker}/"
    return min((file for file in files if file.startswith(inside) and file.endswith(".mp3")), default=None)


def _part(rows: list[Any], limit: int | None, seed: int | None) -> list[Any]:
    if limit is None or limit >= len(rows):
        return rows
    if seed is None:
        return rows[:limit]

    def rank(index: int) -> bytes:
        return hashlib.blake2b(f"{seed}:{rows[index][0]}".encode(), digest_size=16).digest()

    return [rows[index] for index in sorted(heapq.nsmallest(limit, range(len(rows)), key=rank))]
