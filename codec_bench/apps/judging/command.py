"""`codec-bench judge check|compare|strengths`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codec_bench.apps.judging.api import PER_KIND, REPEATS
from codec_bench.config.option import SEVERAL
from codec_bench.terminal.groups import command_group
from codec_bench.terminal.options import Device, Json, Set
from codec_bench.terminal.output import print_json, print_lines, print_wide, talk

if TYPE_CHECKING:
    from codec_bench.apps.judging.api import JudgeCheck

judge_app = command_group("judge", "Test a judge, and see what another one changes.")


@judge_app.command()
def check(
    judge: Annotated[str, typer.Argument(help="A model (see: list models), ./mine.yaml or ./mine.py:Class.")],
    parts: Annotated[str | None,
        typer.Option("--parts", help="sounds, texts, or both with a comma. Default: what the model takes."),
        SEVERAL] = None,
    rubrics: Annotated[str | None,
        typer.Option("--rubrics", help="Rubrics or rubric files, with commas, by which injected errors are "
                                       "marked. Default: all that they fit."), SEVERAL] = None,
    per_kind: Annotated[int, typer.Option("--per-kind", help="Sounds of each kind, a multiple of 4.")] = PER_KIND,
    repeats: Annotated[int, typer.Option("--repeats", help="Number of repetitions of each question.")] = REPEATS,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the sounds.")] = 0,
    out: Annotated[Path | None,
        typer.Option("--out", help="Folder; the same folder continues the check. Default: the unfinished check of the "
                                   "same command under runs/, or a new folder there.")] = None,
    settings: Set = None,
    device: Device = "auto",
    wait: Annotated[bool,
        typer.Option("--wait", help="Wait for a service that takes no requests for as long as it takes.")] = False,
    anyway: Annotated[bool,
        typer.Option("--anyway",
            help="Ask a model although its config says that its service has shut it down.")] = False,
    max_cost_usd: Annotated[float | None,
        typer.Option("--max-cost-usd", help="Ask nothing more once so much is spent.")] = None,
    max_hours: Annotated[float | None,
        typer.Option("--max-hours", help="Ask nothing more after so many hours.")] = None,
    dry_run: Annotated[bool,
        typer.Option("--dry-run", help="Ask nothing: show what the questions would cost, and the first three "
                                       "requests.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Test a judge with sounds and texts whose truth is known."""
    from codec_bench.api.read_arguments import group_options
    from codec_bench.apps.judging.api import judge_check
    from codec_bench.benchmark.run_request import Terms
    from codec_bench.engine.running import Running
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.request import parse_settings
    from codec_bench.terminal.stopping import stopping

    with stopping() as stop, progress_line() as progress, redirect_stdout(sys.stderr):
        result = judge_check(
            judge, parts=parts, rubrics=rubrics, per_kind=per_kind, repeats=repeats, seed=seed, out=out,
            options=group_options(parse_settings(settings or []), [judge]),
            terms=Terms(wait=wait, anyway=anyway, max_cost_usd=max_cost_usd, max_hours=max_hours), dry_run=dry_run,
            running=Running(device=device, progress=progress.update, on_folder=stop.on_folder, on_estimate=talk),
        )  # fmt: skip
    for name, why in result.excluded:
        talk(f"excluded: {name}: {why}")
    if dry_run:
        for one in result.previews:
            sys.stdout.write(f"{one.benchmark}: {one.cost}\n" + "".join(f"\n{content}\n" for content in one.requests))
        return
    if as_json:
        print_json(result.test.as_dict())
    else:
        _print(result)
    for name, why in result.broken:
        talk(f"not finished: {name}: {why}")
    if result.broken or any(part_test.failed for part_test in result.test.parts.values()):
        raise typer.Exit(3)


def _print(result: JudgeCheck) -> None:
    """Print the tables of a judge's test, and where they are stored."""
    from codec_bench.apps.judging import words
    from codec_bench.apps.judging.api import PAGE

    print_wide(words.COLUMNS, words.part_rows(result.test))
    print_wide(("part", "kind", "J"), words.kind_rows(result.test), words.sentences(result.test))
    talk(f"stored: {result.folder / 'test.json'}; page: {result.folder / PAGE}")


@judge_app.command()
def compare(
    runs: Annotated[list[Path],
        typer.Argument(help="Run folders with verdicts of the old judge, or folders that hold some.")],
    judges: Annotated[list[str], typer.Option("--judge", help="The old judge, and once more the new one.")],
    out: Annotated[Path,
        typer.Option("--out", help="Folder of the copies with the new judge's verdicts; the same folder goes on.")],
    benchmark: Annotated[str | None, typer.Option("--benchmark", help="Folders of own benchmarks, with commas."),
        SEVERAL] = None,
    settings: Set = None,
    device: Device = "auto",
    max_cost_usd: Annotated[float | None,
        typer.Option("--max-cost-usd", help="Ask nothing more once so much is spent.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Let a new judge mark answers that an old one has marked, and say what changes."""
    from codec_bench.api.read_arguments import group_options
    from codec_bench.apps.judging import words
    from codec_bench.apps.judging.compare import PAGE, judge_compare
    from codec_bench.benchmark.run_request import Terms
    from codec_bench.engine.running import Running
    from codec_bench.terminal.progress import progress_line
    from codec_bench.terminal.request import parse_settings
    from codec_bench.terminal.stopping import stopping

    with stopping() as stop, progress_line() as progress, redirect_stdout(sys.stderr):
        stop.on_folder(out, f"folder of the copies: {out}")
        result = judge_compare(
            list(runs), judges, out=out, benchmark=benchmark,
            options=group_options(parse_settings(settings or []), judges), terms=Terms(max_cost_usd=max_cost_usd),
            running=Running(device=device, progress=progress.update, on_estimate=talk),
        )  # fmt: skip
    if as_json:
        print_json([one.as_dict() for one in result])
        return
    print_wide(words.SUCCESSION, words.succession_rows(result))
    sentences = [f"{one.rubric}: {one.words}" for one in result]
    print_wide(("rubric", "kind of items", "new less old"), words.moved_rows(result), sentences)
    sys.stdout.write(f"{out / PAGE}\n")


@judge_app.command()
def strengths(
    runs: Annotated[list[Path],
        typer.Argument(help="Run folders with verdicts on pairs of answers, or folders that hold some.")],
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draws of items.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Say how strong many systems are by a judge's verdicts on pairs of their answers."""
    from codec_bench.apps.judging.strengths import judge_strengths
    from codec_bench.apps.judging.words import strengths_words
    from codec_bench.report.pairwise_preferences import strength_rows

    result = judge_strengths(list(runs), seed=seed)
    if as_json:
        print_json([one.as_dict() for one in result])
        return
    for one in result:
        if one.found.systems:
            print_wide(*strength_rows(one.found))
        print_lines(strengths_words(one))
