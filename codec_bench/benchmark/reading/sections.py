"""The step `sections`: a song's sections, `START LABEL` a line, `END end` last."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import islice, pairwise
from typing import Any

from codec_bench.benchmark.reading.base import Parsed, Unparsed, quote
from codec_bench.benchmark.reading.patterns import compile_pattern
from codec_bench.messages import Diagnostic

LABELS = ("intro", "verse", "pre-chorus", "chorus", "bridge", "inst", "outro", "silence")
"""The labels of SongFormBench."""
OTHER = "other"
"""Replaces any other label."""
END = "end"
MOST_SECTIONS = 1000

_TIME = r"(?:\d{1,3}:){0,2}\d{1,7}(?:\.\d{1,12})?"
_OBJECT = re.compile(r"\{[^{}]{0,300}\}")
_TRIPLE = compile_pattern("sections", "triple", time=_TIME)
_LINE = re.compile(rf"^[ \t]{{0,9}}({_TIME})s?[ \t]{{1,9}}([A-Za-z][\w -]{{0,60}})\r?$", re.MULTILINE)
_NUMBER = re.compile(r"[\s_-]*\d+$")
_SPELLED = {"prechorus": "pre-chorus", "instrumental": "inst"}


def sections(text: str, fields: Mapping[str, Any]) -> Parsed | Unparsed:
    """A song's sections as published: `0.0 intro`, `12.5 verse`, ..., `201.3 end`.

    They are read from JSON objects with `start`, `end` and `label`; else from lists or tuples of a start, an end and a
    label; else from lines in the published form. A time is in seconds, or minutes and seconds as `1:05.2`. A section
    lasts until the next one begins. `Verse 2` is `verse`, `Pre Chorus` is `pre-chorus`, `instrumental` is `inst`, and a
    label outside `LABELS` is `other`. Unparsed without sections, if one does not begin after the one before it, or if
    the last does not end after it began.
    """
    rows = _objects(text) or _triples(text) or _lines(text)
    if not rows:
        return Unparsed(Diagnostic("no_sections_in_answer", answer=quote(text)))
    starts = [start for start, _, _ in rows]
    end = rows[-1][1]
    if any(after <= before for before, after in pairwise(starts)):
        return Unparsed(Diagnostic("sections_overlap", answer=quote(text)))
    if end is None or end <= starts[-1]:
        return Unparsed(Diagnostic("section_ends_early", answer=quote(text)))
    return Parsed("\n".join([*(f"{start!r} {label}" for start, _, label in rows), f"{end!r} {END}"]))


def _objects(text: str) -> list[tuple[float, float | None, str]]:
    """Parse (start, end, label) of sections from JSON objects, times in seconds."""
    rows: list[tuple[float, float | None, str]] = []
    for match in islice(_OBJECT.finditer(text), MOST_SECTIONS):
        try:
            value = json.loads(match[0])
        except ValueError:
            continue
        start, end = _seconds(value.get("start")), _seconds(value.get("end"))
        if start is not None and end is not None and isinstance(value.get("label"), str):
            rows.append((start, end, _label(value["label"])))
    return rows


def _triples(text: str) -> list[tuple[float, float | None, str]]:
    return [
        (_clock(match[2]), _clock(match[4]), _label(match[6]))
        for match in islice(_TRIPLE.finditer(text), MOST_SECTIONS)
    ]


def _lines(text: str) -> list[tuple[float, float | None, str]]:
    lines = [(_clock(match[1]), match[2].strip()) for match in islice(_LINE.finditer(text), MOST_SECTIONS)]
    ends = [*(start for start, _ in lines[1:]), None]
    return [(start, end, _label(label)) for (start, label), end in zip(lines, ends) if label.lower() != END]


def _seconds(value: Any) -> float | None:
    """Convert a JSON value, a number or `1:05.2`, to seconds; None for others."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if 0 <= value < 1e7 else None
    time = value.strip().removesuffix("s") if isinstance(value, str) else ""
    return _clock(time) if re.fullmatch(_TIME, time) else None


def _clock(time: str) -> float:
    seconds = 0.0
    for digits in time.split(":"):
        seconds = 60 * seconds + float(digits)
    return seconds


def _label(label: str) -> str:
    plain = "-".join(_NUMBER.sub("", label.strip().lower()).replace("_", " ").replace("-", " ").split())
    plain = _SPELLED.get(plain, plain)
    return plain if plain in LABELS else OTHER
