"""`codec-bench import`: results of other toolkits as runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.terminal.groups import command_group
from codec_bench.terminal.options import Json

import_app = command_group("import", "Import results of other toolkits as runs.")
File = Annotated[Path, typer.Argument(help="The result file.")]
Out = Annotated[Path, typer.Option("--out", help="The new run folder.")]
System = Annotated[str | None, typer.Option(help="The system's name. Default: the file's stem.")]
_SAME_DATA = "A run over the same data with the same ids, on whose leaderboard the numbers then are."
SameDataRun = Annotated[Path | None, typer.Option("--beside", help=_SAME_DATA)]


_FILES = {
    "versa": "Read a result file of VERSA: a line for each utterance.",
    "ultraeval": "Read a result file of UltraEval-Audio: a line for each step of each item.",
    "audiobench": "Read a score file of AudioBench, such as DATASET_wer_score.json.",
    "lm-eval": "Read lm-evaluation-harness's results (.json) or samples (.jsonl).",
    "lmms-eval": "Read lmms-eval's results (.json) or samples (.jsonl).",
    "inspect": "Read a log of Inspect in JSON.",
}


def _command(toolkit: str) -> Callable[..., None]:
    def results(file: File, out: Out, system: System = None, beside: SameDataRun = None, as_json: Json = False) -> None:
        _import_file(toolkit, file, out, system, beside, as_json)

    return results


for _toolkit, _help in _FILES.items():
    import_app.command(f"{_toolkit}-results", help=_help)(_command(_toolkit))


def _import_file(
    toolkit: str, file: Path, out: Path, system: str | None, run_of_data: Path | None, as_json: bool
) -> None:
    """Import another toolkit's result file, and print its summary."""
    from codec_bench.api.import_results import import_results
    from codec_bench.cli.finished import print_finished
    from codec_bench.stats.summary import summarise

    run = import_results(file, toolkit=toolkit, out=out, system=system, beside=run_of_data)
    print_finished(run, summarise(run), as_json, timings=False)
