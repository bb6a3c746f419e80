"""What a command can be asked for, and the only reader of YAML: safe loading, and errors that name the file and the
line.

Conventions
    A config is `configs/<kind>/<name>.yaml` inside the package; its top level is a mapping.
    Nothing in a file is executed: only plain YAML types are built, without tags. A key that is given twice is an error.

Which file to open
    `request.py`     the options of `eval` and `score`, each declared once; `run_request.py` and `profile_request.py`
                     are those of `run` and `profile`, and `shared_options.py` those of several. `option.py` says what
                     an option is.
    `request_file.py`  the same options from a file; `loading.py` is the loader of YAML, `paths.py` the folder of
                       caches, `bounded_cache.py` a cache of bounded size in it, and `file_content.py` the hashes of
                       files, which are the keys of caches.
    `limits.py`      what the process of a codec may take; `network.py` whether the network may be used.
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
from codec_bench.errors import UnknownName, UserError

if TYPE_CHECKING:
    from pydantic import BaseModel

    Schema = TypeVar("Schema", bound=BaseModel)

SUFFIX = ".yaml"
_SHOWN, _LISTED = 300, 10
Lines = dict[tuple[str | int, ...], int]


class Mark(NamedTuple):
    """Where a key and its value stand, each as (line, column) counted from 1; an item of a list has no key of its own."""

    key: tuple[int, int]
    value: tuple[int, int]


Marks = dict[tuple[str | int, ...], Mark]


def load_yaml(path: str | os.PathLike[str] | Traversable) -> Any:
    """Reads one YAML document with the safe types only (mappings, lists, strings, numbers, dates, null).

    Raises:
        UserError: the file is not valid YAML, or a key is given twice; the message names the file, the line and the
            column.
    """
    return _load(path)[0]


def load_yaml_with_lines(path: str | os.PathLike[str] | Traversable) -> tuple[Any, Lines]:
    """Reads as `load_yaml` does, and also gives the line of every key and of every item of a list.

    Returns:
        (document, {path: line counted from 1}), a path being such as `("data", "columns", "audio")`).
    """
    document, node = _load(path)
    return document, {location: mark.key[0] for location, mark in _marks(node).items()}


def _load(path: str | os.PathLike[str] | Traversable) -> tuple[Any, yaml.Node | None]:
    file = Path(path) if isinstance(path, (str, os.PathLike)) else path
    if not file.is_file():
        raise UserError(f"there is no file '{file}'")
    try:
        data = file.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"'{file}' cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"'{file}', line {line}: it is not UTF-8 text (byte {error.start})") from error
    if len(data) > LONGEST:
        raise UserError(f"'{file}' has {len(data)} bytes; a YAML file may have {LONGEST}")
    return parse_yaml(text, str(file))


def load_yaml_with_marks(path: str | os.PathLike[str] | Traversable) -> tuple[Any, Marks]:
    """Reads as `load_yaml` does, and also gives where every key, value and item of a list stands.

    Returns:
        (document, {path: where}), a path being such as `("data", "columns", "audio")`.
    """
    document, node = _load(path)
    return document, _marks(node)


def _marks(node: yaml.Node | None) -> Marks:
    """Where every key and item stands. What an alias repeats is listed where it stands first."""
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
    """Reads a value typed on the command line as YAML would: `6` is a number, `true` a truth value, `null` None.

    `{temperature: 0, stop: [a]}` is a mapping if its keys are texts, and `["wer[answer]", cer]` a list, if their values
    could stand in JSON. Anything else (a date, broken YAML, a path with a colon) stays text.
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


def check_settings(settings: Iterable[str], known: Iterable[str], room: str) -> None:
    """Checks that something reads the settings of every name, as `--set NAME.OPTION=VALUE` gives them.

    Args:
        settings: their names. known: the names that are read. room: what these are, such as `codec or feature`.

    Raises:
        UnknownName: nothing reads the settings of a name; the message suggests the nearest.
    """
    known = list(known)
    for name in settings:
        if name not in known:
            raise UnknownName(room, name, known)


def config_names(kind: str) -> list[str]:
    """The names of the configs of one kind, such as `codec`; empty if there is no folder of that kind."""
    folder = _folder(kind)
    if not folder.is_dir():
        return []
    return sorted(file.name.removesuffix(SUFFIX) for file in folder.iterdir() if file.name.endswith(SUFFIX))


@overload
def read_config(kind: str, name: str) -> dict[str, Any]: ...
@overload
def read_config(kind: str, name: str, schema: type[Schema]) -> Schema: ...
def read_config(kind: str, name: str, schema: type[BaseModel] | None = None) -> Any:
    """Reads `configs/<kind>/<name>.yaml`.

    Args:
        schema: a pydantic model to check the file against and to return it as.

    Raises:
        UnknownName: there is no such config; the message suggests the nearest.
        UserError: the file is not a mapping of strings, or does not fit the schema; the message names file and field.
    """
    file = _folder(kind) / f"{name}{SUFFIX}"
    is_path = Path(name).name != name
    if is_path or not file.is_file():
        error = UnknownName(f"{kind} config", name, config_names(kind))
        if is_path:
            error.hint = (
                f"it is named and not given as a path: put the file into {_folder(kind)} and leave out {SUFFIX}"
            )
        raise error
    document = load_mapping(file)
    return document if schema is None else fit(document, schema, source=str(file))


def load_mapping(file: str | os.PathLike[str] | Traversable) -> dict[str, Any]:
    """Reads a YAML file that maps names to values.

    Raises:
        UserError: the file cannot be read, is not YAML or holds something else.
    """
    document = load_yaml(file)
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise UserError(f"'{file}' holds {type(document).__name__}; expected a mapping of names to values")
    return document


def fit(document: dict[str, Any], schema: type[Schema], *, source: str) -> Schema:
    """Checks a document against a pydantic model.

    Raises:
        UserError: a field does not fit; the message names `source`, every such field, and why.
    """
    from pydantic import ValidationError

    try:
        return schema.model_validate(document)
    except ValidationError as error:
        # A list whose entries are wrong is told to be too short beside: it has lost them.
        places = [one["loc"] for one in error.errors()]
        mistakes = [
            _mistake(one, schema)
            for one in error.errors()
            if one["type"] != "too_short"
            or not any(location[: len(one["loc"])] == one["loc"] for location in places if location != one["loc"])
        ]
        wrong = "; ".join(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..." for text in mistakes[:_LISTED])
        wrong += f"; and {len(mistakes) - _LISTED} more" if len(mistakes) > _LISTED else ""
        raise UserError(f"'{source}' does not fit: {wrong}") from error


def _mistake(error: Mapping[str, Any], schema: type[BaseModel]) -> str:
    """What is wrong at one place of a document: what was expected there, and what it holds."""
    name = ".".join(map(str, error["loc"])) or "the file"
    if error["type"] == "missing":
        return f"the field '{name}' is missing"
    if error["type"] == "extra_forbidden":
        near = get_close_matches(name, sorted(schema.model_fields), n=2)
        return f"there is no field '{name}'" + (f"; did you mean {' or '.join(near)}?" if near else "")
    message, value = error["msg"].removeprefix("Value error, "), error["input"]
    scalar = value is None or isinstance(value, (str, int, float, list, tuple))
    return f"{name}: {message}" + (f"; got {value!r}" if message.startswith("Input should be") and scalar else "")


def _folder(kind: str) -> Traversable:
    return files("codec_bench") / "configs" / kind


__all__ = [
    "Lines",
    "config_names",
    "fit",
    "load_mapping",
    "load_yaml",
    "load_yaml_with_lines",
    "parse_value",
    "read_config",
]
