"""Notes on intervals and tests: codes with parameters."""

from __future__ import annotations

from codec_bench.messages import Diagnostic

Note = Diagnostic
"""Its codes are in `codec_bench.messages.stats`."""


def rename_units(note: str | None, of: str) -> str | None:
    """A note's text with another word for its units, such as `systems`."""
    if not isinstance(note, Note) or "of" not in note.parameters:
        return note
    return Note(note.code, **{**note.parameters, "of": of})


def too_few(units: int, needed: int, purpose: str) -> Note:
    """A note of too few units for `purpose`, one of `codec_bench.messages.stats.PURPOSES`."""
    return Note("too_few_units", units=units, needed=needed, purpose=purpose)
