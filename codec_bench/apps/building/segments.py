"""Whole recordings, and segments that a model cuts at changes of topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from codec_bench.apps.building.candidates import ask_for_topics, read_starts
from codec_bench.apps.building.item import Dropped, Failure
from codec_bench.apps.building.recipe import Topics
from codec_bench.messages import Diagnostic
from codec_bench.types import Request, Sample


@dataclass(frozen=True, slots=True)
class Segment:
    """The subject of a question.

    Args:
        number: of the segment, from 1; 0 for a whole recording.
        start_s, end_s: its position; None is the end of the recording.
        text: the segment's transcript; empty for a whole recording.
        problem: why no question can be asked about it; None if it can.
    """

    sample: Sample
    number: int = 0
    start_s: float = 0.0
    end_s: float | None = None
    text: str = ""
    problem: Failure | None = None

    @property
    def key(self) -> str:
        """The id of the recording, with the number of the segment."""
        name = self.sample.id.replace("/", "-")
        return f"{name}-s{self.number:02d}" if self.number else name


def cut(sample: Sample, topics: Topics, ask: Callable[[Request], str]) -> list[Segment]:
    """Cut a recording at topics; one that cannot be cut is a segment with a problem."""
    try:
        lines = _lines(sample.extra.get(topics.lines))
        texts = [line["text"] for line in lines]
        starts = (
            list(range(1, len(lines) + 1)) if topics.by is None else read_starts(ask(ask_for_topics(texts)), len(lines))
        )
    except Dropped as dropped:
        return [Segment(sample, problem=replace(dropped.failure, step="topics"))]
    segments = []
    for number, (first, last) in enumerate(zip(starts, [*(one - 1 for one in starts[1:]), len(lines)]), 1):
        begin, end = lines[first - 1]["start_s"], lines[last - 1]["end_s"]
        text = " ".join(line["text"] for line in lines[first - 1 : last])
        segments.append(Segment(sample, number, begin, end, text, _length_problem(end - begin, topics)))
    return segments


def _length_problem(seconds: float, topics: Topics) -> Failure | None:
    if seconds < topics.least_s:
        return Failure("topics", Diagnostic("segment_too_short"), f"{seconds:.1f} s")
    return Failure("topics", Diagnostic("segment_too_long"), f"{seconds:.1f} s") if seconds > topics.most_s else None


class _TimedLine(TypedDict):
    """A transcript line with its times."""

    start_s: float
    end_s: float
    text: str


def _lines(value: Any) -> Sequence[_TimedLine]:
    """Validate the lines of a recording; raises Dropped."""
    try:
        lines = json.loads(value) if isinstance(value, str) else value
        candidates: list[_TimedLine] = [
            {"start_s": float(line["start_s"]), "end_s": float(line["end_s"]), "text": str(line["text"])}
            for line in lines or ()
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Dropped(Failure("topics", Diagnostic("lines_unreadable"), f"{type(error).__name__}: {error}")) from error
    times = [time for line in candidates for time in (line["start_s"], line["end_s"])]
    if not candidates or times != sorted(times) or times[0] < 0:
        raise Dropped(Failure("topics", Diagnostic("lines_out_of_order")))
    return candidates
