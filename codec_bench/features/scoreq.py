"""SCOREQ's opinion score and embedding, and NOMAD's embedding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from codec_bench.features.base import Result, Unavailable
from codec_bench.features.encoder_feature import NOT_FINITE, EncoderFeature, Wav2Vec2Feature
from codec_bench.features.padded import PaddedBatch
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.networks.on_device import fit_samples
from codec_bench.weights import find, load_into, load_state, unfilled

DOMAINS = ("natural", "synthetic")
MULTIPLE = 320
"""Signals are zero-padded to a multiple of this many samples, as in the reference. The zeros count."""
TRAINING = ("embedding_layer.1.weight", "embedding_layer.1.bias")
"""A layer for training only."""


def domain_of(variant: str | None) -> str:
    """Return the domain of a variant; `natural` for None.

    Raises:
        UserError: no such domain.
    """
    if variant is not None and variant not in DOMAINS:
        raise UserError(
            "no_variant",
            variant=variant,
            name="SCOREQ",
            hint="use natural (people's speech, coded or noisy) or synthetic (generated speech)",
        )
    return variant or "natural"


class _Scoreq(EncoderFeature):
    """The base of the two networks of each domain.

    Args:
        variant: the domain. point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.
    """

    mode: ClassVar[str]
    stem: ClassVar[str]
    prefix: ClassVar[str]

    def __init__(
        self, device: str = "cpu", weights: str | None = None, variant: str | None = None, point: str | None = None
    ) -> None:
        super().__init__(device, weights, parse_precision(self.stem, point, BY_WEIGHTS))
        domain = domain_of(variant)
        self.name = self.stem + (f"[{variant}]" if variant else "")
        self.protocol = self.protocol_id(variant, point)
        self._path = find(f"scoreq-{domain}-{self.mode}", weights).path

    @classmethod
    def protocol_id(cls, variant: str | None = None, point: str | None = None) -> str:
        """Return the protocol id, without the weights."""
        return f"scoreq-{domain_of(variant)}-{cls.mode}/1{suffix(parse_precision(cls.stem, point, BY_WEIGHTS))}"

    def _network(self) -> Any:
        """Build the network, and load the published tensors without those of training."""
        from codec_bench.networks.scoreq import ScoreqNet

        state = {name.removeprefix(self.prefix): value for name, value in load_state(self._path).items()}
        net = unfilled(lambda: ScoreqNet(self._architecture(), rates=self.mode == "nr"))
        load_into(net, state, path=self._path, unused=TRAINING)
        return net

    def prepare(self, signals: Sequence[np.ndarray]) -> PaddedBatch:
        """Build the padded passes."""
        return super().prepare([fit_samples(signal, signal.size + -signal.size % MULTIPLE) for signal in signals])

    def _obstacle(self, signal: np.ndarray) -> Unavailable | None:
        """Return why a signal is shorter than the encoder's receptive field, or None."""
        field = self._net.ssl_model.config.receptive_field
        if signal.size >= field:
            return None
        least = field - field % MULTIPLE + 1  # with the zeros that fill it up
        return Unavailable(Diagnostic("signal_short_scoreq", needed=least))


class Scoreq(_Scoreq):
    """SCOREQ's opinion score without a reference, 1 to 5. Higher is better.

    A wav2vec 2.0 base network, fine-tuned to place signals of similar scores close together; the mean over time, of
    length 1; a linear layer. The signal is zero-padded to a multiple of 20 ms, as in the reference. Batches do not
    change the scores.

    Result: `{"scoreq": float}`.

    Paper: A. Ragano, J. Skoglund, A. Hines, "SCOREQ: Speech Quality Assessment with Contrastive Regression", NeurIPS
    2024. Reference implementation: github.com/alessandroragano/scoreq at 16 kHz, over fairseq's encoder in s3prl
    0.4.18, to 2e-5.

    Args:
        weights: a file in the published layout, or None.
        variant: the domain: `natural` (also if None) or `synthetic`.
        point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.

    Raises:
        WeightsError: the weights are missing. UserError: no such domain or precision.
    """

    name = "scoreq"
    stem = "scoreq"
    mode = "nr"
    prefix = "pt_model."

    def _result(self, row: np.ndarray, length: int) -> Result | Unavailable:
        score = float(row)
        return {"scoreq": score} if math.isfinite(score) else Unavailable(NOT_FINITE)


class ScoreqEmbedding(_Scoreq):
    """SCOREQ's embedding, whose distance from a clean signal's indicates quality.

    As `Scoreq`, without the linear layer and with other published weights, trained for this use.

    Result: `{"embedding": float32 (768,)}`, of length 1.

    Paper and reference implementation: as `Scoreq`; embeddings to 1e-5.

    Args:
        weights: a file in the published layout, or None.
        variant: the domain: `natural` (also if None) or `synthetic`.
        point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.

    Raises:
        WeightsError: the weights are missing. UserError: no such domain or precision.
    """

    name = "scoreq-embedding"
    stem = "scoreq-embedding"
    mode = "ref"
    prefix = ""


class Nomad(Wav2Vec2Feature):
    """NOMAD's embedding, whose distance from a clean signal's indicates quality.

    A wav2vec 2.0 base network, fine-tuned to place signals of similar quality close together; the mean over time, a
    linear layer and length 1. Batches do not change the embeddings.

    Result: `{"embedding": float32 (256,)}`, of length 1.

    Paper: A. Ragano, J. Skoglund, A. Hines, "NOMAD: Unsupervised Learning of Perceptual Embeddings for Speech
    Enhancement and Non-matching Reference Audio Quality Assessment", ICASSP 2024. Reference implementation:
    github.com/alessandroragano/nomad at 16 kHz, over fairseq's encoder in s3prl 0.4.18, to 1e-5.

    Args:
        weights: a file in the published layout, or None.
        point: `float16`, `bfloat16` or `tf32` for the encoder, or None for float32.

    Raises:
        WeightsError: the weights are missing. UserError: no such precision.
    """

    name = "nomad-embedding"
    title = "NOMAD"
    checkpoint = "nomad"
    stem = "nomad/1"

    def _network(self) -> Any:
        """Build the network, and load the published tensors."""
        from codec_bench.networks.scoreq import NomadNet

        net = unfilled(lambda: NomadNet(self._architecture()))
        load_into(net, load_state(self._path), path=self._path)
        return net
