"""The heads of the columns of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.report import numbers
from codec_bench.report.numbers import Valued
from codec_bench.report.page.columns import Column, System
from codec_bench.stats.summary_types import MetricSummary


def column_heads(
    systems: Sequence[System],
    columns: Mapping[Column, Mapping[str, Any]],
    entries: Sequence[Sequence[MetricSummary | None]],
    benchmarks: Sequence[str | None],
    scored: np.ndarray,
) -> list[dict[str, Any]]:
    """The heads of the columns: what each column is, and how its numbers are written.

    `scored` says which samples have a value, bool `(systems, columns, samples)`.
    """
    heads = []
    same_name = Counter((column.metric, column.data) for column in columns)
    for c, ((name, protocol, of), facts) in enumerate(columns.items()):
        column = [row[c] for row in entries]
        higher = facts.get("higher_is_better")
        head = head_of(name, protocol, facts, [entry for entry in column if entry])
        if same_name[name, of] > 1:  # by two judges, say
            head["variant"] = f"{head['variant']} {protocol}".strip()
        rivals: dict[str | None, list[int]] = {}
        for s, (entry, system) in enumerate(zip(column, systems)):
            if entry and system.name != numbers.UNPROCESSED and name != "bitrate":
                rivals.setdefault(benchmarks[system.run], []).append(s)
        heads.append(
            {
                **head,
                "data": of,
                "direction": {True: "higher is better", False: "lower is better", None: ""}[higher],
                "range": facts.get("range"),
                "facts": facts,
                "best": set().union(
                    *(_best(group, column, systems, scored[:, c], higher) for group in rivals.values())
                ),
            }
        )
    return heads


def head_of(name: str, protocol: str, facts: Mapping[str, Any], column: Sequence[Valued]) -> dict[str, Any]:
    """What stands above the numbers of a metric, and how they are written.

    Args:
        name, protocol, facts: of the metric. column: the entries of the summaries that stand in the column.
    """
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


def _best(
    group: Sequence[int],
    column: Sequence[MetricSummary | None],
    systems: Sequence[System],
    scored: np.ndarray,
    higher: bool | None,
) -> set[int]:
    """The best of the systems of one benchmark or one set of data, by values over the same samples.

    The systems of one run are compared over their common samples. Systems of several runs are compared if all have values
    for the same samples.
    """
    entries = {s: entry for s in group if (entry := column[s]) is not None and entry.n}
    several = len({systems[s].run for s in entries}) > 1
    if several and any((scored[s] != scored[next(iter(entries))]).any() for s in entries):
        return set()
    return numbers.best({s: numbers.compared(entry) for s, entry in entries.items()}, higher)
