"""The page of one or several runs: one HTML file with tables, plots and audio.

The file loads nothing. Text from data is untrusted: the template escapes it, and the script never sets it as markup.

Which file to open
    `collect.py` reads the runs, with `columns.py` (systems and columns), `column_heads.py`, `chosen_samples.py`
    (samples), `sound.py` (audio) and `exchanges.py` (questions and answers). `sections.py` sections in folders of their
    own, a row each. `template_values.py` other variables of `page.html.j2`, and `runs.py` each run's description.
    `results.html.j2` the tables of systems and metrics, sorted by `summary.js`; `spent.html.j2` the times. `plots.js`
    plots, with `plane.js`, `scales.js`, `labels.js` and `marks.js`. `samples.js` the samples; `detail.js` one sample,
    with `player.js`, `spectrogram.js` and `exchange.js`. `players.js` several players on one page, for applications.
    `markup.py` renders the page, with `compiled.py` (templates on disk); `parts.html.j2` and `tables.css` are shared by
    all pages.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from codec_bench.report.page.collect import collect
from codec_bench.report.page.markup import SHARED, PageFiles, render
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
    "data elements words core marks frames summary labels breakdown scales plane plots spectrogram player samples "
    "exchange detail main"
).split()
_LAYOUT = PageFiles(
    (SHARED, "page.html.j2"),
    _STYLES,
    tuple((_BREAKDOWN if name == "breakdown" else SHARED, f"{name}.js") for name in _SCRIPTS),
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
    """Write the page of one run, or of several side by side.

    Args:
        runs: opened run folders, finished or in progress.
        path: the HTML file, written atomically.
        audio_mb: the most megabytes of audio, in base64. Worst and random samples with stored audio alternate, each
            with its reference and all systems.
        max_rows: the most rows (of a sample and a system). Beyond, the page holds failures, the worst samples and
            random ones, and says so.
        summaries: the summaries of the runs; None to compute them.

    Raises:
        ValueError: there is no run.
        UserError: the file cannot be written.
    """
    if not runs:
        raise ValueError("no run to report on")
    target = Path(path)
    limits = {"audio_bytes": int(audio_mb * 1e6), "max_rows": max_rows}
    collected = collect(runs, summaries, **limits, folder=target.resolve().parent)
    text = render(_LAYOUT, collected.page, collected.data, collected.sounds)
    write_text(target, text, hint="give another --out")
