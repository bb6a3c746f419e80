"""Find definitions and build entries: `matrix`, `extends`, settings, the schema.

A definition is a file `benchmark.yaml` in a separate folder: the project's in
`benchmarks/<understanding|generation|qa|codec>/<family>/`, a user's at a path such as `./mine`, or `./mine:ENTRY` if it
has several entries. Names are in lower case with hyphens; a look-up ignores case and `_` or `-`.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from codec_bench.benchmark.definition.finding import Location, findings, fit_lines, line_of
from codec_bench.benchmark.definition.prompt import canonical
from codec_bench.benchmark.definition.schema import FORM, BenchmarkSpec
from codec_bench.config import Lines, load_yaml, load_yaml_with_lines
from codec_bench.config.paths import hint_for_path
from codec_bench.messages.errors import UnknownName, UserError

FILE = "benchmark.yaml"
KINDS = ("understanding", "generation", "qa", "codec")
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
PINNED = {"revision": "revision", "size": "size", "rows_digest": "rows_digest", "types": "columns"}
"""Facts that a definition may take from its `data.pins`, with their names there."""
_KEY = re.compile(r"(?<!\{)\{([a-z][a-z0-9_]*)\}(?!\})")


@dataclass(frozen=True, slots=True)
class DefinitionEntry:
    """One benchmark of a definition, before the schema was applied.

    Args:
        document: its part of the definition, as YAML values.
        lines: line of each place of the document.
        family: name of the definition's folder.
    """

    name: str
    document: Mapping[str, Any]
    lines: Lines
    file: str
    family: str


@cache
def definitions() -> tuple[Traversable, ...]:
    """The YAML files that define the project's benchmarks, by kind and family."""
    paths: list[Traversable] = []
    for kind in KINDS:
        folder = files("codec_bench") / "benchmarks" / kind
        if folder.is_dir():
            families = sorted((f for f in folder.iterdir() if (f / FILE).is_file()), key=lambda f: f.name)
            paths += [family / FILE for family in families]
    return tuple(paths)


@cache
def _families() -> dict[str, str]:
    """The family of each of the project's own definitions, by file."""
    return {str(file): Path(str(file)).parent.name for file in definitions()}


@cache
def _read_once(file: str) -> tuple[DefinitionEntry, ...]:
    return read_definition(file)


def read_definition(file: str) -> tuple[DefinitionEntry, ...]:
    """Read all benchmarks of one definition file.

    Raises:
        UserError: with the file and the line: it is not a mapping, a pattern names an unknown key of the matrix, a name
            is used twice, or the benchmark that it extends does not exist.
    """
    entries: list[DefinitionEntry] = []
    for entry in entries_of(file):
        if isinstance(entry, UserError):
            raise entry
        entries.append(entry)
    return tuple(entries)


def entries_of(file: str) -> Iterator[DefinitionEntry | UserError]:
    """Yield the benchmarks of a definition file, each after the errors in its part.

    A `matrix` in the file defines one benchmark per row.

    Raises:
        UserError: with the file and the line: it is not YAML or not a mapping, or its matrix is not a list of mappings.
    """
    document, lines = load_yaml_with_lines(file)
    family = os.path.basename(os.path.dirname(os.path.abspath(file)))
    if not isinstance(document, dict) or not all(isinstance(key, str) for key in document):
        raise UserError("definition_not_a_mapping", file=file)
    rows = document.get("matrix")
    if rows is not None and (not isinstance(rows, list) or not rows or not all(isinstance(r, dict) for r in rows)):
        raise UserError("matrix_form", file=file, line=line_of(lines, ("matrix",)))
    of_all = {location: line for location, line in lines.items() if location[:1] != ("matrix",)}
    names: set[str] = set()
    for index, row in enumerate(rows or [{}]):
        wrong: list[UserError] = []
        entry = _entry(document, lines, of_all, file, family, (index, row), wrong)
        yield from wrong
        if entry.name in names:
            yield UserError(
                "name_twice",
                file=file,
                line=line_of(lines, ("matrix", index)),
                name=entry.name,
                hint="name the entries by a pattern such as name: 'mine-{part}'",
            )
            continue
        names.add(entry.name)
        yield entry


@cache
def _index() -> dict[str, str]:
    """The file of every benchmark of the project, by the benchmark's name."""
    file_of: dict[str, str] = {}
    for file in definitions():
        for entry in _read_once(str(file)):
            if entry.name in file_of:
                raise UserError("defined_twice", name=entry.name, other=file_of[entry.name], file=file)
            file_of[entry.name] = str(file)
    return file_of


def benchmark_names() -> list[str]:
    """The names of the project's benchmarks, sorted."""
    return sorted(_index())


def is_path(name: str) -> bool:
    """Whether a name is the path of a user's own definition."""
    return name.startswith((".", "~", "/")) or os.sep in name or name.endswith((".yaml", ".yml"))


def find_entry(name: str) -> DefinitionEntry:
    """Find one benchmark's part of a definition file, by its name or path.

    Raises:
        UnknownName: there is no such benchmark; the message suggests the nearest name.
        UserError: the definition cannot be read.
    """
    if is_path(name):
        return _read_own(name)
    entry = _find_named(canonical(name))
    if entry is None:
        error = UnknownName("benchmark", name, _index())
        if os.path.isfile(os.path.join(name, FILE)):
            error.hint = f"a custom definition is named by its path: ./{name}"
        raise error
    return entry


@cache
def _find_named(name: str) -> DefinitionEntry | None:
    """Find a project benchmark by name, or None; families whose name begins it first."""
    # Most names begin with their family's name, so usually one file is read instead of all.
    for file, family in _families().items():
        if name.startswith(family):
            match = next((entry for entry in _read_once(file) if entry.name == name), None)
            if match is not None:
                return match
    indexed = _index().get(name)
    return None if indexed is None else next(entry for entry in _read_once(indexed) if entry.name == name)


def own_file(path: str) -> tuple[str, str | None]:
    """Split `PATH` or `PATH:NAME` of a user's definition into (file, NAME or None).

    A folder means its `benchmark.yaml`.

    Raises:
        UserError: there is no such file.
    """
    head, colon, entry = path.rpartition(":")
    entry_name = entry if colon and not os.path.exists(os.path.expanduser(path)) else None
    expanded = os.path.expanduser(head if entry_name is not None else path)
    file = os.path.join(expanded, FILE) if os.path.isdir(expanded) else expanded
    if not os.path.isfile(file):
        raise UserError("no_benchmark_file", path=path, file=file, hint=f"expected a folder with {FILE}")
    if file.endswith(".py"):
        raise UserError("not_a_definition", path=path, hint=hint_for_path(file, f"expected a folder with {FILE}"))
    return file, entry_name


def _read_own(path: str) -> DefinitionEntry:
    """Read one benchmark of a user's definition, from `FILE` or `FILE:NAME`."""
    file, entry_name = own_file(path)
    # The project's own files do not change while a command runs, and several definitions extend the same one.
    plain = os.path.normpath(file)
    entries = _read_once(plain) if plain in _families() else read_definition(file)
    if entry_name is None and len(entries) == 1:
        return entries[0]
    names = [entry.name for entry in entries]
    if entry_name is None:
        raise UserError("several_definitions", path=path, benchmarks=len(names), hint=f"name one: {path}:{names[0]}")
    if canonical(entry_name) not in names:
        raise UnknownName("benchmark", entry_name, names, within=file)
    return entries[names.index(canonical(entry_name))]


def resolve(entry: DefinitionEntry, overrides: Mapping[str, Any] | None = None) -> BenchmarkSpec:
    """Apply the caller's settings to an entry and validate it.

    Args:
        overrides: values by dotted field, such as `data.revision`.

    Raises:
        UserError: a field is unknown, missing or wrong; the message names the file and the line, or the setting.
    """
    document = dict(entry.document)
    if overrides:
        document = copy.deepcopy(document)
        for field, value in overrides.items():
            _set_at_path(document, field.split("."), value, f"the setting '{entry.name}.{field}'")
        wrong = _wrong_setting(document, overrides)
        if wrong:
            raise UserError("setting_unknown", name=entry.name, setting=wrong[0], hint=wrong[1])
    return fit_lines(document, BenchmarkSpec, entry.file, entry.lines)


def _wrong_setting(document: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """(message, hint) about the first invalid override; None if all are valid."""
    fields = list(overrides)
    lines: Lines = {}
    for number, field in enumerate(fields):
        parts = tuple(field.split("."))
        for end in range(1, len(parts) + 1):  # mappings of a setting may be wrong too
            lines.setdefault(parts[:end], number)
    for finding in findings(document, BenchmarkSpec, "", lines):
        if finding.line is not None:
            return f"'{fields[finding.line]}': {finding.message}", finding.hint
    return None


def _entry(
    document: Mapping[str, Any],
    lines: Lines,
    of_all: Lines,
    file: str,
    family: str,
    numbered: tuple[int, Mapping[str, Any]],
    wrong: list[UserError],
) -> DefinitionEntry:
    """Build the benchmark of one row of a definition's matrix.

    Args:
        document, lines: the file as YAML values, and the line of each place.
        of_all: lines of the places outside of the matrix.
        numbered: (index, row) in the matrix.
        wrong: gets the mistakes.
    """
    index, row = numbered
    keys = {key: value for key, value in row.items() if key != "set"}
    body = {key: value for key, value in document.items() if key not in FORM}

    def fill(value: Any, location: Location) -> Any:
        def missing(key: str) -> None:
            line, hint = line_of(lines, location), f"its keys are {', '.join(keys) or 'none'}"
            wrong.append(UserError("no_matrix_key", file=file, line=line, key=key, hint=hint))

        return _substitute(value, keys, missing, location)

    name = fill(document.get("name", family), ("name",))
    body = {key: fill(value, (key,)) for key, value in body.items()}
    settings = row.get("set") or {}
    if not isinstance(settings, dict) or not all(isinstance(field, str) for field in settings):
        line = line_of(lines, ("matrix", index, "set"))
        wrong.append(UserError("matrix_set_form", file=file, line=line))
        settings = {}
    here = {**of_all} if settings else of_all
    for field, value in settings.items():
        location = ("matrix", index, "set", field)
        try:
            _set_at_path(
                body, field.split("."), fill(value, location), f"'{file}', line {line_of(lines, location)}: 'set'"
            )
        except UserError as error:
            wrong.append(error)
        for known, line in lines.items():
            if known[: len(location)] == location:
                here[(*field.split("."), *known[len(location) :])] = line
    try:
        body = _pinned(body, str(name), file)
    except UserError as error:
        wrong.append(error)
    if "extends" in document:
        try:
            body = _extend(fill(document["extends"], ("extends",)), body, file, line_of(lines, ("extends",)))
        except UserError as error:
            wrong.append(error)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        line = line_of(lines, ("name",))
        wrong.append(UserError("name_form", file=file, line=line, name=name, hint="lower case, digits and hyphens"))
    return DefinitionEntry(str(name), body, here, file, family)


def _pinned(body: dict[str, Any], name: str, file: str) -> dict[str, Any]:
    """Add the facts in the definition's pins file, such as the revision and the size."""
    data = body.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("pins"), str):
        return body
    pins = os.path.join(os.path.dirname(os.path.abspath(file)), data["pins"])
    held = load_yaml(pins)
    pin = held.get(name) if isinstance(held, dict) else None
    if not isinstance(pin, dict):
        raise UserError("no_pins", pins=pins, name=name, hint=f"codec-bench validate {name} --hub --pins {pins}")
    return {**body, "data": {**{key: pin[there] for key, there in PINNED.items() if pin.get(there)}, **data}}


def _substitute(value: Any, keys: Mapping[str, Any], missing: Any, location: Location) -> Any:
    """Replace `{key}` in all strings of a YAML value by the matrix row's values.

    Args:
        keys: the values of the row; a string that is one key becomes its value, of any type.
        missing: called with each unknown key.
        location: of the value in the document.
    """
    if isinstance(value, dict):
        # A prompt in the definition has its own braces. It gets values of the matrix through `fields`.
        plain = location in (("prompt",),) or (len(location) == 2 and location[0] == "prompts")
        return value if plain else {k: _substitute(v, keys, missing, (*location, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_substitute(v, keys, missing, (*location, i)) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value
    for key in _KEY.findall(value):
        if key not in keys:
            missing(key)
            return value
    key_only = _KEY.fullmatch(value)
    return keys[key_only[1]] if key_only else _KEY.sub(lambda match: str(keys[match[1]]), value)


def _extend(base: str, body: Mapping[str, Any], file: str, line: int | None) -> dict[str, Any]:
    """Merge a definition over the one that it extends, by name or path (`base`)."""
    if base in _extending:
        raise UserError("extends_itself", file=file, line=line, base=base)
    _extending.append(base)
    try:
        if is_path(base):
            base = os.path.join(os.path.dirname(os.path.abspath(file)), base)
        return _merged(find_entry(base).document, body)
    except UnknownName as error:
        raise UserError("at_line", file=file, line=line, cause=error.message, hint=error.hint) from error
    finally:
        _extending.pop()


_extending: list[str] = []


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two YAML mappings recursively; other values are those of `above`."""
    out = dict(below)
    for key, value in above.items():
        known = out.get(key)
        out[key] = _merged(known, value) if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return out


def _set_at_path(document: dict[str, Any], path: list[str], value: Any, subject: str) -> None:
    """Set a value in nested mappings by its path of keys; `subject` begins errors."""
    here = document
    for key in path[:-1]:
        inner = {} if here.get(key) is None else here[key]
        if not isinstance(inner, dict):
            raise UserError("setting_not_a_mapping", subject=subject, key=key)
        here[key] = inner = dict(inner)
        here = inner
    here[path[-1]] = value
