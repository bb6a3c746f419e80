"""Warnings on data unsuited to metrics: long silence, an empty band, a wrong file.

Data get notes while they are read (`engine.reading`); facts of a metric say which of these move it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codec_bench.stats.summary_json import UNSET, SummaryPart

LEAST_SHARE = 0.05
"""A smaller share of items with a note gives no warning."""
TELEPHONE_KHZ = 4.2
CHANGES = {"around": ("zeros around", "noise around"), "narrow": ("narrow band",), "empty": ("rate",)}
"""Changes of `metrics.sensitivity` that resemble the notes on data."""
_KINDS = {
    "silence_around": "around",
    "empty_band": "empty",
    "other_rate": "rate",
    "empty_channels": "channels",
    "folded_channels": "folded",
    "cancelled_channels": "cancelled",
}
"""Counted codes of notes, and the kinds of the warnings."""
_LEAST = {"channels": 0.0, "folded": 0.0, "cancelled": 0.0, "rate": 0.5}
"""Least share of items for kinds that move no metric; a few equal lengths occur by chance."""


@dataclass(frozen=True, slots=True)
class Warned(SummaryPart):
    """A warning on `n` of `of` items.

    Args:
        kind: `around` (long silence), `empty` (most of the band), `another` (the sound of another system), `rate`
            (wrong), `channels` (without sound), `folded` (into one sound), `cancelled` (channels, in their mean),
            `shared` (the sound of another sample), `repeated` (the question of another id), `copied` (another file of
            the system), or `implausible` (values).
        figures: average findings by name.
        other: the system or item with the same sound.
        moved: shift by metric, in spreads over five codecs; None if not measured.
    """

    kind: str
    n: int
    of: int
    figures: Mapping[str, float] = field(default_factory=dict)
    moved: Mapping[str, float | None] = field(default_factory=dict)
    other: str = UNSET


class Tally:
    """Counts the notes of a system's items that may affect metrics.

    Args:
        is_generated: whether the audio was made without the reference; notes on the reference then concern pairs only.
    """

    def __init__(self, is_generated: bool = False) -> None:
        self._is_generated = is_generated
        self._notes: dict[str, list[Mapping[str, float]]] = {}
        self._of_reference: dict[str, list[Mapping[str, float]]] = {}
        self._others: dict[str, int] = {}

    def add(self, notes: Sequence[Mapping[str, Any]]) -> None:
        """Count an item's recorded notes; those on the estimate come first."""
        counted = set()
        for note in notes:
            if note["code"] == "same_as_system":
                self._others[note["system"]] = self._others.get(note["system"], 0) + 1
            of = note["note"] if note["code"] == "reference" else note
            kind = _KINDS.get(of["code"])
            if kind is not None and kind not in counted:
                counted.add(kind)
                is_reference = self._is_generated and note["code"] == "reference"
                of_kind = self._of_reference if is_reference else self._notes
                of_kind.setdefault(kind, []).append({name: of[name] for name in of if name != "code"})

    def warned(self, of: int, metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[Warned]:
        """The warnings on a system with `of` items of audio, by the metrics' facts."""
        for other, count in self._others.items():
            yield Warned("another", count, of, other=other)
        pairs = {name: facts for name, facts in metrics.items() if facts.get("kind") == "pair"}
        yield from self._relevant_warnings(self._notes, of, metrics)
        yield from self._relevant_warnings(self._of_reference, of, pairs)

    @staticmethod
    def _relevant_warnings(
        notes: Mapping[str, list[Mapping[str, float]]], of: int, metrics: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[Warned]:
        """Yield the warnings that concern enough items and shift a metric."""
        for kind, of_kind in notes.items():
            figures = {name: float(np.mean([one[name] for one in of_kind])) for name in of_kind[0]}
            moved = {} if kind in _LEAST else _metric_shifts(kind, figures, metrics)
            if len(of_kind) >= _LEAST.get(kind, LEAST_SHARE) * of and (moved or kind in _LEAST):
                yield Warned(kind, len(of_kind), of, figures, moved)


def _metric_shifts(
    kind: str, figures: Mapping[str, float], metrics: Mapping[str, Mapping[str, Any]]
) -> dict[str, float | None]:
    """Shifts in spreads of the metrics that a finding moves; None if not measured."""
    top = figures.get("top_khz", 0.0)
    changes = CHANGES["narrow" if kind == "empty" and top <= TELEPHONE_KHZ else kind]
    moved: dict[str, float | None] = {}
    for name, facts in metrics.items():
        if "hears_hz" not in facts:
            continue
        if kind == "empty" and (facts["hears_hz"] / 1000 or figures["rate_khz"]) < 2.2 * top:
            continue  # it hears no band that is empty
        measured = [shift for change in changes if (shift := (facts["moved_by"] or {}).get(change)) is not None]
        if not measured or max(measured):
            moved[name] = max(measured, default=None)
    return moved


def warn_shared(samples: int, different: int, of: int, *, questions: bool) -> list[Warned]:
    """A warning if `samples` of `of` are copies of `different` sounds or questions."""
    return [Warned("repeated" if questions else "shared", samples, of, {"different": different})] if samples else []


def warn_copied(items: int, of: int, example: str) -> list[Warned]:
    """Warn if `items` of `of` files are identical although their texts differ."""
    return [Warned("copied", items, of, other=example)] if items else []


def warn_implausible(metric: str, facts: Mapping[str, Any], sums: np.ndarray) -> list[Warned]:
    """Warn if most values are below the limit `implausible` of `facts`.

    Args:
        sums: numerator and denominator of each item, `(items, 2)`.
    """
    limit = facts.get("implausible")
    if limit is None or not len(sums):
        return []
    values = sums[:, 0] / sums[:, 1]
    below = int((values < limit).sum())
    if 2 * below <= len(values):
        return []
    return [
        Warned("implausible", below, len(values), {"median": float(np.median(values)), "limit": limit}, {metric: None})
    ]
