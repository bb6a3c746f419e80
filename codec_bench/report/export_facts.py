"""Facts of a run for results in other tools' forms: system, data, notes on values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codec_bench.messages import to_codes
from codec_bench.messages.errors import UnknownName, UserError
from codec_bench.report import numbers
from codec_bench.stats.row_counts import count_rows, other_data
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import MetricSummary
from codec_bench.store.controls import control_of
from codec_bench.store.record import Run, recorded_request

_NAMED = re.compile(r"hf:(?P<repository>[^@:]+)(?:@(?P<revision>[^:]+))?(?::(?P<names>.+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class DataFacts:
    """The data of a run: its repository on the hub or None, and the selection."""

    name: str
    repository: str | None
    configuration: str | None = None
    split: str | None = None
    revision: str | None = None


def results_of(run: Run, system: str | None, form: str) -> tuple[str, Mapping[str, MetricSummary]]:
    """Return the system of an export and its entries by metric."""
    state = run.meta.get("state")
    if state != "finished":
        raise UserError(
            "export_unfinished",
            folder=run.folder,
            state=state,
            format=form,
            hint="give its command again, which finishes it",
        )
    control = control_of(run)
    if control:
        raise UserError(
            "export_of_control",
            folder=run.folder,
            control=control.words,
            format=form,
            hint="export the run with the complete input",
        )
    names = list(run.systems)
    codecs = [name for name in names if name != numbers.UNPROCESSED] if system is None else [system]
    if system is not None and system not in names:
        raise UnknownName("system", system, names)
    if len(codecs) != 1:
        raise UserError(
            "export_one_system",
            format=form,
            systems=len(codecs),
            names=codecs,
            hint="name one with --system",
        )
    return codecs[0], summarise(run).systems[codecs[0]].metrics


def valued(entries: Mapping[str, MetricSummary]) -> dict[str, MetricSummary]:
    """Return the entries that have a finite value."""
    return {name: entry for name, entry in entries.items() if entry.value is not None and math.isfinite(entry.value)}


def marked_name(name: str, run: Run, system: str) -> str:
    """Return a name, marked for incomplete data and suspect systems."""
    parts = [*describe_parts(run), *(["suspect"] if numbers.doubts_in(run, system) else [])]
    return f"{name} ({', '.join(parts)})" if parts else name


def data_of(meta: Mapping[str, Any]) -> DataFacts:
    """Return the source of the data: from the benchmark's definition, or as named."""
    benchmark = meta.get("benchmark")
    if benchmark:
        source = recorded_request(meta).get("data") or {}
        # Only a pinned commit is surely the hub's: a mirror may have another hash, or none.
        pinned = None if meta["config"].get("mirror") else source.get("revision")
        revision = pinned if isinstance(pinned, str) and _COMMIT.fullmatch(pinned) else None
        repository, split = (
            source.get("repository"),
            source.get("split") or "+".join(source.get("splits") or ()) or None,
        )
        return DataFacts(benchmark["name"], repository, source.get("config"), split, revision if repository else None)
    name = str(meta["config"].get("data") or "")
    hub = _NAMED.fullmatch(name)
    if hub is None:
        return DataFacts(Path(name).name or "unnamed", None)
    names = (hub["names"] or "").split(":")
    # A single name is a configuration or a split, which only the data set distinguishes.
    config, split = names if len(names) == 2 else (None, None)
    return DataFacts(name, hub["repository"], config, split, hub["revision"])


def describe_parts(run: Run) -> list[str]:
    """Return phrases on the data that a run excludes, and on other data; or none."""
    config, rows = run.meta["config"], count_rows(run)
    limited = [] if config.get("limit") is None else [f"limited to {config['limit']} items"]
    sharded = [] if config.get("shard") is None else [f"shard {config['shard']} only"]
    lacking = [numbers.rows_text(rows)] if rows and rows.why == "data" else []
    return [*limited, *sharded, *lacking, *other_data(run)]


def facts_of(run: Run, system: str, entry: MetricSummary) -> dict[str, Any]:
    """Return the facts about a value: measurement, uncertainty, basis, findings."""
    meta = run.meta
    config, ends = meta["config"], entry.ci95
    facts = {
        "part": ", ".join(describe_parts(run)) or None,
        "suspect": numbers.doubts_in(run, system),
        "findings": [to_codes(one) for one in numbers.findings_in(run, system)] or None,
        "protocol": entry.protocol,
        "unit": entry.unit or None,
        "ci95": [float(end) for end in ends] if ends and all(map(math.isfinite, ends)) else None,
        "note": entry.note and str(entry.note),
        "n": entry.n,
        "failed": entry.failed,
        "benchmark": (meta.get("benchmark") or {}).get("name"),
        "data": data_of(meta).name if not meta.get("benchmark") else None,
        "mirror": "the data were read from a mirror" if config.get("mirror") else None,
        "judge": config.get("judge"),
        "repeats": config.get("repeats"),
        "prompts": config.get("prompts"),
        "choices": config.get("choices"),
        "codec_bench": (meta.get("versions") or {}).get("codec-bench"),
    }
    return {name: value for name, value in facts.items() if value is not None}
