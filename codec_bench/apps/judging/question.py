"""The base of questions to a judge about sounds and texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question to a judge.

    Args:
        unit: the sound or fact; questions on one are dependent.
        kind: of the sound, or of the planted answer. repeat: from 0.
    """

    id: str
    unit: str
    kind: str
    repeat: int

    @property
    def same(self) -> str:
        """The common id of all repeats."""
        return self.id.rpartition("~")[0]
