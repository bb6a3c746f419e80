"""What a cell of a table holds: plain values, or sounds as clips."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.audio.decode import SUFFIXES
from codec_bench.audio.table import RATES
from codec_bench.data.hub import Place
from codec_bench.data.manifest import ALIASES
from codec_bench.types import Audio

_SOUND_WORDS = ("audio", "wav", "speech", "waveform", "sound", "recording")


def sound_feature(feature: Any) -> bool | None:
    """Whether a declared type is one of sound (or a list of sounds); None where it does not tell."""
    kind = feature.get("_type") if isinstance(feature, Mapping) else type(feature).__name__
    if kind in ("Sequence", "List", "LargeList"):
        return sound_feature(feature["feature"] if isinstance(feature, Mapping) else feature.feature)
    if kind == "list" and feature:
        return sound_feature(feature[0])
    return True if kind == "Audio" else False if kind in ("Image", "Video", "Pdf", "Nifti", "Mesh") else None


def is_sound_name(name: str) -> bool:
    """Whether a column is called as columns of sound are."""
    plain = name.strip().lower()
    return plain in ALIASES["audio"] or any(word in plain for word in _SOUND_WORDS)


class SoundPaths:
    """Tells which columns of text name sound files.

    A column does where it is declared to, where its first value ends like a sound file and is one, or where the column is called as columns of
    sound are and the table has no other sound.

    Args:
        place: where the files are.

    Attributes:
        others: whether the table has sound in other columns.
    """

    def __init__(self, place: Place) -> None:
        self._place, self.others = place, False
        self._known: dict[str, bool] = {}

    def clip(self, column: str, value: Any, beside: str) -> Any:
        """A value of a column: a clip where the column names sound files (of a list, a list), the value elsewhere.

        Args:
            beside: path of the table that the value stands in.
        """
        if isinstance(value, list):
            return [self.clip(column, item, beside) for item in value]
        if not isinstance(value, str):
            return value
        if column not in self._known and value:
            self._known[column] = self._names_sound(column, value, beside)
        if not self._known.get(column):
            return value
        return Clip(self._place.sound(value, beside)) if value else None

    def declare(self, column: str) -> None:
        """Takes it as said that a column names sound files."""
        self._known[column] = True

    def _names_sound(self, column: str, value: str, beside: str) -> bool:
        if os.path.splitext(value)[1].lower() not in SUFFIXES or "\n" in value:
            return False
        folders = ("", os.path.dirname(beside))
        there = os.path.isabs(value) and os.path.isfile(value)
        there = there or any(self._place.has(os.path.normpath(os.path.join(folder, value))) for folder in folders)
        return there or (is_sound_name(column) and not self.others)


def sound_in_memory(value: Any, name: str) -> Clip | None:
    """The sound of a cell that holds it ({bytes, path} with bytes, or {array, sampling_rate}), or None."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("bytes"), bytes):
        return Clip(value["bytes"], value.get("path") or name)
    rate = next((value[key] for key in RATES if value.get(key)), None)
    if value.get("array") is not None and rate:
        return Clip(Audio(np.asarray(value["array"], np.float32), int(rate)))
    return None
