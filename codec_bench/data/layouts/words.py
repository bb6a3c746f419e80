"""Sentences about what was recognised and ignored in a folder."""

from __future__ import annotations

from codec_bench.data.layouts.base import Report
from codec_bench.messages import Diagnostic
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


def ignored_lines(report: Report) -> dict[str, Diagnostic]:
    """Describe the ignored files by kind."""
    ignored = {
        UNREAD: (report.unread, "text_files_unread"),
        UNLISTED: (report.unlisted, "sounds_without_text"),
        ABSENT: (report.absent, "texts_without_sound"),
    }
    return {
        kind: Diagnostic(code, count=len(names), names=first_of(names, _MOST_NAMED))
        for kind, (names, code) in ignored.items()
        if names
    }
