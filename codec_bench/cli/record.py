"""Commands for run records: `verify`, `rescue` and `merge`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.terminal.options import Json, Timings
from codec_bench.terminal.output import console, print_json, table, talk


def verify(run: Annotated[Path, typer.Argument(help="A run folder.")], as_json: Json = False) -> None:
    """Check that a run record is intact.

    Exits with 2 if it is damaged.
    """
    from codec_bench.store.rescue import verify_record

    checks = verify_record(run)
    if as_json:
        rows = [{"what": check.name, "whole": check.is_intact, "found": check.description} for check in checks]
        print_json(rows)
    else:
        marks = {True: "ok", False: "WRONG"}
        console().print(table(("what", "", "found"), [(c.name, marks[c.is_intact], c.description) for c in checks]))
    if not all(check.is_intact for check in checks):
        new = Path("NEW", *(_below_out(run) if any(check.name == "answers" for check in checks) else ()))
        talk(f"what is whole can be saved: codec-bench rescue {run} --out {new}")
        raise typer.Exit(2)


def rescue(
    run: Annotated[Path, typer.Argument(help="A run folder with a damaged record. It is not changed.")],
    out: Annotated[Path, typer.Option("--out", help="A new folder for what can be saved.")],
) -> None:
    """Save the intact part of a damaged record.

    The run's command redoes the rest.
    """
    from codec_bench.store.rescue import rescue as save

    rescued = save(run, out)
    if rescued.answers is not None:
        talk(f"answers: {len(rescued.answers)} saved, {rescued.missing_answers} lost")
    talk(f"items: {len(rescued.items)} saved, {rescued.missing_items} lost")
    below = () if rescued.answers is None else _below_out(run)
    if below == out.parts[len(out.parts) - len(below) :]:
        out_root = Path(*out.parts[: len(out.parts) - len(below)])
        talk(f"The command of the run, with --out {out_root}, continues it and runs what was lost again.")
    else:
        target = Path("NEW", *below)
        talk(f"The run's command looks below its --out: move '{out}' to {target}; with --out NEW it redoes the rest.")
    sys.stdout.write(f"{out}\n")


def _below_out(run: Path) -> tuple[str, ...]:
    return run.resolve().parts[-2:]


def merge(
    parts: Annotated[list[Path], typer.Argument(help="Run folders of shards, or folders that hold them.")],
    out: Annotated[Path, typer.Option(help="The folder of the merged run; it may hold some of the parts.")],
    partial: Annotated[bool, typer.Option("--partial", help="Merge although shards are missing.")] = False,
    timings: Timings = False, as_json: Json = False,
) -> None:  # fmt: skip
    """Merge the runs of all shards into one.

    The rows are those that one machine would give.
    """
    from codec_bench.api.merge import merge as merge_runs
    from codec_bench.benchmark.runs_overview import RunOutcome
    from codec_bench.cli.finished import print_finished
    from codec_bench.cli.run import print_outcome
    from codec_bench.stats.summary import summarise

    merged = merge_runs(parts=parts, out=out, partial=partial, notify=talk)
    if isinstance(merged, RunOutcome):
        if print_outcome(merged, as_json, broken_down=False):
            raise typer.Exit(3)
        return
    print_finished(merged, summarise(merged), as_json, timings)
