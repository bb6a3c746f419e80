"""The items that wait for one stage, in order, and the choice of the next batch.

On the CPU a batch takes the oldest item and those nearest in length. On a GPU it has a shape of the ladder
(`networks/batch_shapes.py`): the first full rung gives a batch. If none is full and the GPU is idle, it takes the
longest items, filled up with the next shorter ones, to end a run with few batches.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from codec_bench.networks.batch_shapes import items_of, rung_s

_WINDOW = 2048  # among so many waiting items, similar lengths are looked for
MOST_PADDED = 1.1
"""Limit of padded length to audio for a large batch of the CPU."""
MAX_LENGTH_RATIO = 2.0
"""How far an item may be padded to join longer ones where no rung is full."""


@dataclass(slots=True, eq=False)
class QueuedItem:
    """One item waiting for one stage; `done` is called with its result or a `Fault`.

    Args:
        alone: sent by itself, because a batch with it failed.
        kills: workers that died while they ran it alone.
        late: batches with it that exceeded their time limit.
    """

    payload: Any
    length_s: float
    done: Callable[[Any], None]
    order: int
    alone: bool = False
    kills: int = 0
    late: int = 0


class WaitingItems:
    """The items that wait, with their total length and how many go alone.

    Args:
        on_ladder: whether batches have the shapes of the ladder; otherwise there is one queue.
    """

    def __init__(self, on_ladder: bool) -> None:
        self.on_ladder = on_ladder
        self._queues: dict[float, deque[QueuedItem]] = {}
        self.total_s, self.alone = 0.0, 0

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[QueuedItem]:
        return heapq.merge(*self._queues.values(), key=lambda work: work.order)

    def put(self, work: QueuedItem) -> None:
        """Add an item at the end."""
        self._queue(work).append(work)
        self._counted([work], 1)

    def requeue(self, works: Iterable[QueuedItem]) -> None:
        """Return unfinished items to the front."""
        works = list(works)
        for work in reversed(works):
            self._queue(work).appendleft(work)
        self._counted(works, 1)

    def remove(self, works: Iterable[QueuedItem]) -> None:
        """Remove items."""
        works = list(works)
        by_queue: dict[float, set[int]] = {}
        for work in works:
            by_queue.setdefault(self._key(work), set()).add(id(work))
        for key, gone in by_queue.items():
            queue, remaining = self._queues[key], []
            while gone:
                if id(work := queue.popleft()) in gone:
                    gone.remove(id(work))
                else:
                    remaining.append(work)
            queue.extendleft(reversed(remaining))
            if not queue:
                del self._queues[key]
        self._counted(works, -1)

    @property
    def first(self) -> QueuedItem:
        """The next item: first those that must be sent alone, then by age."""
        return min((queue[0] for queue in self._queues.values()), key=lambda work: (not work.alone, work.order))

    def full_rung(self, room_s: float) -> deque[QueuedItem] | None:
        """Items of one length class that fill a batch of `room_s`; the oldest such class."""
        queues = [queue for key, queue in self._queues.items() if len(queue) >= items_of(key, room_s)]
        return min(queues, key=lambda queue: queue[0].order) if queues else None

    def next_gpu_batch(self, room_s: float) -> list[QueuedItem]:
        """The next batch for a GPU: a full length class, else the longest items.

        They stay in the queue until `remove`. `room_s` is the most padded seconds of audio.
        """
        if (queue := self.full_rung(room_s)) is not None:
            return [work for work in islice(queue, items_of(queue[0].length_s, room_s)) if not work.alone]
        longest, *others = sorted(self._queues, reverse=True)
        near = [key for key in (longest, *others) if longest <= MAX_LENGTH_RATIO * key]
        matches = (work for key in near for work in self._queues[key] if not work.alone)
        return list(islice(matches, items_of(longest, room_s)))

    def next_cpu_batch(self, room_s: float, least_s: float, pads: bool) -> list[QueuedItem]:
        """The next batch for a CPU worker: the oldest item and those nearest in length.

        They stay in the queue until `remove`.

        Args:
            room_s: the most seconds of audio in the batch.
            least_s: up to here the batch grows anyway, beyond only while little of it is padding.
            pads: whether items are padded to the longest, so that each costs as much as it.
        """
        window = list(islice(self, _WINDOW))
        works = [work for work in window if not work.alone]
        if pads:
            works.sort(key=lambda w: (abs(w.length_s - window[0].length_s), w.order))
        chosen: set[int] = set()
        longest = total = 0.0
        for work in works:
            longest = max(longest, work.length_s)
            total += work.length_s
            size_s = longest * (len(chosen) + 1) if pads else total
            if chosen and (size_s > room_s or (size_s > least_s and size_s > MOST_PADDED * total)):
                break
            chosen.add(work.order)
        return [work for work in window if work.order in chosen]

    def _key(self, work: QueuedItem) -> float:
        return rung_s(work.length_s) if self.on_ladder else 0.0

    def _queue(self, work: QueuedItem) -> deque[QueuedItem]:
        return self._queues.setdefault(self._key(work), deque())

    def _counted(self, works: list[QueuedItem], sign: int) -> None:
        self.total_s = self.total_s + sign * sum(w.length_s for w in works) if self._queues else 0.0
        self.alone += sign * sum(w.alone for w in works)
