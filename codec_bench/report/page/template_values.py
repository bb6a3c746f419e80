"""The variables of the page's template, for the tables without scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codec_bench.report import numbers
from codec_bench.report.answers import answer_notes, judge_notes
from codec_bench.report.chance_level import chance_text, value_notes
from codec_bench.report.controls.rows import control_mark
from codec_bench.report.page.exchanges import common_rows, counting_rows, published_rows
from codec_bench.report.page.runs import describe, run_facts
from codec_bench.report.page.sections import section_values
from codec_bench.report.page.sound import PageClip
from codec_bench.report.result_columns import columns_in
from codec_bench.stats.summary_types import MetricSummary, Summary
from codec_bench.store.integrity import state_of
from codec_bench.store.record import Run
from codec_bench.store.rows import SampleRow
from codec_bench.store.statuses import NO_FAILURE, NOT_APPLICABLE

if TYPE_CHECKING:
    from codec_bench.report.page.columns import PageSystem, Tables

_NAMED = 3  # runs that the title names


def written(tables: Tables, samples: Sequence[SampleRow], rows: int, clips: Sequence[PageClip]) -> dict[str, Any]:
    """Return the variables of the template."""
    runs, summaries = tables.runs, tables.summaries
    systems, heads, entries = tables.systems, tables.heads, tables.entries
    shown = [
        (system.label, head["name"], entry)
        for system, row in zip(systems, entries)
        for head, entry in zip(heads, row)
        if entry is not None
    ]
    by_label = {system.label: summaries[system.run].systems[system.name] for system in systems}
    extra_columns = columns_in("page", by_label.values())
    described = [describe(run, name, summary) for run, name, summary in zip(runs, tables.names, summaries)]
    return {
        "title": tables.names if len(runs) <= _NAMED else [f"{len(runs)} runs"],
        "record_state": json.dumps(state_of(runs[0].meta)) if len(runs) == 1 else None,
        "runs": described,
        **run_facts(described),
        "heads": heads,
        "table": [
            {
                "label": system.label,
                "unprocessed": system.name == numbers.UNPROCESSED,
                "lost": without_estimate,
                "remarks": numbers.remarks(by_label[system.label]),
                "extra_columns": [column.cell(by_label[system.label]) for column in extra_columns],
                "cells": [_cell_values(entry, head, without_estimate) for entry, head in zip(row, heads)],
            }
            for system, row in zip(systems, entries)
            for without_estimate in [by_label[system.label].without_estimate]
        ],
        "extra_columns": [column.name for column in extra_columns],
        "uncurved": numbers.uncurved(
            system.name
            for system in systems
            if numbers.UNPROCESSED != system.name and by_label[system.label].bitrate_bps
        ),
        "groups": _group_by_data(systems, heads, tables.sets),
        "notes": [
            *_interval_methods(shown),
            *numbers.system_notes(by_label),
            *_question_notes(tables),
            *judge_notes(shown),
            *value_notes(shown),
        ],
        "common": common_rows(systems, heads, entries),
        "counting": counting_rows(systems, heads, entries),
        "published": published_rows(runs),
        **section_values(tables),
        "samples": len(samples),
        "shown_samples": rows,
        "heard_samples": len({clip.sample for clip in clips}),
        "sound_mb": sum(path.stat().st_size for path in {clip.path for clip in clips}) * 4 / 3 / 1e6,
    }


def _question_notes(tables: Tables) -> list[str]:
    """List notes on the rows and answers of each run, with its name if several."""
    several = len(tables.runs) > 1
    return [
        f"{name}: {note}" if several else note
        for name, summary in zip(tables.names, tables.summaries)
        for note in (
            *control_mark(summary),
            *numbers.rows_notes(summary.rows, summary.other_data or ()),
            *answer_notes(summary.answers),
        )
    ]


def _group_by_data(
    systems: Sequence[PageSystem], heads: Sequence[Mapping[str, Any]], sets: Sequence[str]
) -> list[dict[str, Any]]:
    """Group systems and columns by their data set."""
    return [
        {
            "data": data,
            "systems": [s for s, system in enumerate(systems) if sets[system.run] == data],
            "columns": [c for c, head in enumerate(heads) if head["data"] == data],
        }
        for data in dict.fromkeys(sets)
    ]


def reasons(
    runs: Sequence[Run], systems: Sequence[PageSystem], sets: Sequence[str], summaries: Sequence[Summary]
) -> list[dict[str, Any]]:
    """Return the reasons of missing values over all runs, with labels and protocols."""
    labels = {(system.run, system.name): system.label for system in systems}
    rows = []
    for r, (run, summary) in enumerate(zip(runs, summaries)):
        metrics = run.metrics
        for row in summary.failures.reasons:
            protocol = metrics[row.metric].get("protocol", "") if row.metric else ""
            more = {"run": r, "system": labels[r, row.system], "protocol": protocol, "data": sets[r]}
            rows.append({**row.as_dict(), **more})
    return numbers.grouped_reasons(rows)


def reason(
    row: Mapping[str, Any], systems: Sequence[PageSystem], heads: Sequence[Mapping[str, Any]], example: int | None
) -> dict[str, Any]:
    """Return a row of the failures, with the filter for its samples.

    Its column is -1 for a complete item, and `first` the first quality column of its data. `example` is the example's
    position on the page, or None.
    """
    keys = [(head["name"], head["protocol"], head["data"]) for head in heads]
    labels = [system.label for system in systems]
    return {
        **row,
        "sample": example,
        "column": keys.index((row["metric"], row["protocol"], row["data"])) if row["metric"] else -1,
        "first": next((n for n, (name, _, data) in enumerate(keys) if data == row["data"] and name != "bitrate"), 0),
        "place": labels.index(row["systems"][0]) if len(row["systems"]) == 1 else -1,
        "where": [f"all {len(systems)}"] if len(row["systems"]) == len(systems) > 1 else row["systems"],
    }


def _interval_methods(shown: Sequence[Any]) -> list[str]:
    methods = [numbers.METHODS.get(method, method) for method in numbers.methods_of(shown)]
    return [f"95 % intervals: {', '.join(methods)}"] if methods else []


def _cell_values(entry: MetricSummary | None, head: Mapping[str, Any], without_estimate: int) -> dict[str, Any] | None:
    """Format one cell's value, interval, counts and marks; None if missing."""
    if entry is None:
        return None
    factor, places, value = head["factor"], head["places"], entry.value
    return {
        "value": numbers.number(value, places, factor),
        "spread": numbers.spread(entry, places, factor),
        "note": entry.note or "",
        "chance": chance_text(entry),
        "below_50": numbers.below_50_text(entry, places),
        "interval": [numbers.number(bound, places, factor) for bound in entry.ci95] if entry.ci95 else None,
        "n": entry.n,
        "failed": entry.failed,
        "flagged": entry.failed > without_estimate,
        "missing": ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in entry.missing.items()),
        "missing_word": " ".join(entry.missing).replace("_", " "),
        "harmless": set(entry.missing).issubset(NOT_APPLICABLE if entry.n else NO_FAILURE),
        "best": numbers.is_best(entry),
        "alike": numbers.is_alike(entry),
    }
