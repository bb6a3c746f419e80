"""WavLM-large with ECAPA-TDNN: the "SIM" of most papers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codec_bench.features.speakers.speaker_encoder import SpeakerEncoder
from codec_bench.weights import load_into, load_state, unfilled

if TYPE_CHECKING:
    from codec_bench.networks.ecapa import SpeakerNet

WAVE_EPS = 1e-5
CLASSIFIER = "loss_calculator.projection.weight"
"""The classifier over the training speakers: the one published tensor that is unused."""


class WavlmSv(SpeakerEncoder):
    """The base of WavLM encoders with a head."""

    mib_per_s = 16.0  # WavLM-large took 15.8 on an H200, in batches of 300 and 600 padded seconds

    def _pass(self, waves: Any, lengths: Sequence[int]) -> Any:
        from codec_bench.networks.ragged import uploaded

        lengths = uploaded(lengths, waves.device)
        return self._net(self._prepared(waves, lengths), lengths)

    @abstractmethod
    def _prepared(self, waves: Any, lengths: Sequence[int]) -> Any:
        """Prepare padded waves for the network."""


class WavlmLargeSv(WavlmSv):
    """The speaker embedding of WavLM-large and ECAPA-TDNN, fine-tuned on VoxCeleb.

    Protocol `wavlm-large-sv/seed-tts-eval`: the wave standardised over its whole length, 25 hidden states mixed by
    learnt weights, an instance norm, the head; the raw embedding, without a norm. It needs two frames (720 samples).
    Padding is masked layer by layer: batches change an embedding by less than 1e-5 in float32.

    Result: `{"embedding": float32 (256,)}`.

    Papers: S. Chen et al., "WavLM", JSTSP 2022; B. Desplanques et al., "ECAPA-TDNN", Interspeech 2020; Z. Chen et al.,
    "Large-scale self-supervised speech representation learning for automatic speaker verification", ICASSP 2022.
    Reference implementation: BytedanceSpeech/seed-tts-eval at 752f429 (microsoft/UniSpeech's ECAPA_TDNN_SMALL over
    s3prl 0.4.18), signal by signal: embeddings to 2e-4, cosines to 5e-6.

    Args:
        weights: a file in the layout of the published `wavlm_large_finetune.pth`, or a folder with it, or None.
        point: `float16`, `bfloat16` or `tf32` in place of float32, each a separate protocol.

    Raises:
        WeightsError: the checkpoint is missing. UserError: no such precision.
    """

    name = "wavlm-large-sv"
    protocol = "wavlm-large-sv/seed-tts-eval"
    min_samples = 720

    def _network(self) -> SpeakerNet:
        """Build the network, and load the published tensors without the classifier."""
        state = load_state(self._path, key="model")
        net = unfilled(self._architecture)
        load_into(net, state, path=self._path, unused=(CLASSIFIER,))
        return net

    def _architecture(self) -> SpeakerNet:
        from codec_bench.networks.ecapa import SpeakerNet
        from codec_bench.networks.speech_config import WAVLM_LARGE

        return SpeakerNet(WAVLM_LARGE)

    def _prepared(self, waves: Any, lengths: Sequence[int]) -> Any:
        from codec_bench.networks.speech_encoder import standardised

        return standardised(waves, lengths, WAVE_EPS)
