"""The options of commands, and the only reader of YAML: safe, with located errors.

A config is a mapping in `configs/<kind>/<name>.yaml`. Only plain YAML types are built, without tags; duplicate keys are
errors.

Which file to open
    `request.py` the options of `eval` and `score`; `run_request.py` and `profile_request.py` those of `run` and
    `profile`; `shared_options.py` common ones. `option.py` what an option is. `request_file.py` options from a file;
    `loading.py` the YAML loader. `paths.py` the cache folder, `bounded_cache.py` a cache of limited size,
    `file_content.py` hashes of files as keys. `limits.py` limits of a codec's process; `network.py` offline mode.
    `registry.py` resolves names in tables, installed packages and files; `custom_code.py` hashes code of the user.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import yaml

from codec_bench.config.loading import LONGEST, parse_yaml
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UnknownName, UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)

SUFFIX = ".yaml"
_SHOWN, _LISTED = 300, 10
Lines = dict[tuple[str | int, ...], int]


class Mark(NamedTuple):
    """The positions of a key and its value, as (line, column) from 1."""

    key: tuple[int, int]
    value: tuple[int, int]


Marks = dict[tuple[str | int, ...], Mark]


def load_yaml(path: str | os.PathLike[str] | Traversable) -> Any:
    """Load one YAML document with the safe types only.

    Raises:
        UserError: the file is not valid YAML, or has a duplicate key; the message names file, line and column.
    """
    return _load(path)[0]


def load_yaml_with_lines(path: str | os.PathLike[str] | Traversable) -> tuple[Any, Lines]:
    """Load as `load_yaml`; also return the line (from 1) of every key and list item.

    Returns:
        (document, {path: line}), a path being such as `("data", "columns", "audio")`.
    """
    document, node = _load(path)
    return document, {location: mark.key[0] for location, mark in _marks(node).items()}


def _load(path: str | os.PathLike[str] | Traversable) -> tuple[Any, yaml.Node | None]:
    """Parse a YAML file of limited size; returns its value and its root node."""
    file = Path(path) if isinstance(path, (str, os.PathLike)) else path
    if not file.is_file():
        raise UserError("no_file", path=file)
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UserError("file_not_readable", path=file, cause=error.strerror or error) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError("line_not_utf8_text", path=file, line=line, byte=error.start) from error
    if len(data) > LONGEST:
        raise UserError("file_too_long_for_yaml", path=file, bytes=len(data), most=LONGEST)
    return parse_yaml(text, str(file))


def load_yaml_with_marks(path: str | os.PathLike[str] | Traversable) -> tuple[Any, Marks]:
    """Load as `load_yaml`; also return the position of every key, value and list item."""
    document, node = _load(path)
    return document, _marks(node)


def _marks(node: yaml.Node | None) -> Marks:
    """Return all positions. What an alias repeats has its first one."""
    marks: Marks = {}
    seen: set[int] = set()
    waiting: list[tuple[tuple[str | int, ...], yaml.Node]] = [] if node is None else [((), node)]
    while waiting:
        path, here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        marks.setdefault(path, Mark(_position(here), _position(here)))
        if isinstance(here, yaml.MappingNode):
            for key, value in here.value:
                location = (*path, key.value) if isinstance(key, yaml.ScalarNode) else path
                marks[location] = Mark(_position(key), _position(value))
                waiting.append((location, value))
        elif isinstance(here, yaml.SequenceNode):
            waiting += [((*path, index), value) for index, value in enumerate(here.value)]
    return marks


def _position(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def parse_value(text: str) -> str | int | float | bool | dict[str, Any] | list[Any] | None:
    """Parse a command-line value as YAML: `6` is a number, `true` a bool, `null` None.

    `{temperature: 0, stop: [a]}` is a mapping if its keys are texts, and `["wer[answer]", cer]` a list, if JSON can
    hold them. Anything else (a date, broken YAML, a path with a colon) stays text.
    """
    try:
        value, _ = parse_yaml(text, "--set")
        mapping = (
            isinstance(value, dict) and text.lstrip().startswith("{") and all(isinstance(key, str) for key in value)
        )
        if mapping or (isinstance(value, list) and text.lstrip().startswith("[")):
            json.dumps(value)
            return value
    except (UserError, ValueError, TypeError):  # TypeError: a value that JSON does not have
        return text
    return value if value is None or isinstance(value, (str, int, float, bool)) else text


def check_settings(settings: Iterable[str], known: Iterable[str], kind: str, *, within: object = None) -> None:
    """Check that something reads the settings of every name (`--set`).

    Args:
        settings: their names. known: the names that are read. kind, within: of `UnknownName`.
    """
    known = list(known)
    for name in settings:
        if name not in known:
            raise UnknownName(kind, name, known, within=within)


def config_names(kind: str) -> list[str]:
    """Return the names of the configs of one kind, such as `codec`."""
    folder = _folder(kind)
    if not folder.is_dir():
        return []
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX))


@overload
def read_config(kind: str, name: str) -> dict[str, Any]: ...
@overload
def read_config(kind: str, name: str, schema: type[Schema]) -> Schema: ...
def read_config(kind: str, name: str, schema: type[BaseModel] | None = None) -> Any:
    """Load `configs/<kind>/<name>.yaml`, as a mapping or as a pydantic model.

    Raises:
        UnknownName: there is no such config; the message suggests the nearest.
        UserError: the file is not a mapping of strings, or does not fit the schema; the message names file and field.
    """
    file = _folder(kind) / f"{name}{SUFFIX}"
    is_path = Path(name).name != name
    if is_path or not file.is_file():
        error = UnknownName(f"{kind}_config", name, config_names(kind))
        if is_path:
            error.hint = f"it is a name and not a path: put the file into {_folder(kind)} and leave out {SUFFIX}"
        raise error
    document = load_mapping(file)
    return document if schema is None else fit(document, schema, source=str(file))


def load_mapping(file: str | os.PathLike[str] | Traversable) -> dict[str, Any]:
    """Load a YAML file that maps names to values."""
    document = load_yaml(file)
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise UserError("mapping_expected", path=file, type=type(document).__name__)
    return document


def fit(document: dict[str, Any], schema: type[Schema], *, source: str) -> Schema:
    """Validate a document with a pydantic model."""
    from pydantic import ValidationError

    try:
        return schema.model_validate(document)
    except ValidationError as error:
        # A list with wrong entries also counts as too short, because it has lost them.
        places = [one["loc"] for one in error.errors()]
        mistakes = [
            _describe_mistake(one, schema)
            for one in error.errors()
            if one["type"] != "too_short"
            or not any(location[: len(one["loc"])] == one["loc"] for location in places if location != one["loc"])
        ]
        more = max(0, len(mistakes) - _LISTED)
        raise UserError("does_not_fit", path=source, mistakes=mistakes[:_LISTED], more=more) from error


def _describe_mistake(error: Mapping[str, Any], schema: type[BaseModel]) -> Diagnostic:
    """Convert a validation error of pydantic to a code with parameters."""
    name = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return Diagnostic("missing_field", name=name)
    if error["type"] == "extra_forbidden":
        return Diagnostic("unknown_field", name=name, near=get_close_matches(name, sorted(schema.model_fields), n=2))
    return Diagnostic("wrong_field", name=name, message=mistake_of(error))


def invalid_value(code: str, **parameters: Any) -> ValueError:
    """The error of a schema's validator, which `fit` shows with its code."""
    return ValueError(Diagnostic(code, **parameters))


def mistake_of(error: Mapping[str, Any]) -> str:
    """The code of the validator that refused a value, or pydantic's words."""
    carried = next(iter(getattr(error.get("ctx", {}).get("error"), "args", ())), None)
    if isinstance(carried, Diagnostic):
        return carried
    message, value = error["msg"].removeprefix("Value error, "), error.get("input")
    scalar = value is None or isinstance(value, (str, int, float, list, tuple))
    message += f"; got {value!r}" if message.startswith("Input should be") and scalar else ""
    return message if len(message) <= _SHOWN else f"{message[:_SHOWN]}..."


def _folder(kind: str) -> Traversable:
    return files("codec_bench") / "configs" / kind


__all__ = [
    "Lines",
    "config_names",
    "fit",
    "invalid_value",
    "load_mapping",
    "load_yaml",
    "load_yaml_with_lines",
    "mistake_of",
    "parse_value",
    "read_config",
]
