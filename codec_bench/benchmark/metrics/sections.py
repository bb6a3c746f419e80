"""`section_accuracy`, `boundary_f1[SECONDS]`: an answer's sections of a song.

The answer has the form of the step `sections`: `START LABEL` a line, and `END end` at last. `pre-chorus` counts as
`verse` everywhere, as in the published evaluation with seven labels.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right

import numpy as np

from codec_bench.benchmark.metrics.base import Answer, SeparateMetric
from codec_bench.benchmark.reading.sections import END
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName
from codec_bench.types import Score

SECTIONS = "sections"
"""The field of the expected sections: a list of mappings with `start` (seconds) and `label`; the last label is `end`.
"""
OFFICIAL = "official/songformer"
TOLERANCES = ("0.5", "3")
_SOURCE = "github.com/ASLP-lab/SongFormer 139b2aa, src/SongFormer"

Song = list[tuple[float, str]]


class _OfSections(SeparateMetric):
    """Compares an answered division of a song into sections with the expected one."""

    needs = (SECTIONS,)
    paper = "Hao et al.: SongFormer, 2025"

    def _one(self, answer: Answer) -> Score:
        """Score one answer; undefined if either division is invalid."""
        expected = _expected(answer.fields[SECTIONS])
        if expected is None:
            return Score.undefined(Diagnostic("no_sections", id=answer.id, end=END), self.protocol)
        sections_answered = _song_of(answer.text)
        if sections_answered is None:
            return Score.undefined(Diagnostic("answer_not_sections", id=answer.id), self.protocol)
        value = self._value(expected, sections_answered)
        if value is None:
            return Score.undefined(Diagnostic("no_shared_time", id=answer.id), self.protocol)
        return Score.ok(value, self.protocol)

    def _value(self, expected: Song, sections_answered: Song) -> float | None:
        raise NotImplementedError


class SectionAccuracy(_OfSections):
    """The share of a song's time with the right label, 0 to 1. Higher is better.

    Time of the song that the answer does not cover is wrong. `official/songformer` excludes that time (one right
    section is 1), and compares `end` with `end` if the answer begins after the song.

    Args:
        variant: None, or `official/songformer`.
    """

    def __init__(self, variant: str | None = None) -> None:
        if variant not in (None, OFFICIAL):
            raise UnknownName("section_variant", str(variant), [OFFICIAL])
        self._official = variant is not None
        self.name = "section_accuracy" + (f"[{variant}]" if variant else "")
        self.source = f"{_SOURCE}/postprocessing/calc_acc.py, exactly" if variant else "the project's own rule"
        self.protocol = f"{'section_accuracy' if variant is None else f'section_accuracy/{variant}'}-1"

    def _value(self, expected: Song, sections_answered: Song) -> float | None:
        """Compute the share of the song's time that has the right label."""
        if self._official:
            return _over_shared_time(expected, sections_answered)
        starts, ends = [start for start, _ in sections_answered], sections_answered[-1][0]
        right = 0.0
        for (start, label), (end, _) in itertools.pairwise(expected):
            cuts = [start, *(cut for cut in (*starts, ends) if start < cut < end), end]
            for here, after in itertools.pairwise(cuts):
                at = bisect_right(starts, here) - 1
                right += (after - here) * (at >= 0 and sections_answered[at][1] == label)
        return right / (expected[-1][0] - expected[0][0])


class BoundaryF1(_OfSections):
    """F1 of section boundaries within a tolerance, 0 to 1. Higher is better.

    The beginning of the first section and the end of the last are boundaries too. Boundaries are matched one to one, as
    many as possible. The tolerances 0.5 and 3 give the published HR.5F and HR3F.

    Args:
        variant: the tolerance in seconds, one of `TOLERANCES`.
    """

    source = (
        f"{_SOURCE}/evaluation/eval_infer_results.py, and mir_eval 0.8.2 segment.detection(trim=False): within 1e-12"
    )

    def __init__(self, variant: str = "0.5") -> None:
        if variant not in TOLERANCES:
            raise UnknownName("boundary_tolerance", variant, TOLERANCES)
        self._tolerance_s = float(variant)
        self.name = f"boundary_f1[{variant}]"
        self.protocol = f"boundary_f1/{variant}-1"

    def _value(self, expected: Song, sections_answered: Song) -> float | None:
        """Compute the F1 of boundaries matched within the tolerance."""
        there, named = (
            np.unique(np.round([time for time, _ in boundaries], 5)).tolist()
            for boundaries in (expected, sections_answered)
        )
        hits = at = 0
        for time in named:  # both are sorted, so the first fitting boundary is the best match
            while at < len(there) and there[at] < time - self._tolerance_s:
                at += 1
            if at < len(there) and there[at] <= time + self._tolerance_s:
                hits, at = hits + 1, at + 1
        return 2 * hits / (len(there) + len(named))


def _over_shared_time(expected: Song, sections_answered: Song) -> float | None:
    """The share of right labels in the time that both divisions cover, or None.

    Times are rounded to milliseconds.
    """
    sides = (expected, sections_answered)
    starts = [[int(round(time, 3) * 1000) for time, _ in segments] for segments in sides]
    first, last = max(segments[0] for segments in starts), min(segments[-1] for segments in starts)
    cuts = sorted({first, last, *(cut for segments in starts for cut in segments if first <= cut <= last)})
    right = 0
    for here, after in itertools.pairwise(cuts):
        labels = {segments[bisect_right(times, here) - 1][1] for segments, times in zip(sides, starts)}
        right += (after - here) * (len(labels) == 1)
    return right / (cuts[-1] - cuts[0]) if len(cuts) > 1 else None


def _expected(listed: object) -> Song | None:
    try:
        song = [(float(one["start"]), _seven(str(one["label"]))) for one in listed]  # type: ignore[attr-defined]
    except (TypeError, KeyError, ValueError):
        return None
    return song if _is_song(song) else None


def _song_of(text: str) -> Song | None:
    try:
        song = [(float(start), _seven(label)) for start, label in (line.split() for line in text.splitlines())]
    except ValueError:
        return None
    return song if _is_song(song) else None


def _is_song(song: Song) -> bool:
    return len(song) > 1 and song[-1][1] == END and all(one[0] < after[0] for one, after in itertools.pairwise(song))


def _seven(label: str) -> str:
    return "verse" if label == "pre-chorus" else label
