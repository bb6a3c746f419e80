"""`codec-bench data convert`: writes data of any layout as a manifest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from codec_bench.messages.errors import first_of
from codec_bench.terminal.groups import command_group
from codec_bench.terminal.options import Json

data_app = command_group("data", "Write data of any layout as a manifest.")


@data_app.command()
def convert(
    data: Annotated[str, typer.Argument(help="A folder or file in any layout that --data takes.")],
    to: Annotated[Path, typer.Option("--to", help="The manifest to write: FILE.jsonl or FILE.parquet.")],
    as_json: Json = False,
) -> None:
    """Write a manifest of data in any layout; exits with 3 if rows could not be used."""
    from codec_bench.data.convert import convert_data
    from codec_bench.terminal.output import print_json, talk

    rows, problems = convert_data(data, to)
    if as_json:
        facts = {"rows": rows, "to": str(to), "problems": problems}
        print_json(facts)
    else:
        sys.stdout.write(f"{rows} rows are in {to}\n")
        if problems:
            talk(f"{len(problems)} rows cannot be used: {first_of(list(problems.values()), 3, '; ')}")
    if problems:
        raise typer.Exit(3)
