"""The grouped convolution by products equals torch's, for any batch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from codec_bench.networks import grouped_convolution  # noqa: E402
from codec_bench.networks.grouped_convolution import BLOCK, GroupedConv  # noqa: E402

WIDTH, GROUPS = 12, 3


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


def compare(frames, net, tolerance):
    """The result must be that of torch's convolution in float64."""
    net.bias.normal_()
    output = net(frames)
    assert output.shape == frames.shape and output.dtype == net.weight.dtype
    inputs = frames.to(net.weight.dtype).double().mT
    theirs = torch.nn.functional.conv1d(
        inputs, net.weight.double(), net.bias.double(), padding=net.kernel // 2, groups=GROUPS
    )
    assert (output.double() - theirs[..., : frames.shape[1]].mT).abs().max() < tolerance * theirs.abs().max()


@pytest.mark.parametrize("kernel", [128, 19, 16, 3, 1])
@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, 2 * BLOCK + 1, 50])
def test_it_equals_the_convolution_at_every_length(kernel, length):
    compare(torch.randn(5, length, WIDTH), GroupedConv(WIDTH, kernel, GROUPS), 1e-6)


@pytest.mark.parametrize("width", [WIDTH, 2 * WIDTH])
def test_it_equals_the_convolution_in_half_precision(width):
    net = GroupedConv(width, 128, GROUPS)
    net.reduce(torch.float16)
    compare(torch.randn(2, 50, width), net, 1e-3)


def test_the_memory_of_windows_is_bounded_and_the_parts_are_the_whole(monkeypatch):
    net, frames = GroupedConv(WIDTH, 16, GROUPS), torch.randn(4, 101, WIDTH)
    products, expected = [], net(frames)
    product = torch.baddbmm

    def noted(bias, windows, blocks):
        products.append(windows.numel())
        return product(bias, windows, blocks)

    monkeypatch.setattr(grouped_convolution, "ENTRIES", 5000)
    monkeypatch.setattr(torch, "baddbmm", noted)
    torch.testing.assert_close(net(frames), expected, rtol=0, atol=1e-6)
    assert len(products) > 3 and max(products) <= 5000


def test_no_item_depends_on_the_others():
    net, frames = GroupedConv(WIDTH, 16, GROUPS), torch.randn(3, 37, WIDTH)
    alone = net(frames[1:2])
    frames[0], frames[2] = torch.inf, torch.nan
    torch.testing.assert_close(net(frames)[1:2], alone, rtol=0, atol=1e-6)
