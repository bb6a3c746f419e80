"""Writes the scores of a run for other programs (`codec-bench export`)."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from codec_bench.errors import UserError
from codec_bench.report import harnesses, hugging_face, submission
from codec_bench.report.open_run import Run, open_run
from codec_bench.report.paper import export_summary
from codec_bench.store.export import FORMATS, export_run


@dataclass(frozen=True, slots=True)
class Exported:
    """What `export` wrote.

    Args:
        excluded: the metrics that were left out because they have no value.
        text: what was written, where no file was named; otherwise empty.
    """

    excluded: tuple[str, ...] = ()
    text: str = ""


def export(
    run: Run | str | os.PathLike[str],
    *,
    form: str = "csv",
    out: str | os.PathLike[str] | IO[str] | None = None,
    summary: bool = False,
    system: str | None = None,
    metric: str | None = None,
    alignment: bool = False,
) -> Exported:
    """Writes every score as a row, the table for a paper, or the results for a model's repository or another harness.

    Args:
        run: a run, or its folder.
        form: `csv` (texts that a spreadsheet would take for formulas have an apostrophe in front), `jsonl` or `parquet`
            (all texts as they are); with `summary`: `csv`, `markdown` or `latex`; for the Hugging Face hub
            `hf-eval-results` or `model-index`; for other harnesses `lm-eval`, `lmms-eval` or `inspect`; `submission`
            for the file that a benchmark's own service scores.
        out: a file, or a stream of text; None gives the text back. Parquet needs a file.
        summary: write the table of systems and metrics in place of the scores.
        system: for the hub and other harnesses: the system. Needed where the run has several.
        metric: for the hub: only this metric.
        alignment: add a column that aligns the texts of each error rate.

    Raises:
        UserError: there is no such format, it does not take one of the other arguments, the run is not finished where
            that is needed, or the file cannot be written.

    Examples:
        >>> from codec_bench import export
        >>> rows = export("runs/small").text.splitlines()  # the run of evaluate's example
        >>> len(rows), rows[0].split(",")[:5]
        (33, ['system', 'id', 'metric', 'value', 'status'])
    """
    if out is None:
        text = io.StringIO()
        excluded = export(
            run, form=form, out=text, summary=summary, system=system, metric=metric, alignment=alignment
        ).excluded
        return Exported(excluded, text.getvalue())
    if alignment and (summary or form not in FORMATS):
        raise UserError("--alignment is for every score as a row", hint=f"use --format {', '.join(FORMATS)}")
    target = Path(out) if isinstance(out, (str, os.PathLike)) else out
    if form not in (*hugging_face.FORMATS, *harnesses.FORMATS):
        if system is not None or metric is not None:
            raise UserError(
                f"--system and --metric are for {' and '.join(hugging_face.FORMATS)}", hint="leave them out"
            )
        if form == submission.FORMAT and not summary:
            submission.export_submission(_open(run), target)
        else:
            if summary:
                export_summary(_open(run), form, target)
            else:
                export_run(_open(run), form, target, alignment=alignment)
        return Exported()
    if summary:
        raise UserError(f"--summary is for tables, and the format is '{form}'", hint="leave it out")
    if form in hugging_face.FORMATS:
        return Exported(tuple(hugging_face.export_hugging_face(_open(run), form, target, system=system, metric=metric)))
    if metric is not None:
        raise UserError(f"--metric is for {' and '.join(hugging_face.FORMATS)}", hint="leave it out")
    return Exported(tuple(harnesses.export_harness(_open(run), form, target, system=system)))


def _open(run: Run | str | os.PathLike[str]) -> Run:
    return run if isinstance(run, Run) else open_run(run)
