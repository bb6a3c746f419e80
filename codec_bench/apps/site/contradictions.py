"""Runs of one system, protocol and data with values outside each other's intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two runs of one system with values outside each other's 95 % intervals.

    Args:
        board: the title of the common leaderboard.
        key_a, key_b: the keys of the runs, the older first. run_a, run_b: their names.
        versions: programs of different versions, as `name old to new`.
    """

    system: str
    metric: str
    protocol: str
    board: str
    key_a: str
    key_b: str
    run_a: str
    run_b: str
    value_a: float
    value_b: float
    interval_a: tuple[float, float]
    interval_b: tuple[float, float]
    versions: tuple[str, ...] = ()

    def as_row(self) -> list[Any]:
        """As in the data file `checks`: keys, values, intervals, versions."""
        sides = ([self.value_a, *self.interval_a], [self.value_b, *self.interval_b])
        return [self.system, self.metric, self.key_a, self.key_b, *sides, list(self.versions)]


def contradictions(entries: Sequence[Mapping[str, Any]]) -> list[Contradiction]:
    """Find pairs of finished runs that contradict each other.

    Systems are the same if the record has the same name, weights and options. Values without an interval contradict
    none.

    Args:
        entries: as `records.describe_run` gives them, the oldest first.
    """
    same: dict[tuple[str, ...], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for entry in entries:
        if entry["state"] != "finished":
            continue
        for name, system in entry["systems"].items():
            for metric, held in system["metrics"].items():
                if held["value"] is not None and held["ci95"]:
                    key = (entry["board"]["key"], name, system["identity"], metric, held["protocol"])
                    same.setdefault(key, []).append((entry, held))
    conflicts = []
    for (_, system, _, metric, protocol), sides in same.items():
        for (a, of_a), (b, of_b) in combinations(sides, 2):
            if _outside(of_a["value"], of_b["ci95"]) and _outside(of_b["value"], of_a["ci95"]):
                facts = (a["board"]["title"], a["key"], b["key"], a["name"], b["name"], of_a["value"], of_b["value"])
                spread = (tuple(of_a["ci95"]), tuple(of_b["ci95"]))
                conflicts.append(Contradiction(system, metric, protocol, *facts, *spread, _changed(a, b)))
    return conflicts


def _outside(value: float, ends: Sequence[float]) -> bool:
    # Tolerance: equal floats must be inside an interval without width.
    slack = 1e-9 * max(abs(ends[0]), abs(ends[1]), abs(value))
    return value < ends[0] - slack or value > ends[1] + slack


def _changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    old, new = a["versions"] or {}, b["versions"] or {}
    return tuple(f"{name} {old[name]} to {new[name]}" for name in old if name in new and old[name] != new[name])
