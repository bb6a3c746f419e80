"""Every implementation is the specified convolution, and on a GPU as exact as float32 and the same alone and in a
batch.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from codec_bench.kernels.convolve import arranged, convolve, cpu, ref
from codec_bench.networks import convolutions
from codec_bench.networks.convolutions import TensorCoreConv1d, on_tensor_cores

SIZES = [(7, 96, 96, 9, 3), (3, 64, 130, 1, 1), (1, 40, 24, 0, 1), (7, 64, 64, 0, 9)]


def drawn(rng, places, channels, outputs, frames=700, items=2):
    x = rng.standard_normal((items, channels, frames)).astype(np.float32)
    weight = (rng.standard_normal((outputs, channels, places)) / np.sqrt(places * channels)).astype(np.float32)
    return x, arranged(torch.from_numpy(weight)).numpy(), rng.standard_normal(outputs).astype(np.float32)


@pytest.mark.parametrize(("places", "channels", "outputs", "padding", "dilation"), SIZES)
def test_the_specification_is_torchs_convolution_and_torch_is_as_specified(
    rng, places, channels, outputs, padding, dilation
):
    x, taps, bias = drawn(rng, places, channels, outputs)
    expected = ref.convolve(x, taps, bias, padding, dilation)
    x, taps, bias = (torch.from_numpy(array) for array in (x, taps, bias))
    theirs = torch.nn.functional.conv1d(
        x.double(), taps.double().permute(1, 2, 0), bias.double(), padding=padding, dilation=dilation
    )
    np.testing.assert_allclose(expected, theirs, rtol=1e-12, atol=1e-12)
    y, ran = convolve(x, taps, bias, padding=padding, dilation=dilation)
    assert ran == "torch" and y.dtype == torch.float32
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    without = convolve(x, taps, padding=padding, dilation=dilation).value
    np.testing.assert_allclose(without, expected - bias.numpy()[:, None], rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="x has 3 channels; the taps read 4"):
        convolve(torch.zeros(1, 3, 9), torch.zeros(2, 5, 4))
    with pytest.raises(ValueError, match="the kernel reaches over 13 frames; there are 9 and 1 zeros on each side"):
        convolve(torch.zeros(1, 4, 9), torch.zeros(7, 5, 4), padding=1, dilation=2)


def network():
    return torch.nn.Sequential(
        torch.nn.Conv1d(64, 96, 7, padding=9, dilation=3),
        torch.nn.Conv1d(96, 64, 3, bias=False),
        torch.nn.Conv1d(64, 64, 4, stride=2),
        torch.nn.Conv1d(64, 64, 1),
        torch.nn.Conv1d(64, 64, 3, groups=2),
        torch.nn.Conv1d(64, 64, 3, padding="same"),
        torch.nn.Conv1d(64, 64, 3, padding=1, padding_mode="reflect"),
        torch.nn.Conv1d(64, 2, 3),
    ).eval()


def test_a_network_on_the_cpu_stays_as_it_is():
    net = on_tensor_cores(network())
    assert not any(isinstance(layer, TensorCoreConv1d) for layer in net)


def test_the_layers_that_gain_are_changed_and_compute_the_same(monkeypatch, rng):
    monkeypatch.setattr(convolutions, "_measured", lambda device: True)
    plain = network()
    net = network()
    net.load_state_dict(plain.state_dict())
    on_tensor_cores(net)
    assert [isinstance(layer, TensorCoreConv1d) for layer in net] == [True, True, *[False] * 6]
    for frames in (convolutions.FRAMES - 1, convolutions.FRAMES, 700):
        x = torch.from_numpy(rng.standard_normal((2, 64, frames)).astype(np.float32))
        with torch.inference_mode():
            torch.testing.assert_close(net(x), plain(x), rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
@pytest.mark.parametrize(("places", "channels", "outputs", "padding", "dilation"), SIZES)
def test_on_a_gpu(rng, places, channels, outputs, padding, dilation):
    x, taps, bias = drawn(rng, places, channels, outputs, items=3)
    expected = ref.convolve(x, taps, bias, padding, dilation)
    there = [torch.from_numpy(array).cuda() for array in (x, taps, bias)]
    y, ran = convolve(*there, padding=padding, dilation=dilation)
    assert ran == "triton"
    apart = np.abs(y.cpu().numpy() - expected).max()
    with torch.backends.cudnn.flags(allow_tf32=False):
        theirs = np.abs(cpu.convolve(*there, padding, dilation).cpu().numpy() - expected).max()
    assert apart <= max(2 * theirs, 2e-6), "TensorFloat-32 alone is a thousand times farther from float64"
    alone = convolve(there[0][1:2, :, :400].contiguous(), *there[1:], padding=padding, dilation=dilation).value
    retained = 400 - dilation * (places - 1)
    assert torch.equal(alone[0, :, :retained], y[1, :, :retained])
