"""How a command and a group of commands are made."""

from __future__ import annotations

from typing import Any

import typer
import typer.core

from codec_bench.errors import UserError


class StrictCommand(typer.core.TyperCommand):
    """A command whose options never take the next option as their value.

    A function may have the attribute `alone`: what options mean that are typed without a value, by their flags.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads what was typed.

        Raises:
            UserError: an option has no value.
        """
        alone = getattr(self.callback, "alone", {})
        with_value = {flag for one in self.params if not getattr(one, "is_flag", True) for flag in one.opts}
        place = 0
        while place < len(args) and args[place] != "--":
            word, follows = args[place], args[place + 1 : place + 2]
            place += 1
            if word not in with_value:
                continue
            if word in alone and (not follows or follows[0].startswith("--")):
                args = [*args[:place], alone[word], *args[place:]]
            elif follows and follows[0].startswith("--"):
                raise UserError(
                    f"{word} needs a value, and '{follows[0]}' follows",
                    hint=f"write {word}={follows[0]} if that is the value",
                )
            place += 1
        return super().parse_args(ctx, args)


class _Group(typer.Typer):
    def command(self, name: str | None = None, *, cls: Any = StrictCommand, **more: Any) -> Any:
        """Adds a command, as in typer."""
        return super().command(name, cls=cls, **more)


def command_group(name: str, help: str, **more: Any) -> typer.Typer:
    """A group of commands that prints its help when called without one."""
    return _Group(
        name=name, help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
        **more,
    )  # fmt: skip
