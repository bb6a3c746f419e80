"""UTMOSv2: wav2vec 2.0 fused with four image classifiers over mel spectrograms.

A draw is three seconds of a signal for the encoder, and two short crops for the classifiers, each with spectrograms of
its own window length. Crops have one length, so draws are independent. Names of tensors are the published ones, except
the encoder's (`speech_encoder.fairseq_name`). Reference implementation: github.com/sarulab-speech/UTMOSv2 at cc2700d
(MIT), configuration `fusion_stage3`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from codec_bench.kernels.spectrum.ref import mel_filters
from codec_bench.networks.efficientnet_v2 import FEATURES, SMALL, EfficientNetStage, EfficientNetV2
from codec_bench.networks.ragged import uploaded
from codec_bench.networks.speech_config import EncoderConfig
from codec_bench.networks.speech_encoder import SpeechEncoder, standardised

RATE_HZ = 16_000
SSL_SAMPLES, SEEN, FRAMES = 48_000, 22_400, 2
"""Samples of the encoder's crop and of a classifier's, and the latter's number per draw."""
FFT, HOP, SIZE, WINDOWS = 4096, 32, 512, (4096, 2048, 1024, 512)
"""In samples; `SIZE` is an image's mel bands and columns. `WINDOWS` are the four classifiers'."""
LISTENING_TESTS, SARULAB = 10, 1
"""Listening tests of the training, and the index of the one whose scale the network uses."""
HEADS = 8
STANDARD_EPS = 1e-7
LEAST, RANGE_DB = 1e-10, 80.0
_CROPS_AT_ONCE = {"cpu": 2, "cuda": 32}
"""Crops whose spectra are in memory together, 70 MB each."""


def _attention(width: int) -> nn.MultiheadAttention:
    return nn.MultiheadAttention(width, HEADS, batch_first=True)


def _attended(attention: nn.Module, x: Tensor) -> Tensor:
    """Apply self-attention without a mask to `(items, steps, width)`."""
    out: Tensor = attention(x, x, x, need_weights=False)[0]
    return out


class _SslBranch(nn.Module):
    """The encoder, the weighted sum of its layers, and its mean after attention with its maxima before."""

    def __init__(self, encoder: EncoderConfig) -> None:
        super().__init__()
        self.encoder = SpeechEncoder(encoder)
        self.weights = nn.Parameter(torch.zeros(encoder.layers + 1))
        self.attn = nn.ModuleList([_attention(encoder.width)])  # a list, for the names of the published tensors

    def forward(self, waves: Tensor) -> Tensor:
        """Map waves `(draws, samples)` at 16 kHz to features `(draws, 2 * width)`."""
        lengths = uploaded([waves.shape[1]] * len(waves), waves.device)
        x = self.encoder.mixed(standardised(waves, lengths, STANDARD_EPS), lengths, self.weights)
        return torch.cat([_attended(self.attn[0], x).mean(1), x.amax(1)], 1)


class _Seen(nn.Module):
    """The classifiers, their weighted sum, and attention over its bands."""

    def __init__(self, stages: tuple[EfficientNetStage, ...], features: int) -> None:
        super().__init__()
        self.backbones = nn.ModuleList([EfficientNetV2(stages, features) for _ in WINDOWS])
        self.weights = nn.Parameter(torch.zeros(len(WINDOWS)))
        self.attn = _attention(2 * features)

    def forward(self, images: list[Tensor]) -> Tensor:
        """Map images, one tensor per image classifier, to `(draws, 4 * features)`."""
        draws = len(images[0])
        total: Tensor | None = None
        for backbone, weight, seen in zip(self.backbones, self.weights, images, strict=True):
            flat = seen.flatten(0, 1)[:, None].expand(-1, 3, -1, -1)
            weighted = backbone(flat) * weight
            total = weighted if total is None else total + weighted
        assert total is not None, "there are four classifiers"
        # The frames are concatenated in time; one vector remains for each band of the reduced images.
        x = torch.cat(list(total.unflatten(0, (draws, FRAMES)).unbind(1)), 3)
        x = torch.cat([x.mean(3), x.amax(3)], 1).transpose(1, 2)
        return torch.cat([_attended(self.attn, x).mean(1), x.amax(1)], 1)


class UtmosV2Net(nn.Module):
    """The whole network."""

    windows: Tensor
    bands: Tensor
    test: Tensor

    def __init__(
        self, encoder: EncoderConfig, stages: tuple[EfficientNetStage, ...] = SMALL, features: int = FEATURES
    ) -> None:
        super().__init__()
        self.ssl, self.spec_long = _SslBranch(encoder), _Seen(stages, features)
        # Each part was trained with the listening test as input; the whole network feeds it zeros.
        self.fc = nn.Linear(2 * encoder.width + 4 * features + 3 * LISTENING_TESTS, 1)
        edges = [(FFT - window) // 2 for window in WINDOWS]
        hanns = [F.pad(torch.hann_window(w, dtype=torch.float64), (edge, edge)) for w, edge in zip(WINDOWS, edges)]
        self.register_buffer("windows", torch.stack(hanns), persistent=False)
        bands = torch.from_numpy(mel_filters(RATE_HZ, FFT, SIZE)).float()
        self.register_buffer("bands", bands, persistent=False)
        self.register_buffer("test", F.one_hot(torch.tensor(SARULAB), LISTENING_TESTS).float(), persistent=False)

    def forward(self, waves: Tensor, crops: Tensor, shares: Tensor) -> Tensor:
        """Score each draw (random crops of one signal), float32 `(draws,)`.

        Args:
            waves: float32 `(draws, SSL_SAMPLES)` at 16 kHz.
            crops: float32 `(draws, FRAMES, 1 + classifiers, SEEN)`: of each frame its crop, and for each classifier the
                one to mix with it.
            shares: float32 `(draws, FRAMES, classifiers)`: the share of a frame's own crop in the mixture.
        """
        first, others = crops[:, :, 0], crops[:, :, 1:].unbind(2)
        images = [
            self._image(torch.stack([first, other], 2), shares[..., index], index) for index, other in enumerate(others)
        ]
        none = self.test.new_zeros(len(waves), LISTENING_TESTS)
        parts = [self.ssl(waves), none, self.spec_long(images), none, self.test.expand(len(waves), -1)]
        scores: Tensor = self.fc(torch.cat(parts, 1))[:, 0]
        return scores

    def _image(self, pairs: Tensor, share: Tensor, index: int) -> Tensor:
        """Compute spectrogram images `(draws, FRAMES, SIZE, SIZE)` of mixed crops.

        Args:
            pairs: `(draws, FRAMES, 2, SEEN)`, the crops that are mixed.
            share: of the first crop, `(draws, FRAMES)`.
            index: of the classifier, which has its own window.
        """
        flat = pairs.flatten(0, 2)
        levels = torch.cat([self._levels(some, index) for some in flat.split(_CROPS_AT_ONCE[flat.device.type])])
        first, other = levels.unflatten(0, pairs.shape[:3]).unbind(2)
        share = share[..., None, None]
        mixed = first * share + other * (1 - share)
        return F.interpolate(mixed, (SIZE, SIZE), mode="bilinear", align_corners=False, antialias=True)

    def _levels(self, crops: Tensor, index: int) -> Tensor:
        """Compute mel spectrograms `(crops, SIZE, columns)`, their top 80 dB as 0 to 1."""
        frames = F.pad(crops, (FFT // 2, FFT // 2)).unfold(1, FFT, HOP)
        spectra = torch.fft.rfft(frames * self.windows[index]).to(torch.complex64)
        power = torch.view_as_real(spectra).square().sum(3) @ self.bands
        peak = power.amax((1, 2), keepdim=True)
        levels = 10 * (power.clamp(min=LEAST).log10() - peak.clamp(min=LEAST).log10())
        return (levels.clamp(min=-RANGE_DB) / RANGE_DB + 1).transpose(1, 2)
