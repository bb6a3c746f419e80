"""The order of shards, recovery of lost ones, and splitting of slow ones.

Free actors take the next shard. The shard of a lost actor goes to the front, and continues where its record ends. When
the line is empty, a shard that runs much longer than others is also run in pieces by free actors. Whichever finishes
first counts; both have the same results.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median
from time import monotonic

from codec_bench.data.shard import MOST_SHARDS, Shard
from codec_bench.messages.errors import UserError

SLOW = 2.0
"""A shard is slow at this multiple of the median duration."""
SLOW_AT_FIRST_S = 120.0
"""Seconds that make a shard slow before any has finished."""
MOST_PIECES = 8
MOST_FAILURES = 5
"""Limit of actors lost over one shard without another finished item."""


@dataclass(slots=True)
class _Split:
    """A running shard that is also run as smaller shards, open and finished ones."""

    open: set[Shard]
    finished: list[Shard] = field(default_factory=list)


class ShardQueue:
    """Queue of unfinished shards; a slow shard is split for idle actors."""

    def __init__(
        self, shards: Iterable[Shard], sizes: Callable[[Shard], int], clock: Callable[[], float] = monotonic
    ) -> None:
        self._waiting = deque(shards)
        self._sizes, self._clock = sizes, clock
        self._began: dict[Shard, float] = {}
        self._took: list[float] = []
        self._failures: Counter[Shard] = Counter()
        self._done: Counter[Shard] = Counter()
        self._split: dict[Shard, _Split] = {}
        self._parents: dict[Shard, Shard] = {}

    @property
    def open_count(self) -> int:
        """Number of shards, split ones included, that wait or run."""
        return len(self._waiting) + len(self._began)

    def take(self, free: int = 1) -> Shard | None:
        """Return the next shard to run; None if there is none.

        Without waiting shards, a slow running one is split for the `free` idle actors.
        """
        if not self._waiting:
            self._split_slowest(free)
        if not self._waiting:
            return None
        shard = self._waiting.popleft()
        self._began[shard] = self._clock()
        return shard

    def finish(self, shard: Shard) -> tuple[list[Shard], Shard | None, list[Shard]]:
        """Mark a shard, or a smaller shard of a split one, as finished.

        Returns:
            Running shards that are no longer needed; the shard whose pieces are now finished, or None; these pieces.
        """
        began = self._began.pop(shard, None)
        parent = self._parents.get(shard)
        if parent is None:
            if began is not None:
                self._took.append(self._clock() - began)
            split = self._split.pop(shard, None)
            return self._drop(split.open) if split is not None else [], None, []
        split = self._split.get(parent)
        if split is None:  # the shard itself was faster
            return [], None, []
        split.open.discard(shard)
        split.finished.append(shard)
        if split.open:
            return [], None, []
        del self._split[parent]
        return self._drop({parent}), parent, split.finished

    def requeue(self, shard: Shard, why: str, done: int) -> None:
        """Put the shard of a lost actor first in the queue again.

        Args:
            why: the reason of the loss.
            done: finished items of the shard; more than before restart the count of losses.

        Raises:
            UserError: this shard has ended its actors again and again.
        """
        self._began.pop(shard, None)
        if shard in self._parents and self._parents[shard] not in self._split:
            return
        self._failures[shard] = 0 if done > self._done[shard] else self._failures[shard] + 1
        self._done[shard] = max(done, self._done[shard])
        if self._failures[shard] >= MOST_FAILURES:
            raise UserError(
                "shard_ends_actors",
                shard=shard,
                actors=MOST_FAILURES,
                cause=why,
                hint="run it alone to see why, with --shard and without --executor ray",
            )
        self._waiting.appendleft(shard)

    def _drop(self, shards: set[Shard]) -> list[Shard]:
        """Remove shards from the queue; returns those that are running."""
        self._waiting = deque(shard for shard in self._waiting if shard not in shards)
        running = [shard for shard in shards if shard in self._began]
        for shard in running:
            del self._began[shard]
        return running

    def _split_slowest(self, free: int) -> None:
        """Split the longest-running slow shard for idle actors, and queue its pieces."""
        now = self._clock()
        slow_s = SLOW * median(self._took) if self._took else SLOW_AT_FIRST_S
        slow = [
            shard
            for shard, began in self._began.items()
            if now - began > slow_s and shard not in self._split and shard not in self._parents
        ]
        for shard in sorted(slow, key=self._began.__getitem__):
            count = min(free + 1, MOST_PIECES, MOST_SHARDS // shard.of)
            pieces = [sub_shard for sub_shard in shard.pieces(count) if self._sizes(sub_shard)] if count > 1 else []
            if len(pieces) > 1:
                self._split[shard] = _Split(set(pieces))
                self._parents.update(dict.fromkeys(pieces, shard))
                self._waiting.extend(pieces)
                return
