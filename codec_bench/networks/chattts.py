"""ChatTTS's audio codec: mel spectrograms quantised at half their rate, and Vocos.

In ragged batches, values beyond an item are zeroed before a convolution can read them, so a batch equals its items one
by one. Hidden states are float32 `(items, channels, frames)`; a mel frame is 256 samples at 24 kHz, a code frame two of
them; `lengths` is int64 `(items,)` on the device, or None if all are full. Written from the published tensors, outputs
of the original program, and the papers: Siuzdak, Vocos, https://arxiv.org/abs/2306.00814; Mentzer et al., Finite Scalar
Quantization, https://arxiv.org/abs/2309.15505.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torchaudio
from torch import Tensor, nn

from codec_bench.networks.gfsq import GroupedResidualFSQ
from codec_bench.networks.seanet import reflect
from codec_bench.networks.vocos import ConvNeXtBlock, ISTFTHead, VocosBackbone, frames_mask, masked

RATE_HZ, HOP, N_FFT, MEL_BANDS = 24_000, 256, 1024, 100
_MEL_FLOOR = 1e-5
_DILATION = 2
# Published constants, which are computed here.
_UNUSED = ("preprocessor_mel.", "feature_extractor.")


@dataclass(frozen=True, slots=True)
class DvaeConfig:
    """Sizes of all networks; the defaults are the published ones.

    Args:
        dim: channels before the encoder and after the decoder. The quantiser has twice as many.
        inner, hidden, layers: channels and number of blocks of the ConvNeXt stacks.
        levels, groups, stages: of the quantiser. vocos_dim, vocos_intermediate_dim, vocos_layers: of Vocos.
    """

    dim: int = 512
    inner: int = 128
    hidden: int = 256
    layers: int = 12
    levels: tuple[int, ...] = (5, 5, 5, 5)
    groups: int = 2
    stages: int = 2
    vocos_dim: int = 512
    vocos_intermediate_dim: int = 1536
    vocos_layers: int = 8


PUBLISHED = DvaeConfig()
SMALL = DvaeConfig(dim=32, inner=24, hidden=32, layers=2, vocos_dim=32, vocos_intermediate_dim=64, vocos_layers=2)
"""For tests with noise weights: the published codes and rates, a hundredth of the work."""


class ConvNeXtStack(nn.Module):
    """Two convolutions, ConvNeXt blocks, and a layer per frame."""

    def __init__(self, inputs: int, outputs: int, config: DvaeConfig) -> None:
        super().__init__()
        self.conv_in = nn.ModuleList(
            [
                nn.Conv1d(inputs, config.inner, 3, padding=1),
                nn.GELU(),
                nn.Conv1d(config.inner, config.hidden, 3, padding=1),
            ]
        )
        self.decoder_block = nn.ModuleList(
            ConvNeXtBlock(config.hidden, 4 * config.hidden, dilation=_DILATION) for _ in range(config.layers)
        )
        self.conv_out = nn.Conv1d(config.hidden, outputs, 1, bias=False)

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Map `(items, inputs, frames)` to `(items, outputs, frames)`."""
        mask = frames_mask(lengths, x.shape[-1])
        first, activation, second = self.conv_in
        x = second(masked(activation(first(masked(x, mask))), mask))
        for block in self.decoder_block:
            x = block(x, mask)
        return self.conv_out(x)


class Dvae(nn.Module):
    """Log-mel spectrograms to codes at half their rate, and back."""

    coef: Tensor
    _window: Tensor
    _bands: Tensor

    def __init__(self, config: DvaeConfig = PUBLISHED, *, bound_first: bool = True) -> None:
        super().__init__()
        self.register_buffer("coef", torch.ones(1, MEL_BANDS, 1))
        self.downsample_conv = nn.ModuleList(
            [
                nn.Conv1d(MEL_BANDS, config.dim, 3, padding=1),
                nn.GELU(),
                nn.Conv1d(config.dim, config.dim, 4, stride=2, padding=1),
            ]
        )
        self.encoder = ConvNeXtStack(config.dim, 2 * config.dim, config)
        quantizer = GroupedResidualFSQ(
            2 * config.dim, config.levels, groups=config.groups, stages=config.stages, bound_first=bound_first
        )
        self.vq_layer = nn.ModuleDict({"quantizer": quantizer})
        self.decoder = ConvNeXtStack(config.dim, config.dim, config)
        self.out_conv = nn.Conv1d(config.dim, MEL_BANDS, 3, padding=1, bias=False)
        bands = torchaudio.functional.melscale_fbanks(
            N_FFT // 2 + 1, 0.0, RATE_HZ / 2, MEL_BANDS, RATE_HZ, norm=None, mel_scale="htk"
        )
        self.register_buffer("_window", torch.hann_window(N_FFT), persistent=False)
        self.register_buffer("_bands", bands, persistent=False)

    @property
    def _quantizer(self) -> GroupedResidualFSQ:
        quantizer = self.vq_layer["quantizer"]
        assert isinstance(quantizer, GroupedResidualFSQ)
        return quantizer

    def log_mels(self, waves: Tensor, samples: Sequence[int]) -> Tensor:
        """Compute log-mels `(items, bands, 1 + samples // 256)` of `(items, 1, samples)`.

        The natural logarithm of magnitudes on HTK's mel scale, at least 1e-5. Each wave is mirrored at its own ends, so
        it needs more than 512 samples.

        Args:
            samples: of each item.
        """
        # In float64: the logarithm makes rounding errors in empty bands as loud as speech. In float32 they, and so the
        # codes, would depend on the machine.
        mirrored = reflect(waves.double(), samples, N_FFT // 2, N_FFT // 2, 1)[:, 0]
        window = self._window.double()
        spectra = torch.stft(mirrored, N_FFT, HOP, window=window, center=False, return_complex=True)
        return (self._bands.double().T @ spectra.abs()).clamp(min=_MEL_FLOOR).log().float()

    def hidden(self, mels: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Encode log-mels to latents `(items, channels, mel frames // 2)`, not quantised."""
        mask = frames_mask(lengths, mels.shape[-1])
        first, activation, second = self.downsample_conv
        x = activation(first(masked(mels / self.coef, mask)))
        x = activation(second(masked(x, mask)))
        return self.encoder(x, None if lengths is None else lengths // 2)

    def encode(self, mels: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Log-mels `(items, bands, frames)` to int64 `(items, codebooks, frames // 2)`."""
        return self._quantizer.search(self.hidden(mels, lengths).transpose(1, 2)).transpose(1, 2)

    def decode(self, codes: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Decode `(items, codebooks, frames)` to log-mels `(items, bands, 2 * frames)`."""
        x = self._quantizer.lookup(codes.transpose(1, 2)).transpose(1, 2)
        # Half of the channels are the first of two mel frames, the other half the second.
        x = torch.stack(x.chunk(2, 1), -1).flatten(2)
        lengths = None if lengths is None else 2 * lengths
        mask = frames_mask(lengths, x.shape[-1])
        return self.out_conv(masked(self.decoder(x, lengths), mask)) * self.coef


class Vocos(nn.Module):
    """Log-mel spectrograms to waves."""

    def __init__(self, config: DvaeConfig = PUBLISHED) -> None:
        super().__init__()
        self.backbone = VocosBackbone(MEL_BANDS, config.vocos_dim, config.vocos_intermediate_dim, config.vocos_layers)
        self.head = ISTFTHead(config.vocos_dim, N_FFT, HOP, padding="center")

    def forward(self, mels: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Map mels `(items, bands, frames)` to waves `(items, (frames - 1) * 256)`."""
        return self.head(self.backbone(mels, lengths), lengths)


def renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename a checkpoint's weights, without constants, one name per gain."""
    return {
        # The gains are called gamma in the .pt files and weight in the safetensors ones.
        re.sub(r"(decoder_block|convnext)\.(\d+)\.weight$", r"\1.\2.gamma", name): value
        for name, value in state.items()
        if not name.startswith(_UNUSED)
    }
