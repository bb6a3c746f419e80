"""The best rows of a site's leaderboard and indistinguishable ones, by `stats.verdict`.

Rivals are the rows shown first: each system's newest finished row, and for missing values an older row of the same
recorded system. `newestRows` of `assets/table.js` chooses the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codec_bench.apps.site.folder import SiteFolder
from codec_bench.stats.bounds import declared_bounds
from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.intervals import ratios
from codec_bench.stats.recorded import JUDGED
from codec_bench.stats.summary_types import BITRATE
from codec_bench.stats.verdict import SUSPECT, barred, verdict

Row = dict[str, Any]
Entry = Mapping[str, Any]


def mark_best(
    rows: Sequence[Row], columns: Sequence[tuple[str, str]], entries: Mapping[str, Entry], site: SiteFolder | None
) -> None:
    """Add to each row its columns as `best`, `alike` (indistinguishable) and `barred`.

    Args:
        rows: the newest first. columns: the name and the protocol of each.
        site: holds the scores to compare rows of several runs; None compares within runs only.
    """
    shown: dict[str, list[Row]] = {}
    for row in rows:
        if not row.get("state"):
            shown.setdefault(row["system"], []).append(row)
    alike = [[row for row in of if row["identity"] == of[0]["identity"]] for of in shown.values()]
    held = _SiteScores(site)
    for c, (metric, _) in enumerate(columns):
        measured = ([row for row in of if row["cells"][c] is not None and row["family"] is not None] for of in alike)
        rivals = [of[0] for of in measured if of]
        counts = {n: row["cells"][c][3] for n, row in enumerate(rivals)}
        for n in barred(counts, dict.fromkeys(_out(rivals, c), SUSPECT)):
            rivals[n]["barred"] = sorted({c, *rivals[n].get("barred", ())})
        for row, standing in zip(rivals, _standings(rivals, c, metric, entries, held)):
            for mark in ("best", "alike"):
                if standing.get(mark):
                    row.setdefault(mark, []).append(c)


def _out(rivals: Sequence[Row], column: int) -> set[int]:
    """Return rows that are not compared: suspects, and those of their own run."""
    return {n for n, row in enumerate(rivals) if row.get("suspect") or column in row.get("barred", ())}


def _standings(
    rivals: Sequence[Row], column: int, metric: str, entries: Mapping[str, Entry], held: _SiteScores
) -> list[Mapping[str, Any]]:
    """Return each row's standing in a column; empty where nothing is comparable."""
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
    outcome = verdict(known, _out(rivals, column), facts["higher_is_better"])
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
