"""The page of one or several runs: one HTML file with tables, plots, sound and spectrograms.

Conventions
    The file can be opened from disk and loads nothing. Text from data is not trusted: the template escapes it, and the
    script sets it as text, never as markup. `markup.py` says what the browser allows.

Which file to open
    `collect.py`          what is read of the runs, with `columns.py` (systems and columns side by side),
                          `column_heads.py`, `chosen_samples.py` (which samples), `sound.py` (which sound) and
                          `exchanges.py` (questions and answers).
    `sections.py`         the sections whose rows and template lie in folders of their own; a new one is a row there.
    `template_values.py`  the other variables of `page.html.j2`, and `runs.py` what it says of each run.
    `results.html.j2`     the tables of systems and metrics, which `summary.js` sorts; `spent.html.j2` where the time
                          went.
    `plots.js`            the plots, with `plane.js`, `scales.js`, `labels.js` and `marks.js`.
    `samples.js`          the table of samples; `detail.js` one sample, with `player.js`, `spectrogram.js` and
                          `exchange.js`.
    `players.js`          several players on one page, for the pages of applications.
    `markup.py`           how the page is put together, with `compiled.py` (templates on disk); `parts.html.j2` and `tables.css` are what all pages share.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from codec_bench.report.page.collect import collect
from codec_bench.report.page.markup import SHARED, Layout, render
from codec_bench.report.page.sections import SECTIONS
from codec_bench.stats.summary_types import Summary
from codec_bench.store.files import write_text
from codec_bench.store.record import Run

MAX_ROWS = 20_000
_BREAKDOWN, _ROBUSTNESS = "codec_bench.report.breakdown", "codec_bench.report.robustness"
_STYLES = (
    (SHARED, "style.css"),
    (SHARED, "tables.css"),
    (_BREAKDOWN, "breakdown.css"),
    (_ROBUSTNESS, "wordings.css"),
    (SHARED, "sample.css"),
)
_SCRIPTS = (
    "data.js",
    "elements.js",
    "words.js",
    "core.js",
    "marks.js",
    "frames.js",
    "summary.js",
    "labels.js",
    "breakdown.js",
    "scales.js",
    "plane.js",
    "plots.js",
    "spectrogram.js",
    "player.js",
    "samples.js",
    "exchange.js",
    "detail.js",
    "main.js",
)
_LAYOUT = Layout(
    (SHARED, "page.html.j2"),
    _STYLES,
    tuple((_BREAKDOWN if name == "breakdown.js" else SHARED, name) for name in _SCRIPTS),
    tuple((section.package, section.template) for section in SECTIONS),
)


def write_page(
    runs: Sequence[Run],
    path: str | os.PathLike[str],
    *,
    audio_mb: float = 25.0,
    max_rows: int = MAX_ROWS,
    summaries: Sequence[Summary] | None = None,
) -> None:
    """Writes the page of one run, or of several side by side.

    Args:
        runs: opened run folders, finished or in progress.
        path: the HTML file; it is written whole or not at all.
        audio_mb: how many megabytes of the page may be sound, in base64. Of the samples whose audio was kept, worst and
            random ones are taken in turn, each with its reference and all systems.
        max_rows: how many rows (of a sample and a system) the page may hold. If there are more, it holds failures, the
            worst samples and random ones, and says so.
        summaries: the summaries of the runs; None to compute them.

    Raises:
        ValueError: no run was given.
        UserError: the file cannot be written.
    """
    if not runs:
        raise ValueError("no run to report on")
    target = Path(path)
    collected = collect(
        runs, summaries, audio_bytes=int(audio_mb * 1e6), max_rows=max_rows, folder=target.resolve().parent
    )
    text = render(_LAYOUT, collected.page, collected.data, collected.sounds)
    write_text(target, text, hint="give another --out")
