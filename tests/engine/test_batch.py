"""Which waiting items become a batch: similar lengths together, in the order in which they came."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from codec_bench.engine.batch import GPU_BATCH_S, Dispatcher, StageState
from codec_bench.engine.pool import Done
from codec_bench.engine.stage import Fault, StageSpec
from codec_bench.engine.stage_queue import MAX_LENGTH_RATIO, MOST_PADDED, QueuedItem
from codec_bench.networks.batch_shapes import items_of, rows_of, rung_s


def stage(*lengths, budget_s=100.0, pads=True, alone=(), on_ladder=False):
    built = StageState(StageSpec("s", "feature", ("s",)), "device", budget_s, pads, growing=True, on_ladder=on_ladder)
    for order, length in enumerate(lengths):
        built.waiting.put(QueuedItem(order, length, lambda result: None, order, alone=order in alone))
    return built


def pool(device="cpu"):
    """What a dispatcher asks a pool before any batch is sent."""
    return SimpleNamespace(device=lambda where: device)


def numbers(works):
    return [work.payload for work in works]


def test_the_oldest_item_goes_with_those_nearest_to_it_in_length():
    waiting = stage(5.0, 9.0, 5.1, 1.0, 4.9, budget_s=16.0)
    assert waiting.is_full(16.0) and not waiting.is_full(26.0)
    assert numbers(waiting.take(16.0)) == [0, 2, 4]
    assert numbers(waiting.take(16.0)) == [1]
    assert numbers(waiting.take(16.0)) == [3] and not waiting.waiting and waiting.waiting.total_s == 0


def test_a_batch_larger_than_the_first_ones_takes_no_item_that_is_mostly_padded():
    lengths = [10.0] * 10 + [5.0] * 10
    small, large = stage(*lengths, budget_s=200.0), stage(*lengths, budget_s=100.0)
    assert len(small.take(200.0)) == 20, "it is a batch of the first size, in which padding is allowed"
    parameters = large.take(1000.0)
    padded, audio = 10.0 * len(parameters), sum(work.length_s for work in parameters)
    assert 10 < len(parameters) < 20 and padded <= MOST_PADDED * audio
    assert len(stage(*lengths, budget_s=100.0, pads=False).take(1000.0)) == 20, "nothing is padded"


def test_items_that_go_alone_go_alone_and_count_as_a_full_batch():
    waiting = stage(1.0, 1.0, 1.0, alone=(1,))
    assert waiting.is_full(100.0)
    assert numbers(waiting.take(100.0)) == [0, 2]
    assert waiting.is_full(100.0) and numbers(waiting.take(100.0)) == [1]
    assert not waiting.is_full(0.0) and waiting.waiting.alone == 0


def test_what_is_returned_comes_first_again():
    waiting = stage(1.0, 2.0, 3.0, 4.0, budget_s=2.0)
    held = waiting.take(2.0)
    assert numbers(held) == [0] and waiting.waiting.total_s == 9.0
    waiting.waiting.requeue(held)
    assert waiting.waiting.total_s == 10.0 and numbers(waiting.take(2.0)) == [0]


def test_a_batch_of_the_cpu_that_does_not_fit_is_halved_however_mismatched_its_lengths_are():
    """Its budget counts no padding: three items of 4 s in all are within one of 4 s, though the longest is 2 s."""
    dispatcher = Dispatcher(pool(), 1000.0, None, "", None)
    dispatcher.add(StageSpec("s", "codec", ("s",)), "cpu", 1000.0, False)
    for length in (2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        dispatcher.put("s", None, length, lambda result: None)
    sizes = []
    for _ in range(3):
        batch = dispatcher._batch(dispatcher.stages["s"], "cpu")
        sizes.append(len(batch.works))
        dispatcher.handle(Done(batch, "oom", 0.0, 0.0, {}))
    assert sizes == [7, 3, 1]


def failing(outcomes, device="cuda:0"):
    """What becomes of eight items, each sent by itself, whose batches end one after the other with some outcomes."""
    dispatcher, results = Dispatcher(pool(), 1000.0, None, "", None), []
    dispatcher.add(StageSpec("s", "feature", ("s",)), "device", 1000.0, True)
    for _ in range(8):
        dispatcher.put("s", None, 1.0, results.append, alone=True)
    for outcome in outcomes:
        dispatcher.handle(Done(dispatcher._batch(dispatcher.stages["s"], device), outcome, 0.0, 0.0, {}))
    return dispatcher.stages["s"].refusal, results


def test_after_failures_of_items_alone_mismatched_lengths_are_tried_before_a_stage_is_abandoned():
    dispatcher, results = Dispatcher(pool(), 1000.0, None, "", None), []
    dispatcher.add(StageSpec("s", "feature", ("s",)), "device", 1000.0, True)
    for length in (2.0, 2.0, 2.0, 9.0, 1.0, 5.0):
        dispatcher.put("s", length, length, results.append, alone=True)
    tried = []
    for _ in range(3):
        batch = dispatcher._batch(dispatcher.stages["s"], "cuda:0")
        tried.append(batch.works[0].payload)
        dispatcher.handle(Done(batch, Fault("too short"), 0.0, 0.0, {}))
    assert tried == [2.0, 9.0, 1.0] and dispatcher.stages["s"].refusal is not None


def test_a_stage_whose_first_items_all_fail_on_a_gpu_for_one_reason_is_refused():
    fault = Fault("RuntimeError: the checkpoint wants another driver")
    refusal, results = failing([fault] * 3)
    assert refusal.startswith("s was stopped: its first 3 items all failed on 'cuda:0'") and fault.reason in refusal
    assert results == [fault] * 3
    for others in (
        [fault] * 2,
        [fault, fault, Fault("another reason")],
        [[{"value": 1.0}], *[fault] * 5],  # it has given a result, so the items are to blame
        ["oom"] * 4,  # shorter ones may fit
    ):
        assert failing(others)[0] is None
    assert failing([fault] * 5, device="cpu")[0] is None


def test_a_batch_of_a_gpu_lies_on_one_rung_and_has_its_number_of_items():
    lengths = [5.0, 9.0, 5.1, 1.0, 4.9, 4.7, 8.8, 4.6]
    waiting = stage(*lengths, budget_s=5.12 * 4, on_ladder=True)
    assert waiting.is_full(5.12 * 4) and not waiting.is_full(5.12 * 8)
    assert numbers(waiting.take(5.12 * 4)) == [0, 2, 4, 5], "the rung of 5.12 s was full"
    assert numbers(waiting.take(5.12 * 4)) == [1, 6], "none is full, so the longest go, and none that is much shorter"
    assert numbers(waiting.take(5.12 * 4)) == [7]
    assert numbers(waiting.take(5.12 * 4)) == [3] and not waiting.waiting and not waiting.waiting.total_s


def test_of_two_full_rungs_the_one_that_waited_longer_goes_first():
    waiting = stage(30.0, 8.9, 2.2, 2.2, 8.9, budget_s=2 * 8.96, on_ladder=True)
    assert waiting.next_order(2 * 8.96) == 0, "an item that is longer than a batch is one by itself"
    assert numbers(waiting.take(2 * 8.96)) == [0] and waiting.next_order(2 * 8.96) == 1
    assert numbers(waiting.take(2 * 8.96)) == [1, 4] and numbers(waiting.take(2 * 8.96)) == [2, 3]


def test_an_item_that_must_go_alone_goes_before_full_rungs():
    waiting = stage(2.0, 2.0, 9.0, budget_s=4.0, on_ladder=True, alone=(2,))
    assert waiting.is_full(1000.0) and numbers(waiting.take(4.0)) == [2]


@pytest.mark.parametrize("seconds", [1.0, 0.5])
def test_the_shapes_of_a_gpu_are_few_and_out_of_memory_halves_their_items(seconds):
    """Every batch that holds more than `most` padded seconds does not fit; with the CPU's rule each batch has its own
    shape.
    """
    dispatcher, most, shapes, done = Dispatcher(pool("cuda:0"), None, None, "", None), 300.0, [], []
    dispatcher.add(StageSpec("s", "feature", ("s",)), "device", 120.0, True)
    of = dispatcher.stages["s"]
    for number in range(4000):
        dispatcher.put("s", None, 1.3 + 33 * ((number * 0.6180339887) % 1.0) ** 3, done.append)
    while of.waiting:
        batch = dispatcher._batch(of, "cuda:0")
        size_s = of.size_s(batch.works)
        if size_s > most:
            before = dispatcher._room_s(of, "cuda:0")
            dispatcher.handle(Done(batch, "oom", 0.0, 0.0, {}))
            assert of.budget_s <= before / 2
            continue
        shapes.append((rung_s(max(w.length_s for w in batch.works)), rows_of(len(batch.works))))
        took_s = GPU_BATCH_S / 400.0 * size_s * seconds
        dispatcher.handle(Done(batch, [{}] * len(batch.works), took_s, took_s, {}))
    assert len(done) == 4000 and max(length * rows for length, rows in shapes) <= most
    steady = [shape for shape in shapes if items_of(shape[0], 240.0) == shape[1]]
    assert len(set(steady)) <= 24 and len(steady) > 0.9 * len(shapes)
    assert all(rows == 1 or length * rows > 0.5 * 240.0 for length, rows in steady)


def test_a_batch_of_the_longest_takes_nothing_that_would_be_mostly_padding():
    waiting = stage(20.0, 11.0, 9.9, 3.0, budget_s=1000.0, on_ladder=True)
    assert numbers(waiting.take(1000.0)) == [0, 1, 2] and rung_s(20.0) <= MAX_LENGTH_RATIO * rung_s(9.9)
    assert numbers(waiting.take(1000.0)) == [3]
