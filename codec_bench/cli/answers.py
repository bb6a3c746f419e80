"""`codec-bench answers list|forget`: shows and clears the answers of models that are kept for other runs."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from codec_bench.errors import UserError
from codec_bench.terminal.groups import command_group

if TYPE_CHECKING:
    from codec_bench.models.cache import ResponseCache

answers_app = command_group("answers", "Answers of models that are kept for other runs: list and forget them.")


@answers_app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of a table.")] = False) -> None:
    """List the models whose answers are kept: how many there are, their size, and when one was last used."""
    from codec_bench.terminal.output import console, table

    cache = _opened()
    try:
        kept = cache.kept()
    finally:
        cache.close()
    rows = [
        {"model": one.model, "answers": one.answers, "mb": round(one.size_bytes / 1e6, 3),
         "last used": datetime.fromtimestamp(one.used).isoformat(" ", "minutes")}
        for one in kept
    ]  # fmt: skip
    if as_json:
        sys.stdout.write(json.dumps(rows, ensure_ascii=False) + "\n")
        return
    named = [(row["model"], row["answers"], f"{row['mb']:.1f}", row["last used"]) for row in rows]  # fmt: skip
    console().print(table(("model", "answers", "MB", "last used"), named, numeric=("answers", "MB")))


@answers_app.command()
def forget(
    model: Annotated[str | None, typer.Argument(help="The model's name, as `answers list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Forget the answers of every model.")] = False,
) -> None:
    """Forget the kept answers of a model, so that other runs ask it again. Records of runs stay as they are."""
    from codec_bench.terminal.output import talk

    if (model is None) != everything:
        raise UserError("expected the name of a model, or --all", hint="codec-bench answers list shows the names")
    cache = _opened()
    try:
        names = [one.model for one in cache.kept()]
        if model is not None and model not in names:
            raise UserError(f"no answers of a model '{model}' are kept", hint=f"there are {', '.join(names) or 'none'}")  # fmt: skip
        count = cache.forget(None if everything else model)
    finally:
        cache.close()
    talk(f"{count:,} answer{'s are' if count != 1 else ' is'} forgotten")


def _opened() -> ResponseCache:
    from codec_bench.models.cache import ResponseCache

    cache = ResponseCache.of_user()
    if cache.trouble is not None:
        raise UserError(cache.trouble)
    return cache
