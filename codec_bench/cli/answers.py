"""`codec-bench answers list|forget`: lists and deletes cached answers of models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from codec_bench.messages.errors import UserError
from codec_bench.terminal.groups import command_group

answers_app = command_group("answers", "List and delete cached answers of models.")


@answers_app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of a table.")] = False) -> None:
    """List the models with cached answers: how many, their size, and the last use."""
    from codec_bench.api.cached_answers import list_cached_answers
    from codec_bench.terminal.output import console, print_json, table

    rows = [
        {"model": one.model, "answers": one.answers, "mb": round(one.size_bytes / 1e6, 3),
         "last used": datetime.fromtimestamp(one.used).isoformat(" ", "minutes")}
        for one in list_cached_answers()
    ]  # fmt: skip
    if as_json:
        return print_json(rows)
    named = [(row["model"], row["answers"], f"{row['mb']:.1f}", row["last used"]) for row in rows]  # fmt: skip
    console().print(table(("model", "answers", "MB", "last used"), named, numeric=("answers", "MB")))


@answers_app.command("forget")
def evict(
    model: Annotated[str | None, typer.Argument(help="The model's name, as `answers list` shows it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Forget the answers of every model.")] = False,
) -> None:
    """Delete the cached answers of a model. Records of runs stay as they are."""
    from codec_bench.api.cached_answers import evict_answers
    from codec_bench.terminal.output import talk

    if (model is None) != everything:
        raise UserError("model_or_all_expected", hint="codec-bench answers list shows the names")
    count = evict_answers(model)
    talk(f"{count:,} answer{'s are' if count != 1 else ' is'} forgotten")
