"""Which items share a padded pass, and that what lies beyond them is silenced."""

from __future__ import annotations

import pytest

from codec_bench.codecs.ragged import groups, zero_beyond

torch = pytest.importorskip("torch")


def test_on_a_cpu_items_of_like_lengths_share_a_pass():
    lengths = [100, 500, 110, 116, 1, 520, 580]
    found = groups(lengths, "cpu", waste_on_cpu=0.15)
    assert sorted(k for group in found for k in group) == list(range(7))
    assert sorted(map(sorted, found)) == [[0, 2], [1, 5], [3], [4], [6]]
    for group in found:
        longest = max(lengths[k] for k in group)
        assert all(longest <= 1.15 * lengths[k] for k in group)


def test_on_a_gpu_all_items_do():
    assert groups([100, 5, 2000], "cuda:1", waste_on_cpu=None) == [[0, 1, 2]]


def test_a_codec_may_ask_for_each_alone_on_a_cpu():
    assert groups([7, 7, 7], "cpu", waste_on_cpu=None) == [[0], [1], [2]]


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
