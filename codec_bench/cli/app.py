"""The program: its commands in groups.

`codec-bench --help` needs the tables of commands alone; a module is imported by its command.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from codec_bench.cli.commands import COMMANDS, GROUPS
from codec_bench.registry import Command, added, load_attribute
from codec_bench.terminal.groups import StrictCommand, command_group


@cache
def table() -> dict[str, Command]:
    """All commands by name, in the order of `--help`: by group, and in each the common ones first."""
    found: dict[str, Command] = COMMANDS | added("COMMANDS")
    return dict(sorted(found.items(), key=lambda entry: (GROUPS.index(entry[1].group), not entry[1].common)))


@cache
def built(name: str) -> Any:
    """A command as typer makes it of its function, or of its group of commands."""
    made = load_attribute(table()[name].path)
    if isinstance(made, typer.Typer):
        return typer.main.get_command(made)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    alone.command(name, cls=StrictCommand, context_settings=getattr(made, "context_settings", None))(made)
    return typer.main.get_command(alone)


class _Commands(Mapping[str, Any]):
    """The commands by name; each is built when it is taken."""

    def __getitem__(self, name: str) -> Any:
        if name not in table():
            raise KeyError(name)
        return built(name)

    def __contains__(self, name: object) -> bool:
        return name in table()

    def __iter__(self) -> Iterator[str]:
        return iter(table())

    def __len__(self) -> int:
        return len(table())


class _Program(typer.core.TyperGroup):
    """The root of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes a list of commands for each group, a line for each command."""
        room = formatter.width - 6 - max(map(len, table()))
        for group in GROUPS:
            lines = {name: one.help for name, one in table().items() if one.group == group}
            # All lists have their second column at the same place.
            widest = max(map(len, table()))
            with formatter.section(group):
                formatter.write_dl(
                    [
                        (name.ljust(widest), textwrap.shorten(help, room, placeholder="..."))
                        for name, help in lines.items()
                    ]
                )


app = command_group("codec-bench", "Neural audio codecs and speech quality, measured right and fast.", cls=_Program)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from importlib.metadata import version as version_of

        sys.stdout.write(f"{version_of('codec-bench')}\n")
        raise typer.Exit()
