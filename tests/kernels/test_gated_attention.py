"""Attention with a gated position bias: torch's with a bias and Triton's kernel are as specified, whatever lies beyond
an item's end.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from codec_bench.kernels.gated_attention import attend, fuses, ref
from codec_bench.networks.speech_transformer import AttentionBias

COUNTS = np.array([150, 1, 70])
HEADS, WIDTH = 2, 16


@pytest.fixture
def options(rng):
    """Queries, keys and values as one projection gives them, gates, and the bias of each distance."""
    frames = COUNTS.max()
    together = torch.from_numpy(rng.standard_normal((3, frames, 3, HEADS, WIDTH))).half()
    gate = torch.from_numpy(rng.uniform(0, 4, (3, frames, HEADS, 1)).astype(np.float32)).transpose(1, 2)
    by_distance = torch.from_numpy(rng.standard_normal((HEADS, 2 * frames + 5)).astype(np.float32))[:, 3:-3]
    return (*together.permute(2, 0, 3, 1, 4), gate, by_distance)


def specified(options):
    return ref.attend(*(x.numpy() for x in options), COUNTS)


def worst(actual, expected):
    """The largest difference in an item's own frames."""
    return max(np.abs(actual[n, :, :count] - expected[n, :, :count]).max() for n, count in enumerate(COUNTS))


def test_torch_with_a_bias_is_as_specified(options):
    q, k, v, gate, by_distance = (x.double() for x in options)
    bias = AttentionBias(torch.from_numpy(COUNTS), COUNTS.max(), HEADS, by_distance)
    bias._mask = bias._mask.double()
    expected = specified(options)
    assert worst(bias.attended(q, k, v, gate).numpy(), expected) < 1e-12
    assert worst(bias.attended(q, k, v, torch.ones_like(gate)).numpy(), expected) > 0.1, "the gate counts"


def test_only_half_precision_on_a_gpu_is_fused(options):
    q = options[0]
    assert not fuses(q) and not fuses(q.float())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_on_a_gpu(options, dtype):
    q, k, v, gate, by_distance = (x.cuda() for x in options)
    halves = [x.to(dtype) for x in (q, k, v)]
    assert fuses(halves[0]) and not fuses(q.float())
    counts = torch.from_numpy(COUNTS).cuda()
    expected = specified([*(x.cpu().float() for x in halves), *options[3:]])
    tolerance = 5e-3 if dtype == torch.float16 else 4e-2
    assert worst(attend(*halves, gate, by_distance, counts).cpu().double().numpy(), expected) < tolerance
    bias = AttentionBias(counts, COUNTS.max(), HEADS, by_distance)
    assert worst(bias.attended(*halves, gate).cpu().double().numpy(), expected) < 2 * tolerance
