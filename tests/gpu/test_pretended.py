"""The GPU that is not there finds what a real one would refuse, wait for or get wrong: a fault
of each kind is planted.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from pretended import Mixed
from pretended_memory import TOTAL

from codec_bench.machine import memory
from codec_bench.networks.transfer import UploadStream, fetched, sent, uploaded, zeros_for


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_the_device_refuses_what_a_real_one_would(there):
    here = noise(3, 4)
    tensor = here.to("cuda:0")
    for mixed in (lambda: tensor + here, lambda: torch.cat([tensor, here]), lambda: tensor @ here.T):
        with pytest.raises(Mixed, match="both places"):
            mixed()
    with pytest.raises(TypeError, match="Use Tensor"):
        tensor.numpy()
    with pytest.raises(Mixed, match="generator"):
        torch.randn(3, device="cuda:0", generator=torch.Generator())
    assert tensor.device.type == "cuda" and not tensor.is_cpu and torch.equal((2 * tensor).numbers(), 2 * here)


def test_waits_and_uploads_are_counted_where_they_are_caused(there):
    tensor = noise(4).to("cuda:0")
    torch.tensor([1, 2], device="cuda:0")
    assert sum(there.uploads.values()) == 2
    for waiting in (
        tensor.cpu,
        tensor.tolist,
        tensor.sum().item,
        lambda: tensor[tensor > 0],
        lambda: bool(tensor[0] > 0),
    ):
        there.reset()
        waiting()
        assert sum(there.waits.values()) == 1, waiting
    there.reset()
    tensor.clone().add_(1).relu()
    assert not there.waits and not there.uploads and there.launches >= 2
    assert all("test_pretended.py" in line for line in there.waits)


def test_only_an_upload_from_pinned_memory_that_is_asynchronous_does_not_wait(there):
    pinned = zeros_for("cuda:0", (3, 4))
    held = torch.empty(3, 4, device="cuda:0")
    for upload in (
        lambda: uploaded(pinned, "cuda:0"),
        lambda: uploaded(pinned[1:], "cuda:0"),
        lambda: held.copy_(pinned, non_blocking=True),
        lambda: sent([np.ones(3, np.float32), np.arange(5)], "cuda:0"),
    ):
        there.reset()
        upload()
        assert there.uploads and not there.waits, upload
    for blocking in (
        lambda: pinned.to("cuda:0"),
        lambda: pinned.clone().to("cuda:0", non_blocking=True),
        lambda: held.copy_(torch.ones(3, 4)),
        lambda: torch.tensor([1, 2], device="cuda:0"),
        lambda: torch.as_tensor([1, 2], device="cuda:0"),
        lambda: held[torch.tensor([0, 2])],
    ):
        there.reset()
        blocking()
        assert sum(there.waits.values()) == 1 and all("test_pretended.py" in line for line in there.waits), blocking


def test_a_mask_that_is_written_through_waits_unless_it_is_filled(there):
    tensor, mask = noise(6).to("cuda:0"), torch.tensor([True, False] * 3).to("cuda:0")
    values = noise(3, seed=1).to("cuda:0")
    there.reset()
    tensor.masked_fill_(mask, 0.0)
    torch.where(mask, tensor, 1.0)
    assert not there.waits
    tensor[mask] = values
    torch.bincount(torch.ones(3, dtype=torch.int64, device="cuda:0"))
    assert sum(there.waits.values()) == 2


def test_a_copy_to_the_host_is_there_only_after_it_was_waited_for(there):
    tensor = noise(4).to("cuda:0")
    early = tensor.to("cpu", non_blocking=True)
    assert early.isnan().all(), "nothing has waited"
    np.testing.assert_array_equal(fetched([tensor])[0], noise(4))
    assert not early.isnan().any()
    there.reset()
    pageable = torch.empty(4).copy_(tensor, non_blocking=True)
    assert sum(there.waits.values()) == 1 and not pageable.isnan().any()


def test_what_nothing_was_written_to_is_no_number(there):
    for output in (torch.empty(3, device="cuda:0"), noise(3).to("cuda:0").new_empty(2)):
        assert output.numbers().isnan().all()
    assert (torch.empty_like(torch.ones(3, dtype=torch.int64, device="cuda:0")).numbers() == -1).all()


def prepared(lane):
    return lane.run(lambda: sent([np.ones(1000, np.float32)], "cuda:0")[0])


def test_memory_that_its_stream_may_take_again_while_another_still_reads_it_is_noted(there):
    lane = UploadStream("cuda:0")
    ahead = prepared(lane)
    total = ahead.wait().sum()
    del ahead  # the fault: nothing has waited for the sum, and lane two may write its next batch here
    gc.collect()
    assert sum(there.early.values()) == 1 and all("test_pretended.py" in line for line in there.early)
    assert float(total) == 1000.0
    there.early.clear()


def waited_for(lane, ahead):
    assert fetched([ahead.wait().sum()])[0] == 1000.0


def recorded(lane, ahead):
    ahead.wait().sum()
    ahead.value.record_stream(torch.cuda.current_stream("cuda:0"))


def ordered(lane, ahead):
    ahead.wait().sum()
    lane._stream.wait_stream(torch.cuda.current_stream("cuda:0"))


@pytest.mark.parametrize("variant", [waited_for, recorded, ordered])
def test_memory_that_the_other_streams_work_surely_comes_before_is_free(variant, there):
    lane = UploadStream("cuda:0")
    ahead = prepared(lane)
    variant(lane, ahead)
    del ahead
    gc.collect()
    assert not there.early


def test_what_is_freed_is_no_number(there):
    tensor = noise(8).to("cuda:0")
    memory_of_it = tensor.retained
    view = tensor[:4]
    del tensor
    torch.testing.assert_close(view.numbers(), noise(8)[:4])
    del view  # the fault: torch may give it to others, and somebody goes on reading there
    assert memory_of_it.isnan().all()


def test_a_watch_sees_the_most_that_a_batch_took(there):
    retained = torch.zeros(1 << 12, device="cuda:0")
    watch = memory.MemoryWatch("cuda:0")
    (torch.zeros(1 << 16, device="cuda:0") + 1).sum()
    took, room = watch.seen()
    assert took >= 2 * 4 << 16 and room == TOTAL - (4 << 12) and retained.numel() == 1 << 12


@pytest.mark.parametrize(("unit", "most"), [(1, 30), (16, 2)])
def test_the_shapes_that_reach_attention_convolutions_and_products_are_counted(unit, most, there):
    """The fault: batches of 30 lengths have 30 shapes for each operation. Filled up to two lengths, they have two."""
    kernel, weight = noise(8, 8, 3).to("cuda:0"), noise(8, 8).to("cuda:0")
    there.reset()
    for length in range(33, 63):
        x = torch.zeros(2, 8, -(-length // unit) * unit, device="cuda:0")
        rows = torch.nn.functional.conv1d(x, kernel).mT[:, None]
        torch.nn.functional.scaled_dot_product_attention(rows, rows, rows)
        torch.mm(x[0].mT, weight)
    for name in ("attention", "convolution", "mm"):
        assert sum(shape[0] == name for shape in there.shapes) == most, name
