"""The program: its commands in groups. Each command's module is imported on use."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any

import typer
import typer.main

from codec_bench.cli.commands import COMMANDS, GROUPS
from codec_bench.config.registry import Command, added, load_attribute
from codec_bench.terminal.groups import StrictCommand, command_group


@cache
def command_table() -> dict[str, Command]:
    """Return all commands by name, in the order of `--help`."""
    commands: dict[str, Command] = COMMANDS | added("COMMANDS")
    return dict(sorted(commands.items(), key=lambda entry: (GROUPS.index(entry[1].group), not entry[1].common)))


@cache
def build_command(name: str) -> Any:
    """Return the command of a function or of a group of commands."""
    target = load_attribute(command_table()[name].path)
    if isinstance(target, typer.Typer):
        return typer.main.get_group(target)  # a group of one command too
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    single.command(name, cls=StrictCommand, context_settings=getattr(target, "context_settings", None))(target)
    return typer.main.get_command(single)


class _Commands(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        if name not in command_table():
            raise KeyError(name)
        return build_command(name)

    def __contains__(self, name: object) -> bool:
        return name in command_table()

    def __iter__(self) -> Iterator[str]:
        return iter(command_table())

    def __len__(self) -> int:
        return len(command_table())


class _Program(typer.core.TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of commands for each group."""
        widest = max(map(len, command_table()))  # aligns the second columns of all lists
        for group in GROUPS:
            rows = [(name.ljust(widest), one.help) for name, one in command_table().items() if one.group == group]
            with formatter.section(group):
                formatter.write_dl(rows)


app = command_group("codec-bench", "Neural audio codecs and speech quality, measured right and fast.", cls=_Program)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from importlib.metadata import version as version_of

        sys.stdout.write(f"{version_of('codec-bench')}\n")
        raise typer.Exit()
