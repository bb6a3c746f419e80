"""BiCodec's networks: a content code per 20 ms, 32 speaker codes.

In ragged batches, values beyond an item are zeroed before a convolution can read them, so a batch equals its items one
by one. Parts for training only are not built. Hidden states are float32 `(items, channels, frames)`; `lengths` is int64
`(items,)` in frames of 20 ms on the device, or None if all are full. Reference: SparkAudio/Spark-TTS (Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
import torchaudio
from torch import Tensor, nn

from codec_bench.networks.bicodec_config import PUBLISHED, SPEECH_LAYERS, BiCodecConfig
from codec_bench.networks.bicodec_speaker import BiCodecSpeakerEncoder
from codec_bench.networks.speech_encoder import SpeechEncoder, fairseq_name, standardised
from codec_bench.networks.vocos import VocosBackbone, frames_mask, masked
from codec_bench.networks.weight_norm import fold_weight_norm

RATE_HZ, HOP = 16_000, 320
_SPEECH_EPS = 1e-7
_NORM_EPS = 1e-6
_FRAMES_AT_ONCE = 8192  # frames whose distances to all codewords are in memory together: 256 MB

# Tensors of the published files that are not used here.
_UNUSED = (
    "postnet.",
    "mel_transformer.",
    "quantizer.cluster_size",
    "speaker_encoder.speaker_encoder.pool.",
    "speaker_encoder.speaker_encoder.bn.",
    "speaker_encoder.speaker_encoder.linear.",
)
_UNUSED_SPEECH = ("quantizer.", "project_q.", "project_hid.")


class ConditionedNorm(nn.Module):
    """Layer normalisation over channels, with gain and offset linear in a condition."""

    def __init__(self, condition_dim: int, dim: int) -> None:
        super().__init__()
        self.scale = nn.Linear(condition_dim, dim)
        self.shift = nn.Linear(condition_dim, dim)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """Normalise `x` `(items, frames, dim)` under conditions `(items, condition_dim)`."""
        x = F.layer_norm(x, x.shape[-1:], eps=_NORM_EPS)
        return x * self.scale(condition)[:, None] + self.shift(condition)[:, None]


class ConditionedBackbone(VocosBackbone):
    """A Vocos backbone in which every norm but the last depends on `condition`."""

    def __init__(self, condition_dim: int, dim: int, intermediate_dim: int, num_layers: int) -> None:
        super().__init__(dim, dim, intermediate_dim, num_layers)
        self.norm = ConditionedNorm(condition_dim, dim)
        for block in self.convnext:
            block.norm = ConditionedNorm(condition_dim, dim)


class Refinement(nn.ModuleList):
    """Two short backbones, one after the other."""

    def __init__(self, dim: int, intermediate_dim: int) -> None:
        # The published names count the resampling step: `0.1.embed`.
        super().__init__(nn.ModuleList([nn.Identity(), VocosBackbone(dim, dim, intermediate_dim, 2)]) for _ in range(2))

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Map `(items, frames, dim)` to the same shape."""
        for step in self:
            assert isinstance(step, nn.ModuleList)
            x = step[1](3.0 * x.transpose(1, 2), lengths)
        return x


class SemanticEncoder(nn.Module):
    """Speech features to latents of the content."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        self.encoder = VocosBackbone(config.speech.width, config.dim, config.intermediate_dim, config.layers)
        self.downsample = Refinement(config.dim, config.intermediate_dim)
        self.project = nn.Linear(config.dim, config.latent)

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Map `(items, features, frames)` to `(items, latent, frames)`."""
        return self.project(self.downsample(self.encoder(x, lengths), lengths)).transpose(1, 2)


class FactorisedQuantiser(nn.Module):
    """A quantiser that takes the codeword with the nearest direction."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        self.in_project = nn.Conv1d(config.latent, config.codeword_dim, 1)
        self.out_project = nn.Conv1d(config.codeword_dim, config.latent, 1)
        self.codebook = nn.Embedding(config.codewords, config.codeword_dim)

    def search(self, x: Tensor) -> Tensor:
        """Return codes int64 `(items, frames)` of latents `(items, latent, frames)`."""
        directions = F.normalize(self.in_project(x).transpose(1, 2), dim=-1)
        words = F.normalize(self.codebook.weight, dim=-1)
        near = [chunk @ words.T for chunk in directions.flatten(0, 1).split(_FRAMES_AT_ONCE)]
        return torch.cat([each.argmax(-1) for each in near]).view(directions.shape[:2])

    def lookup(self, codes: Tensor) -> Tensor:
        """Look up codes `(items, frames)`: latents `(items, latent, frames)`."""
        return self.out_project(self.codebook(codes).transpose(1, 2))


class ConditionedDecoder(nn.Module):
    """From content latents and speaker vector to the generator's input."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        self.linear_pre = nn.Linear(config.latent, config.dim)
        self.downsample = Refinement(config.dim, config.intermediate_dim)
        self.vocos_backbone = ConditionedBackbone(config.latent, config.dim, config.intermediate_dim, config.layers)
        self.linear = nn.Linear(config.dim, config.latent)

    def forward(self, x: Tensor, condition: Tensor, lengths: Tensor | None) -> Tensor:
        """Map `(items, latent, frames)` to the same shape; `condition` `(items, latent)`."""
        x = self.downsample(self.linear_pre(x.transpose(1, 2)), lengths)
        return self.linear(self.vocos_backbone(x.transpose(1, 2), lengths, condition)).transpose(1, 2)


class Snake(nn.Module):
    """`x + sin(alpha x)^2 / alpha`, which maps zero to zero."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        """Map `(items, channels, samples)` to the same shape."""
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).square()


class BiCodecUnit(nn.Module):
    """Two convolutions, each after a `Snake`, added to the input."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.block = nn.ModuleList(
            [
                Snake(channels),
                nn.Conv1d(channels, channels, 7, dilation=dilation, padding=3 * dilation),
                Snake(channels),
                nn.Conv1d(channels, channels, 1),
            ]
        )

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map `(items, channels, samples)` to the same shape."""
        first, wide, second, narrow = self.block
        return x + narrow(second(wide(masked(first(x), mask))))


class UpsamplingStep(nn.Module):
    """A transposed convolution to a higher rate and three residual units."""

    def __init__(self, inputs: int, outputs: int, kernel: int, rate: int) -> None:
        super().__init__()
        self.rate = rate
        self.block = nn.ModuleList(
            [
                Snake(inputs),
                nn.ConvTranspose1d(inputs, outputs, kernel, rate, padding=(kernel - rate) // 2),
                *(BiCodecUnit(outputs, dilation) for dilation in (1, 3, 9)),
            ]
        )

    def forward(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Raise the sample rate of `(items, inputs, samples)`.

        Args:
            lengths: samples of each item; None if none is padded.

        Returns:
            `(items, outputs, samples x rate)`, and the new lengths.
        """
        snake, up, *units = self.block
        x = up(masked(snake(x), frames_mask(lengths, x.shape[-1])))
        lengths = None if lengths is None else lengths * self.rate
        mask = frames_mask(lengths, x.shape[-1])
        for unit in units:
            x = unit(x, mask)
        return x, lengths


class WaveGenerator(nn.Module):
    """Latents to a wave, by transposed convolutions with periodic activations."""

    def __init__(self, config: BiCodecConfig) -> None:
        super().__init__()
        widths = [config.channels // 2**k for k in range(len(config.rates) + 1)]
        self.model = nn.ModuleList(
            [
                nn.Conv1d(config.latent, widths[0], 7, padding=3),
                *(
                    UpsamplingStep(inputs, outputs, kernel, rate)
                    for inputs, outputs, kernel, rate in zip(widths, widths[1:], config.kernels, config.rates)
                ),
                Snake(widths[-1]),
                nn.Conv1d(widths[-1], 1, 7, padding=3),
            ]
        )

    def forward(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Map `(items, latent, frames)` to waves `(items, samples)`.

        Args:
            lengths: frames of each item, beyond which the result is unspecified; None if none is padded.
        """
        first, *steps, snake, last = self.model
        x = first(masked(x, frames_mask(lengths, x.shape[-1])))
        for step in steps:
            x, lengths = step(x, lengths)
        return last(masked(snake(x), frames_mask(lengths, x.shape[-1])))[:, 0].tanh()


class BiCodecNet(nn.Module):
    """All of BiCodec except the self-supervised encoder."""

    _window: Tensor
    _bands: Tensor

    def __init__(self, config: BiCodecConfig = PUBLISHED) -> None:
        super().__init__()
        self.encoder = SemanticEncoder(config)
        self.quantizer = FactorisedQuantiser(config)
        self.speaker_encoder = BiCodecSpeakerEncoder(config)
        self.prenet = ConditionedDecoder(config)
        self.decoder = WaveGenerator(config)
        self.register_buffer("_window", torch.hann_window(2 * HOP), persistent=False)
        bands = torchaudio.functional.melscale_fbanks(
            513, 10.0, RATE_HZ / 2, config.mel_bands, RATE_HZ, norm="slaney", mel_scale="slaney"
        )
        self.register_buffer("_bands", bands, persistent=False)

    def mels(self, clips: Tensor) -> Tensor:
        """Magnitude mel spectrograms `(items, bands, frames)` of `(items, samples)`."""
        spectra = torch.stft(clips, 1024, HOP, 2 * HOP, self._window, return_complex=True)
        return (spectra.abs().transpose(1, 2) @ self._bands).transpose(1, 2)

    def encode(self, features: Tensor, clips: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Compute content codes `(items, frames)` and speaker codes `(items, codes)`.

        Args:
            features: output of the self-supervised encoder, `(items, frames, width)`.
            clips: the reference clips, `(items, samples)`, all of the same length.
        """
        latents = self.encoder(features.transpose(1, 2), lengths)
        return self.quantizer.search(latents), self.speaker_encoder.search(self.mels(clips))

    def decode(self, semantic: Tensor, speaker: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Decode semantic and speaker codes to waves, float32 `(items, samples)`.

        Args:
            lengths: frames of each item, beyond which the result is unspecified; None if none is padded.
        """
        condition = self.speaker_encoder.lookup(speaker)
        x = self.prenet(self.quantizer.lookup(semantic), condition, lengths)
        return self.decoder(x + condition[..., None], lengths)


def speech_features(net: SpeechEncoder, waves: Tensor, lengths: Sequence[int]) -> Tensor:
    """Average three hidden states of the speech encoder: `(items, frames, width)`.

    They are the input of BiCodec.

    Args:
        waves: float32 `(items, samples)` at 16 kHz, each normalised here over its own samples.
        lengths: samples of each item.
    """
    selected = []
    for index, hidden in enumerate(net.hidden_states(standardised(waves, lengths, _SPEECH_EPS), lengths)):
        if index in SPEECH_LAYERS:
            selected.append(hidden)
        if len(selected) == len(SPEECH_LAYERS):
            break
    return (selected[0] + selected[1] + selected[2]) / len(SPEECH_LAYERS)


def renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the checkpoint's tensors for `BiCodecNet`, with weight norms folded."""
    return fold_weight_norm({name: value for name, value in state.items() if not name.startswith(_UNUSED)})


def renamed_speech(state: Mapping[str, Tensor], layers: int) -> dict[str, Tensor]:
    """Rename the weights of a Wav2Vec2 model for `SpeechEncoder`, without unused ones.

    Args:
        layers: the number of transformer blocks to keep.
    """
    out = {}
    for name, value in state.items():
        name = fairseq_name(name.removeprefix("wav2vec2."), "layer_norm")
        parts = name.split(".")
        if name.startswith(_UNUSED_SPEECH) or (name.startswith("encoder.layers.") and int(parts[2]) >= layers):
            continue
        out[name] = value
    return out
