"""The sizes of BiCodec's networks: the published ones, and small ones."""

from __future__ import annotations

from dataclasses import dataclass

from codec_bench.networks.speech_config import EncoderConfig

SPEECH_LAYERS = (11, 14, 16)  # the hidden states that are averaged: the inputs of these blocks, counted from 0

XLSR_53 = EncoderConfig("layer_norm", 1024, max(SPEECH_LAYERS) + 1, 16, 4096, pre_norm=True, conv_bias=True)
"""wav2vec 2.0 XLSR-53 up to the last hidden state in use."""


@dataclass(frozen=True, slots=True)
class BiCodecConfig:
    """Sizes of all networks; the defaults are the published ones.

    Args:
        speech: sizes of the self-supervised encoder.
        dim, intermediate_dim: channels of the ConvNeXt blocks. layers: their number in the encoder, and in the
            decoder's first half.
        latent: channels around the quantisers. codewords, codeword_dim: of the content.
        channels: of the wave generator's first layer. rates, kernels: of each of its upsampling steps.
        mel_bands, speaker_channels, speaker_context: bands, channels and output width of the network over the reference
            clip.
        speaker_dim, speaker_codes, levels: dimensions, number and levels of the speaker's codes.
        heads, head_dim, sampler_layers: sizes of the attention behind the speaker's codes.
    """

    speech: EncoderConfig = XLSR_53
    dim: int = 384
    intermediate_dim: int = 2048
    layers: int = 12
    latent: int = 1024
    codewords: int = 8192
    codeword_dim: int = 8
    channels: int = 1536
    rates: tuple[int, ...] = (8, 5, 4, 2)
    kernels: tuple[int, ...] = (16, 11, 8, 4)
    mel_bands: int = 128
    speaker_channels: int = 512
    speaker_context: int = 1536
    speaker_dim: int = 128
    speaker_codes: int = 32
    levels: tuple[int, ...] = (4, 4, 4, 4, 4, 4)
    heads: int = 8
    head_dim: int = 64
    sampler_layers: int = 2


PUBLISHED = BiCodecConfig()
SMALL = BiCodecConfig(
    speech=EncoderConfig(
        "layer_norm",
        32,
        max(SPEECH_LAYERS) + 1,
        2,
        64,
        pre_norm=True,
        conv_layers=((16, 10, 5), *((16, 3, 2),) * 4, *((16, 2, 2),) * 2),
        conv_bias=True,
        conv_pos=16,
        conv_pos_groups=2,
    ),
    dim=32,
    intermediate_dim=64,
    layers=2,
    latent=32,
    channels=64,
    mel_bands=32,
    speaker_channels=32,
    speaker_context=48,
    speaker_dim=24,
    heads=2,
    head_dim=16,
)
"""For tests with noise weights: the published codes and rates, a thousandth of the work."""
