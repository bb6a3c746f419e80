"""Data sets of pairs of a likelier and a less likely sound, read as rows.

`zerospeech` (sWUGGY and sBLIMP of the ZeroSpeech challenge of 2021) has `PART/gold.csv` and sounds
`PART/FILENAME.wav`. A row of the table is a sound, with `filename`, `id`, `voice` and `correct` (1 for the preferred
one). A pair shares `id` and `voice`, and `type` and `subtype` if there are such columns.

`story-cloze` (Spoken StoryCloze) has sounds `PART/NUMBER_STORY_correct.wav` and `PART/NUMBER_STORY_incorrect.wav`; a
pair shares STORY.

An incomplete pair is a row with a problem. `audio` is the preferred sound, `other_audio` the other one.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from codec_bench.audio.clip import Clip
from codec_bench.data.hub import Repository
from codec_bench.data.layouts.benchmark_files import FileRows, text_of
from codec_bench.data.streamed import ProblemRow
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError

_PAIR = ("audio", "other_audio")
_REQUIRED_COLUMNS = ("filename", "id", "voice", "correct")
_KEY = ("voice", "type", "subtype", "id")
_STORY = re.compile(r"(?P<number>\d+)_(?P<story>.+)_(?P<side>correct|incorrect)\.wav")
BANDS = ((1, "0"), (5, "1-4"), (20, "5-19"), (100, "20-99"))
"""Bands by a word's count in LibriSpeech, each with its exclusive limit; above the last is `100 and more`.

The limits are those of the challenge's program, whose labels (`1-5`, `6-20`, `21-100`, `>100`) are one too high.
"""


def open_zerospeech(repository: Repository, *, subset: str) -> FileRows:
    """Read one part of the ZeroSpeech challenge of 2021: pairs of sounds.

    A row has the columns of the preferred sound in `gold.csv`, and `band`, the band of its word's frequency.

    Args:
        subset: the folder of the table, such as `lexical/dev`.

    Raises:
        UserError: the table cannot be found or read, or lacks a column.
    """
    table = f"{subset}/gold.csv"
    text = text_of(repository, table)
    try:
        rows = list(csv.DictReader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise UserError("questions_unreadable", listed=table, name=repository.name, cause=error) from error
    columns = list(rows[0]) if rows else []
    lacking = [name for name in _REQUIRED_COLUMNS if name not in columns]
    if lacking:
        raise UserError("table_lacks_column", path=table, name=repository.name, columns=lacking[0])
    parts = [name for name in _KEY if name in columns]
    sounds_of: dict[tuple[str, ...], list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        sounds_of[tuple(row[name] or "" for name in parts)].append(row)
    pairs = [("/".join([subset, *key]), _pair(repository, subset, sounds)) for key, sounds in sounds_of.items()]
    return FileRows(repository, (*_PAIR, *columns, "band"), pairs)


def open_story_cloze(repository: Repository, *, subset: str) -> FileRows:
    """Read Spoken StoryCloze: the right ending in `audio`, the other in `other_audio`.

    Args:
        subset: the folder of the sounds, such as `tSC`.

    Raises:
        UserError: there is no such folder, or no sound of such a name in it.
    """
    sides_of_story: dict[str, dict[str, tuple[int, str]]] = defaultdict(dict)
    for name in _names(repository, subset):
        if (match := _STORY.fullmatch(name)) is not None:
            sides_of_story[match["story"]][match["side"]] = (int(match["number"]), f"{subset}/{name}")
    if not sides_of_story:
        raise UserError("no_story_sounds", name=repository.name, subset=subset)
    stories = sorted(sides_of_story, key=lambda story: min(sides_of_story[story].values()))
    pairs = [(f"{subset}/{story}", _pair_story(repository, story, sides_of_story[story])) for story in stories]
    return FileRows(repository, (*_PAIR, "story"), pairs)


def _pair(repository: Repository, subset: str, sounds: Iterable[Mapping[str, str]]) -> dict[str, Any]:
    """Build the row of a pair from its two lines; `correct` is 1 in one of them."""
    by_side: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for sound in sounds:
        by_side[(sound["correct"] or "").strip()].append(sound)
    held = {label: len(those) for label, those in by_side.items()}
    if held != {"1": 1, "0": 1}:
        counts = " and ".join(f"{count} with correct={label!r}" for label, count in sorted(held.items()))
        return ProblemRow(Diagnostic("pair_sides", subset=subset, counts=counts))
    preferred, other = by_side["1"][0], by_side["0"][0]
    paths = [f"{subset}/{(one['filename'] or '').removesuffix('.wav')}.wav" for one in (preferred, other)]
    return {
        **preferred,
        **dict(zip(_PAIR, (_sound(repository, path) for path in paths))),
        "band": _band(preferred.get("frequency")),
    }


def _pair_story(repository: Repository, story: str, sides: Mapping[str, tuple[int, str]]) -> dict[str, Any]:
    """Build the row of a story with its two sounds, or name the missing one."""
    lacking = [label for label in ("correct", "incorrect") if label not in sides]
    if lacking:
        return ProblemRow(Diagnostic("story_lacks_sound", story=story, sound=lacking[0]))
    return {
        "audio": _sound(repository, sides["correct"][1]),
        "other_audio": _sound(repository, sides["incorrect"][1]),
        "story": story,
    }


def _sound(repository: Repository, path: str) -> Clip | str:
    """A sound, or its path if it is missing."""
    return Clip(repository.local(path)) if repository.has(path) else path


def _names(repository: Repository, subset: str) -> list[str]:
    """The names of the files in a folder of the repository."""
    if repository.root is None:
        return [os.path.basename(file) for file in repository.files if os.path.dirname(file) == subset]
    folder = Path(repository.root, subset)
    if not folder.is_dir():
        raise UserError("no_subset_folder", name=repository.name, subset=subset)
    return [file.name for file in folder.iterdir()]


def _band(frequency: str | None) -> str | None:
    """A word's band of frequency; None if the table has no count."""
    try:
        count = float(frequency or "")
    except ValueError:
        return None
    return next((name for below, name in BANDS if count < below), "100 and more") if count >= 0 else None
