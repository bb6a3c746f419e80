"""Which runs contradict each other: the same system and protocol over the same data, and numbers outside each other's
intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two runs of one system whose numbers lie outside each other's 95 % intervals.

    Args:
        system, metric, protocol: what both measured. board: the title of the leaderboard that both stand on.
        key_a, key_b: the keys of the runs, the older first. run_a, run_b: their names.
        value_a, value_b: the numbers. interval_a, interval_b: their intervals as (low, high).
        versions: the programs that both runs name with other versions, as `name old to new`.
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
        """As the data file `checks` holds it: system, metric, both keys, both values with their intervals, and the
        versions.
        """
        sides = ([self.value_a, *self.interval_a], [self.value_b, *self.interval_b])
        return [self.system, self.metric, self.key_a, self.key_b, *sides, list(self.versions)]


def contradictions(entries: Sequence[Mapping[str, Any]]) -> list[Contradiction]:
    """The pairs of finished runs that contradict each other.

    A system is the same if the record says the same of it: its name, its weights and its options. Numbers without an
    interval contradict none, since nothing is known of their spread.

    Args:
        entries: of the runs, as `records.describe_run` gives them, the oldest first.
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
    # Ends are sums of floating-point numbers: equal numbers must not lie outside of an interval without width.
    slack = 1e-9 * max(abs(ends[0]), abs(ends[1]), abs(value))
    return value < ends[0] - slack or value > ends[1] + slack


def _changed(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    old, new = a["versions"] or {}, b["versions"] or {}
    return tuple(f"{name} {old[name]} to {new[name]}" for name in old if name in new and old[name] != new[name])
