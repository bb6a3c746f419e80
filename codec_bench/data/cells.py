"""Convert cells with sounds or class numbers to clips and class names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.data.hub import Repository
from codec_bench.data.rows import ALIASES
from codec_bench.decoding.decode import SUFFIXES
from codec_bench.decoding.table import RATES
from codec_bench.types import Audio

SOUND_TYPE = "audio"
"""The type of a column of sounds in the list of a table's types."""
_SOUND_WORDS = ("audio", "wav", "speech", "waveform", "sound", "recording")


def sound_feature(feature: Any) -> bool | None:
    """Whether a declared column type of `datasets` is audio or a list of audio.

    None if it may be either; False for images and the like.
    """
    kind = feature.get("_type") if isinstance(feature, Mapping) else type(feature).__name__
    if kind in ("Sequence", "List", "LargeList"):
        return sound_feature(feature["feature"] if isinstance(feature, Mapping) else feature.feature)
    if kind == "list" and feature:
        return sound_feature(feature[0])
    return True if kind == "Audio" else False if kind in ("Image", "Video", "Pdf", "Nifti", "Mesh") else None


def declared_features(schema: Any) -> dict[str, Any]:
    """The column types that `datasets` wrote into a Parquet or Arrow schema."""
    try:
        declared = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError, RecursionError):
        return {}
    return declared if isinstance(declared, dict) else {}


def find_class_names(features: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """The class names of each column with class numbers (`ClassLabel`)."""
    names = {
        column: feature.get("names") if isinstance(feature, Mapping) else getattr(feature, "names", None)
        for column, feature in features.items()
        if (feature.get("_type") if isinstance(feature, Mapping) else type(feature).__name__) == "ClassLabel"
    }
    return {column: list(of) for column, of in names.items() if isinstance(of, (list, tuple))}


def name_class(value: Any, names: Sequence[Any]) -> Any:
    """The name of a class; None for -1 (no class); any other value unchanged."""
    if not isinstance(value, int) or not -1 <= value < len(names):
        return value
    return None if value == -1 else names[value]


def is_sound_name(name: str) -> bool:
    """Whether a column has a usual name for sounds, such as `audio`."""
    plain = name.strip().lower()
    return plain in ALIASES["audio"] or any(word in plain for word in _SOUND_WORDS)


class SoundPaths:
    """Detects columns of text that name sound files.

    A column does so if it is declared to; if its first value has a sound suffix and exists; or if its first value has
    such a suffix, the column's name is usual for sounds, and the table has no other sound.

    Attributes:
        others: whether the table has sound in other columns.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository, self.others = repository, False
        self._known: dict[str, bool] = {}

    def clip(self, column: str, value: Any, table_path: str) -> Any:
        """Convert a cell that names audio files to clips; return other cells unchanged.

        The first value of a column decides whether the column names files.
        """
        if isinstance(value, list):
            return [self.clip(column, item, table_path) for item in value]
        if not isinstance(value, str):
            return value
        if column not in self._known and value:
            self._known[column] = self._names_sound(column, value, table_path)
        if not self._known.get(column):
            return value
        return Clip(self._repository.sound(value, table_path)) if value else None

    def declare(self, column: str) -> None:
        """Declare that a column names sound files."""
        self._known[column] = True

    def _names_sound(self, column: str, value: str, table_path: str) -> bool:
        """Whether the first text of a column is the path of an audio file."""
        if os.path.splitext(value)[1].lower() not in SUFFIXES or "\n" in value:
            return False
        folders = ("", os.path.dirname(table_path))
        there = os.path.isabs(value) and os.path.isfile(value)
        there = there or any(self._repository.has(os.path.normpath(os.path.join(folder, value))) for folder in folders)
        return there or (is_sound_name(column) and not self.others)


def sound_in_memory(value: Any, name: str) -> Clip | None:
    """Convert a cell {bytes, path} or {array, sampling_rate} to a clip, or None.

    Args:
        name: of the clip, if the cell has no path.
    """
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("bytes"), bytes):
        return Clip(value["bytes"], value.get("path") or name)
    rate = next((value[key] for key in RATES if value.get(key)), None)
    if value.get("array") is not None and rate:
        return Clip(Audio(np.asarray(value["array"], np.float32), int(rate)))
    return None


def cell_of(row: Mapping[str, Any], column: str) -> Any:
    """A row's value in a column; `a.b` is key (or list index) `b` of the value in `a`.

    None without such a column. A column that is named `a.b` itself comes first.
    """
    if column in row or "." not in column:
        return row.get(column)
    name, _, rest = column.partition(".")
    inner = row.get(name)
    if isinstance(inner, list):
        inner = {str(at): value for at, value in enumerate(inner)}
    return cell_of(inner, rest) if isinstance(inner, Mapping) else None
