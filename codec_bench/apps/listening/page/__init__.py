"""The page for raters: one HTML file that loads and sends nothing.

Which file to open
    `state.js`   the order in which a rater sees trials, and the answers so far: in the browser's storage, and in the
                 saved file.
    `sound.js`   the sounds of a trial, and changing between them.
    `kinds.js`   the trial of each kind, with what they have in common: buttons, texts, choices.
    `views.js`   the start, a trial and the end, and the keys.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.listening.sound import scrambled
from codec_bench.report.page.markup import SHARED, Layout, render
from codec_bench.store.files import write_text

_LAYOUT = Layout(
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
    """Writes the page whole or not at all.

    Args:
        title: of the document. data: what its script reads. clips: the sounds by their numbers in the data.

    Raises:
        UserError: the page cannot be written.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, clip in enumerate(clips):
            files.append(Path(folder, f"{number}"))
            files[-1].write_bytes(scrambled(clip, number))
        # The player of a run's page looks its clips up in these two tables; here every stimulus names its clip.
        write_text(path, render(_LAYOUT, {"title": title}, {**data, "clips": [], "kept": []}, files))
