"""Notes on intervals and tests: codes with parameters."""

from __future__ import annotations

from codec_bench.messages import Diagnostic

Note = Diagnostic
"""Its codes are in `codec_bench.messages.stats`."""


def renamed(note: str | None, of: str) -> str | None:
    """A note about rows, with another word for them, such as `systems`."""
    if not isinstance(note, Note) or "of" not in note.parameters:
        return note
    return Note(note.code, **{**note.parameters, "of": of})


def too_few(units: int, needed: int, purpose: str) -> Note:
    """The note of too few units for an interval, or a p."""
    return Note("too_few_units", units=units, needed=needed, what=purpose)
