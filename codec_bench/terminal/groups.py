"""Commands and groups of commands."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, get_type_hints

import typer
import typer.core

from codec_bench.config.option import kind_of
from codec_bench.messages.errors import UserError
from codec_bench.terminal.output import errors_as_json


class StrictCommand(typer.core.TyperCommand):
    """A command whose options have one value each and never the next option.

    An option of several values (`OptionKind.several` in its annotation) may be repeated. A function's attribute `alone`
    maps flags to the values of options that are typed without one.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line."""
        with errors_as_json(self._json_option is not None and "--json" in takewhile(lambda word: word != "--", args)):
            return self._join_values(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Call the command."""
        with errors_as_json(self._json_option is not None and bool(ctx.params.get(self._json_option))):
            return super().invoke(ctx)

    @property
    def _json_option(self) -> str | None:
        """The parameter of `--json`, or None."""
        return next((one.name for one in self.params if "--json" in one.opts), None)

    def _join_values(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the values of options that take several, before click parses them."""
        alone, several = getattr(self.callback, "alone", {}), self._take_several()
        parameters = [one for one in self.params if one.param_type_name == "option"]
        options = {flag: one for one in parameters for flag in (*one.opts, *one.secondary_opts)}
        words, rest = list[str](), list(args)
        positions: dict[Any, int] = {}  # by option, the index of its first value in the words
        while rest and rest[0] != "--":
            word = rest.pop(0)
            flag, equals, value = word.partition("=")
            option: Any = options.get(flag)
            if option is not None and not option.is_flag and not equals:
                if rest and not rest[0].startswith("--"):
                    value = rest.pop(0)
                elif flag in alone:
                    value = alone[flag]
                elif rest:
                    raise UserError(
                        "value_missing", option=flag, word=rest[0], hint=f"write {flag}={rest[0]} if that is the value"
                    )
                else:
                    option = None  # click names the missing value
                word = word if option is None else f"{flag}={value}"
            position = (
                len(words) if option is None or option.multiple else positions.setdefault(option.name, len(words))
            )
            if position == len(words):
                words.append(word)
            elif option.name in several:
                words[position] += f",{value}"
            elif words[position] != word or not option.is_flag:
                raise UserError("got_both", one=words[position], other=word, hint="leave one of them out")
        return super().parse_args(ctx, [*words, *rest])

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence whole; a list of commands wraps it where click would cut it."""
        return " ".join((self.help or "").partition("\n\n")[0].split())

    def _take_several(self) -> set[str]:
        hints = get_type_hints(self.callback, include_extras=True)
        return {name for name, hint in hints.items() if (kind := kind_of(hint)) is not None and kind.several}


class _Group(typer.Typer):
    def command(self, name: str | None = None, *, cls: Any = StrictCommand, **more: Any) -> Any:
        """Add a command, as in typer."""
        return super().command(name, cls=cls, **more)


def command_group(name: str, help: str, **more: Any) -> typer.Typer:
    """Return a group of commands that prints its help without arguments."""
    options: dict[str, Any] = {"no_args_is_help": True, "add_completion": False, "pretty_exceptions_enable": False}
    return _Group(name=name, help=help, rich_markup_mode=None, **options, **more)
