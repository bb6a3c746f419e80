"""Which items are taken, and the trials that they form.

Conventions
    One seed determines everything: which items, which of them are for practice, which trials are repeated, and in which
    order ids are given. Ids are given after shuffling, so an id says nothing of its system.
    Items are taken from the groups of the columns in turn, so that every speaker (or other group) is heard about equally
    often.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest

from codec_bench.apps.listening.material import Item


@dataclass(frozen=True, slots=True)
class Drawn:
    """A trial before its sounds are made.

    Args:
        item: what it is about. systems: whose work it shows. training: whether it is for practice and does not count.
        repeat_of: the place of the trial that it repeats, among the drawn trials; None for the others.
    """

    item: Item
    systems: tuple[str, ...]
    training: bool = False
    repeat_of: int | None = None


def draw_order(items: Sequence[Item], seed: int) -> list[Item]:
    """All items in the order in which they are taken: the groups in turn, each in an order of its own."""
    rng = random.Random(seed)
    groups: dict[tuple[str, ...], list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda one: one.id):
        groups[item.stratum].append(item)
    ordered = [groups[name] for name in sorted(groups)]
    for group in ordered:
        rng.shuffle(group)
    rng.shuffle(ordered)
    return [item for together in zip_longest(*ordered) for item in together if item is not None]


def trials_of(kind: str, systems: Sequence[str]) -> list[tuple[str, ...]]:
    """The systems of each trial that one item forms."""
    if kind == "review":
        return [()]
    if kind == "mushra":
        return [tuple(systems)]
    if kind == "preference":
        return list(combinations(systems, 2))
    return [(system,) for system in systems]


def arrange(
    kind: str, systems: Sequence[str], items: Sequence[Item], training: int, repeats: int, seed: int
) -> list[Drawn]:
    """The trials of a test in the order of their ids: practice first, then all others and the repeated ones, shuffled.

    Args:
        items: in the order in which they were taken; the first `training` of them are for practice, one trial each.
        repeats: how many trials are shown a second time, at most all.
    """
    rng = random.Random(f"{seed} trials")
    every = trials_of(kind, systems)
    practice = [Drawn(item, rng.choice(every), training=True) for item in items[:training]]
    counted = [Drawn(item, shown) for item in items[training:] for shown in every]
    rng.shuffle(counted)
    again = rng.sample(range(len(counted)), min(repeats, len(counted)))
    places = list(range(len(counted))) + [~place for place in again]
    rng.shuffle(places)
    at = {place: len(practice) + n for n, place in enumerate(places) if place >= 0}
    shown = [
        counted[place] if place >= 0 else Drawn(counted[~place].item, counted[~place].systems, repeat_of=at[~place])
        for place in places
    ]
    return practice + shown
