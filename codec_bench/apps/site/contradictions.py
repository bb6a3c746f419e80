"""Comparable runs with values outside each other's intervals.

Runs over the same audio: files with equal names and sizes may have changed.
A complete run has one hash over all references. Hashes of the same few ids in every run place incomplete runs too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from codec_bench.store.identity import hashed
from codec_bench.store.record import Run

Entry = Mapping[str, Any]
SOME = 200
"""Number of stored sample hashes; smaller runs are compared sample by sample."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two runs of one system with values outside each other's 95 % intervals.

    Args:
        board: the title of the common leaderboard.
        key_a, key_b: the keys of the runs, the older first.
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


def hash_references(run: Run) -> dict[str, Any]:
    """Hash a run's reference audio: `all` or None, and `some` samples by hashed id.

    `all` is None for runs that are incomplete.
    """
    held = run.query("SELECT id, sound FROM samples ORDER BY id")
    known = {hashlib.blake2b(id.encode(), digest_size=6).hexdigest(): sound for id, sound in held if sound is not None}
    is_complete = bool(held) and len(known) == len(held) and run.meta.get("state") == "finished"
    return {
        "all": hashed([list(row) for row in held]) if is_complete else None,
        "some": dict(sorted(known.items())[:SOME]),
    }


def assign_boards(entries: Sequence[Entry]) -> list[Entry]:
    """Give entries, oldest first, a separate board where reference audio differs."""
    groups: dict[str, list[list[Entry]]] = {}
    for entry in entries:
        among = groups.setdefault(entry["board"]["key"], [])
        for group in among:
            if not any(_other(entry, one) for one in group):
                group.append(entry)
                break
        else:
            among.append([entry])
    boards = {
        one["key"]: _board(group, n) for among in groups.values() for n, group in enumerate(among) for one in group
    }
    return [{**entry, "board": {**entry["board"], **boards[entry["key"]]}} for entry in entries]


def _other(one: Entry, other: Entry) -> bool:
    (a, b) = (entry["board"]["sounds"] for entry in (one, other))
    if a["all"] is not None and b["all"] is not None:
        return bool(a["all"] != b["all"])
    return any(b["some"].get(id, sound) != sound for id, sound in a["some"].items())


def _board(group: Sequence[Entry], before: int) -> dict[str, str]:
    """Return key and title of a board; `before` counts others with the same files."""
    board, sound_hashes = group[0]["board"], [entry["board"]["sounds"]["all"] for entry in group]
    sounds = next((one for one in sound_hashes if one is not None), None) or (str(before) if before else None)
    suffix = "" if not before else " (other sounds)" if before == 1 else f" (other sounds, {before})"
    key = board["key"]
    if sounds is not None:
        key = hashlib.blake2b(f"{key} {sounds}".encode(), digest_size=5).hexdigest()
    return {"key": key, "title": f"{board['title']}{suffix}"}
