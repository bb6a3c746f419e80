"""`codec-bench report` and `export`: the page of runs, and their scores as data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.terminal.options import By
from codec_bench.terminal.output import print_json, talk
from codec_bench.terminal.request import columns

_FORMATS = (
    "csv (with an apostrophe before texts that a spreadsheet would take for formulas), jsonl or parquet; with "
    "--summary: csv, markdown or latex; for the Hugging Face hub: hf-eval-results or model-index; for other harnesses: "
    "lm-eval, lmms-eval or inspect; submission: the file that a benchmark's own service scores."
)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of runs, to show side by side.")],
    out: Annotated[Path | None, typer.Option(help="The page. Default: report.html in the first run folder.")] = None,
    audio_mb: Annotated[float, typer.Option(help="Megabytes of audio to put into the page.")] = 25.0,
    by: By = None,
    figures: Annotated[Path | None, typer.Option(help="Also write plots here: SVG, PDF, and data as CSV.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary, or a list of them, as JSON.")] = False,
) -> None:  # fmt: skip
    """Write the page of a run, or one page for several."""
    from codec_bench.api.report import report as write_report
    from codec_bench.cli.finished import print_breakdowns

    written = write_report(runs, out=out, audio_mb=audio_mb, by=columns(by), figures=figures)
    if written.figures is not None:
        talk("\n".join([f"{len(written.figures.files)} files of figures: {figures}", *written.figures.notes]))
    if as_json:
        summaries = [summary.as_dict() for summary in written.summaries]
        return print_json(summaries if len(summaries) > 1 else summaries[0])
    for one, summary in zip(written.runs, written.summaries if by else ()):
        if len(written.runs) > 1:
            sys.stdout.write(f"{one.folder}\n")
        print_breakdowns(summary)
    sys.stdout.write(f"{written.page}\n")


def export(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "csv",
    out: Annotated[Path | None, typer.Option(help="A file. Default: standard output (not for parquet).")] = None,
    summary: Annotated[bool, typer.Option("--summary", help="Write the table of systems and metrics.")] = False,
    system: Annotated[str | None, typer.Option(help="For the hub and harnesses: the system.")] = None,
    metric: Annotated[str | None, typer.Option(help="For the hub: only this metric.")] = None,
    alignment: Annotated[bool, typer.Option("--alignment", help="Add aligned texts of error rates.")] = False,
) -> None:  # fmt: skip
    """Export scores, a paper's table, or a model card."""
    from codec_bench.api.export import export as write

    excluded = write(
        run, form=form, out=out or sys.stdout, summary=summary, system=system, metric=metric, alignment=alignment
    ).excluded
    if excluded:
        talk(f"excluded, because they have no value: {', '.join(excluded)}")
