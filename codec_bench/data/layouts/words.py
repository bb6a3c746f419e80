"""Sentences about what was recognised and ignored in a folder."""

from __future__ import annotations

from codec_bench.data.layouts.base import Report
from codec_bench.messages.errors import first_of

_MOST_NAMED = 3
UNREAD, UNLISTED, ABSENT = "unread texts", "sounds without text", "texts without sound"
IGNORED = {UNREAD: "name the file, or write a manifest", UNLISTED: "add them to the list", ABSENT: "add the sound"}
"""What to do, by kind."""


def layout_line(report: Report) -> str:
    """Describe the recognised layout and the files that were read, in one line."""
    files = f" ({first_of(report.files, _MOST_NAMED)})" if report.files else ""
    role = "; the audio is the prompt of each text" if report.role == "prompt" else ""
    return f"{report.layout}{files}{role}"


def ignored_lines(report: Report) -> dict[str, str]:
    """Describe the ignored files by kind."""
    ignored = {
        UNREAD: (report.unread, "text {files} next to the sound {were} not read: {names}"),
        UNLISTED: (report.unlisted, "sound {files} {have} no text: {names}"),
        ABSENT: (report.absent, "{texts} {have} no sound: {names}"),
    }
    return {kind: _sentence(names, form) for kind, (names, form) in ignored.items() if names}


def _sentence(names: list[str], form: str) -> str:
    """Fill a sentence about files with their number and first names."""
    one = len(names) == 1
    singular, plural = ("file", "text", "was", "has"), ("files", "texts", "were", "have")
    words = dict(zip(("files", "texts", "were", "have"), singular if one else plural))
    return f"{len(names):,} {form.format(names=first_of(names, _MOST_NAMED), **words)}"
