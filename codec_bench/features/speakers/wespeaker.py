"""Speaker embeddings of WeSpeaker: the ResNet34 of its VoxCeleb recipe."""

from __future__ import annotations

from typing import Any

from codec_bench.features.speakers.speaker_encoder import FbankEncoder
from codec_bench.networks.kaldi import samples_of


class WespeakerResnet34(FbankEncoder):
    """WeSpeaker's ResNet34 embedding, VoxCeleb 2, large-margin fine-tuning.

    Protocol `wespeaker-voxceleb-resnet34-lm/wespeaker`: Kaldi's filter bank of 80 bands with Hamming's window, of
    samples in steps of 16 bits and without dither, less its mean over the signal; the network; the raw embedding,
    without a norm. It needs nine frames (1,680 samples). No speech is cut out, as by default there. Padding is masked
    layer by layer: batches change an embedding by less than 1e-5 in float32.

    Result: `{"embedding": float32 (256,)}`.

    Paper: H. Wang et al., "WeSpeaker: A Research and Production Oriented Speaker Embedding Learning Toolkit", ICASSP
    2023. Reference implementation: wenet-e2e/wespeaker at dfa7419, `Speaker.extract_embedding`, signal by signal, to
    1e-5.

    Args:
        device, weights, point: as for the base class.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    name = "wespeaker-resnet34"
    protocol = "wespeaker-voxceleb-resnet34-lm/wespeaker"
    min_samples = samples_of(9)

    def _architecture(self) -> Any:
        from codec_bench.networks.wespeaker import ResNet, ResNetConfig

        return ResNet(ResNetConfig())
