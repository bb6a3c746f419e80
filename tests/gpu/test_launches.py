"""Launches of Triton kernels that a device would refuse or that use foreign memory are found; those of all kernels are
clean.
"""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from pretended import Mixed, launching, pretended
from pretended_launches import Kernel, Wrong, kernels_of
from test_kernels import moved, noise

from codec_bench import kernels
from codec_bench.kernels.convolve import gpu as convolve
from codec_bench.kernels.convolve import ref as convolve_ref
from codec_bench.kernels.first_launch import gpu as smallest
from codec_bench.kernels.gated_attention import gpu as gated
from codec_bench.kernels.gated_attention import ref as gated_ref
from codec_bench.kernels.mask import gpu as mask
from codec_bench.kernels.mask import ref as mask_ref
from codec_bench.kernels.rvq import dispatch
from codec_bench.kernels.rvq import gpu as rvq

TEN_HOURS = 10 * 3600 * 86
"""Frames of the codec that has most of them, DAC."""


@triton.jit
def _double(x, y, count, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(y + position, 2 * tl.load(x + position, mask=position < count), mask=position < count)
    else:
        tl.store(y + position, 2 * tl.load(x + position, mask=position < count))


@triton.jit
def _before(x, y, BLOCK: tl.constexpr):
    position = tl.arange(0, BLOCK)
    tl.store(y + position, tl.load(x + position - 1))


@triton.jit
def _rows(x, y, row, BLOCK: tl.constexpr):
    position = tl.program_id(0) * row + tl.arange(0, BLOCK)
    tl.store(y + position, tl.load(x + position))


@triton.jit
def _counted(y, ATOMIC: tl.constexpr):
    if ATOMIC:
        tl.atomic_add(y, 1)
    else:
        tl.store(y, tl.load(y) + 1)


@triton.jit
def _summed(x, y):
    tl.atomic_add(y, tl.load(x + tl.program_id(0)))


@triton.jit
def _shifted(x, BLOCK: tl.constexpr):
    position = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + position, tl.load(x + position + BLOCK))


@triton.jit
def _scattered(x, y, BLOCK: tl.constexpr):
    position = tl.arange(0, BLOCK)
    tl.store(y + position // 2, tl.load(x + position))


@pytest.fixture
def complete(there):
    """The pretended device, on which all programs of a launch run."""
    there.checks.complete = True
    return there


def options(*shape, dtype=torch.float32):
    return torch.arange(int(np.prod(shape)), dtype=dtype).reshape(shape).to("cuda:0")


def test_a_clean_launch_gives_its_numbers(complete):
    x, y = options(1000), torch.empty(1000, device="cuda:0")
    launching(_double)[(4,)](x, y, 1000, BLOCK=256, MASKED=True)
    assert torch.equal(y.numbers(), 2 * torch.arange(1000.0))
    count = torch.zeros(1, dtype=torch.int64, device="cuda:0")
    launching(_counted)[(100,)](count, ATOMIC=True)
    assert count.numbers().item() == 100


FAULTS = {
    "24 numbers are written beyond the end": (
        "writes 24 numbers outside 'y'",
        lambda x: launching(_double)[(4,)](x, torch.empty_like(x), 1000, BLOCK=256, MASKED=False),
    ),
    "a number before the first is read": (
        "reads 1 numbers outside 'x'", lambda x: launching(_before)[(1,)](x[8:], torch.empty_like(x), BLOCK=64),
    ),
    "a tensor is read beyond its end, where another begins in the same memory": (
        "reads 4 numbers outside 'x'", lambda x: launching(_rows)[(1,)](x[:60], torch.empty_like(x), 64, BLOCK=64),
    ),
    "programs add without an atomic": (
        "two programs write to the same place", lambda x: launching(_counted)[(100,)](x, ATOMIC=False),
    ),
    "a program reads what another writes": (
        "reads what another program writes", lambda x: launching(_shifted)[(3,)](x, BLOCK=64),
    ),
    "atomic sums of floats depend on the order": (
        "the order of its programs",
        # its two orders give two sums
        lambda x: launching(_summed)[(300,)](x * 123456.7, torch.zeros(1, device="cuda:0")),
    ),
    "two numbers of a program go to one place": (
        "writes different numbers to one place",
        lambda x: launching(_scattered)[(1,)](x, torch.empty_like(x), BLOCK=64),
    ),
    "the second axis of the grid is too long": (
        "a device takes", lambda x: launching(_rows)[(1, 65_536)](x, torch.empty_like(x), 1, BLOCK=1),
    ),
    "the first axis of the grid is too long": (
        "a device takes", lambda x: launching(_rows)[(2**31,)](x, torch.empty_like(x), 1, BLOCK=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_detected(fault, complete):
    text, launch = FAULTS[fault]
    with pytest.raises(Wrong, match=text):
        launch(options(1000))


def test_a_number_of_32_bits_that_overflows_is_detected_without_the_memory_of_so_large_a_tensor(there):
    rows, row = 3000, 1 << 20
    x = torch.empty(rows, row, device="meta")
    launching(_rows)[(2000,)](x, torch.empty_like(x), row, BLOCK=64)
    with pytest.raises(Wrong, match="int32 overflow"):
        launching(_rows)[(rows,)](x, torch.empty_like(x), row, BLOCK=64)


def test_what_is_on_the_cpu_or_of_another_type_is_no_pointer_for_a_kernel(there):
    x = options(64)
    with pytest.raises(Mixed, match="is on the CPU"):
        launching(_rows)[(1,)](x, torch.empty(64), 64, BLOCK=64)
    with pytest.raises(Mixed, match=r"is given torch\.float16"):
        launching(_rows)[(1,)](x, x.half(), 64, BLOCK=64)


def test_the_launches_of_every_module_of_kernels_are_checked(there):
    names = [module.name for module in pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}.")]
    results = [name for name in names if importlib.util.find_spec(f"{name}.gpu")]
    assert len(results) >= 4
    for name in results:
        module = importlib.import_module(f"{name}.gpu")
        assert any(isinstance(value, Kernel) for value in vars(module).values()) and not kernels_of(module), name


def check_quantiser(latents, here, count):
    """Small integers have exact products, so that every implementation must give the same codes, ties included."""
    expected = dispatch.search(latents, here, count, use="blas").value
    quantiser = moved(here)
    codes, ran = dispatch.search(latents.to("cuda:0"), quantiser, count)
    assert ran == "triton" and torch.equal(codes.numbers(), expected)
    result = dispatch.lookup(codes, quantiser).value
    torch.testing.assert_close(result.numbers(), dispatch.lookup(expected, here, use="blas").value)


@pytest.mark.parametrize(("dims", "entries", "frames"), [(24, 100, 37), (128, 64, 16), (5, 70, 1), (130, 40, 9)])
def test_search_and_lookup_are_clean(dims, entries, frames, complete, monkeypatch):
    embed = (noise(3, entries, dims, seed=1) * 2).round()
    latents = (noise(2, dims, frames, seed=2) * 3).round()
    check_quantiser(latents, dispatch.Euclidean(embed), 1)
    monkeypatch.setattr(rvq, "_multiprocessors", lambda _: (9, 1))  # the largest tiles
    check_quantiser(latents.transpose(1, 2).contiguous().transpose(1, 2), dispatch.Euclidean(embed), 3)


@pytest.mark.parametrize(("dims", "entries", "frames", "books"), [(8, 130, 37, 3), (3, 20, 16, 1), (16, 33, 5, 5)])
def test_the_factorised_search_is_clean(dims, entries, frames, books, complete):
    shapes = (books, entries, dims), (books, dims, 20), (books, dims), (books, 20, dims), (books, 20)
    parts = [noise(*shape, seed=index) for index, shape in enumerate(shapes)]
    for count in {1, books}:
        check_quantiser(noise(2, 20, frames, seed=9), dispatch.Factorised(*parts), count)


def test_of_equal_codewords_the_first_is_detected_and_nothing_is_searched_in_nothing(complete):
    words = noise(1, 200, 16, seed=3)
    words[0, [70, 150]] = words[0, 3].clone()
    quantiser = moved(dispatch.Euclidean(words))
    result = dispatch.search(words[0, 3].view(1, 16, 1).to("cuda:0"), quantiser).value
    assert result.numbers().item() == 3
    empty = dispatch.search(torch.zeros(2, 16, 0, device="cuda:0"), quantiser).value
    assert empty.shape == (2, 1, 0) and dispatch.lookup(empty, quantiser).value.numel() == 0


@pytest.mark.parametrize("activation", ["identity", "elu", "snake"])
def test_the_activation_is_clean(activation, complete):
    rng = np.random.default_rng(0)
    x = (4 * rng.standard_normal((3, 5, 1500))).astype(np.float32)
    x[0, 0, :8] = 10.0 ** -np.arange(8) * np.array([1, -1] * 4)
    lengths = np.array([1500, 0, 1025])
    alpha = np.linspace(0.01, 3, 5, dtype=np.float32) if activation == "snake" else None
    expected = mask_ref.activate(x, lengths, activation, alpha)
    for item, length in enumerate(lengths):
        x[item, :, length:] = np.nan
    actual = torch.from_numpy(lengths).to("cuda:0")
    weights = None if alpha is None else torch.from_numpy(alpha).view(1, 5, 1).to("cuda:0")
    values = torch.from_numpy(x).to("cuda:0")
    for there in (values, values.transpose(1, 2).contiguous().transpose(1, 2)):
        y = mask.activate(there, actual, activation, weights).numbers()
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
        assert all(not y[item, :, length:].any() for item, length in enumerate(lengths))


@pytest.mark.parametrize(("channels", "outputs", "padding", "dilation"), [(40, 130, 9, 3), (64, 5, 0, 1)])
def test_the_convolution_is_clean(channels, outputs, padding, dilation, complete):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, channels, 150)).astype(np.float32)
    taps = (rng.standard_normal((7, outputs, channels)) / 16).astype(np.float32)
    bias = rng.standard_normal(outputs).astype(np.float32)
    expected = convolve_ref.convolve(x, taps, bias, padding, dilation)
    there, weights, added = (torch.from_numpy(array).to("cuda:0") for array in (x, taps, bias))
    if padding:
        y = convolve.convolve(there, weights, added, padding, dilation).numbers()
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    else:
        channels_last = there.transpose(1, 2).contiguous().transpose(1, 2)
        y = convolve.convolve(channels_last, weights, None, padding, dilation).numbers()
        np.testing.assert_allclose(y, expected - bias[:, None], rtol=1e-5, atol=1e-5)


def test_gated_attention_is_clean(complete):
    rng, counts = np.random.default_rng(0), np.array([150, 1, 70])
    together = rng.standard_normal((3, 150, 3, 2, 16)).astype(np.float16)
    gate = rng.uniform(0, 4, (3, 150, 2, 1)).astype(np.float32)
    by_distance = rng.standard_normal((2, 305)).astype(np.float32)
    expected = gated_ref.attend(*together.transpose(2, 0, 3, 1, 4), gate.swapaxes(1, 2), by_distance[:, 3:-3], counts)
    for item, count in enumerate(counts):
        together[item, count:, 1:] = np.nan
    there, gates, biases, actual = (torch.from_numpy(x).to("cuda:0") for x in (together, gate, by_distance, counts))
    result = gated.attend(*there.permute(2, 0, 3, 1, 4), gates.transpose(1, 2), biases[:, 3:-3], actual).numbers()
    assert result.isfinite().all() and result.dtype == torch.float16
    for item, count in enumerate(counts):
        np.testing.assert_allclose(result[item, :, :count], expected[item, :, :count], rtol=0, atol=3e-3)


def test_the_smallest_kernel_adds_one(complete):
    assert smallest.adds_one("cuda:0")


def virtual(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def test_no_kernel_uses_a_place_outside_a_tensor_of_more_than_2_to_the_31_numbers(there):
    items = 3
    for shape in (
        (items, 1500, 1_000_000),
        (items, 4, TEN_HOURS * 512),
    ):  # a decoder's widest layer; ten hours of samples
        mask.activate(virtual(*shape), torch.full((items,), shape[-1], device="cuda:0"), "snake", virtual(shape[1]))
        convolve.convolve(virtual(*shape), virtual(2, 96, shape[1]), virtual(96), 9, 3)
    together = virtual(70_000, 1500, 3, 16, 64, dtype=torch.float16).permute(2, 0, 3, 1, 4)
    gate, actual = virtual(70_000, 1500, 16, 1).transpose(1, 2), torch.full((70_000,), 1500, device="cuda:0")
    assert gated.attend(*together, gate, virtual(16, 2999), actual).is_meta
    embed, offsets = virtual(2, 100, 128), virtual(2, 100)
    for items, frames in ((400, 60_000), (8, TEN_HOURS)):
        codes = rvq.search_euclidean(virtual(items, 128, frames), embed, offsets)
        assert rvq.lookup_euclidean(codes, embed).shape == (items, 128, frames)
        rvq.search_factorised(virtual(items, 128, frames), virtual(9, 100, 8), virtual(9, 100, 9, 8), 9)


def test_without_the_pretended_device_the_kernels_are_tritons():
    with pretended():
        pass
    assert kernels_of(mask).keys() == {"_activate"} and "interpreter_semantic" not in vars(mask)
    assert isinstance(tl.max, triton.runtime.jit.JITFunction)
