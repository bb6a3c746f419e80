"""Plots of runs as files for papers and slides: SVG, PDF, and CSV data.

`plots.py` reads the records, and `draw.py` draws; `labels.py` places names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from codec_bench.messages.errors import UserError
from codec_bench.report.figures.plots import plots_of
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Summary
from codec_bench.store.record import Run

__all__ = ["Figures", "write_figures"]


@dataclass(frozen=True, slots=True)
class Figures:
    """The files of `write_figures`, in order, with notes."""

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
    """Write the plots of one or several runs, each as SVG, PDF and CSV.

    For each metric: `systems-METRIC`, the values of all systems; with bitrates `rate-METRIC`; `by-COLUMN-METRIC`, the
    values by a column; and `time-RUN`. Every value has its 95 % interval. No system is marked as the best. A suspect
    system is marked, with the finding in the small print and in the CSV. Equal runs give equal files.

    Args:
        runs: opened run folders.
        folder: created if missing. Files of the same names are replaced.
        by: columns to break results down by, as of `Run.summary`.
        summaries: of the runs, if known.

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
        raise UserError("no_run_to_draw", hint="name at least one run folder")
    plots = plots_of(runs, summaries or [summarise(run, by) for run in runs])
    target = Path(folder)
    files: list[Path] = []
    drawing = Drawing()
    for plot in plots:
        files += drawing.write(partial(figure_of, plot), target, plot.stem, plot.heads, plot.rows)
    return Figures(target, tuple(files), tuple(drawing.notes))
