"""Speaker embeddings of ReDimNet, by the larger of its models for VoxCeleb."""

from __future__ import annotations

from typing import Any

from codec_bench.features.speakers.speaker_encoder import SpeakerEncoder
from codec_bench.weights import load_into, load_state, unfilled

FRONT_END = (
    "spec.torchfbank.1.flipped_filter",
    "spec.torchfbank.2.spectrogram.window",
    "spec.torchfbank.2.mel_scale.fb",
)
"""Constants of the front end in the published file, which are computed here."""


class ReDimNetB5(SpeakerEncoder):
    """ReDimNet b5's embedding, VoxCeleb 2, large-margin fine-tuning.

    Protocol `redimnet-b5-vox2-ft-lm/redimnet`: 72 mel bands every 15 ms of the pre-emphasised wave, less their mean
    over the signal; the network; the raw embedding, without a norm. It needs 257 samples. Padding is masked layer by
    layer: batches change an embedding by less than 1e-5 in float32.

    Result: `{"embedding": float32 (192,)}`.

    Paper: I. Yakovlev et al., "Reshape Dimensions Network for Speaker Recognition", Interspeech 2024. Reference
    implementation: IDRnD/ReDimNet at dd9f519 `ReDimNetWrap`, signal by signal, to 1e-5.

    Args:
        weights: a file in the published layout, or a folder with it, or None.
        point: `float16`, `bfloat16` or `tf32` in place of float32, each a separate protocol.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    name = "redimnet-b5"
    protocol = "redimnet-b5-vox2-ft-lm/redimnet"
    min_samples = 257

    def _network(self) -> Any:
        net = unfilled(self._architecture)
        load_into(net, load_state(self._path, key="state_dict"), path=self._path, unused=FRONT_END)
        return net

    def _architecture(self) -> Any:
        from codec_bench.networks.redimnet import ReDimNet, ReDimNetConfig

        return ReDimNet(ReDimNetConfig())

    def _step(self) -> int:
        return int(self._net.step)
