"""One item of a build: result, random numbers, and the funnel of counts."""

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
    """The reason why one try at an item failed.

    Args:
        reason: the code that the funnel counts by.
        value: the failed number, such as an error rate (`ItemMaker.rate`); less is better.
        groups: as `BuildItem.groups`, where it differs between tries, such as the voice.
    """

    step: str
    reason: Diagnostic
    detail: str = ""
    value: float | None = None
    groups: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


class TryError(Exception):
    """A try at an item failed; raised by the steps of a maker.

    The first arguments are those of `Failure`. `sound` is the rejected audio, for listening (`with_audio`).

    Args:
        last: further tries would fail in the same way.
    """

    def __init__(
        self, step: str, reason: Diagnostic, detail: str = "", value: float | None = None, *, last: bool = False
    ) -> None:
        super().__init__(reason)
        self.failure, self.last = Failure(step, reason, detail, value), last
        self.sound: Audio | None = None


@dataclass(frozen=True, slots=True)
class BuildItem:
    """The result of one item.

    Args:
        groups: for the funnel, such as `{"subject": "history", "voice": "kal"}`; a list for several at once.
        row: the columns of a usable item, as JSON values; None if it was dropped.
        sound: the FLAC file of a usable item.
        material: the last audio of a dropped item as FLAC, for listening; None without any.
    """

    key: str
    groups: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    row: Mapping[str, Any] | None = None
    sound: bytes | None = None
    material: bytes | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the item is in the data set."""
        return self.row is not None


class ItemMaker:
    """Interface of the makers: each makes the items of one kind of recipe.

    Args:
        columns: of a row next to the audio: name and type, `text`, `texts` or `number`.
        rate: the column of the number that retries reduce, with failed values in `Failure.value`; None without one.
    """

    steps: Sequence[str]
    columns: Mapping[str, str]
    rate: str | None = None
    parallel: int

    def keys(self) -> Sequence[str]:
        """The ids of all items, in the order of the data set."""
        raise NotImplementedError

    def make(self, key: str) -> BuildItem:
        """Make one item from recipe and key alone; thread-safe."""
        raise NotImplementedError

    def same(self, key: str) -> Sequence[str]:
        """Return keys that dependent or equal items share, whatever their audio."""
        return ()

    def facts(self) -> Mapping[str, Any]:
        """Sources and tools for the card, as JSON values."""
        raise NotImplementedError

    def nearness(self, row: Mapping[str, Any]) -> float | None:
        """How close a usable item is to being dropped, 0 to 1; None if unknown."""
        return None

    def close(self) -> None:
        """Free memory and ends processes."""


@contextmanager
def with_audio(sound: Audio) -> Iterator[None]:
    """Attach this audio to `TryError` raised inside, for listening."""
    try:
        yield
    except TryError as dropped:
        dropped.sound = dropped.sound or sound
        raise


def try_item(
    key: str,
    groups: dict[str, Any],
    tries: int,
    attempt: Callable[[int], tuple[Mapping[str, Any], Audio]],
    by: str | None = None,
) -> BuildItem:
    """Make an item, with up to `tries` tries; after the last failed one it is dropped.

    Args:
        groups: as `BuildItem.groups`; a try may set them.
        attempt: makes row and audio at the try of this number, from 0; it may raise `TryError`.
        by: the group that differs between tries, such as the voice.
    """
    failures: list[Failure] = []
    material = None
    for number in range(tries):
        try:
            row, sound = attempt(number)
        except TryError as dropped:
            failures.append(replace(dropped.failure, groups={by: groups[by]}) if by in groups else dropped.failure)
            material = dropped.sound or material
            if dropped.last:
                break
        else:
            return BuildItem(key, groups, tuple(failures), row, flac_bytes(sound))
    return BuildItem(key, groups, tuple(failures), material=None if material is None else flac_bytes(material))


def make_rng(seed: int, *names: str | int) -> np.random.Generator:
    """Create a random generator from seed and names, independent of item order."""
    digest = hashlib.blake2b("\0".join(map(str, (seed, *names))).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def choose_concurrency(concurrencies: Iterable[int]) -> int:
    """Choose the number of concurrent items: model requests, and one per core."""
    return min(_MOST_AT_ONCE, sum(concurrencies) + (os.cpu_count() or 1))


@dataclass(slots=True)
class Funnel:
    """The counts of a build.

    Args:
        items, usable, tries: requested items, those in the data set, and tries in all.
        dropped: dropped items by step and reason, under the last of the tries that came furthest.
        failed: failed tries by step and reason, those of usable items included.
        groups: requested items, usable items and tries by group name and value.
        causes: failed tries by group value, step and reason.
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
    def of(cls, outcomes: Iterable[BuildItem], steps: Sequence[str]) -> Funnel:
        """Count the tries, drops and usable items of all `outcomes`."""
        funnel = cls(steps)
        for outcome in outcomes:
            funnel._count(outcome)
        return funnel

    def _count(self, outcome: BuildItem) -> None:
        """Add one item and its failed tries to the counts."""
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
        """List step, items that reached it, reason, and items dropped for it.

        A step without drops has one row, without a reason. The last row counts the usable items.
        """
        left, rows = self.items, list[tuple[str, int, str, int]]()
        for step in self.steps:
            reasons = self.dropped.get(step, Counter())
            rows += [(step, left, reason, count) for reason, count in _most(reasons)] or [(step, left, "", 0)]
            left -= reasons.total()
        return [*rows, ("kept", left, "", 0)]

    def most_fell(self) -> str:
        """Describe the step with most drops and its main reason; empty without drops."""
        if not self.dropped:
            return ""
        step, reasons = max(self.dropped.items(), key=lambda one: one[1].total())
        return f"most were dropped at the step '{step}' ({reasons.total():,}), because {_most(reasons)[0][0]}"

    def never_usable(self) -> list[str]:
        """Describe each voice or reader without any usable item."""
        sentences = []
        for (name, value), causes in sorted(self.causes.items()):
            _, usable, tries = self.groups[name][value]
            if not usable:
                (step, reason), _ = causes.most_common(1)[0]
                tried = f"{tries:,} tries failed, most often" if tries > 1 else "1 try failed"
                sentences.append(f"the {name} '{value}' was never usable: {tried} because {reason} (step '{step}')")
        return sentences

    def counts(self, counted: Mapping[str, Counter[Diagnostic]]) -> list[tuple[str, Diagnostic, int]]:
        """List `dropped` or `failed` by step, the most frequent reason of each first."""
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


def reason_of(outcome: BuildItem, steps: Sequence[str]) -> Failure:
    """Return the failure of the last of the tries that came furthest."""
    return max(enumerate(outcome.failures), key=lambda one: (steps.index(one[1].step), one[0]))[1]


def _pairs(groups: Mapping[str, str | Sequence[str]]) -> Iterator[tuple[str, str]]:
    for name, held in groups.items():
        for value in [held] if isinstance(held, str) else held:
            yield name, value


def _most(counts: Mapping[Diagnostic, int]) -> list[tuple[Diagnostic, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], str(one[0].as_dict())))
