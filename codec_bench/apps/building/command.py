"""`codec-bench build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codec_bench.messages.errors import UserError
from codec_bench.terminal.options import Json
from codec_bench.terminal.output import console, print_json, table, talk


def build(
    recipe: Annotated[str, typer.Argument(help="A recipe by name, or a YAML file.")],
    out: Annotated[Path | None,
        typer.Option("--out", help="The folder of the data set. Given again, an interrupted build goes on.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of all draws. Default: the recipe's.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Make at most this many items.")] = None,
    script: Annotated[Path | None,
        typer.Option("--script", help="In place of --out: write the sheet of the lines that people read aloud, with "
                                      "their file names.")] = None,
    review: Annotated[bool,
        typer.Option("--review", help="Write sheets on which people accept, edit or drop the usable "
                                      "questions.")] = False,
    reviewed: Annotated[list[Path] | None,
        typer.Option("--reviewed", help="A file that a reviewer saved; give the option once for each.")] = None,
    push: Annotated[str | None,
        typer.Option("--push", metavar="OWNER/NAME",
            help="Upload the data set to this repository of the Hugging Face hub.")] = None,
    private: Annotated[bool,
        typer.Option("--private", help="With --push: nobody else may see the repository.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Build a data set by a recipe, and check each item.

    Recipes: spoken texts, joined recordings, mixtures or questions. Every dropped item is counted.
    """
    from codec_bench.apps.building.api import build as build_set

    if (out is None) == (script is None):
        raise UserError("no_build_output", hint="--out DIR builds the data set")
    if script is not None and (review or reviewed or push):
        raise UserError("script_builds_nothing")
    if script is not None:
        from codec_bench.apps.building.joined import write_script

        lines, excluded = write_script(recipe, script, seed=seed, limit=limit)
        if as_json:
            print_json({"script": str(script), "lines": lines, "left_out": excluded})
        talk(f"{script} has {lines:,} lines to read")
        for reason, count in excluded.items():
            talk(f"{count:,} items are excluded: {reason}")
        if not lines:
            raise typer.Exit(3)
    if out is None:
        return
    built = build_set(
        recipe,
        out=out,
        seed=seed,
        limit=limit,
        review=review,
        reviewed=reviewed or (),
        push=push,
        private=private,
        notify=talk,
    )
    funnel = built.funnel
    if as_json:
        report = {
            "folder": str(built.folder),
            "made": built.num_new,
            "wanted": built.target,
            "shortage": built.shortage or None,
            "pushed": built.pushed,
            "sheets": list(map(str, built.sheets)),
        }
        print_json({**report, **funnel.as_dict()})
    else:
        rows = [(step, str(left), reason, str(count or "")) for step, left, reason, count in funnel.rows()]
        console().print(table(("step", "items", "dropped because", "dropped"), rows))
    if funnel.usable:
        run = f"codec-bench run {built.folder / 'benchmark.yaml'} --model NAME"
        talk(f"{funnel.usable:,} of {funnel.items:,} items are usable: {run}")
    if built.shortage:
        talk(built.shortage)
    for sheet in built.sheets:
        talk(f"review sheet: {sheet}")
    if built.pushed is not None:
        talk(f"pushed to {built.pushed}")
    if built.shortage:
        raise typer.Exit(3)
