"""The page of an agreement: tables, and items of most disagreement to hear.

`collect.py` gathers the template's variables. The file opens from disk and loads nothing. Style and security policy are
those of a run's page, without scripts. The template escapes text from data.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from codec_bench.apps.agreement.page.collect import collect
from codec_bench.apps.agreement.panel import Agreement
from codec_bench.report.page.markup import SHARED, Layout, render
from codec_bench.store.files import write_text
from codec_bench.store.record import Run

_LAYOUT = Layout(
    (__package__, "agreement.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "agreement.css")),
    (),
)


def write_agreement_page(
    agreement: Agreement, runs: Sequence[Run], path: str | os.PathLike[str], *, audio_mb: float = 25.0
) -> None:
    """Write the page of an agreement, atomically.

    Args:
        runs: hold the texts and the audio of the items.
        audio_mb: limit of embedded audio in megabytes of base64; audio beyond it is excluded.

    Raises:
        UserError: the file cannot be written.
    """
    text = render(_LAYOUT, collect(agreement, runs, int(audio_mb * 1e6)), {}, ())
    write_text(Path(path), text, hint="give another --out")
