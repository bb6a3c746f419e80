"""Every implementation equals the specified activation and writes zeros beyond each item, whatever was there before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from codec_bench.kernels.mask import activate, cpu, ref

LENGTHS = np.array([150, 0, 33])
ACTIVATIONS = ("identity", "elu", "snake")


@pytest.fixture
def x(rng):
    values = (4 * rng.standard_normal((3, 5, 150))).astype(np.float32)
    values[0, 0, :8] = 10.0 ** -np.arange(8) * np.array([1, -1] * 4)  # where exp(x) - 1 loses digits
    return values


def alpha(activation):
    return np.linspace(0.01, 3, 5, dtype=np.float32) if activation == "snake" else None


def test_the_specification_is_torch_elu_and_the_snake_of_dac(x):
    from transformers.models.dac.modeling_dac import Snake1d

    complete = np.full(3, 150)
    torch_x = torch.from_numpy(x)
    expected = torch.nn.functional.elu(torch_x.double()).numpy()
    np.testing.assert_allclose(ref.activate(x, complete, "elu"), expected, rtol=1e-12, atol=1e-15)
    snake = Snake1d(5).double()
    snake.alpha.data = torch.from_numpy(alpha("snake")).double().view(1, 5, 1)
    expected = snake(torch_x.double()).detach().numpy()
    np.testing.assert_allclose(ref.activate(x, complete, "snake", alpha("snake")), expected, rtol=1e-12, atol=1e-12)
    assert np.array_equal(ref.activate(x, complete), x)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_torch_is_as_specified(x, activation):
    expected = ref.activate(x, LENGTHS, activation, alpha(activation))
    for item, length in enumerate(LENGTHS):
        x[item, :, length:] = np.nan
    options = torch.from_numpy(x)
    before = options.clone()
    weights = None if alpha(activation) is None else torch.from_numpy(alpha(activation)).view(1, 5, 1)
    y, ran = activate(options, torch.from_numpy(LENGTHS), activation, weights)
    assert ran == "torch" and y.dtype == torch.float32 and y.is_contiguous()
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(options.nan_to_num(), before.nan_to_num())
    for item, length in enumerate(LENGTHS):
        assert not y[item, :, length:].any()


def test_an_item_does_not_depend_on_its_batch(x):
    together = cpu.activate(torch.from_numpy(x), torch.from_numpy(LENGTHS), "elu")
    alone = cpu.activate(torch.from_numpy(x[2:, :, :33].copy()), torch.tensor([33]), "elu")
    # Vector and scalar exponentials differ in the last digit, and either may be used for the end of an item.
    torch.testing.assert_close(together[2:, :, :33], alone, rtol=1e-6, atol=1e-7)


def test_what_does_not_fit_is_refused():
    x, lengths = torch.zeros(1, 3, 4), torch.tensor([4])
    with pytest.raises(ValueError, match="there is no activation 'relu'"):
        activate(x, lengths, "relu")
    with pytest.raises(ValueError, match="snake takes one alpha per channel"):
        activate(x, lengths, "snake")
    with pytest.raises(ValueError, match="elu takes no alpha"):
        activate(x, lengths, "elu", torch.ones(3))
    with pytest.raises(ValueError, match="alpha has 2 elements; expected one for each of 3 channels"):
        activate(x, lengths, "snake", torch.ones(2))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_on_a_gpu(x, activation):
    expected = ref.activate(x, LENGTHS, activation, alpha(activation))
    weights = None if alpha(activation) is None else torch.from_numpy(alpha(activation)).cuda()
    options, lengths = torch.from_numpy(x).cuda(), torch.from_numpy(LENGTHS).cuda()
    y, ran = activate(options, lengths, activation, weights)
    assert ran == "triton"
    np.testing.assert_allclose(y.cpu(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        cpu.activate(options, lengths, activation, weights).cpu(), expected, rtol=1e-5, atol=1e-6
    )
