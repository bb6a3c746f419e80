"""Values beyond an item's end are set to zero, and no others."""

from __future__ import annotations

import pytest

from codec_bench.networks.ragged import zero_beyond

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_zeros_are_written_beyond_each_item_and_nowhere_else(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no NVIDIA GPU")
    x = torch.rand(3, 2, 10, device=device) + 1
    x[1, :, 4:] = float("inf")
    before = x.clone()
    out = zero_beyond(x, [10, 4, 1])
    assert out is x
    for row, old, length in zip(x, before, [10, 4, 1], strict=True):
        assert torch.equal(row[:, :length], old[:, :length])
        assert not row[:, length:].any()
