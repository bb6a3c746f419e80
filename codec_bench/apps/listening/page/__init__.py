"""The page for raters: one HTML file that loads and sends nothing.

Which file to open
    `state.js`   a rater's order of trials, and answers in browser storage and saved file.
    `sound.js`   the audio of a trial, and switching.
    `kinds.js`   the trial of each kind, with shared buttons, texts, choices.
    `views.js`   the start, a trial and the end, and the keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.listening.sound import scramble
from codec_bench.report.page.markup import SHARED, PageFiles, render
from codec_bench.store.files import write_text

_LAYOUT = PageFiles(
    (__package__, "sheet.html.j2"),
    ((SHARED, "style.css"), (__package__, "sheet.css")),
    (
        (SHARED, "data.js"),
        (SHARED, "elements.js"),
        (SHARED, "player.js"),
        *((__package__, name) for name in ("state.js", "sound.js", "kinds.js", "views.js")),
    ),
)


def write_sheet_page(path: Path, title: str, data: Mapping[str, Any], clips: Sequence[bytes]) -> None:
    """Write the page atomically.

    Args:
        data: for its script.
        clips: the audio by its numbers in the data.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, clip in enumerate(clips):
            files.append(Path(folder, f"{number}"))
            files[-1].write_bytes(scramble(clip, number))
        # The player expects these tables, but here every stimulus names its clip.
        write_text(path, render(_LAYOUT, {"title": title}, {**data, "clips": [], "saved": []}, files))
