"""Tensors of a training loop on a GPU that is not there: the CPU's scores, and one wait for a side of a batch."""

from __future__ import annotations

import pytest
import torch

from codec_bench import load_metric

RATE_HZ = 16_000


def scores(metric, **tensors):
    return [row["si_sdr"] for row in metric(**tensors, sample_rate_hz=RATE_HZ)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("count", [2, 9])
def test_a_batch_comes_in_one_transfer_however_many_items_it_has(there, dtype, count):
    reference = torch.randn(count, RATE_HZ, generator=torch.Generator().manual_seed(0)) / 10
    estimate = (reference + torch.roll(reference, 7, 1) / 10).to(dtype)
    estimate[0, 5] = torch.nan
    metric, lengths = load_metric("si_sdr", device="cpu"), torch.full((count,), 8_000)
    expected = scores(metric, estimate=estimate, reference=reference, lengths=lengths)
    estimate, reference, lengths = (values.to("cuda:0") for values in (estimate, reference, lengths))
    there.reset()
    assert scores(metric, estimate=estimate, reference=reference, lengths=lengths) == expected
    assert expected[0].status == "failed" and expected[1].status == "ok"
    assert sum(there.waits.values()) == 4  # for both sides and their lengths
