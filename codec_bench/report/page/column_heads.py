"""The heads of a page's columns, and the best values in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codec_bench.report import numbers
from codec_bench.report.numbers import Valued
from codec_bench.report.page.columns import PageColumn, PageSystem, Tables
from codec_bench.stats.breakdown import MetricParts, parts_of
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.summary_types import BITRATE, MetricSummary
from codec_bench.stats.verdict import verdict


def column_heads(
    columns: Mapping[PageColumn, Mapping[str, Any]], entries: Sequence[Sequence[MetricSummary | None]]
) -> list[dict[str, Any]]:
    """Return the heads: each column's identity and number format."""
    heads = []
    same_name = Counter((column.metric, column.data) for column in columns)
    for c, ((name, protocol, of), facts) in enumerate(columns.items()):
        column = [row[c] for row in entries]
        head = head_of(name, protocol, facts, [entry for entry in column if entry])
        if same_name[name, of] > 1:  # by two judges, say
            head["variant"] = f"{head['variant']} {protocol}".strip()
        higher = facts.get("higher_is_better")
        direction = {True: "higher is better", False: "lower is better", None: ""}[higher]
        heads.append({**head, "data": of, "direction": direction, "range": facts.get("range"), "facts": facts})
    return heads


def stand_together(tables: Tables, places: Sequence[Mapping[str, int]]) -> list[list[MetricSummary | None]]:
    """Return the entries, with the best values marked across the systems of all runs.

    Args:
        places: for each run, the page position of each of its samples, equal for equal samples.
    """
    entries = [list(row) for row in tables.entries]
    recorded: dict[int, tuple[RecordedRun, dict[int, int]]] = {}

    def parts(system: PageSystem, metric: str) -> MetricParts:
        """The items' parts of a metric, numbered by their position on the page."""
        if system.run not in recorded:
            run = tables.runs[system.run]
            numbers_of = run.query("SELECT number, id FROM samples")
            recorded[system.run] = RecordedRun(run), {number: places[system.run][id] for number, id in numbers_of}
        record, position_of = recorded[system.run]
        parts_in_run = parts_of(record, system.name, metric)
        return replace(parts_in_run, numbers=[position_of[number] for number in parts_in_run.numbers])

    for c, (column, facts) in enumerate(tables.columns.items()):
        higher = facts.get("higher_is_better")
        if higher is None or column.metric == BITRATE:
            continue
        rivals = {
            s: system
            for s, system in enumerate(tables.systems)
            # An answer under a control is no result, and so no best one.
            if entries[s][c] and system.name != numbers.UNPROCESSED and not tables.summaries[system.run].control
        }
        if len({system.run for system in rivals.values()}) < 2:
            continue  # the summary of their run has their standing
        suspects = {s for s, system in rivals.items() if tables.summaries[system.run].systems[system.name].doubts}
        decided = verdict({s: parts(system, column.metric) for s, system in rivals.items()}, suspects, higher)
        for s in rivals:
            if (entry := entries[s][c]) is not None:
                entries[s][c] = replace(entry, standing=decided.standing(s))
    return entries


def head_of(name: str, protocol: str, facts: Mapping[str, Any], column: Sequence[Valued]) -> dict[str, Any]:
    """Return the head of a metric's column, with its number format."""
    factor, unit = numbers.shown_unit(facts.get("unit", ""))
    base, variant = numbers.split_name(name)
    return {
        "name": name,
        "base": base,
        "variant": variant,
        "unit": unit,
        "factor": factor,
        "protocol": protocol,
        "places": numbers.decimals(column, factor),
        "single": numbers.three_digits([entry.value for entry in column], factor),
        "higher": facts.get("higher_is_better"),
        "arrow": numbers.ARROWS[facts.get("higher_is_better")],
        "what": facts.get("summary") or "",
    }
