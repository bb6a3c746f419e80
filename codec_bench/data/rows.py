"""One row of a data set, and the rules that give it a unique id.

An unusable row becomes a sample without audio, with the reason in `extra` under `PROBLEM`. So every count says how many
items failed and why.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import posixpath
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from codec_bench.messages import Diagnostic
from codec_bench.types import Sample

ALIASES = {
    "id": ("id",),
    "audio": ("audio", "path", "wav", "audio_path", "audio_filepath", "file_name", "audio_file_name"),
    "text": ("text", "transcript", "transcription", "sentence"),
    "speaker": ("speaker", "speaker_id", "spk", "client_id"),
    "language": ("language", "lang", "locale"),
    "estimate": ("estimate", "generated", "hypothesis_audio"),
}
"""The names that a column may have, by the field that it fills. The first that exists counts."""

Item = TypeVar("Item")
PROBLEM = "problem"
NOTHING: Mapping[str, Any] = {}  # shared by every sample without further columns: a dictionary each would double them


class Position(NamedTuple):
    """The position of a row in its file, for messages: its number or key.

    Args:
        unit: `line`, `row` or `sample`.
    """

    unit: str
    number: int | str
    file: str

    def problem(self, cause: Diagnostic) -> Diagnostic:
        """A problem of the row as a diagnostic with its position."""
        return Diagnostic("row_problem", unit=self.unit, number=self.number, file=self.file, cause=cause)


class Row(NamedTuple):
    """One item of a manifest or folder.

    Args:
        number: its line, row or position, from 1.
        id: as written, or None if the data set gives no id.
        name: the path of the audio as written, or None. A row without an id gets one from this name.
        audio, estimate: absolute paths or None.
        problem: why the row cannot be used, or None.
        lacks_sound: whether the problem is a missing sound alone, and the other fields can be used.
    """

    number: int
    id: str | None
    name: str | None = None
    audio: str | None = None
    text: str | None = None
    speaker: str | None = None
    language: str | None = None
    estimate: str | None = None
    extra: Mapping[str, Any] = NOTHING
    problem: Diagnostic | None = None
    lacks_sound: bool = False


class DoubleKey(ValueError):
    """A JSON object has a key twice."""


def parse_json(text: str) -> Any:
    """Parse a JSON value; a repeated key has no clear value.

    Raises:
        DoubleKey: an object has a key twice. json.JSONDecodeError: it is no JSON.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary of JSON pairs; raise DoubleKey if a key repeats."""
    held = dict(pairs)
    if len(held) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise DoubleKey(Diagnostic("key_twice", key=twice))
    return held


def rank(seed: object, key: object) -> bytes:
    """A key's rank in the order of a seed. A random part has the lowest ranks."""
    return hashlib.blake2b(f"{seed}:{key}".encode(), digest_size=16).digest()


def random_part(items: Sequence[Item], key: Callable[[Item], str], count: int, seed: int) -> list[Item]:
    """`count` items, selected by the seed and their keys, in their original order."""
    chosen = heapq.nsmallest(count, range(len(items)), key=lambda index: rank(seed, key(items[index])))
    return [items[index] for index in sorted(chosen)]


def without_suffix(name: str) -> str:
    """`a/b.c.wav` to `a/b.c`."""
    return os.path.splitext(name)[0]


def stem(name: str) -> str:
    """`a/b.c.wav` to `b.c`."""
    return without_suffix(posixpath.basename(name.replace(os.sep, "/")))


def tails(name: str) -> list[str]:
    """A path's ends without suffix, then the path: `c`, `b/c`, `a/b/c.wav`."""
    parts = without_suffix(name).replace(os.sep, "/").split("/")
    return ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)] + [name]


def distinct_ids(names: Iterable[str], forms: Callable[[str], Sequence[str]]) -> list[str]:
    """Give every name the shortest of its forms that no other name has.

    Args:
        names: such as `a/x.wav`. Equal names get equal ids.
        forms: the possible ids of a name, from the shortest to a unique one.

    Returns:
        The ids, in the order of the names.
    """
    names = list(names)
    level = dict.fromkeys(names, 0)
    ids = {name: forms(name)[0] for name in level}
    while True:
        uses = Counter(ids.values())
        # This ends: the last forms are unique, so of two names with one form, one has a longer form left.
        growing = [name for name, id in ids.items() if uses[id] > 1 and level[name] + 1 < len(forms(name))]
        if not growing:
            return [ids[name] for name in names]
        for name in growing:
            level[name] += 1
            ids[name] = forms(name)[level[name]]


def to_samples(rows: Iterable[Row], data_name: str, *, unit: str, limit: int | None) -> list[Sample]:
    """Convert rows to samples with unique ids, in the order of the rows.

    A row without an id gets the stem of its audio, or a longer end of its path if the stem is not unique. Of several
    rows with one id, all but the first become problems.

    Args:
        rows: read once, and only as far as needed.
        data_name: short name of the data set for messages, such as `manifest.jsonl`.
        unit: the word for its rows in messages: `line`, `row` or `sample`.
        limit: at most this many samples, from the front; None takes all.
    """
    samples: list[Sample] = []
    unnamed: dict[int, str] = {}
    numbers = array("q")
    for row in rows:
        # Rows without an id are all read, whatever the limit: an id must be unique among all rows.
        if limit is not None and len(samples) >= limit and not unnamed:
            break
        extra = row.extra if row.problem is None else {**row.extra, PROBLEM: row.problem}
        audio, estimate = (row.audio, row.estimate) if row.problem is None else (None, None)
        if row.id is None and row.name is not None:
            unnamed[len(samples)] = row.name
        name = row.id if row.id is not None else f"{data_name}:{row.number}"
        samples.append(Sample(name, audio, row.text, row.speaker, row.language, estimate, extra))
        numbers.append(row.number)
    for index, name in zip(unnamed, distinct_ids(unnamed.values(), tails)):
        samples[index] = replace(samples[index], id=name)
    if limit is not None:
        del samples[limit:]
    first: dict[str, int] = {}
    repeats = [index for index, sample in enumerate(samples) if first.setdefault(sample.id, index) != index]
    copies: dict[str, int] = {}
    for index in repeats:
        sample = samples[index]
        there = numbers[first[sample.id]]
        cause = Diagnostic("id_repeated", id=sample.id, unit=unit, first=there)
        reason = Position(unit, numbers[index], data_name).problem(cause)
        copy = copies.get(sample.id, 1) + 1
        while (name := f"{sample.id}#{copy}") in first:
            copy += 1
        copies[sample.id] = copy
        first[name] = index
        samples[index] = replace(sample, id=name, audio=None, estimate=None, extra={PROBLEM: reason, **sample.extra})
    return samples
