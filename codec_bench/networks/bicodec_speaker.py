"""BiCodec's speaker networks: clip to 32 codes, and codes to a vector.

Conventions are those of `bicodec.py`. Reference clips have one length, so nothing is masked.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.networks.bicodec_config import BiCodecConfig
from codec_bench.networks.ecapa import ConvReluNorm, Res2Conv, SqueezeExcite
from codec_bench.networks.gfsq import ResidualFSQ

_BOTTLENECK = 128  # width of squeeze and excitation


class SpeakerBlock(nn.Module):
    """A residual block of the time-delay network over the reference clip."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.se_res2block = nn.ModuleList(
            [
                ConvReluNorm(channels, channels),
                Res2Conv(channels, dilation, groups=8),
                ConvReluNorm(channels, channels),
                SqueezeExcite(channels, _BOTTLENECK),
            ]
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, channels, frames)` to the same shape; all frames count."""
        all_valid = x.new_ones(1)
        before, res2, after, excite = self.se_res2block
        return x + excite(after(res2(before(x), all_valid)), all_valid, x.shape[2])


class SpeakerFrames(nn.Module):
    """Mel spectrogram to a context vector per frame: ECAPA-TDNN unpooled."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        channels = config.speaker_channels
        self.layer1 = ConvReluNorm(config.mel_bands, channels, kernel=5)
        self.layer2, self.layer3, self.layer4 = (SpeakerBlock(channels, dilation) for dilation in (2, 3, 4))
        self.conv = nn.Conv1d(3 * channels, config.speaker_context, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, mel_bands, frames)` to `(items, context, frames)`."""
        x = self.layer1(x)
        outs = []
        for block in (self.layer2, self.layer3, self.layer4):
            x = block(x)
            outs.append(x)
        return F.relu(self.conv(torch.cat(outs, 1)))


class CrossAttention(nn.Module):
    """Attention from a few latent vectors to the frames and to each other."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        dim, inner = config.speaker_dim, config.heads * config.head_dim
        self.heads = config.heads
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, 2 * inner, bias=False)
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, latents: Tensor, frames: Tensor) -> Tensor:
        """Attend from `(items, latents, dim)` to frames `(items, frames, dim)` and itself."""
        seen = self.to_kv(torch.cat([latents, frames], 1))
        query, key, value = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.to_q(latents), *seen.chunk(2, -1))
        )
        return self.to_out(F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2))


class GatedGelu(nn.Module):
    """The first half of the channels times the GELU of the second."""

    def forward(self, x: Tensor) -> Tensor:
        """Map `(..., 2 * dim)` to `(..., dim)`."""
        value, gate = x.chunk(2, -1)
        return F.gelu(gate) * value


class RmsNorm(nn.Module):
    """Vectors scaled to a mean square of one."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Map `(..., dim)` to the same shape."""
        return F.normalize(x, dim=-1) * math.sqrt(x.shape[-1]) * self.gamma


class Sampler(nn.Module):
    """A perceiver: one vector per code from any number of frames."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        dim = config.speaker_dim
        inner = int(dim * 4 * 2 / 3)
        self.proj_context = nn.Linear(config.speaker_context, dim)
        self.latents = nn.Parameter(torch.randn(config.speaker_codes, dim))
        self.layers = nn.ModuleList(
            nn.ModuleList(
                [CrossAttention(config), nn.Sequential(nn.Linear(dim, 2 * inner), GatedGelu(), nn.Linear(inner, dim))]
            )
            for _ in range(config.sampler_layers)
        )
        self.norm = RmsNorm(dim)

    def forward(self, frames: Tensor) -> Tensor:
        """Map `(items, frames, context)` to `(items, codes, dim)`."""
        frames = self.proj_context(frames)
        latents = self.latents.expand(len(frames), -1, -1)
        for layer in self.layers:
            assert isinstance(layer, nn.ModuleList)
            attend, widen = layer
            latents = attend(latents, frames) + latents
            latents = widen(latents) + latents
        return self.norm(latents)


class BiCodecSpeakerEncoder(nn.Module):
    """From a reference clip to codes, and from codes to the speaker's vector."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        self.speaker_encoder = SpeakerFrames(config)
        self.perceiver_sampler = Sampler(config)
        self.quantizer = ResidualFSQ(config.speaker_dim, config.levels)
        self.project = nn.Linear(config.speaker_dim * config.speaker_codes, config.latent)

    def sample(self, mels: Tensor) -> Tensor:
        """Map `(items, mel_bands, frames)` to vectors to quantise, `(items, codes, dim)`."""
        return self.perceiver_sampler(self.speaker_encoder(mels).transpose(1, 2))

    def search(self, mels: Tensor) -> Tensor:
        """Quantise the speaker of mel spectrograms to codes, int64 `(items, codes)`."""
        return self.quantizer.search(self.sample(mels))[..., 0]

    def lookup(self, codes: Tensor) -> Tensor:
        """Map codes `(items, codes)` to the speaker's vectors `(items, latent)`."""
        # The projection's columns run over the codes first, then over the channels.
        return self.project(self.quantizer.lookup(codes[..., None]).transpose(1, 2).flatten(1))
