"""`codec-bench weights`: lists, fetches, verifies and finds published checkpoints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from codec_bench.messages.errors import UserError, WeightsError
from codec_bench.terminal.groups import command_group

if TYPE_CHECKING:
    from codec_bench.weights import Checkpoint

weights_app = command_group("weights", "List, fetch, verify and locate checkpoints.")

_WIDE = 220
"""The width without folded cells, for output outside a terminal."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON in place of tables.")]
Names = Annotated[
    list[str] | None,
    typer.Argument(help="Names of checkpoints (see: weights list). Default: all that are on this machine."),
]


@weights_app.command("list")
def list_(as_json: Json = False) -> None:
    """List every checkpoint: source, revision, size, licence, and whether it is here."""
    from codec_bench.terminal.output import console, print_json, table, talk
    from codec_bench.weights import checkpoint, checkpoint_names
    from codec_bench.weights.catalogue import readable
    from codec_bench.weights.converted import MAX_BYTES, converted_folder, converted_size

    rows = [_checkpoint_facts(checkpoint(name)) for name in checkpoint_names()]
    if as_json:
        return print_json(rows)
    columns = ("weights", "from", "revision", "size", "licence", "here", "used by")
    weights_table = table(columns, [_checkpoint_cells(facts) for facts in rows], numeric=("size",))
    for column in weights_table.columns:
        column.overflow = "fold"  # names of repositories are never cut
    out = console()
    if not out.is_terminal:
        out.width = _WIDE
    out.print(weights_table)
    if size := converted_size():
        limit, folder = readable(MAX_BYTES), converted_folder()
        talk(f"Converted weights take {readable(size)} (at most {limit}). To free the space, delete '{folder}'.")


@weights_app.command()
def path(name: Annotated[str, typer.Argument(help="A checkpoint (see: weights list).")]) -> None:
    """Print the folder of a checkpoint; exits with 2 if it is not on this machine."""
    from codec_bench.weights import find

    sys.stdout.write(f"{find(name).folder}\n")


@weights_app.command()
def verify(names: Names = None, as_json: Json = False) -> None:
    """Compare local files with the published ones; exits with 2 if one differs."""
    from codec_bench.terminal.output import console, print_json, table, talk
    from codec_bench.weights import checkpoint_names, find, lookup
    from codec_bench.weights.verify import verify as check

    chosen = names or [name for name in checkpoint_names() if lookup(name) is not None]
    checked = []
    for name in chosen:
        located = find(name)
        checked += [(name, located, file) for file in check(name, located)]
    if as_json:
        rows = [
            {"weights": name, "folder": str(located.folder), "used": located.used, "file": file.path, "size": file.size,
             "state": file.state, "against": file.against, "reason": file.reason}
            for name, located, file in checked
        ]  # fmt: skip
        print_json(rows)
    elif not checked:
        talk("no weights are on this machine")
    else:
        lines = [(name, file.path, file.size, file.state, file.against or "no reference") for name, _, file in checked]
        console().print(table(("weights", "file", "bytes", "state", "compared with"), lines, numeric=("bytes",)))
    wrong = [(name, file) for name, _, file in checked if file.state == "differs"]
    for _, file in wrong:
        talk(file.reason)
    if wrong:
        raise WeightsError(
            "files_differ",
            wrong=len(wrong),
            files=len(checked),
            hint="fetch them again: codec-bench weights fetch " + " ".join(dict.fromkeys(name for name, _ in wrong)),
        )


@weights_app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(help="Names of checkpoints (see: weights list).")],
    mirror: Annotated[str | None, typer.Option("--from", help="A mirror: URL of a hub or server, or a folder.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write to NAME/ in this folder, for CODEC_BENCH_WEIGHTS.")] = None,
    source: Annotated[str | None, typer.Option(help="Only hub, modelscope or url. Default: the first one.")] = None,
) -> None:  # fmt: skip
    """Fetch checkpoints and print their folders; continues interrupted downloads."""
    from codec_bench.terminal.output import talk
    from codec_bench.terminal.stopping import INTERRUPTED, ignore_interrupts
    from codec_bench.weights import checkpoint
    from codec_bench.weights.fetch import fetch as get

    for name in names:  # reports a wrong name before any download
        checkpoint(name)
    failures: list[tuple[str, UserError]] = []
    for name in names:
        try:
            with _show_downloads() as report_bytes:
                options: dict[str, Any] = {"source": source, "mirror": mirror, "to": to}
                fetched = get(name, **options, notify=talk, progress=report_bytes)
        except KeyboardInterrupt:
            ignore_interrupts()
            talk("stopped; the same command continues the download")
            raise typer.Exit(INTERRUPTED) from None
        except WeightsError as error:
            if len(names) == 1:
                raise
            failures.append((name, error))
            talk(f"error: {error.message}" + (f"\nhint: {error.hint}" if error.hint else ""))
        else:
            sys.stdout.write(f"{fetched.folder}\n")
    if failures:
        raise WeightsError(
            "checkpoints_not_fetched",
            failed=len(failures),
            checkpoints=len(names),
            names=", ".join((n for n, _ in failures)),
        )


def _checkpoint_facts(entry: Checkpoint) -> dict[str, Any]:
    """Describe a checkpoint, its files and where it is on this machine."""
    from codec_bench.weights import lookup

    located = lookup(entry.name)
    plain = ("name", "summary", "hub", "modelscope", "revision", "modelscope_revision", "homepage", "paper", "licence")
    return {
        **{name: getattr(entry, name) for name in (*plain, "non_commercial", "size", "about")},
        "files": [
            {"path": v.path, "size": v.size, "sha256": v.sha256, "url": v.url, "mirrors": list(v.mirrors),
             "optional": file.optional, "instead_of": None if v is file else file.path}
            for file in entry.files
            for v in file.variants
        ],
        "manual": entry.manual,
        "used_by": list(entry.used_by),
        "folder": str(located.folder) if located else None,
        "used": located.used if located else None,
        "size_here": sum((located.folder / file).stat().st_size for file in located.files) if located else None,
    }  # fmt: skip


def _checkpoint_cells(facts: dict[str, Any]) -> tuple[Any, ...]:
    """Format the cells of a checkpoint's line."""
    from codec_bench.weights.catalogue import readable

    sources = [facts["hub"] and f"hf:{facts['hub']}", facts["modelscope"] and f"ms:{facts['modelscope']}"]
    urls = [file["url"].split("/")[2] for file in facts["files"] if file["url"]]
    origins = [*filter(None, sources), *dict.fromkeys(urls)]
    mirrored = any(file["mirrors"] for file in facts["files"])
    by_hand = ["by hand"] if facts["manual"] or not (origins or mirrored) else []
    size = facts["size"] or facts["size_here"]
    return (
        facts["name"],
        ", ".join([*origins, *(["mirrors"] if mirrored else []), *by_hand]),
        (facts["revision"] or facts["modelscope_revision"] or "")[:12],
        readable(size) if size else f"about {readable(facts['about'])}" if facts["about"] else "",
        facts["licence"] + (" (non-commercial)" if facts["non_commercial"] else ""),
        "yes" if facts["folder"] else "no",
        ", ".join(facts["used_by"]),
    )


@contextmanager
def _show_downloads() -> Iterator[Callable[[str, int, int | None], None]]:
    """Show progress bars during the block; yields the callback of downloads."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), DownloadColumn(), TransferSpeedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    lines: dict[str, Any] = {}

    def update(file: str, done: int, total: int | None) -> None:
        if file not in lines:
            progress.start()  # not earlier: downloads from the hub draw their own lines
            lines[file] = progress.add_task(file, total=total)
        progress.update(lines[file], completed=done, total=total)

    try:
        yield update
    finally:
        progress.stop()
