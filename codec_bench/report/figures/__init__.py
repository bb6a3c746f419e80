"""The plots of runs as files for papers and slides: SVG and PDF, each with the data that it shows as CSV.

`plots.py` finds what is to be drawn in the records, and `draw.py` draws it; `labels.py` places names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codec_bench.errors import UserError
from codec_bench.report.figures.plots import plots_of
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.record import Run

__all__ = ["Figures", "write_figures"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What `write_figures` wrote.

    Args:
        folder: where. files: the files, in their order.
        notes: what to know of them, one sentence each.
    """

    folder: Path
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


def write_figures(
    runs: Run | Sequence[Run],
    folder: str | os.PathLike[str],
    *,
    by: str | Sequence[str] | None = None,
    summaries: Sequence[Summary] | None = None,
) -> Figures:
    """Writes the plots of one run, or of several side by side, each as SVG, as PDF and as CSV.

    For each metric there is `systems-METRIC`, the values of all systems, and where bitrates were measured
    `rate-METRIC`, the values against the bitrate. `by-COLUMN-METRIC` has the values by a column, and `time-RUN` where
    the time went. Every value is drawn with its 95 % interval. No system is marked as the best. A system whose checks
    found something is marked, with the finding in the small print and in the CSV. Equal runs give equal files.

    Args:
        runs: opened run folders.
        folder: where the files go; it is made if it does not exist. Files of the same names are replaced.
        by: columns to break results down by, as of `Run.summary`. summaries: of the runs, if they are known.

    Raises:
        MissingExtra: matplotlib is not installed.
        UserError: the folder cannot be written, or a run has no such column.

    Examples:
        >>> from codec_bench import open_run, write_figures
        >>> made = write_figures(open_run("runs/small"), "figures")  # the run of evaluate's example
        >>> sorted({file.stem for file in made.files if file.stem.startswith("systems")})
        ['systems-snr', 'systems-stoi']
    """
    from codec_bench.report.figures.draw import Drawing, figure_of

    runs = [runs] if isinstance(runs, Run) else list(runs)
    if not runs:
        raise UserError("there is no run to draw", hint="name at least one run folder")
    plots = plots_of(runs, summaries or [summarise(run, by) for run in runs])
    target = Path(folder)
    files: list[Path] = []
    drawing = Drawing()
    for plot in plots:
        files += drawing.write(partial(figure_of, plot), target, plot.stem, plot.heads, plot.rows)
    return Figures(target, tuple(files), tuple(drawing.notes))
