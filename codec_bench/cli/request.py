"""`--config`: the options of a command from a file. What is typed on the command line wins over the file.

How it works
    The option is read before all others, and what the file holds becomes the default of each option. `--set` is added to
    the settings of the file, after them. Two options that name the same thing in two ways, such as `--metrics` and
    `--preset`, count as one: if one of them is typed, the file's other one is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from codec_bench.errors import UserError

_META = "codec_bench.settings"
_LISTS = {"set", "by"}
"""Options that may be typed several times."""


def _read(context: typer.Context, path: Path | None) -> Path | None:
    """Makes what the file holds the defaults of the command."""
    from codec_bench.config.request import COMMANDS, read_request

    if path is None or context.resilient_parsing:
        return path
    command = next(name for name in COMMANDS if name == context.info_name)
    _, options = read_request(path, command)
    by_option = {_option(parameter): parameter.name for parameter in context.command.params}
    context.meta[_META] = settings_of(options.pop("set", {}), path)
    context.default_map = {by_option[name]: _typed(name, value) for name, value in options.items()}
    return path


def _option(parameter: Any) -> str:
    """The key of an option in a file: its long name."""
    longest = max(parameter.opts, key=len)
    return str(longest).lstrip("-").replace("-", "_")


def _typed(name: str, value: Any) -> Any:
    """A value of the file as it would be typed."""
    if isinstance(value, dict):
        value = [f"{row}={what}" for row, what in value.items()]
    if isinstance(value, list):
        value = ",".join(value)
    if name in _LISTS:
        return [value]
    return value if isinstance(value, (bool, float)) else str(value)


def settings_of(given: dict[str, dict[str, Any]], path: Path) -> list[str]:
    """Settings of a file as they would be typed: `NAME.OPTION=VALUE`.

    Raises:
        UserError: a value cannot be typed.
    """
    import yaml

    from codec_bench.config import parse_value

    typed = []
    for name, options in given.items():
        for option, value in options.items():
            text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True)
            text = text.removesuffix("\n").removesuffix("\n...")
            if parse_value(text) != value:
                raise UserError(
                    f"'{path}': the value of {name}.{option} is {type(value).__name__}; expected a text, a number, true, false, or "
                    "a mapping"
                )
            typed.append(f"{name}.{option}={text}")
    return typed


def with_settings(context: typer.Context, settings: list[str] | None) -> list[str]:
    """The settings of the file, then those that were typed, so that these win."""
    return [*context.meta.get(_META, []), *(settings or [])]


def unless(*others: str) -> Callable[..., Any]:
    """A callback for an option that says the same as others: its value in the file does not count if one of these is typed.

    Args:
        others: the names of the command's arguments in Python.
    """

    def chosen(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        source = context.get_parameter_source(parameter.name or "")
        typed = [context.get_parameter_source(other) for other in others]
        from_file = source is not None and source.name == "DEFAULT_MAP"
        if from_file and any(one is not None and one.name == "COMMANDLINE" for one in typed):
            return "" if isinstance(parameter.default, str) else None
        return value

    return chosen


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A YAML file with options, or the run.json of a run, which is repeated. Options that are typed win.",
        callback=_read,
        is_eager=True,
    ),
]
