"""Compare definitions with the Hugging Face hub (`validate --hub`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from codec_bench.api.finding import Finding
from codec_bench.messages import Diagnostic, as_reason
from codec_bench.messages.errors import UserError, on_disk

if TYPE_CHECKING:
    from codec_bench.benchmark.definition.benchmark import Benchmark
    from codec_bench.benchmark.definition.on_hub import HubState


def list_hub_benchmarks() -> list[str]:
    """The names of the project's benchmarks whose data can be fetched from the hub."""
    from codec_bench.benchmark import benchmark_names, load_benchmark

    data_by_name = {name: load_benchmark(name).data for name in benchmark_names()}
    return [name for name, data in data_by_name.items() if data.repository is not None and data.obtain is None]


def check_hub_data(name: str) -> tuple[list[Finding], dict[str, HubState]]:
    """Compare a benchmark's definition with its data on the hub.

    Returns:
        The findings, and the hub's state by benchmark; the state is empty if it could not be read.
    """
    from codec_bench.benchmark import load_benchmark
    from codec_bench.benchmark.definition.on_hub import read_state

    try:
        one = load_benchmark(name)
        if one.data.repository is None:
            return [Finding(name, "note", Diagnostic("data_are_local"))], {}
        if one.data.obtain is not None:
            return [Finding(name, "note", Diagnostic("data_on_no_hub", obtain=one.data.obtain))], {}
        seen = read_state(one)
    except UserError as error:
        return [Finding(name, "wrong", as_reason(error.message), error.hint or "")], {}
    return list(_compare_with_hub(name, one, seen)), {one.name: seen}


def _compare_with_hub(name: str, one: Benchmark, seen: HubState) -> Iterator[Finding]:
    """Compare a benchmark's pinned size, rows, types and licence with the hub's.

    Args:
        name: the benchmark as the user named it.
        seen: the state of the data on the hub.
    """
    data = one.data
    yield Finding(name, "ok", _describe_state(seen))
    if data.size is not None and seen.size is not None and data.size != seen.size:
        difference = Diagnostic("size_differs", hub=seen.size, definition=data.size)
        yield Finding(f"{name}: size", "wrong", difference, f"size: {seen.size}, if the data are the published ones")
    if data.rows_digest is not None and data.rows_digest != seen.rows_digest:
        difference = Diagnostic("digest_differs", hub=seen.rows_digest, definition=data.rows_digest)
        do = f"revision: the commit that was pinned, if it is not {seen.revision}"
        yield Finding(f"{name}: rows_digest", "wrong", difference, do)
    if changed := list(_other_types(data.types or {}, seen.columns)):
        yield Finding(
            f"{name}: types",
            "wrong",
            Diagnostic("types_differ", changed=changed),
            "read whether the definition still fits the data",
        )
    if (one.licence or "").lower() != (seen.licence or "").lower():
        difference = Diagnostic("licence_differs", hub=seen.licence or "none", definition=one.licence or "unknown")
        yield Finding(f"{name}: licence", "note", difference, "read the publisher's own words")
    open_pins = [key for key in ("revision", "size", "rows_digest") if getattr(data, key) is None]
    if open_pins:
        yield Finding(
            f"{name}: pins", "note", Diagnostic("not_pinned", names=", ".join(open_pins)), "--pins FILE writes them"
        )


def _other_types(pinned: Mapping[str, str], there: Mapping[str, str]) -> Iterator[Diagnostic]:
    for column, type_ in pinned.items():
        if there.get(column) != type_:
            yield Diagnostic("type_differs", column=column, definition=type_, hub=there.get(column))


def _describe_state(seen: HubState) -> Diagnostic:
    """Describe a data set's state on the hub."""
    sound = seen.sound or {"duration_s": None, "rate_hz": None}
    return Diagnostic(
        "hub_state",
        size=seen.size,
        revision=seen.revision,
        columns=len(seen.columns),
        duration_s=sound["duration_s"],
        rate_hz=sound["rate_hz"],
    )


def write_pins(path: str | os.PathLike[str], seen: Mapping[str, HubState]) -> None:
    """Merge the hub's state of benchmarks into a YAML file, or raise UserError."""
    import yaml

    from codec_bench.config import load_yaml

    pins: Any = load_yaml(path) if os.path.exists(path) else {}
    if not isinstance(pins, dict):
        raise UserError("not_pins", path=path, hint="name another file")
    merged = {**pins, **{name: one.as_dict() for name, one in seen.items()}}
    with on_disk("file_not_writable", path=path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(yaml.safe_dump(dict(sorted(merged.items())), sort_keys=False, allow_unicode=True, width=140))
