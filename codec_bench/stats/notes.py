"""What a reader should know beside an interval or a test: a code with parameters, and its sentence."""

from __future__ import annotations

from codec_bench.messages import Diagnostic

Note = Diagnostic
"""What the intervals and tests of this room say; its codes are in `codec_bench.messages.stats`."""


def renamed(note: str | None, of: str) -> str | None:
    """A note about rows with what they are called elsewhere, such as `systems`."""
    if not isinstance(note, Note) or "of" not in note.parameters:
        return note
    return Note(note.code, **{**note.parameters, "of": of})


def too_few(units: int, needed: int, purpose: str) -> Note:
    """The note of too few units for an interval, or a p."""
    return Note("too_few_units", units=units, needed=needed, what=purpose)
