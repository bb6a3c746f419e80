"""The funnel: how many items reached each step of a build, and why the others were dropped. Every item is counted once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codec_bench.apps.building.item import Failure, Item


@dataclass(slots=True)
class Funnel:
    """The counts of a build.

    Args:
        steps: the steps of the maker, in order.
        items: how many items were asked for.
        kept: how many stand in the data set.
        tries: how many tries there were in all.
        dropped: dropped items, by step and reason. An item counts under the last try that came furthest.
        failed: tries that failed, by step and reason; those of kept items are among them.
        groups: how many items of each group were asked for and kept, by the name of the groups.
    """

    steps: Sequence[str]
    items: int = 0
    kept: int = 0
    tries: int = 0
    dropped: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failed: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    groups: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, outcomes: Iterable[Item], steps: Sequence[str]) -> Funnel:
        """Counts items."""
        funnel = cls(steps)
        for outcome in outcomes:
            funnel.count(outcome)
        return funnel

    def count(self, outcome: Item) -> None:
        """Counts one item."""
        self.items += 1
        self.kept += outcome.kept
        self.tries += len(outcome.failures) + outcome.kept
        for failure in outcome.failures:
            self.failed[failure.step][failure.reason] += 1
        if not outcome.kept:
            furthest = reason_of(outcome, self.steps)
            self.dropped[furthest.step][furthest.reason] += 1
        for name, held in outcome.groups.items():
            for value in [held] if isinstance(held, str) else held:
                counts = self.groups.setdefault(name, {}).setdefault(value, [0, 0])
                counts[0] += 1
                counts[1] += outcome.kept

    def rows(self) -> list[tuple[str, int, str, int]]:
        """For each step and reason: the step, how many items reached it, the reason, and how many were dropped for it.

        A step at which no item was dropped has one row, without a reason. The last row says how many were kept.
        """
        left, rows = self.items, []
        for step in self.steps:
            reasons = self.dropped.get(step, Counter())
            rows += [(step, left, reason, count) for reason, count in _most(reasons)] or [(step, left, "", 0)]
            left -= reasons.total()
        return [*rows, ("kept", left, "", 0)]

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return {
            "items": self.items,
            "kept": self.kept,
            "tries": self.tries,
            "dropped": {step: dict(_most(self.dropped[step])) for step in self.steps if step in self.dropped},
            "failed_tries": {step: dict(_most(self.failed[step])) for step in self.steps if step in self.failed},
            "groups": {
                name: {value: {"items": n, "kept": kept} for value, (n, kept) in sorted(held.items())}
                for name, held in sorted(self.groups.items())
            },
        }


def reason_of(outcome: Item, steps: Sequence[str]) -> Failure:
    """Why an item was dropped: the failure of the last of the tries that came furthest."""
    return max(enumerate(outcome.failures), key=lambda one: (steps.index(one[1].step), one[0]))[1]


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))
