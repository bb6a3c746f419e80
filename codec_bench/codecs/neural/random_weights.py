"""Networks of seeded noise for tests, whose codes and waves follow the input."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

RANDOM = "random"
RANDOM_FULL = "random-full"
REDUCED_HUBERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
"""The size of a HuBERT or WavLM inside a reduced codec network."""


@contextmanager
def seeded(seed: int = 0) -> Iterator[None]:
    """Seed torch's random numbers, and restore the caller's generator afterwards."""
    import torch

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        yield


def spread_codewords(codebooks: Iterable[Any], latents: Any) -> None:
    """Fill residual codebooks in place with noise of about their inputs' spread.

    Args:
        codebooks: tensors `(entries, dims)`, in the order of quantisation.
        latents: `(frames, dims)`, example inputs of the first codebook.
    """
    import torch

    residual = latents
    for embed in codebooks:
        embed.copy_(residual.mean(0) + 0.7 * residual.std(0) * torch.randn_like(embed))
        residual = residual - embed[torch.cdist(residual, embed).argmin(1)]


def calm_residual_units(*parts: Any) -> None:
    """Scale down the last convolutions of DAC's residual units: sums must not grow."""
    for block in (block for one in parts for block in one.block):
        for unit in (block.res_unit1, block.res_unit2, block.res_unit3):
            unit.conv2.weight.mul_(0.3)


def calm_branches(net: Any, *ends: str) -> None:
    """Scale down the last weights of residual branches: sums must not grow."""
    for name, parameter in net.named_parameters():
        if name.endswith(ends):
            parameter.mul_(0.3)


def raise_layer_scales(*transformers: Any) -> None:
    """Raise the layer scales, which do nothing at the published 0.01."""
    for layer in (layer for transformer in transformers for layer in transformer.layers):
        layer.self_attn_layer_scale.scale.fill_(0.3)
        layer.mlp_layer_scale.scale.fill_(0.3)


def fill_with_noise(net: Any) -> None:
    """Fill convolutions and linear layers in place with noise that preserves power."""
    import torch
    from torch import nn

    for module in net.modules():
        if isinstance(module, (nn.Conv1d, nn.ConvTranspose1d, nn.Linear)):
            taps: float = math.prod(module.weight.shape[1:])
            if isinstance(module, nn.ConvTranspose1d):
                taps = module.weight.shape[0] // module.groups * module.weight.shape[2] / module.stride[0]
            module.weight.copy_(torch.randn_like(module.weight) / math.sqrt(taps))
            if module.bias is not None:
                module.bias.normal_(0, 0.05)
