"""What a benchmark's page shows besides: questions with answers, results by subset, what others published.

Conventions
    Systems and samples are known by their position on the page, as in `collect`. Texts are cut to a length that a page
    can hold; what was cut says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codec_bench.report import numbers
from codec_bench.store.answers import Exchange, exchanges, has_answers
from codec_bench.store.record import Run

CHARACTERS = 6000
MAX_SUBSET_ROWS = 200


def collect_exchanges(
    runs: Sequence[Run], systems: Sequence[Any], places: Sequence[Mapping[str, int]], position: Mapping[int, int]
) -> list[list[Any]]:
    """Of the chosen samples: `[system, sample, {prompt, expected, answer, ...}]`; none for runs of codecs."""
    found = []
    for s, system in enumerate(systems):
        run = runs[system.run]
        if not has_answers(run):
            continue
        for exchange in exchanges(run):
            place = position.get(places[system.run].get(exchange.question.id, -1))
            if place is not None:
                found.append([s, place, _told(exchange)])
    return found


def _told(exchange: Exchange) -> dict[str, Any]:
    question, answer, reading = exchange.question, exchange.answer, exchange.reading
    told = {
        "prompt": question.prompt,
        "expected": list(question.expected),
        "status": answer.status,
        "reason": answer.reason,
        "answer": answer.text,
        "transcript": reading.transcript if reading else None,
        "read": reading.parsed if reading else None,
        "unread": reading.reason if reading and reading.parsed is None and answer.status == "ok" else None,
        "latency_s": answer.latency_s,
        "finish": answer.finish,
        "cut_s": answer.cut_s or None,
        "cached": answer.cached or None,
        "subsets": ", ".join(f"{name}: {value}" for name, value in question.subsets.items()) or None,
    }
    return {key: _cut(value) for key, value in told.items() if value not in (None, "", [])}


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > CHARACTERS:
        return f"{value[:CHARACTERS]} … ({len(value) - CHARACTERS:,} more characters are in the record)"
    return [_cut(part) for part in value[:20]] if isinstance(value, list) else value


def subset_rows(
    systems: Sequence[Any], heads: Sequence[Mapping[str, Any]], entries: Sequence[Sequence[Mapping[str, Any] | None]]
) -> list[dict[str, Any]]:
    """One row per system, column of subsets and value, with a cell per metric; and one where failures count as wrong."""
    rows = []
    for system, row in zip(systems, entries):
        columns: dict[tuple[str, str], None] = {}
        for entry in row:
            for column, values in (entry or {}).get("subsets", {}).items():
                columns.update(dict.fromkeys((column, value) for value in values))
        for column, value in columns:
            cells = [_cell((e or {}).get("subsets", {}).get(column, {}).get(value), h) for e, h in zip(row, heads)]
            rows.append({"label": system.label, "column": column, "value": value, "cells": cells})
    return rows[:MAX_SUBSET_ROWS]


def counting_rows(
    systems: Sequence[Any], heads: Sequence[Mapping[str, Any]], entries: Sequence[Sequence[Mapping[str, Any] | None]]
) -> list[dict[str, Any]]:
    """One row per system that has failures: its values where failures count as wrong."""
    rows = []
    for system, row in zip(systems, entries):
        if not any(entry and entry.get("counting_failures") and entry["failed"] for entry in row):
            continue
        cells = [_cell((entry or {}).get("counting_failures"), head) for entry, head in zip(row, heads)]
        rows.append({"label": system.label, "cells": cells})
    return rows


def _cell(entry: Mapping[str, Any] | None, head: Mapping[str, Any]) -> dict[str, Any] | None:
    if entry is None or entry["value"] is None:
        return None
    return {"value": numbers.number(head["factor"] * entry["value"], head["places"]), "n": entry["n"]}


def published_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """What others published of the same benchmarks: `model`, `metric`, `value`, `source`, `benchmark`."""
    rows, seen = [], set()
    for run in runs:
        benchmark = run.meta.get("benchmark") or {}
        for row in benchmark.get("published", []):
            key = (benchmark.get("name"), row["model"], row["metric"])
            if key not in seen:
                seen.add(key)
                rows.append({**row, "benchmark": benchmark.get("title") or benchmark.get("name")})
    return rows
