"""`codec-bench site`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codec_bench.messages.errors import UserError
from codec_bench.terminal.options import Json
from codec_bench.terminal.output import console, print_json, table, talk

if TYPE_CHECKING:
    from codec_bench.apps.site.contradictions import Contradiction


def site(
    runs: Annotated[list[Path] | None,
        typer.Argument(help="Run folders, folders that hold some, and folders of other sites.")] = None,
    out: Annotated[Path | None,
        typer.Option("--out", help="The folder of the site: a new one, or a site that gets the runs too.")] = None,
    audio_mb: Annotated[float,
        typer.Option("--audio-mb", help="Megabytes of sound to copy from each run; 0 copies none.")] = 25.0,
    title: Annotated[str | None, typer.Option("--title", help="The title of the site.")] = None,
    check: Annotated[bool,
        typer.Option("--check", help="Only say which runs contradict each other, and write nothing; exits with 3 if "
                                     "some do.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Make a static site over many runs, or add runs.

    It has leaderboards, comparisons and samples with sound.
    """
    if check:
        _check([*(runs or []), *([out] if out is not None else [])], as_json)
        return
    from codec_bench.apps.site.api import site as make_site

    if out is None:
        raise UserError("no_site_folder", hint="codec-bench site RUN --out DIR")
    result = make_site(runs or [], out=out, audio_mb=audio_mb, title=title, notify=talk)
    counts = [("added", result.added), ("replaced", result.replaced), ("left as they are", result.unchanged)]
    talk("runs: " + ", ".join(f"{len(names)} {label}" for label, names in counts))
    for sentence in _sentences(result.contradictions):
        talk(sentence)
    if as_json:
        print_json({**asdict(result), "folder": str(result.folder)})
    else:
        sys.stdout.write(f"{result.folder / 'index.html'}\n")


def _check(runs: list[Path], as_json: bool) -> None:
    """Print the contradictions of runs, and exit with 3 if there are any."""
    from codec_bench.apps.site.api import contradictions

    conflicts = contradictions(runs)
    if as_json:
        print_json([asdict(one) for one in conflicts])
    else:
        _print_conflicts(conflicts)
    if conflicts:
        raise typer.Exit(3)


def _print_conflicts(conflicts: Sequence[Contradiction]) -> None:
    """Print the runs that contradict each other, with their intervals."""
    if not conflicts:
        talk("no runs contradict each other")
        return
    rows = [
        (one.system, one.metric, one.board, *(
            f"{name}: {value:.4g} [{low:.4g}, {high:.4g}]"
            for name, value,
            (low, high) in ((one.run_a, one.value_a, one.interval_a), (one.run_b, one.value_b, one.interval_b))
        ), ", ".join(one.versions))
        for one in conflicts
    ]  # fmt: skip
    console().print(table(("system", "metric", "data", "older run", "newer run", "versions that differ"), rows))


def _sentences(conflicts: Sequence[Contradiction]) -> list[str]:
    """Describe the first contradictions in sentences, and the number of others."""
    sentences = [
        f"{one.run_a} and {one.run_b} contradict each other: {one.metric} of {one.system} on {one.board} is "
        f"{one.value_a:.4g} and {one.value_b:.4g}"
        for one in conflicts[:3]
    ]
    more = len(conflicts) - len(sentences)
    are = "contradiction is" if more == 1 else "contradictions are"
    return [*sentences, f"{more} more {are} on the page of checks"] if more > 0 else sentences
