"""`codec-bench slurm` and `codec-bench progress`: a run in parts on a cluster."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.messages.errors import UserError
from codec_bench.terminal.options import Json
from codec_bench.terminal.output import console, print_json, table, talk

_COMMANDS = ("eval", "score", "run")
_RESERVED = ("--shard", "--out", "--executor")


def slurm(
    context: typer.Context,
    out: Annotated[Path,
        typer.Option("--out", help="The folder of the merged run, on a file system that all nodes share.")],
    parts: Annotated[int, typer.Option("--parts", help="How many parts the data is divided into.")] = 8,
    gpus: Annotated[int, typer.Option("--gpus-per-part", help="GPUs of each part.")] = 0,
    cpus: Annotated[int | None, typer.Option("--cpus-per-part", help="CPUs of each part.")] = None,
    time: Annotated[str | None,
        typer.Option("--time", help="The longest time of a part, as sbatch reads it: 4:00:00.")] = None,
    partition: Annotated[str | None, typer.Option("--partition", help="Where Slurm runs the parts.")] = None,
    at_once: Annotated[int | None, typer.Option("--at-once", help="How many parts run at a time.")] = None,
    sbatch: Annotated[list[str] | None,
        typer.Option("--sbatch",
            help="A further argument of sbatch, such as --account=me; repeatable.")] = None,
    again: Annotated[bool,
        typer.Option("--go-on", help="Merge the parts, or submit those that are missing once more. The job that Slurm "
                                     "runs at the end does this.")] = False,
) -> None:  # fmt: skip
    """Run eval, score or run in parts under Slurm.

    Parts are merged at the end: codec-bench slurm eval --codec ... --out DIR --parts 64.
    """
    from codec_bench.apps.cluster.slurm import Resources, resume_submission, submit
    from codec_bench.data.shard import Shard

    if again:
        submitted = resume_submission(out)
        if submitted is None:
            _merge(context, out)
            return
    else:
        resources = Resources(gpus, cpus, time, partition, at_once, tuple(sbatch or ()))
        of = Shard(1, parts).of  # which refuses other values
        command, empty = _command(context, of)
        submitted = submit(command, _program(), out, of, resources, empty)
    array, merge = submitted.jobs["parts"].replace(":", " "), submitted.jobs["merge"]
    held = f" ({len(submitted.empty)} hold no sample)" if submitted.empty else ""
    talk(
        f"submitted {len(submitted.tries)} of {submitted.parts} parts{held} as job {array}, and job {merge}, which "
        f"merges them into {out}"
    )
    talk(
        f"codec-bench progress {out} shows how far they are; scancel {array} {merge} cancels them, and the same "
        f"command goes on"
    )


slurm.context_settings = {"allow_extra_args": True, "ignore_unknown_options": True}  # type: ignore[attr-defined]
"""The options of the command that runs in parts are read by that command."""


def _command(context: typer.Context, parts: int) -> tuple[list[str], list[int]]:
    """Return the checked command of a part, and the numbers of parts without samples."""
    from codec_bench.api.check_request import check_request
    from codec_bench.terminal.request import values_of

    typed = list(context.args)
    name, *options = typed or [""]
    if name not in _COMMANDS:
        raise UserError(
            "slurm_command",
            name=name,
            hint="codec-bench slurm eval --codec opus-12k --data DIR --metrics stoi --out runs/x --parts 8",
        )
    conflicting = [option for option in options if option.partition("=")[0] in _RESERVED]
    if conflicting:
        raise UserError("slurm_sets_option", option=conflicting[0], hint="leave it out")
    # Option errors read as those of the command itself.
    command = context.find_root().command.commands[name]  # type: ignore[attr-defined]
    with command.make_context(name, list(options)) as read:
        request = command.callback.filled(read.params)
        sources = check_request(request, values_of(request))
    held = {int(position) % parts + 1 for source in sources for position in source.places}
    return typed, [number for number in range(1, parts + 1) if number not in held] if sources else []


def _program() -> list[str]:
    """Return the program to start on another machine with the same files."""
    script = Path(sys.executable).with_name("codec-bench")
    return (
        [str(script)] if script.is_file() else [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]
    )


def _merge(context: typer.Context, out: Path) -> None:
    command = context.find_root().command.commands["merge"]  # type: ignore[attr-defined]
    with command.make_context("merge", [str(out / "parts"), "--out", str(out)]) as merging:
        command.invoke(merging)


def progress(
    folder: Annotated[Path, typer.Argument(help="The folder of a run in parts, or one that holds run folders.")],
    as_json: Json = False,
) -> None:
    """Show how far the parts of a run are."""
    from codec_bench.apps.cluster.parts import progress_of
    from codec_bench.apps.cluster.slurm import part_folder, read_submission

    submitted = read_submission(folder)
    if submitted is not None:
        folders = [part_folder(folder, number) for number in submitted.needed]
    else:
        from codec_bench.store.folders import run_folders

        folders = [run_path for run_path in run_folders(folder) if run_path != folder]
    rows = progress_of(folders)
    if as_json:
        print_json([{**asdict(row), "folder": str(row.folder)} for row in rows])
        return
    shown = [
        (row.folder.name, row.state, f"{row.done:,} of {row.items:,}" if row.items else "",
            f"{row.failed:,}" if row.failed else "", row.reason or "")
        for row in rows
    ]  # fmt: skip
    console().print(table(("part", "state", "items", "failed", ""), shown))
    finished = sum(row.state == "finished" for row in rows)
    talk(f"{finished} of {len(rows)} parts are finished; {sum(row.done for row in rows):,} items")
