"""Which waiting items become a batch: similar lengths together, in the order in which they came."""

from __future__ import annotations

from codec_bench.engine.batch import MOST_PADDED, Dispatcher, Stage, Work
from codec_bench.engine.pool import Done
from codec_bench.engine.stage import Fault, StageSpec


def stage(*lengths, budget_s=100.0, pads=True, alone=()):
    made = Stage(StageSpec("s", "feature", ("s",)), "device", budget_s, pads, growing=True)
    for order, length in enumerate(lengths):
        made.put(Work(order, length, lambda result: None, order, alone=order in alone))
    return made


def numbers(works):
    return [work.payload for work in works]


def test_the_oldest_item_goes_with_those_nearest_to_it_in_length():
    waiting = stage(5.0, 9.0, 5.1, 1.0, 4.9, budget_s=16.0)
    assert waiting.is_full(16.0) and not waiting.is_full(26.0)
    assert numbers(waiting.take(16.0)) == [0, 2, 4]
    assert numbers(waiting.take(16.0)) == [1]
    assert numbers(waiting.take(16.0)) == [3] and not waiting.waiting and waiting.waiting_s == 0


def test_a_batch_larger_than_the_first_ones_takes_no_item_that_is_mostly_padded():
    lengths = [10.0] * 10 + [5.0] * 10
    small, large = stage(*lengths, budget_s=200.0), stage(*lengths, budget_s=100.0)
    assert len(small.take(200.0)) == 20, "it is a batch of the first size, in which padding is allowed"
    taken = large.take(1000.0)
    padded, audio = 10.0 * len(taken), sum(work.length_s for work in taken)
    assert 10 < len(taken) < 20 and padded <= MOST_PADDED * audio
    assert len(stage(*lengths, budget_s=100.0, pads=False).take(1000.0)) == 20, "nothing is padded"


def test_items_that_go_alone_go_alone_and_count_as_a_full_batch():
    waiting = stage(1.0, 1.0, 1.0, alone=(1,))
    assert waiting.is_full(100.0)
    assert numbers(waiting.take(100.0)) == [0, 2]
    assert waiting.is_full(100.0) and numbers(waiting.take(100.0)) == [1]
    assert not waiting.is_full(0.0) and waiting.alone == 0


def test_what_is_given_back_comes_first_again():
    waiting = stage(1.0, 2.0, 3.0, 4.0, budget_s=2.0)
    held = waiting.take(2.0)
    assert numbers(held) == [0] and waiting.waiting_s == 9.0
    waiting.give_back(held)
    assert waiting.waiting_s == 10.0 and numbers(waiting.take(2.0)) == [0]


def test_a_batch_of_the_cpu_that_does_not_fit_is_halved_however_unlike_its_lengths_are():
    """Its budget counts no padding: three items of 4 s in all are within one of 4 s, though the longest is 2 s."""
    dispatcher = Dispatcher(None, 1000.0, None, "", None)
    dispatcher.add(StageSpec("s", "codec", ("s",)), "cpu", 1000.0, False)
    for length in (2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        dispatcher.put("s", None, length, lambda result: None)
    sizes = []
    for _ in range(3):
        batch = dispatcher._batch(dispatcher.stages["s"], "cpu")
        sizes.append(len(batch.works))
        dispatcher.follow(Done(batch, "oom", 0.0, 0.0, {}))
    assert sizes == [7, 3, 1]


def failing(outcomes, device="cuda:0"):
    """What becomes of eight items, each sent by itself, whose batches end one after the other with some outcomes."""
    dispatcher, results = Dispatcher(None, 1000.0, None, "", None), []
    dispatcher.add(StageSpec("s", "feature", ("s",)), "device", 1000.0, True)
    for _ in range(8):
        dispatcher.put("s", None, 1.0, results.append, alone=True)
    for outcome in outcomes:
        dispatcher.follow(Done(dispatcher._batch(dispatcher.stages["s"], device), outcome, 0.0, 0.0, {}))
    return dispatcher.stages["s"].refusal, results


def test_after_failures_of_items_alone_unlike_lengths_are_tried_before_a_stage_is_given_up():
    dispatcher, results = Dispatcher(None, 1000.0, None, "", None), []
    dispatcher.add(StageSpec("s", "feature", ("s",)), "device", 1000.0, True)
    for length in (2.0, 2.0, 2.0, 9.0, 1.0, 5.0):
        dispatcher.put("s", length, length, results.append, alone=True)
    tried = []
    for _ in range(3):
        batch = dispatcher._batch(dispatcher.stages["s"], "cuda:0")
        tried.append(batch.works[0].payload)
        dispatcher.follow(Done(batch, Fault("too short"), 0.0, 0.0, {}))
    assert tried == [2.0, 9.0, 1.0] and dispatcher.stages["s"].refusal is not None


def test_a_stage_whose_first_items_all_fail_on_a_gpu_for_one_reason_is_refused():
    fault = Fault("RuntimeError: the checkpoint wants another driver")
    refusal, results = failing([fault] * 3)
    assert refusal.startswith("s was given up: its first 3 items all failed on 'cuda:0'") and fault.reason in refusal
    assert results == [fault] * 3
    for others in (
        [fault] * 2,
        [fault, fault, Fault("another reason")],
        [[{"value": 1.0}], *[fault] * 5],  # it has given a result, so the items are to blame
        ["oom"] * 4,  # shorter ones may fit
    ):
        assert failing(others)[0] is None
    assert failing([fault] * 5, device="cpu")[0] is None
