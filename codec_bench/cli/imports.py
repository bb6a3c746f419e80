"""`codec-bench import`: results of other toolkits as runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_bench.terminal.groups import command_group
from codec_bench.terminal.options import Json

import_app = command_group("import", "Read results of other toolkits in, so that old numbers stand beside new ones.")
File = Annotated[Path, typer.Argument(help="The result file.")]
As = Annotated[Path, typer.Option("--as", help="The new run folder.")]
System = Annotated[
    str | None,
    typer.Option("--system", help="What the system is called. Default: the name of the file without its end."),
]
Beside = Annotated[
    Path | None,
    typer.Option("--beside", help="A run over the same data with the same ids, on whose leaderboard of a site the numbers then stand."),
]  # fmt: skip


@import_app.command("versa-results")
def versa_results(file: File, out: As, system: System = None, beside: Beside = None, as_json: Json = False) -> None:
    """Read a result file of VERSA: a line for each utterance."""
    _import("versa", file, out, system, beside, as_json)


@import_app.command("ultraeval-results")
def ultraeval_results(file: File, out: As, system: System = None, beside: Beside = None, as_json: Json = False) -> None:
    """Read a result file of UltraEval-Audio: a line for each step of each item."""
    _import("ultraeval", file, out, system, beside, as_json)


def _import(toolkit: str, file: Path, out: Path, system: str | None, beside: Path | None, as_json: bool) -> None:
    from codec_bench.api.import_results import import_results
    from codec_bench.cli.finished import print_finished
    from codec_bench.stats.summary import summarise

    run = import_results(file, toolkit=toolkit, out=out, system=system, beside=beside)
    print_finished(run, summarise(run), as_json, timings=False)
