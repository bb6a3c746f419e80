"""The leaderboards and index of a site, from the entries of its runs.

A leaderboard has one benchmark or data set with one part of it. Columns are metrics with one protocol each; rows are
runs and systems, unfinished ones marked. A cell is `[value, low, high, n, failed, note]` in the record's unit, with
`None` for missing numbers. `best`, `alike` and `barred` of a row are column numbers; `suspect` has its system's
findings.

The best rows of a site's leaderboard and indistinguishable ones, by `stats.verdict`. Rivals are the rows shown first:
each system's newest finished row, and for missing values an older row of the same recorded system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from codec_bench.apps.site.contradictions import Contradiction
from codec_bench.apps.site.folder import SiteFolder
from codec_bench.report.page.column_heads import head_of
from codec_bench.stats.bounds import declared_bounds
from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.intervals import ratios
from codec_bench.stats.recorded import JUDGED
from codec_bench.stats.summary_types import BITRATE, Estimate
from codec_bench.stats.verdict import SUSPECT, find_excluded, verdict

_SHOWN = ("key", "title", "benchmark", "samples", "limit", "asked", "generated")
"""Facts of a leaderboard in the index."""
Entry = Mapping[str, Any]
Row = dict[str, Any]


def mark_best(
    rows: Sequence[Row], columns: Sequence[tuple[str, str]], entries: Mapping[str, Entry], site: SiteFolder | None
) -> None:
    """Add to each row its columns as `best`, `alike` (indistinguishable) and `barred`.

    Columns are numbers. In `barred` ones the row may not be best, for example because its system is suspect.

    Args:
        rows: the newest first.
        columns: the name and the protocol of each.
        site: holds the scores to compare rows of several runs; None compares within runs only.
    """
    shown: dict[str, list[Row]] = {}
    for row in rows:
        if not row.get("state"):
            shown.setdefault(row["system"], []).append(row)
    same_data = [[row for row in of if row["identity"] == of[0]["identity"]] for of in shown.values()]
    held = _SiteScores(site)
    for c, (metric, _) in enumerate(columns):
        measured = (
            [row for row in of if row["cells"][c] is not None and row["family"] is not None] for of in same_data
        )
        rivals = [of[0] for of in measured if of]
        counts = {n: row["cells"][c][3] for n, row in enumerate(rivals)}
        for n in find_excluded(counts, dict.fromkeys(_excluded_rows(rivals, c), SUSPECT)):
            rivals[n]["barred"] = sorted({c, *rivals[n].get("barred", ())})
        for row, standing in zip(rivals, _standings(rivals, c, metric, entries, held)):
            for mark in ("best", "alike"):
                if standing.get(mark):
                    row.setdefault(mark, []).append(c)


def _excluded_rows(rivals: Sequence[Row], column: int) -> set[int]:
    """Return indices of rows that are suspect, or excluded in the column by their run."""
    return {n for n, row in enumerate(rivals) if row.get("suspect") or column in row.get("barred", ())}


def _standings(
    rivals: Sequence[Row], column: int, metric: str, entries: Mapping[str, Entry], held: _SiteScores
) -> list[Mapping[str, Any]]:
    """Return whether each row is best or alike in a column; empty if not comparable."""
    if not rivals or metric == BITRATE:
        return []
    facts = entries[rivals[0]["run"]]["metrics"][metric]
    if facts.get("higher_is_better") is None:
        return []
    if len({row["run"] for row in rivals}) == 1:
        entry = entries[rivals[0]["run"]]
        systems = [entry["systems"][row["system"]]["metrics"] for row in rivals]
        return [metrics.get(metric, {}).get("standing") or {} for metrics in systems]
    parts = {n: held.parts(entries[row["run"]], row["system"], metric) for n, row in enumerate(rivals)}
    if any(one is None for one in parts.values()):
        return []
    known = {n: one for n, one in parts.items() if one is not None}
    outcome = verdict(known, _excluded_rows(rivals, column), facts["higher_is_better"])
    return [outcome.standing(n).as_dict() for n in known]


class _SiteScores:
    """The scores of a site's runs, each file read once."""

    def __init__(self, site: SiteFolder | None) -> None:
        self._site = site
        self._samples: dict[str, tuple[list[str], list[int], np.ndarray]] = {}
        self._values: dict[tuple[str, int], Mapping[str, Any]] = {}
        self._numbers: dict[str, int] = {}

    def parts(self, entry: Entry, system: str, metric: str) -> MetricParts | None:
        """Return the items' contributions to a metric; None without sums, as for sets."""
        if self._site is None:
            return None
        key, index = entry["key"], list(entry["metrics"]).index(metric)
        if key not in self._samples:
            samples = self._site.read_data(f"runs/{key}/samples")
            order = np.argsort(np.asarray(samples["ids"], dtype=object))
            self._samples[key] = samples["ids"], samples["units"], order
        if (key, index) not in self._values:
            self._values[key, index] = self._site.read_data(f"runs/{key}/values-{index}")
        ids, units, order = self._samples[key]
        values = self._values[key, index]
        if values["fold"]:
            return None
        rows = values["systems"][list(entry["systems"]).index(system)]
        above, below = rows["above"], rows.get("below") or [1.0] * len(ids)
        complete = [n for n in order.tolist() if above[n] is not None and below[n] is not None]
        sums = np.asarray([(above[n], below[n]) for n in complete], np.float64).reshape(-1, 2)
        numbers = [self._numbers.setdefault(ids[n], len(self._numbers)) for n in complete]
        names = [str(units[n]) if units[n] >= len(ids) else "" for n in complete]
        facts = entry["metrics"][metric]
        return MetricParts(
            numbers, sums, names, {}, ratios, {}, facts.get("kind") in JUDGED, bounds=declared_bounds(facts)
        )


def boards_of(
    entries: Sequence[Entry], conflicts: Sequence[Contradiction], site: SiteFolder | None = None
) -> dict[str, dict[str, Any]]:
    """Build the leaderboards by key, those with the newest runs first.

    Args:
        entries: descriptions of runs (`describe_run`), the oldest first.
        conflicts: contradictions to mark.
        site: holds the scores for the best rows of several runs; None marks none of these.
    """
    of: dict[str, list[Entry]] = {}
    for entry in entries:
        of.setdefault(entry["board"]["key"], []).append(entry)
    marked = {(run_key, c.system, c.metric) for c in conflicts for run_key in (c.key_a, c.key_b)}
    newest = sorted(of, key=lambda key: of[key][-1]["date"] or "", reverse=True)
    return {key: _board(of[key], marked, site) for key in newest}


def _board(entries: Sequence[Entry], marked: set[tuple[str, str, str]], site: SiteFolder | None) -> dict[str, Any]:
    """Build one leaderboard: columns by metric and protocol, a row per run's system.

    Args:
        entries: the runs of the board, the oldest first.
        marked: (run, system, metric) of contradicting values.
    """
    first = entries[-1]["board"]
    columns: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in entries:
        for name, facts in entry["metrics"].items():
            columns[name, facts["protocol"]] = facts
    order = sorted(columns, key=lambda column: column[0] != "bitrate")  # all other numbers depend on the bitrate
    notes: dict[str, int] = {}
    rows = [
        {
            "run": entry["key"],
            "system": name,
            "family": system["family"],
            "date": entry["date"],
            "identity": system["identity"],
            **({"revision": system["revision"]} if system["revision"] else {}),
            **({"state": entry["state"]} if entry["state"] != "finished" else {}),
            **({"remarks": system["remarks"]} if system["remarks"] else {}),
            **({"suspect": system["suspect"]} if system.get("suspect") else {}),
            "cells": [_cell(entry, system, metric, protocol, notes) for metric, protocol in order],
            **({"barred": barred} if (barred := _excluded_columns(system, order)) else {}),
            "doubted": [c for c, (metric, _) in enumerate(order) if (entry["key"], name, metric) in marked],
        }
        for entry in reversed(entries)
        for name, system in entry["systems"].items()
    ]
    control = entries[-1].get("control")
    if not control:  # answers under a control are no result, so none is the best
        mark_best(rows, order, {entry["key"]: entry for entry in entries}, site)
    heads = [_column_head(entries, name, protocol, columns[name, protocol]) for name, protocol in order]
    return {
        **first,
        "samples": max(entry["board"]["samples"] for entry in entries),
        "columns": heads,
        "primary": _primary(entries[-1], order),
        "rows": rows,
        "notes": list(notes),
        "published": [] if control else list((entries[-1]["benchmark"] or {}).get("published") or ()),
        "asked": entries[-1]["asked"],
    }


def _primary(entry: Entry, order: Sequence[tuple[str, str]]) -> int | None:
    """Return the number of the column to sort by: the primary or only metric; or None."""
    name = (entry["benchmark"] or {}).get("primary")
    if name in entry["metrics"]:
        return order.index((name, entry["metrics"][name]["protocol"]))
    ranking = [c for c, (metric, _) in enumerate(order) if metric != "bitrate"]
    alone = len(ranking) == 1 and entry["metrics"].get(order[ranking[0]][0], {}).get("higher_is_better") is not None
    return ranking[0] if alone else None


def _has_front(board: Mapping[str, Any]) -> bool:
    """Whether a leaderboard has bitrates and a metric with a direction."""
    rated = any(
        row["cells"][c] for c, head in enumerate(board["columns"]) if head["name"] == "bitrate" for row in board["rows"]
    )
    return rated and any(head["name"] != "bitrate" and head["higher"] is not None for head in board["columns"])


def _excluded_columns(system: Mapping[str, Any], order: Sequence[tuple[str, str]]) -> list[int]:
    """Return the numbers of the columns in which a system's run excludes it."""
    standings = [system["metrics"].get(metric, {}).get("standing") or {} for metric, _ in order]
    return [c for c, standing in enumerate(standings) if not standing.get("compared", True)]


def _cell(
    entry: Entry, system: Mapping[str, Any], metric: str, protocol: str, notes: dict[str, int]
) -> list[Any] | None:
    """Return [value, low, high, n, failed, number of the note]; None if not measured."""
    held = system["metrics"].get(metric)
    if held is None or held["protocol"] != protocol:
        return None
    low, high = held["ci95"] or (None, None)
    note = notes.setdefault(held["note"], len(notes)) if held.get("note") else None
    cell = [*map(_short, (held["value"], low, high)), held["n"], held["failed"], note]
    while cell[-1] in (None, 0) and len(cell) > 4:
        cell.pop()
    return cell


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.7g}")


def _column_head(entries: Sequence[Entry], name: str, protocol: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Build a column's head from the estimates of its protocol."""
    column = [
        Estimate(held["value"], held["ci95"])
        for entry in entries
        for system in entry["systems"].values()
        if (held := system["metrics"].get(name)) is not None and held["protocol"] == protocol
    ]
    return head_of(name, protocol, facts, column)


def definitions_of(entries: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """Build the data on metrics and benchmarks, by name; the newest run counts."""
    metrics: dict[str, dict[str, Any]] = {}
    benchmarks: dict[str, Any] = {}
    for entry in entries:
        for name, facts in entry["metrics"].items():
            held = metrics.setdefault(name, {}).setdefault(facts["protocol"], {"facts": {}, "boards": []})
            held["facts"] = facts
            if entry["board"]["key"] not in held["boards"]:
                held["boards"].append(entry["board"]["key"])
        if entry["benchmark"]:
            benchmarks[str(entry["benchmark"]["name"])] = entry["benchmark"]
    return {"metrics": metrics, "benchmarks": benchmarks}


def index_of(
    entries: Sequence[Entry],
    boards: Mapping[str, Mapping[str, Any]],
    published: Mapping[str, Mapping[str, Any]],
    conflicts: Sequence[Contradiction],
    title: str,
) -> dict[str, Any]:
    """Build the index that every page loads: runs, leaderboards, systems and metrics.

    Args:
        boards, published: leaderboards of the site, and published ones, by key.
        conflicts: contradictions; they are counted.
    """
    index = {key: n for n, key in enumerate(boards)}
    systems: dict[str, list[int]] = {}
    for n, board in enumerate(boards.values()):
        for name in dict.fromkeys(row["system"] for row in board["rows"]):
            systems.setdefault(name, []).append(n)
    return {
        "title": title,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": [
            [one["key"], one["name"], index[one["board"]["key"]], one["date"], one["state"]]
            for one in reversed(entries)
        ],
        "boards": [
            {
                **{name: board[name] for name in _SHOWN},
                "metrics": len({column["name"] for column in board["columns"]}),
                "systems": len({row["system"] for row in board["rows"]}),
                "runs": len({row["run"] for row in board["rows"]}),
                "latest": max((row["date"] or "" for row in board["rows"]), default=""),
            }
            for board in boards.values()
        ],
        "front": next((key for key, board in boards.items() if _has_front(board)), None),
        # The first page names systems that failed on every item.
        "lost": [
            [entry["key"], entry["name"], name, system["lost"]]
            for entry in reversed(entries)
            for name, system in entry["systems"].items()
            if system.get("lost")
        ],
        "systems": systems,
        "metrics": sorted({name for entry in entries for name in entry["metrics"]}),
        "published": {name: board["summary"] for name, board in published.items()},
        "contradictions": len(conflicts),
    }
