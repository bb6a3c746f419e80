"""Write the page of a run again, or one for several (`codec-bench report`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from codec_bench.config.option import names
from codec_bench.report.figures import Figures, write_figures
from codec_bench.report.open_run import Run, open_run
from codec_bench.report.page import write_page
from codec_bench.report.results import write_summary
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.folders import run_folders


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """Result of `report`; `as_dict()` of a summary is the content of `summary.json`."""

    page: Path
    runs: tuple[Run, ...]
    summaries: tuple[Summary, ...]
    figures: Figures | None = None


def report(
    runs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    out: str | os.PathLike[str] | None = None,
    audio_mb: float = 25.0,
    by: str | Sequence[str] | None = None,
    figures: str | os.PathLike[str] | None = None,
) -> WrittenReport:
    """Write the page of a run or several again, and for one run `summary.json` too.

    Args:
        runs: a run folder or a folder that holds some, or several of them; several runs are shown side by side.
        out: the page; None for `report.html` in the first folder. A named page changes nothing in the run folder.
        audio_mb: megabytes of audio in the page.
        by: columns to break the results down by; None for the run's own.
        figures: a folder for every plot, as SVG, as PDF, and its data as CSV; None for none.

    Raises:
        UserError: a folder holds no run, there is no such column, or a file cannot be written.

    Examples:
        >>> from codec_bench import report
        >>> made = report("runs/small", out="page.html", audio_mb=1)  # the run of evaluate's example
        >>> made.page.name, len(made.runs)
        ('page.html', 1)
    """
    folders = [Path(one) for one in ([runs] if isinstance(runs, (str, os.PathLike)) else runs)]
    opened = [open_run(folder_of_run) for folder in folders for folder_of_run in run_folders(folder)]
    summaries = [summarise(run, None if by is None else names(by)) for run in opened]
    page = folders[0] / "report.html" if out is None else Path(out)
    write_page(opened, page, audio_mb=audio_mb, summaries=summaries)
    if out is None and len(opened) == 1:
        write_summary(opened[0], summaries[0])
    plots = None if figures is None else write_figures(opened, figures, summaries=summaries)
    return WrittenReport(page, tuple(opened), tuple(summaries), plots)
