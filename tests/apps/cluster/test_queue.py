"""The queue of shards: who takes what, what becomes of the shard of a lost actor, and how a slow shard is split."""

from __future__ import annotations

from refusals import refuses

from codec_bench.apps.cluster.queue import MOST_FAILURES, SLOW, ShardQueue
from codec_bench.data import Shard

ALL = [Shard(number, 4) for number in range(1, 5)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def queue_of(shards=ALL, size=10):
    clock = Clock()
    return ShardQueue(shards, lambda shard: size, clock), clock


def test_the_shard_of_a_stopped_actor_is_run_next():
    queue, _ = queue_of()
    first, second = queue.take(), queue.take()
    assert (first, second) == (ALL[0], ALL[1])
    queue.requeue(first, "killed", 3)
    assert queue.take() == first and queue.open_count == 4
    assert queue.finish(second) == ([], None, [])
    assert queue.open_count == 3


def test_a_shard_that_ends_its_actors_without_progress_ends_the_run():
    queue, _ = queue_of()
    for done in range(1, 20):  # each actor finishes one more item
        queue.requeue(queue.take(), "killed", done)
    for _ in range(MOST_FAILURES - 1):
        queue.requeue(queue.take(), "killed", 19)
    with refuses("shard_ends_actors", shard="1/4", actors=5, cause="out of memory", hint="--shard"):
        queue.requeue(queue.take(), "out of memory", 19)


def slow_shard():
    """A queue in which shard 4 alone is left, and slow."""
    queue, clock = queue_of()
    for _ in ALL:
        queue.take()
    clock.now = 10.0
    for shard in ALL[:3]:
        queue.finish(shard)
    assert queue.take(3) is None, "it is no slower than the others"
    clock.now = 10.0 * SLOW + 0.1
    return queue, clock


def test_a_slow_shard_is_split_among_the_actors_that_are_free():
    queue, _ = slow_shard()
    pieces = [queue.take(3 - turn) for turn in range(3)]
    assert pieces == [Shard(4, 16), Shard(8, 16), Shard(12, 16)] and len(queue._waiting) == 1
    holds = lambda shards, id: sum(shard.holds(id) for shard in shards)  # noqa: E731
    every = ALL[3].pieces(4)
    assert all(holds(every, f"u{n}") == ALL[3].holds(f"u{n}") for n in range(300))


def test_the_pieces_or_the_shard_count_whichever_is_finished_first():
    queue, _ = slow_shard()
    pieces = [queue.take(1), queue.take(1)]
    assert pieces == [Shard(4, 8), Shard(8, 8)]
    assert queue.finish(pieces[1]) == ([], None, [])
    assert queue.finish(pieces[0]) == ([ALL[3]], ALL[3], [pieces[1], pieces[0]])
    assert queue.open_count == 0 and queue.take(5) is None
    queue, _ = slow_shard()
    segment = queue.take(1)
    needless, complete, _ = queue.finish(ALL[3])
    assert needless == [segment] and complete is None and queue.open_count == 0
    queue.requeue(segment, "killed", 0)  # it was ended because it was not needed
    assert queue.open_count == 0


def test_pieces_without_samples_are_not_run():
    clock = Clock()
    queue = ShardQueue([Shard(1, 1)], lambda shard: int(shard.number == 2), clock)
    queue.take()
    clock.now = 1e6
    assert queue.take(3) is None and queue.open_count == 1
