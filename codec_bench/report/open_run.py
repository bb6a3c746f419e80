"""An opened run: its record, its summary, and its table in a notebook."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from codec_bench.report.paper import summary_html
from codec_bench.stats.summary import summarise
from codec_bench.store import record


class Run(record.Run):
    """A run folder, opened for reading; arguments and errors as of `store.record.Run`."""

    def summary(self, by: str | Sequence[str] | None = None) -> dict[str, Any]:
        """Return one number per system and metric with its interval, as in `summary.json`.

        Args:
            by: columns to break the results down by, such as `speaker`, `duration` or one of the manifest, as names or
                one string with commas. None uses the run's own.

        Raises:
            UserError: the record holds no such column, or one with too many values.
        """
        return summarise(self, by).as_dict()

    def __repr__(self) -> str:
        return f"Run('{self.folder}': {', '.join(self.systems)}; {', '.join(self.metrics)})"

    def _repr_html_(self) -> str:
        return summary_html(summarise(self))


def open_run(folder: str | os.PathLike[str]) -> Run:
    """Open a run folder for reading.

    Raises:
        UserError: the folder holds no run record.

    Examples:
        >>> from codec_bench import open_run
        >>> run = open_run("runs/small")  # the run of evaluate's example
        >>> list(run.systems), run.counts()["finished"]
        (['g711-ulaw', 'g722'], 16)
    """
    return Run(folder)
