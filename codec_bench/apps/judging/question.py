"""What the questions to a judge have in common, whether they are about sounds or about texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One question to a judge.

    Args:
        id: of the question. unit: the sound, or the fact that a text is about; what is asked of one unit is not
            independent.
        kind: of the sound, or of the planted answer. repeat: from 0; questions that differ in nothing else are the
            same.
    """

    id: str
    unit: str
    kind: str
    repeat: int

    @property
    def same(self) -> str:
        """What all repeats of a question have in common."""
        return self.id.rpartition("~")[0]
