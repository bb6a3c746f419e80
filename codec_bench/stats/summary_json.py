"""Write parts of a run's summary as JSON, and read them back.

A `Diagnostic` is written as a sentence and, under its field's name with `_code`, as the code with parameters that is
read back. None is a missing number with a reason. `UNSET` does not apply, is false, and is omitted.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from codec_bench.messages import CODE, Diagnostic, as_remark, from_json, read, to_json


class _Unset:
    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()
"""Marks a field that does not apply."""


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """A part of a summary that is written as a JSON object."""

    def as_dict(self) -> dict[str, Any]:
        """The part for `summary.json`."""
        held = {name: getattr(self, name) for name in _kinds(type(self))}  # type: ignore[arg-type]
        present = {name: value for name, value in held.items() if value is not UNSET}
        codes = {f"{name}{CODE}": value.as_dict() for name, value in present.items() if isinstance(value, Diagnostic)}
        return {name: to_json(_with_dicts(value)) for name, value in present.items()} | codes

    @classmethod
    def from_dict(cls, held: Mapping[str, Any]) -> Self:
        """The part from its JSON value, or raise TypeError."""
        kinds = _kinds(cls)  # type: ignore[arg-type]
        codes = {name: read(held[f"{name}{CODE}"]) for name in kinds if isinstance(held.get(f"{name}{CODE}"), Mapping)}
        return cls(**{name: _read(kind, held[name]) for name, kind in kinds.items() if name in held} | codes)


@cache
def _kinds(cls: type[SummaryPart]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {one.name: hints[one.name] for one in fields(cls)}


def _with_dicts(value: Any) -> Any:
    """The value with a dictionary for every part, at any depth."""
    if isinstance(value, SummaryPart):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {name: _with_dicts(one) for name, one in value.items()}
    return [_with_dicts(one) for one in value] if isinstance(value, list | tuple) else value


def _read(kind: Any, value: Any) -> Any:
    """Convert a JSON value to its annotated type."""
    if kind is Diagnostic:
        return as_remark(value)
    if kind is Any:
        return from_json(value)
    parts = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _read(next(one for one in parts if one is not type(None)), value)
    if is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is not the entry {getattr(kind, '__name__', kind)}")
        return kind.from_dict(value)  # type: ignore[union-attr]
    if parts and isinstance(value, Mapping):
        return {name: _read(parts[-1], one) for name, one in value.items()}
    return [_read(parts[0], one) for one in value] if parts and isinstance(value, list) else value
