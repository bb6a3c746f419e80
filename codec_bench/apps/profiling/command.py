"""`codec-bench profile`: measure one or several codecs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from codec_bench.config.profile_request import ProfileRequest
from codec_bench.terminal.request import command, values_of


@command(ProfileRequest)
def profile(request: ProfileRequest) -> None:
    """Profile codecs: bitrate, speed, quality, mistakes.

    The profile has bitrate, codebooks, speed, size, latency, stability, quality curves and checks for common mistakes.
    """
    from codec_bench.api.read_arguments import select_arguments
    from codec_bench.apps.profiling.api import profile as profile_codecs
    from codec_bench.config.option import names
    from codec_bench.terminal.output import console, talk
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.stopping import stopping

    arguments = select_arguments(ProfileRequest, values_of(request))
    count = len(names(str(request.codec)))  # which is typed as one text
    with (
        stopping(lambda folder: _describe_saved(folder, count)) as stop,
        progress_line("steps", estimates=False) as progress,
    ):
        result = profile_codecs(
            **arguments,
            on_folder=stop.on_folder,
            progress=lambda name, step, done, total: progress.update(f"{name}: {step}", done, total, 0, 0.0),
        )
    if request.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False) + "\n")
    else:
        from codec_bench.apps.profiling.table import profile_tables

        out = console()
        out.print(profile_tables(result.facts, width=out.width))
    for name, faults in result.faults.items():
        for fault in faults:
            talk(f"{name}: {fault}")
    talk(f"profile: {result.folder / 'profile.json'}\npage: {result.page}")
    if result.faults:
        raise typer.Exit(3)


def _describe_saved(folder: Path, count: int) -> str:
    from codec_bench.apps.profiling.several_codecs import codecs_measured

    measured = len(codecs_measured(folder))
    return f"{measured} of {count} codecs are measured and kept in {folder}"
