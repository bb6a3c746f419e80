"""SpeechTokenizer's network: SEANet with an LSTM, eight codebooks.

Reference: the package `speechtokenizer` (Apache-2.0): the same codes and waves within float32 noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from codec_bench.networks.seanet import Codebook, SeanetDecoder, SeanetEncoder


@dataclass(frozen=True)
class SpeechTokenizerShape:
    """The sizes of one model.

    Args:
        filters, dimension: see `SeanetEncoder`. ratios: strides in the decoder's order. codebooks, entries: of the
            quantiser.
    """

    filters: int = 64
    dimension: int = 1024
    ratios: tuple[int, ...] = (8, 5, 4, 2)
    codebooks: int = 8
    entries: int = 1024


class SpeechTokenizerNet(nn.Module):
    """The whole codec: `encoder`, `decoder` and the codewords."""

    def __init__(self, shape: SpeechTokenizerShape) -> None:
        super().__init__()
        self.encoder = SeanetEncoder(shape.ratios, shape.filters, shape.dimension, bidirectional=True)
        self.decoder = SeanetDecoder(shape.ratios, shape.filters, shape.dimension)
        layers = [
            nn.ModuleDict({"_codebook": Codebook(shape.entries, shape.dimension)}) for _ in range(shape.codebooks)
        ]
        self.quantizer = nn.ModuleDict({"vq": nn.ModuleDict({"layers": nn.ModuleList(layers)})})

    @property
    def codebooks(self) -> list[torch.Tensor]:
        """The codewords of each codebook, `(entries, dimension)`."""
        vq: Any = self.quantizer["vq"]
        return [layer["_codebook"].embed for layer in vq["layers"]]
