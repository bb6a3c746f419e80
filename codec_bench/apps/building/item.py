"""One item of a build: what became of it, and how it draws its random numbers; and the funnel, in which every item is
counted once.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from codec_bench.audio.encode import flac_bytes
from codec_bench.messages import Diagnostic, to_json
from codec_bench.types import Audio

_MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one try at an item failed.

    Args:
        step: the step at which it failed; one of the maker's steps.
        reason: the code of why; the funnel counts by it.
        detail: what is particular to this item, such as what a recogniser heard.
        value: the number for which it failed, such as an error rate (`Maker.rate`); less is better; None if there is
            none.
        groups: as `Item.groups`, what this try was made with where it differs between tries, such as the voice.
    """

    step: str
    reason: Diagnostic
    detail: str = ""
    value: float | None = None
    groups: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


class Dropped(Exception):
    """Raised by a step of a maker when a try fails.

    Args:
        failure: why. last: whether further tries would fail in the same way, so that there is none.
        sound: what was made and not kept, so that it can be listened to; None if nothing was.
    """

    def __init__(self, failure: Failure, *, last: bool = False, sound: Audio | None = None) -> None:
        super().__init__(failure.reason)
        self.failure, self.last, self.sound = failure, last, sound


@dataclass(frozen=True, slots=True)
class Item:
    """What became of one item.

    Args:
        key: its id.
        groups: what the funnel counts it under, such as `{"subject": "history", "voice": "kal"}`; a list for several at
            once.
        failures: one for each try that failed, in order.
        row: the columns of a kept item, as JSON values; None if the item was dropped.
        sound: the FLAC file of a kept item.
        material: what was synthesised or mixed last for a dropped item, as FLAC, so that it can be listened to; None if
            nothing.
    """

    key: str
    groups: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    row: Mapping[str, Any] | None = None
    sound: bytes | None = None
    material: bytes | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the item stands in the data set."""
        return self.row is not None


class Maker:
    """What makes the items of one kind of recipe.

    Args:
        steps: that an item goes through, in order.
        columns: of a row beside the sound: the name and the type, `text`, `texts` or `number`.
        rate: the column with the number that retries are to bring down, whose failed values stand in `Failure.value`;
            None if there is none.
        parallel: how many items to make at once.
    """

    steps: Sequence[str]
    columns: Mapping[str, str]
    rate: str | None = None
    parallel: int

    def keys(self) -> Sequence[str]:
        """The ids of all items, in the order in which they stand in the data set."""
        raise NotImplementedError

    def make(self, key: str) -> Item:
        """Makes one item, by the recipe and the key alone. It may be called by several threads at once."""
        raise NotImplementedError

    def same(self, key: str) -> Sequence[str]:
        """What an item shares with those that are not independent of it, or are the same, whatever they sound like."""
        return ()

    def facts(self) -> Mapping[str, Any]:
        """What the card says of the sources and the tools, as JSON values."""
        raise NotImplementedError

    def nearness(self, row: Mapping[str, Any]) -> float | None:
        """How near a kept item was to being dropped: from 0, far from it, to 1, at the limit; None where no number
        tells it.
        """
        return None

    def close(self) -> None:
        """Frees memory and ends processes."""


@contextmanager
def listened(sound: Audio) -> Iterator[None]:
    """Inside, what is dropped is dropped with this sound, so that it can be listened to."""
    try:
        yield
    except Dropped as dropped:
        dropped.sound = dropped.sound or sound
        raise


def tried(
    key: str,
    groups: dict[str, Any],
    tries: int,
    attempt: Callable[[int], tuple[Mapping[str, Any], Audio]],
    by: str | None = None,
) -> Item:
    """An item that is tried until a try succeeds.

    Args:
        key: its id. groups: as `Item.groups`; a try may set them. tries: how many there are at the most.
        attempt: makes the row and the sound at the try of this number, from 0; it may raise `Dropped`.
        by: the group that differs between tries, such as the voice.
    """
    failures: list[Failure] = []
    material = None
    for number in range(tries):
        try:
            row, sound = attempt(number)
        except Dropped as dropped:
            failures.append(replace(dropped.failure, groups={by: groups[by]}) if by in groups else dropped.failure)
            material = dropped.sound or material
            if dropped.last:
                break
        else:
            return Item(key, groups, tuple(failures), row, flac_bytes(sound))
    return Item(key, groups, tuple(failures), material=None if material is None else flac_bytes(material))


def draws(seed: int, *names: str | int) -> np.random.Generator:
    """The random numbers of one purpose. They depend on the seed and the names alone, not on the order of the items."""
    digest = hashlib.blake2b("\0".join(map(str, (seed, *names))).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def at_once(concurrencies: Iterable[int]) -> int:
    """How many items to make at once, so that no model waits for another one or for the checks.

    Args:
        concurrencies: how many requests each model takes at once. Beside these requests, one item for each core is
            computed.
    """
    return min(_MOST_AT_ONCE, sum(concurrencies) + (os.cpu_count() or 1))


@dataclass(slots=True)
class Funnel:
    """The counts of a build.

    Args:
        steps: the steps of the maker, in order.
        items: how many items were asked for.
        usable: how many stand in the data set.
        tries: how many tries there were in all.
        dropped: dropped items, by step and reason. An item counts under the last try that came furthest.
        failed: tries that failed, by step and reason; those of kept items are among them.
        groups: how many items of each group were asked for and kept, and in how many tries, by the name of the groups.
        causes: why tries failed that were made with this value of a group, by step and reason.
    """

    steps: Sequence[str]
    items: int = 0
    usable: int = 0
    tries: int = 0
    dropped: dict[str, Counter[Diagnostic]] = field(default_factory=lambda: defaultdict(Counter))
    failed: dict[str, Counter[Diagnostic]] = field(default_factory=lambda: defaultdict(Counter))
    groups: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    causes: dict[tuple[str, str], Counter[tuple[str, Diagnostic]]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, outcomes: Iterable[Item], steps: Sequence[str]) -> Funnel:
        """Counts items."""
        funnel = cls(steps)
        for outcome in outcomes:
            funnel._count(outcome)
        return funnel

    def _count(self, outcome: Item) -> None:
        self.items += 1
        self.usable += outcome.is_usable
        self.tries += len(outcome.failures) + outcome.is_usable
        for failure in outcome.failures:
            self.failed[failure.step][failure.reason] += 1
            self._add({**outcome.groups, **failure.groups}, tries=1)
            for name, value in _pairs(failure.groups):
                self.causes[name, value][failure.step, failure.reason] += 1
        if not outcome.is_usable:
            furthest = reason_of(outcome, self.steps)
            self.dropped[furthest.step][furthest.reason] += 1
        self._add(outcome.groups, items=1, passed=outcome.is_usable, tries=outcome.is_usable)

    def _add(
        self, groups: Mapping[str, str | Sequence[str]], *, items: int = 0, passed: int = 0, tries: int = 0
    ) -> None:
        for name, value in _pairs(groups):
            counts = self.groups.setdefault(name, {}).setdefault(value, [0, 0, 0])
            counts[:] = (counts[0] + items, counts[1] + passed, counts[2] + tries)

    def rows(self) -> list[tuple[str, int, str, int]]:
        """For each step and reason: the step, how many items reached it, the reason, and how many were dropped for it.

        A step at which no item was dropped has one row, without a reason. The last row says how many were kept.
        """
        left, rows = self.items, list[tuple[str, int, str, int]]()
        for step in self.steps:
            reasons = self.dropped.get(step, Counter())
            rows += [(step, left, reason, count) for reason, count in _most(reasons)] or [(step, left, "", 0)]
            left -= reasons.total()
        return [*rows, ("kept", left, "", 0)]

    def most_fell(self) -> str:
        """The step at which most items were dropped, with its most frequent reason, as words; empty if none was
        dropped.
        """
        if not self.dropped:
            return ""
        step, reasons = max(self.dropped.items(), key=lambda one: one[1].total())
        return f"most were dropped at the step '{step}' ({reasons.total():,}), because {_most(reasons)[0][0]}"

    def never_usable(self) -> list[str]:
        """For each voice or reader of whom no item was kept, a sentence that says so."""
        sentences = []
        for (name, value), causes in sorted(self.causes.items()):
            _, usable, tries = self.groups[name][value]
            if not usable:
                (step, reason), _ = causes.most_common(1)[0]
                tried = f"{tries:,} tries, most often" if tries > 1 else "1 try,"
                sentences.append(
                    f"the {name} '{value}' was never usable: no item was kept in {tried} because {reason} (step '{step}')"
                )
        return sentences

    def counts(self, counted: Mapping[str, Counter[Diagnostic]]) -> list[tuple[str, Diagnostic, int]]:
        """`dropped` or `failed` in the order of the steps, the most frequent reason of each first."""
        return [(step, *one) for step in self.steps if step in counted for one in _most(counted[step])]

    def _counts(self, counted: Mapping[str, Counter[Diagnostic]]) -> dict[str, list[dict[str, Any]]]:
        held: dict[str, list[dict[str, Any]]] = {}
        for step, reason, count in self.counts(counted):
            held.setdefault(step, []).append(to_json({"reason": reason, "count": count}))
        return held

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values."""
        return {
            "items": self.items,
            "kept": self.usable,
            "tries": self.tries,
            "dropped": self._counts(self.dropped),
            "failed_tries": self._counts(self.failed),
            "groups": {
                name: {value: dict(zip(("items", "kept", "tries"), counts)) for value, counts in sorted(held.items())}
                for name, held in sorted(self.groups.items())
            },
        }


def reason_of(outcome: Item, steps: Sequence[str]) -> Failure:
    """Why an item was dropped: the failure of the last of the tries that came furthest."""
    return max(enumerate(outcome.failures), key=lambda one: (steps.index(one[1].step), one[0]))[1]


def _pairs(groups: Mapping[str, str | Sequence[str]]) -> Iterator[tuple[str, str]]:
    for name, held in groups.items():
        for value in [held] if isinstance(held, str) else held:
            yield name, value


def _most(counts: Mapping[Diagnostic, int]) -> list[tuple[Diagnostic, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], str(one[0].as_dict())))
