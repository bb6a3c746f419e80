"""Mistakes of a definition, each with its file and line."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from codec_bench.benchmark.definition.schema import BOOLEANS, FIELDS, Strict
from codec_bench.config import Lines, mistake_of
from codec_bench.messages import Diagnostic, as_remark, together
from codec_bench.messages.errors import UserError

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class DefinitionFinding:
    """One mistake: file and line, what is wrong (a code), and what to do."""

    file: str
    line: int | None
    message: Diagnostic
    hint: str | None = None

    @property
    def located(self) -> Diagnostic:
        """The mistake with its file and line."""
        return Diagnostic("at_place", file=self.file, line=self.line, cause=self.message)

    def __str__(self) -> str:
        return f"{self.located}" + (f" ({self.hint})" if self.hint else "")


def line_of(lines: Lines, path: Location) -> int | None:
    """The line of a place in a document, or of the nearest place that contains it."""
    for end in range(len(path), -1, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    return None


def findings(document: Mapping[str, Any], schema: type[Strict], file: str, lines: Lines) -> list[DefinitionFinding]:
    """Every mistake of a document by a schema, with its line."""
    try:
        schema.model_validate(document)
    except ValidationError as error:
        return [_finding(one, document, file, lines) for one in _without_echo(error.errors())]
    return []


def fit_lines(document: Mapping[str, Any], schema: type[Strict], file: str, lines: Lines) -> Any:
    """Validate a document by a schema and return it as an object of the schema.

    Raises:
        UserError: with file, line and field of every mistake.
    """
    try:
        return schema.model_validate(document)
    except ValidationError as error:
        errors = [_finding(one, document, file, lines) for one in _without_echo(error.errors())]
        mistakes = together(*[Diagnostic("at_line", file=f.file, line=f.line, cause=f.message) for f in errors])
        raise UserError(as_remark(mistakes or ""), hint=errors[0].hint) from error


def fitted(document: Mapping[str, Any], schema: type[Strict], stand_ins: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Validate the readable part of a document that does not fit a schema.

    Args:
        stand_ins: values of a valid document that replace the unreadable fields.

    Returns:
        (the validated part, or None if there is none, names of the unreadable fields).
    """
    held, unread = copy.deepcopy(dict(document)), set[str]()
    for _ in range(len(document) + len(stand_ins)):
        try:
            return schema.model_validate(held), unread
        except ValidationError as error:
            for one in _without_echo(error.errors()):
                location = one["loc"]
                if not location:
                    return None, unread
                held.pop(location[0], None)
                if location[0] in schema.model_fields:
                    unread.add(location[0])
                    held |= {location[0]: stand_ins[location[0]]} if location[0] in stand_ins else {}
    return None, unread


def _without_echo(errors: list[Any]) -> list[Any]:
    """Keep one pydantic error for each place; there is one for each type of a union."""
    innermost: dict[Location, Any] = {}
    for error in errors:
        location = tuple(key for key in error["loc"] if not _is_type_name(key))
        error = {**error, "loc": location}
        known = innermost.get(location)
        if known is None or known["type"].endswith("_type"):
            innermost[location] = error
    return [
        error
        for location, error in innermost.items()
        if not (error["type"].endswith("_type") and _has_inner(location, innermost))
    ]


def _has_inner(location: Location, innermost: Mapping[Location, Any]) -> bool:
    return any(len(other) > len(location) and other[: len(location)] == location for other in innermost)


_TYPE_NAME = re.compile(r"(str|list\[.*\]|function-.*|Template|MetricUse|ContentPart)")


def _is_type_name(key: str | int) -> bool:
    return isinstance(key, str) and _TYPE_NAME.fullmatch(key) is not None


def _finding(error: Mapping[str, Any], document: Any, file: str, lines: Lines) -> DefinitionFinding:
    """Convert an error of pydantic to a finding with its line and a hint."""
    path = tuple(error["loc"])
    line = line_of(lines, path)
    name = ".".join(map(str, path)) or "the file"
    if error["type"] == "extra_forbidden":
        hint = _where(str(path[-1])) or suggest(str(path[-1]), FIELDS)
        return DefinitionFinding(file, line, Diagnostic("unknown_field", name=name), hint)
    if error["type"] == "missing":
        return DefinitionFinding(file, line, Diagnostic("missing_field", name=name))
    value = error.get("input")
    hint = BOOLEANS if isinstance(value, bool) and error["type"] == "string_type" else None
    return DefinitionFinding(file, line, Diagnostic("wrong_field", name=name, message=mistake_of(error)), hint)


def _where(name: str) -> str | None:
    """A hint where a misplaced field belongs, or None."""
    places = FIELDS.get(name)
    return f"'{name}' is a field of {' and of '.join(places)}" if places else None


def suggest(name: str, known: Iterable[str]) -> str | None:
    """A hint with the known names that resemble an unknown one, or None."""
    near = difflib.get_close_matches(name, sorted(known), n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else None
