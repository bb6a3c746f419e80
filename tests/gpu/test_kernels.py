"""Every dispatcher of kernels on a GPU that is not there: which kernel it launches, and the CPU's values."""

from __future__ import annotations

import deterministic_weights
import pytest
import torch
from pretended import Mixed

from codec_bench.kernels.mask import activate
from codec_bench.kernels.rvq import dispatch
from codec_bench.networks.half_precision import Reducible
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_transformer import Transformer


def noise(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def euclidean():
    return dispatch.Euclidean(noise(3, 40, 16, seed=1), noise(16, 24, seed=2), noise(24, 16, seed=3))


def factorised():
    shapes = (3, 40, 8), (3, 8, 24), (3, 8), (3, 24, 8), (3, 24)
    return dispatch.Factorised(*(noise(*shape, seed=seed) for seed, shape in enumerate(shapes)))


def split():
    return dispatch.Split((euclidean(), euclidean()))


def moved(quantiser):
    if isinstance(quantiser, dispatch.Split):
        return dispatch.Split(tuple(map(moved, quantiser.parts)))
    names = ("embed", "project", "expand")
    if isinstance(quantiser, dispatch.Factorised):
        names = ("embed", "project", "project_bias", "expand", "expand_bias")
    parts = (getattr(quantiser, name) for name in names)
    return type(quantiser)(*(None if item is None else item.to("cuda:0") for item in parts))


@pytest.mark.parametrize("make", [euclidean, factorised, split])
def test_search_and_lookup_launch_triton_and_give_the_cpus_values(make, there):
    here = make()
    latents = noise(4, 24, 50, seed=9)
    codes = dispatch.search(latents, here).value
    words = dispatch.lookup(codes, here).value
    moved_latents, quantiser = latents.to("cuda:0"), moved(here)
    there.reset()
    result, ran = dispatch.search(moved_latents, quantiser)
    assert ran == "triton" and torch.equal(result.numbers(), codes)
    torch.testing.assert_close(dispatch.lookup(result, quantiser).value.numbers(), words, rtol=1e-5, atol=1e-5)
    launched = {"search_factorised": 1} if make is factorised else {"search_euclidean": 1, "lookup_euclidean": 1}
    assert there.kernels == {name: count * (2 if make is split else 1) for name, count in launched.items()}
    assert not there.waits and not there.uploads
    with pytest.raises(Mixed):
        dispatch.search(latents, quantiser)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_wavlm_launches_its_attention_in_half_precision_and_gives_the_cpus_values(dtype, there):
    small = EncoderConfig("group_norm", 32, 2, 2, 64, False, conv_pos=16, conv_pos_groups=2, relative_buckets=320)
    net = Transformer(small).eval()
    net.load_state_dict(deterministic_weights.stand_in(net))
    for module in net.modules():
        if isinstance(module, Reducible) and dtype != torch.float32:
            module.reduce(dtype)
    frames, counts = noise(3, 40, 32), torch.tensor([40, 24, 3])
    with torch.no_grad():
        *_, expected = net.hidden_states(frames, counts)
        there.reset()
        *_, result = net.to("cuda:0").hidden_states(frames.to("cuda:0"), counts.to("cuda:0"))
    assert there.kernels == ({"attend": 2} if dtype.itemsize == 2 else {})
    for item, count in enumerate(counts.tolist()):
        torch.testing.assert_close(result.numbers()[item, :count], expected[item, :count], rtol=3e-2, atol=3e-2)


def test_an_activation_is_one_launch(there):
    x, lengths, alpha = noise(3, 4, 30), torch.tensor([30, 5, 17]), noise(1, 4, 1).abs()
    expected = activate(x, lengths, "snake", alpha).value
    options = [tensor.to("cuda:0") for tensor in (x, lengths, alpha)]
    there.reset()
    result, ran = activate(options[0], options[1], "snake", options[2])
    assert ran == "triton" and there.kernels == {"activate": 1} and not there.waits and not there.uploads
    torch.testing.assert_close(result.numbers(), expected)
    with pytest.raises(Mixed, match="is on the CPU"):
        activate(options[0], lengths, "snake", options[2])
