"""Phone and word times of recordings, from the files of forced aligners.

Formats
    a folder    of TextGrid files (Montreal Forced Aligner, Praat): `ID.TextGrid` for each sample, in subfolders if the
                id has a `/`. The tier is called `phones` or `phone`, or ends in `- phones`, or is the only one with
                intervals.
    *.TextGrid  one such file.
    *.ctm       Kaldi's: `ID CHANNEL START DURATION PHONE`, one phone a line.
    *.json      `{"ID": [[START, END, "PHONE"], ...], ...}`.
    Times are in seconds. Intervals without a text are no phones. Of overlapping intervals, the later one counts.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from codec_bench.messages.errors import UserError

_TIERS = ("phones", "phone")
_WORD_TIERS = ("words", "word")
_FORMATS = "a folder of TextGrid files, or a .TextGrid, .ctm or .json file"
_TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<!\S)([-+]?\d[\d.]*(?:[eE][-+]?\d+)?)(?!\S)')
"""A text or number on its own. The words of Praat's long format are no content."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """The phones of one recording.

    Args:
        starts_s, ends_s: float64 `(phones,)`, the starts in rising order.
    """

    starts_s: np.ndarray
    ends_s: np.ndarray
    phones: tuple[str, ...]

    @classmethod
    def of(cls, intervals: Iterable[tuple[float, float, str]]) -> Alignment:
        """Build the alignment of intervals `(start, end, phone)` in seconds, in any order.

        Intervals without a phone are dropped.

        Raises:
            ValueError: an interval does not end after it starts, or starts before 0.
        """
        rows = sorted((start, end, phone.strip()) for start, end, phone in intervals if phone.strip())
        for start, end, phone in rows:
            if not (0 <= start < end < math.inf):
                raise ValueError(f"the phone '{phone}' lasts from {start:g} to {end:g} s")
        starts, ends = (np.array([row[column] for row in rows], np.float64) for column in (0, 1))
        return cls(starts, ends, tuple(row[2] for row in rows))

    def at(self, times_s: np.ndarray) -> np.ndarray:
        """The index of the phone at each time, int64; -1 where there is none."""
        if not self.phones:
            return np.full(len(times_s), -1)
        places = np.searchsorted(self.starts_s, times_s, side="right") - 1
        inside = (places >= 0) & (times_s < self.ends_s[np.maximum(places, 0)])
        return np.where(inside, places, -1)


def read_alignments(path: Path) -> dict[str, Alignment]:
    """Read phone alignments from TextGrid, CTM or JSON files, by sample id.

    Args:
        path: a file, or a folder of TextGrids at any depth.

    Raises:
        UserError: there is no such file, it is of another format, or something in it is wrong.
    """
    if path.is_dir():
        files = sorted(path.rglob("*.TextGrid"))
        alignments = {file.relative_to(path).with_suffix("").as_posix(): _text_grid(file) for file in files}
    elif not path.is_file():
        raise UserError("no_file_of_alignments", path=path, hint=f"name {_FORMATS}")
    elif path.suffix == ".TextGrid":
        alignments = {path.stem: _text_grid(path)}
    elif path.suffix in (".ctm", ".json"):
        listed = (_read_ctm if path.suffix == ".ctm" else _read_json)(path)
        alignments = {name: _alignment(path, rows, name) for name, rows in listed.items()}
    else:
        raise UserError("alignments_format", path=path, hint=f"name {_FORMATS}")
    if not any(alignment.phones for alignment in alignments.values()):
        raise UserError("alignments_without_phones", path=path, hint=f"name {_FORMATS}")
    return alignments


def fingerprint(path: Path) -> str:
    """A SHA-256 hash of the names and bytes of the alignment files, in hexadecimal."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.TextGrid")) if path.is_dir() else [path]:
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _alignment(path: Path, rows: Iterable[tuple[float, float, str]], name: str = "") -> Alignment:
    try:
        return Alignment.of(rows)
    except ValueError as error:
        raise UserError("alignment_times", path=path, name=name or path.stem, cause=error) from error


def _read(path: Path) -> str:
    """Read text in UTF-8, or in UTF-16 with a byte order mark, as Praat writes it."""
    try:
        data = path.read_bytes()
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise UserError("alignments_unreadable", path=path, cause=error) from error


def _read_ctm(path: Path) -> Mapping[str, list[tuple[float, float, str]]]:
    """Parse a CTM file to (begin, end, phone) rows by recording, in seconds."""
    rows_by_name: dict[str, list[tuple[float, float, str]]] = {}
    for number, line in enumerate(_read(path).splitlines(), 1):
        fields = line.split()
        if not fields or fields[0].startswith(";;"):
            continue
        try:
            name, _, start, duration, phone = fields[:5]
            rows_by_name.setdefault(name, []).append((float(start), float(start) + float(duration), phone))
        except ValueError as error:
            where = f"line {number} of the alignments '{path}'"
            raise UserError("alignment_line", place=where, line=line.strip()[:80]) from error
    return rows_by_name


def _read_json(path: Path) -> Mapping[str, list[tuple[float, float, str]]]:
    """Read phones by id from JSON: start, end and name of each."""
    try:
        held = json.loads(_read(path))
        return {
            name: [(float(start), float(end), str(phone)) for start, end, phone in rows] for name, rows in held.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError("alignments_no_mapping", path=path, cause=error) from error


def _text_grid(path: Path) -> Alignment:
    """Read the phones of a TextGrid in Praat's long or short format."""
    tiers = _all_tiers(path)
    named = [rows for name, rows in tiers if name.lower() in _TIERS or name.lower().endswith("- phones")]
    if not named and len(tiers) == 1:
        named = [tiers[0][1]]
    if not named:
        names = ", ".join(f"'{name}'" for name, _ in tiers) or "none"
        raise UserError("no_phone_tier", path=path, known=names)
    return _alignment(path, (row for rows in named for row in rows))


def words_of(path: str) -> list[tuple[float, float, str]] | None:
    """(begin, end, word) of a TextGrid's words in seconds; None without such a tier.

    Raises:
        UserError: it is no TextGrid, or a word does not end after it starts.
    """
    file = Path(path)
    rows = next(
        (rows for name, rows in _all_tiers(file) if name.lower() in _WORD_TIERS or name.lower().endswith("- words")),
        None,
    )
    if rows is None:
        return None
    alignment = _alignment(file, rows)
    return list(zip(alignment.starts_s.tolist(), alignment.ends_s.tolist(), alignment.phones))


def _all_tiers(path: Path) -> list[tuple[str, list[tuple[float, float, str]]]]:
    try:
        return list(_tiers(path))
    except (ValueError, OverflowError) as error:
        raise UserError("alignments_not_whole", path=path) from error


def _tiers(path: Path) -> Iterator[tuple[str, list[tuple[float, float, str]]]]:
    """Yield the interval tiers of a TextGrid: name, and (begin, end, text) in seconds.

    Raises:
        ValueError: the file is damaged.
    """
    tokens = (match for match in _TOKEN.finditer(_read(path)))
    text = lambda: _require_group(next(tokens, None), 1).replace('""', '"')  # noqa: E731
    number = lambda: float(_require_group(next(tokens, None), 2))  # noqa: E731
    if (text(), text()) != ("ooTextFile", "TextGrid"):
        raise ValueError("it is no TextGrid")
    _skip(tokens, 2)  # when the recording begins and ends
    for _ in range(int(number())):
        kind, name = text(), text()
        _skip(tokens, 2)
        count = int(number())
        if kind == "IntervalTier":
            yield name, [(number(), number(), text()) for _ in range(count)]
        else:  # points, of a time and a text each
            _skip(tokens, 2 * count)


def _skip(tokens: Iterator[re.Match[str]], count: int) -> None:
    deque(islice(tokens, count), maxlen=0)


def _require_group(match: re.Match[str] | None, group: int) -> str:
    if match is None or match.group(group) is None:
        raise ValueError("something else stands here")
    return match.group(group)
