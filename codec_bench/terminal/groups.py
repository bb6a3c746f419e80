"""How a group of commands is made."""

from __future__ import annotations

from typing import Any

import typer


def command_group(name: str, help: str, **more: Any) -> typer.Typer:
    """An application of commands that is told what it is for when no command is given, in plain text."""
    return typer.Typer(
        name=name, help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
        **more,
    )  # fmt: skip
