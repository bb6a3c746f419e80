"""Speech encoders (wav2vec 2.0, HuBERT, WavLM), exact in batches.

Strided convolutions turn a 16 kHz wave into one vector every 20 ms; a wide convolution adds positions before a
transformer. Masked are the group norm's statistics, the positional convolution, and attention. Parameters have the
names of fairseq and s3prl, so published checkpoints load as they are.
Papers: A. Baevski et al., "wav2vec 2.0", NeurIPS 2020; W.-N. Hsu et al., "HuBERT", TASLP 2021; S. Chen et al., "WavLM",
JSTSP 2022. Reference implementations: s3prl 0.4.18 (WavLM, wav2vec 2.0) and transformers, each item alone, to 1e-5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks import transfer
from codec_bench.networks.half_precision import HalfLinear, LayerNorm
from codec_bench.networks.ragged import each, inside, on_device, uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_extractor import ConvExtractor
from codec_bench.networks.speech_transformer import Transformer

FRAMES_MULTIPLE = 8
"""Batches are padded to a multiple of this many frames, which fused attention needs for its bias."""


class SpeechEncoder(nn.Module):
    """wav2vec 2.0, HuBERT or WavLM over a padded batch.

    Waves are `(batch, samples)` at 16 kHz, anything finite beyond an item's length. Every length must reach the
    receptive field. An item's result does not depend on the others or the padding (float32: 1e-5).
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        channels = config.conv_layers[-1][0]
        self.feature_extractor = ConvExtractor(config)
        self.layer_norm = LayerNorm(channels)
        self.post_extract_proj = HalfLinear(channels, config.width) if channels != config.width else None
        self.mask_emb = nn.Parameter(torch.zeros(config.width))  # only training uses it, but checkpoints hold it
        self.encoder = Transformer(config)

    @property
    def step(self) -> int:
        """The unit in samples of a padded batch's length."""
        return self.config.hop * FRAMES_MULTIPLE

    def forward(self, waves: Tensor, lengths: Sequence[int]) -> tuple[Tensor, Sequence[int]]:
        """Compute the last hidden state `(batch, frames, width)` and each item's frames.

        Values beyond an item's own frames are unspecified but finite.

        Args:
            waves: float32 `(batch, samples)`. lengths: samples of each item, on the host (`ragged.py`).
        """
        lengths = uploaded(lengths, waves.device)
        (last,) = deque(self.hidden_states(waves, lengths), maxlen=1)  # keeps one at a time
        return last, each(lengths, self.config.frames)

    def mixed(self, waves: Tensor, lengths: Sequence[int], weights: Tensor) -> Tensor:
        """Sum weighted hidden states, as float32 `(batch, frames, width)`.

        Only one hidden state is in memory at a time.

        Args:
            weights: one per hidden state, `(layers + 1,)`.
        """
        total: Tensor | None = None
        for weight, hidden in zip(weights.float(), self.hidden_states(waves, lengths), strict=True):
            total = hidden.float() * weight if total is None else torch.addcmul(total, hidden.float(), weight)
        assert total is not None, "there is a hidden state in front of the first block"
        return total

    def hidden_states(
        self, waves: Tensor, lengths: Sequence[int], frame_counts: Sequence[int] | None = None
    ) -> Iterator[Tensor]:
        """Yield blocks' inputs and the last output, `(batch, frames, width)` each.

        If blocks normalise their input, the last output is taken after the final norm, as in s3prl.

        Args:
            waves: `(batch, samples)`.
            lengths: samples of each item.
            frame_counts: frames of each item in the transformer, if fewer than its samples make: for a model whose
                padding counts in the group norm but is masked in attention.

        Raises:
            ValueError: a length is below the receptive field or beyond the batch.
        """
        lengths = uploaded(lengths, waves.device)
        counts = each(lengths, self.config.frames)
        if len(counts) != waves.shape[0] or min(counts) < 1 or max(lengths) > waves.shape[1]:
            raise ValueError(
                f"lengths {list(lengths)} do not fit waves of shape {tuple(waves.shape)} and a receptive field of "
                f"{self.config.receptive_field} samples"
            )
        step = self.config.hop if waves.device.type == "cpu" else self.step  # a CPU's attention needs no multiple
        samples = -(-max(lengths) // step) * step
        waves = waves[:, :samples] if waves.shape[1] >= samples else F.pad(waves, (0, samples - waves.shape[1]))
        frames = self.layer_norm(self.feature_extractor(waves, lengths))
        if self.post_extract_proj is not None:
            frames = self.post_extract_proj(frames).float()
        longest = max(counts)
        attended_counts = on_device(counts if frame_counts is None else frame_counts, waves.device)
        for hidden in self.encoder.hidden_states(frames, attended_counts):
            yield hidden[:, :longest]


def padded(signals: Sequence[Any], device: str) -> tuple[Tensor, list[int]]:
    """Pad signals `(samples,)` to `(batch, longest)`; return lengths too."""
    lengths = [len(signal) for signal in signals]
    return transfer.padded_rows(signals, max(lengths), device), lengths


def standardised(waves: Tensor, lengths: Sequence[int], eps: float) -> Tensor:
    """Standardise waves over each item's own samples; zero beyond its end.

    Args:
        waves: float32 `(batch, samples)`. lengths: samples of each item. eps: added to the (biased) variance.
    """
    counts = on_device(lengths, waves.device)[:, None]
    valid = inside(lengths, waves.shape[1], waves.device)
    exact = torch.where(valid, waves.double(), 0.0)
    centred = torch.where(valid, exact - exact.sum(1, keepdim=True) / counts, 0.0)
    variance = centred.square().sum(1, keepdim=True) / counts
    return (centred / (variance + eps).sqrt()).float()


def fairseq_name(name: str, extractor: str) -> str:
    """Convert a parameter's name in transformers' Wav2Vec2 models to fairseq's name.

    HuBERT and WavLM have the same names.

    Args:
        name: without a prefix, such as `encoder.layers.3.feed_forward.output_dense.bias`.
        extractor: as in `EncoderConfig`.
    """
    if "conv_layers." in name:
        name = name.replace(".layer_norm.", ".2.1." if extractor == "layer_norm" else ".2.")
    for theirs, ours in (
        (".conv.parametrizations.weight.original0", ".0.weight_g"),
        (".conv.parametrizations.weight.original1", ".0.weight_v"),
        (".conv.", ".0."),
        ("pos_conv_embed", "pos_conv"),
        ("masked_spec_embed", "mask_emb"),
        ("feature_projection.layer_norm", "layer_norm"),
        ("feature_projection.projection", "post_extract_proj"),
        (".attention.", ".self_attn."),
        ("gru_rel_pos_const", "grep_a"),
        ("gru_rel_pos_linear", "grep_linear"),
        ("rel_attn_embed", "relative_attention_bias"),
        ("feed_forward.intermediate_dense", "fc1"),
        ("feed_forward.output_dense", "fc2"),
    ):
        name = name.replace(theirs, ours)
    if name.startswith("encoder.layers.") and name.split(".")[3] == "layer_norm":
        name = name.replace(".layer_norm.", ".self_attn_layer_norm.")
    return name
