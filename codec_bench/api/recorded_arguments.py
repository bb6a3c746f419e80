"""Record the options of a call for its run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.config.option import options_of
from codec_bench.config.request import CommandOptions
from codec_bench.data import data_name
from codec_bench.engine.executor import RAY, OnRay
from codec_bench.engine.running import Running

NOT_RECORDED = frozenset({"out"})
"""Options that do not affect how a run is made."""


def record_arguments(
    schema: type[CommandOptions],
    values: Mapping[str, Any],
    running: Running | None = None,
    extra: Sequence[object] = (),
) -> dict[str, Any]:
    """Collect all options of a schema as JSON values for the record.

    Args:
        values: the arguments of the public function, such as `evaluate`.
        running: has the options of how to run.
        extra: further objects whose attributes are options.
    """
    cluster = running.on_ray if running is not None else None
    recorded = {}
    for name, one in options_of(schema).items():
        if one.of == "terminal" or name in NOT_RECORDED:
            continue
        value = values.get(one.there, one.default)
        for source in (running, cluster, *extra) if one.of != "verb" else ():
            value = getattr(source, one.there, value)
        recorded[name] = data_name(value) if name == "data" and value is not None else _to_json(value)
    return recorded


def _to_json(value: Any) -> Any:
    """Convert an argument to JSON; objects become the name of their class."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str | os.PathLike):
        return data_name(value)
    if isinstance(value, Mapping):
        return {str(name): _to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json(one) for one in value]
    if isinstance(value, OnRay):
        return RAY
    return (value if isinstance(value, type) else type(value)).__name__
