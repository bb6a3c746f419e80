"""The page of an agreement: one HTML file with its tables, and the items on which raters differ most with their sound.

`collect.py` says what the page shows: the variables of its template.

Conventions
    The file can be opened from disk and loads nothing. It has the style and the content security policy of a run's
    page, and no script: the sounds are played by the browser itself. Text from data is not trusted: the template
    escapes it.
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
    """Writes the page of an agreement.

    Args:
        agreement: the agreement. runs: the runs that it is about; they hold the texts and the sounds of the items.
        path: the HTML file; it is written whole or not at all.
        audio_mb: how many megabytes of the page may be sound, in base64; sounds that do not fit are left out.

    Raises:
        UserError: the file cannot be written.
    """
    text = render(_LAYOUT, collect(agreement, runs, int(audio_mb * 1e6)), {}, ())
    write_text(Path(path), text, hint="give another --out")
