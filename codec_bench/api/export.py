"""Write the scores of a run for other programs (`codec-bench export`)."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from codec_bench.messages.errors import UserError
from codec_bench.report import harnesses, hugging_face, submission
from codec_bench.report.open_run import Run, open_run
from codec_bench.report.paper import export_summary
from codec_bench.store.export import FORMATS, export_run


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Result of `export`.

    Args:
        excluded: metrics without a value.
        text: the output if no file was named, else empty.
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
) -> ExportResult:
    """Write scores as rows, a paper's table, or results for a model hub or harness.

    Args:
        run: a run, or its folder.
        form: `csv` (with an apostrophe before texts that look like formulas), `jsonl` or `parquet` (texts unchanged);
            with `summary`: `csv`, `markdown` or `latex`; for the Hugging Face hub `hf-eval-results` or `model-index`;
            for other harnesses `lm-eval`, `lmms-eval` or `inspect`; `submission` for a benchmark's own scoring
            service.
        out: a file, or a stream of text; None returns the text. Parquet needs a file.
        summary: write the table of systems and metrics in place of the scores.
        system: for the hub and other harnesses, required if the run has several.
        metric: for the hub: only this metric.
        alignment: add a column that aligns the texts of each error rate.

    Raises:
        UserError: there is no such format, it does not take another argument, the run is unfinished where it must be
            finished, or the file cannot be written.

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
        return ExportResult(excluded, text.getvalue())
    if alignment and (summary or form not in FORMATS):
        raise UserError(
            "option_of_format",
            options=["--alignment"],
            known="rows",
            format=form,
            hint=f"use --format {', '.join(FORMATS)}",
        )
    target = Path(out) if isinstance(out, (str, os.PathLike)) else out
    if form not in (*hugging_face.FORMATS, *harnesses.FORMATS):
        if system is not None or metric is not None:
            raise UserError(
                "option_of_format",
                options=["--system", "--metric"],
                known=list(hugging_face.FORMATS),
                format=form,
                hint="omit them",
            )
        if summary:
            export_summary(_open(run), form, target)
        elif form == submission.FORMAT:
            submission.export_submission(_open(run), target)
        else:
            export_run(_open(run), form, target, alignment=alignment)
        return ExportResult()
    if summary:
        raise UserError("option_of_format", options=["--summary"], known="tables", format=form, hint="leave it out")
    if form in hugging_face.FORMATS:
        return ExportResult(
            tuple(hugging_face.export_hugging_face(_open(run), form, target, system=system, metric=metric))
        )
    if metric is not None:
        raise UserError(
            "option_of_format",
            options=["--metric"],
            known=list(hugging_face.FORMATS),
            format=form,
            hint="leave it out",
        )
    return ExportResult(tuple(harnesses.export_harness(_open(run), form, target, system=system)))


def _open(run: Run | str | os.PathLike[str]) -> Run:
    return run if isinstance(run, Run) else open_run(run)
