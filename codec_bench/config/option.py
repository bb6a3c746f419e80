"""The definition of an option, for the declarations in `request.py`."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass
from typing import Annotated, Any, Literal, TypeVar

from codec_bench.messages.errors import UserError

Of = Literal["verb", "running", "cluster", "terms", "settings", "terminal"]
_WIDTH = 128
_Documented = TypeVar("_Documented", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class OptionKind:
    """The values that an option takes.

    Args:
        expected: the values, a key of `codec_bench.messages.general.VALUES`.
        typed: the type on the command line. several: whether values have commas, or the option is repeated.
    """

    expected: str
    typed: Any
    several: bool = False


Text = Annotated[str, OptionKind("text", str)]
PathText = Annotated[str, OptionKind("text", "path")]
WholeNumber = Annotated[int, OptionKind("whole_number", int)]
Number = Annotated[float, OptionKind("number", float)]
Flag = Annotated[bool, OptionKind("flag", bool)]
SEVERAL = OptionKind("texts", str, several=True)
Texts = Annotated[str | list[str], SEVERAL]
Columns = Annotated[str | list[str], OptionKind("texts", "columns")]
Rows = Annotated[
    str | list[str] | dict[str, str],
    OptionKind("rows", str, several=True),
]
Retention = Annotated[str | int, OptionKind("retention", str)]
Settings = Annotated[dict[str, dict[str, Any]], OptionKind("settings", "settings")]
_ANY = OptionKind("", str)


def names(value: str | Iterable[str]) -> list[str]:
    """Split names from a list or from one string with commas."""
    parts = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    for item in parts:
        if not isinstance(item, str):
            got = f"the class {item.__name__}" if isinstance(item, type) else f"a {type(item).__name__}"
            raise UserError("name_type", type=got, hint="a custom class is './FILE.py:CLASS'")
    return [p.strip() for p in parts if p.strip()]


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command.

    Args:
        help: the sentence of `--help`.
        python: its description as an argument in Python; empty for that of `--help`.
        of: its target: an argument of the verb, a field of `Running`, of `OnRay` (cluster), of `Terms` or of the
            `settings` of a profile, or nothing beyond the terminal.
        named: its name there, if different.
        instead_of: synonymous options. If one of them is typed, this one's value in a file does not count.
        positional: whether it is typed without its name.
        alone: its value when typed without one; empty if it needs one.
        least, over: lower bounds of a number, inclusive and exclusive.
        name, type, kind, default: of the field. The default of a required option is `...`.
    """

    help: str
    python: str = ""
    of: Of = "verb"
    named: str = ""
    instead_of: tuple[str, ...] = ()
    positional: bool = False
    alone: str = ""
    least: float | None = None
    over: float | None = None
    name: str = ""
    type: Any = None
    kind: OptionKind = _ANY
    default: Any = ...

    @property
    def there(self) -> str:
        """Its name in Python."""
        return self.named or self.name

    @property
    def flag(self) -> str:
        """Its flags; an option that is on by default is switched off with `--no-`."""
        word = self.name.replace("_", "-")
        return f"--{word}/--no-{word}" if self.default is True else f"--{word}"


def option(default: Any, help: str, **more: Any) -> Any:
    """Return the dataclass field of an option; `more` are arguments of `Option`."""
    held = MISSING if default is ... else default
    return dataclasses.field(default=held, metadata={"option": Option(help, **more)})


def options_of(schema: type[Any]) -> dict[str, Option]:
    """Return the options of a schema by name, its own before inherited ones."""
    fields = {one.name: one for one in dataclasses.fields(schema)}
    hints = typing.get_type_hints(schema, include_extras=True)
    options = {}
    for name in dict.fromkeys(
        name for cls in schema.__mro__ for name in inspect.get_annotations(cls) if name in fields
    ):
        declared = fields[name].metadata.get("option")
        if declared is not None and name not in getattr(schema, "without", ()):
            default = ... if fields[name].default is MISSING else fields[name].default
            kind = kind_of(hints[name])
            options[name] = dataclasses.replace(declared, name=name, type=hints[name], kind=kind, default=default)
    return options


def kind_of(hint: Any) -> Any:
    """Return the kind within a type such as `Text | None`, or None."""
    kinds = [extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, OptionKind)]
    return kinds[0] if kinds else next(filter(None, map(kind_of, typing.get_args(hint))), None)


def documented(schema: type[Any], of: Of = "verb") -> Callable[[_Documented], _Documented]:
    """Write a schema's options into a docstring, first among its `Args`."""

    def written(target: _Documented) -> _Documented:
        if target.__doc__ is not None:  # without `python -OO`
            head, mark, rest = target.__doc__.partition("Args:\n")
            indent = " " * (len(head) - len(head.rstrip(" ")))
            parameters = inspect.signature(target).parameters
            entries = [
                entry(one, indent + " " * 4)
                for one in options_of(schema).values()
                if one.of == of and one.there in parameters and f"\n{indent}    {one.there}:" not in f"\n{rest}"
            ]
            target.__doc__ = f"{head}{mark}{''.join(entries)}{rest}"
        return target

    return written


def entry(one: Option, indent: str) -> str:
    """Return an option as an entry of `Args`."""
    line = f"{one.there}: {one.python or one.help[:1].lower() + one.help[1:]}"
    return (
        textwrap.fill(line, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}    ", break_on_hyphens=False)
        + "\n"
    )
