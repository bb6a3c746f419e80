"""Builds the command of a request schema, with `--config`.

`--config` is read first, and the file's values become the defaults, so typed options win. `--set` comes after the
file's settings. Of two synonymous options, such as `--metrics` and `--preset`, a typed one hides the file's other one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from codec_bench.config.option import Option, names, options_of
from codec_bench.config.request import COMMANDS, REQUESTS, CommandOptions
from codec_bench.messages.errors import UserError

_META = "codec_bench.settings"
_TYPED: dict[Any, Any] = {"path": Path, "columns": list[str], "settings": list[str]}
"""The command-line types of some kinds."""
_Filled = TypeVar("_Filled", bound=CommandOptions)


def option_parameter(schema: type[Any], name: str, **more: Any) -> Any:
    """Return a schema's option as typer's parameter, for other commands."""
    return _build_parameter(options_of(schema)[name], **more)


def command(schema: type[_Filled]) -> Callable[[Callable[[_Filled], None]], Callable[..., None]]:
    """Turn a function of a request into a command with the schema's options."""

    def decorate(act: Callable[[_Filled], None]) -> Callable[..., None]:
        options = options_of(schema)

        def fill(values: Mapping[str, Any]) -> _Filled:
            return schema(**{name: _read_back(one, values[name]) for name, one in options.items()})

        def run(**values: Any) -> None:
            act(fill(values))

        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=_annotation(one), default=_default(one))
            for name, one in options.items()
        ]
        # After required options, before others.
        position = next(n for n, one in enumerate(options.values()) if one.default is not ... and not one.positional)
        config = inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, annotation=Config, default=None)
        parameters.insert(position, config)
        run.alone = {one.flag: one.alone for one in options.values() if one.alone}  # type: ignore[attr-defined]
        run.filled = fill  # type: ignore[attr-defined]  # parses a request without executing it
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__, run.__module__, run.__doc__ = act.__name__, act.__module__, act.__doc__
        return run

    return decorate


def _annotation(one: Option) -> Any:
    kind = _TYPED.get(one.kind.typed, one.kind.typed)
    return Annotated[kind if one.default is not None else kind | None, _build_parameter(one), one.kind]


def _default(one: Option) -> Any:
    return inspect.Parameter.empty if one.default is ... else one.default


def _build_parameter(one: Option, **more: Any) -> Any:
    """Build typer's parameter of an option, with its callback."""
    if one.kind.typed == "settings":
        more["callback"] = with_settings
    elif one.instead_of:
        more["callback"] = unless(*one.instead_of)
    elif one.least is not None or one.over is not None:
        more["callback"] = _within_limits(one)
    return typer.Argument(help=one.help, **more) if one.positional else typer.Option(one.flag, help=one.help, **more)


def _within_limits(one: Option) -> Callable[..., Any]:
    """Return a callback that refuses values outside an option's limits."""

    def checked(value: float | None) -> float | None:
        if value is not None and one.least is not None and value < one.least:
            raise UserError("option_out_of_range", option=one.flag, value=value, least=one.least)
        if value is not None and one.over is not None and value <= one.over:
            raise UserError("option_out_of_range", option=one.flag, value=value, over=one.over)
        return value

    return checked


def _read_back(one: Option, value: Any) -> Any:
    if one.kind.typed == "settings":
        return parse_settings(value or [])
    if one.kind.typed == "columns":
        return columns(value or None)  # typer makes None of no value, and click an empty one
    return str(value) if isinstance(value, Path) else value


def values_of(request: CommandOptions) -> dict[str, Any]:
    """Return the values of a request by the names of its options."""
    return {name: getattr(request, name) for name in options_of(type(request))}


def _read_defaults(context: typer.Context, path: Path | None) -> Path | None:
    """Read a request file, whose values become the defaults of the options."""
    from codec_bench.config.request_file import read_request

    if path is None or context.resilient_parsing:
        return path
    name = next(name for name in COMMANDS if name == context.info_name)
    _, values = read_request(path, name)
    context.meta[_META] = settings_of(values.pop("set", {}), path)
    options = options_of(REQUESTS[name])
    context.default_map = {name: _as_typed(options[name], value) for name, value in values.items()}
    return path


def _as_typed(one: Option, value: Any) -> Any:
    """Convert a value of a file to what the command line would have."""
    if isinstance(value, dict):
        value = [f"{row}={setting}" for row, setting in value.items()]
    if isinstance(value, list):
        value = ",".join(value)
    if one.kind.typed == "columns":
        return [value]
    return value if isinstance(value, (bool, float)) else str(value)


def columns(by: list[str] | None) -> list[str] | None:
    """Return the columns of `--by`, or None without the option."""
    if by is None:
        return None
    selected = [name for text in by for name in names(text)]
    if not selected:
        raise UserError("by_without_column", hint="for example --by speaker or --by speaker,duration")
    return selected


def parse_settings(settings: list[str]) -> dict[str, dict[str, Any]]:
    """Parse `["dnsmos.weights=DIR"]` to {"dnsmos": {"weights": "DIR"}} (YAML values)."""
    from codec_bench.config import parse_value

    options: dict[str, dict[str, Any]] = {}
    for text in settings:
        path, equals, value = text.partition("=")
        name, dot, option = path.rpartition(".")
        if not (equals and dot and name and option):
            raise UserError("setting_form", setting=text, hint="for example --set dnsmos.weights=DIR")
        options.setdefault(name, {})[option] = parse_value(value)
    return options


def settings_of(settings: dict[str, dict[str, Any]], path: Path) -> list[str]:
    """Format settings of a file as typed: `NAME.OPTION=VALUE`."""
    import yaml

    from codec_bench.config import parse_value

    typed = []
    for name, options in settings.items():
        for option, value in options.items():
            text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True)
            text = text.removesuffix("\n").removesuffix("\n...")
            if parse_value(text) != value:
                kind = type(value).__name__
                raise UserError("setting_type", path=path, setting=f"{name}.{option}", type=kind)
            typed.append(f"{name}.{option}={text}")
    return typed


def with_settings(context: typer.Context, settings: list[str] | None) -> list[str]:
    """Return the file's settings, then the typed ones, so that these win."""
    return [*context.meta.get(_META, []), *(settings or [])]


def unless(*others: str) -> Callable[..., Any]:
    """Return a callback that ignores an option's file value if a synonym is typed."""

    def chosen(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        source = context.get_parameter_source(parameter.name or "")
        typed = [context.get_parameter_source(other) for other in others]
        from_file = source is not None and source.name == "DEFAULT_MAP"
        if from_file and any(one is not None and one.name == "COMMANDLINE" for one in typed):
            return "" if isinstance(parameter.default, str) else None
        return value

    return chosen


_CONFIG = "A YAML file with options, or the run.json of a run, which is repeated. Options that are typed win."
Config = Annotated[Path | None, typer.Option("--config", help=_CONFIG, callback=_read_defaults, is_eager=True)]
