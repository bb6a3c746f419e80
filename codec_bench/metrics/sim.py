"""Speaker similarity: the cosine of speaker embeddings of reference and estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codec_bench.features.precision_names import BY_AUTOCAST, BY_WEIGHTS, parse_precision, suffix
from codec_bench.features.speakers import s3prl
from codec_bench.features.speakers.ge2e import Ge2e, Ge2eVad
from codec_bench.features.speakers.redimnet import ReDimNetB5
from codec_bench.features.speakers.three_d_speaker import CamPlusPlusSpeaker, ERes2NetSpeaker
from codec_bench.features.speakers.wavlm_base_sv import WavlmBasePlusSv
from codec_bench.features.speakers.wavlm_sv import WavlmLargeSv
from codec_bench.features.speakers.wespeaker import WespeakerResnet34
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, FeatureMetric, Inputs
from codec_bench.types import Score

ENCODERS = {
    encoder.name: encoder.protocol
    for encoder in (
        WavlmLargeSv,
        WavlmBasePlusSv,
        ERes2NetSpeaker,
        CamPlusPlusSpeaker,
        WespeakerResnet34,
        ReDimNetB5,
        Ge2e,
        Ge2eVad,
    )
}
"""Protocols of the speaker encoders by name."""
UPSTREAM = "s3prl/"
EPS = 1e-8
"""A cosine divides by at least this norm, as in torch."""


@dataclass(frozen=True, slots=True)
class EmbeddingSource:
    """The feature that computes an embedding, and the protocol id with its precision."""

    feature: str
    protocol: str


def speaker_encoder(metric: str, variant: str | None, point: str | None, others: Sequence[str] = ()) -> EmbeddingSource:
    """Resolve the speaker encoder that a metric of embeddings names.

    Args:
        metric: the metric's key, for messages.
        variant: the encoder; None for `wavlm-large-sv`.
        point: its precision, or None.
        others: further encoders of this metric, for messages.

    Raises:
        UserError: there is no such encoder or precision.
        MissingExtra: s3prl is not installed.
    """
    encoder = WavlmLargeSv.name if variant is None else variant
    if encoder.startswith(UPSTREAM) and encoder != UPSTREAM:
        upstream = encoder.removeprefix(UPSTREAM)
        feature, protocol = f"s3prl[{upstream}]", s3prl.protocol(upstream)
    elif encoder in ENCODERS:
        feature, protocol = encoder, ENCODERS[encoder]
    else:
        names = ", ".join(f"{metric}[{name}]" for name in (*others, *ENCODERS))
        raise UserError(
            "no_variant",
            name=metric,
            variant=variant,
            hint=f"use {names}, or name an upstream of s3prl: {metric}[{UPSTREAM}NAME], for example "
            f"{metric}[{UPSTREAM}wavlm_base_plus]",
        )
    if encoder in (Ge2e.name, Ge2eVad.name) and point is not None:
        raise UserError("no_precision", name=f"{metric}[{encoder}]", point=point, hint=f"use {metric}[{encoder}]")
    known = BY_AUTOCAST if encoder.startswith(UPSTREAM) else BY_WEIGHTS
    precision = parse_precision(metric + (f"[{variant}]" if variant else ""), point, known)
    return EmbeddingSource(feature + (f"@{point}" if point else ""), protocol + suffix(precision))


class Sim(FeatureMetric):
    """The cosine of speaker embeddings. Higher is better; 1 is the same voice.

    Every encoder has its own scale: compare numbers of one protocol only. `sim` without brackets is WavLM-large
    fine-tuned for speaker verification, the SIM of seed-tts-eval and most papers. Signals are embedded as a whole, so
    lengths may differ.

    Args:
        variant: the encoder: `wavlm-large-sv` (default), `wavlm-base-plus-sv`, `eres2net` (that of CV3-Eval),
            `campplus`, `wespeaker-resnet34`, `redimnet-b5`, `ge2e`, `ge2e-vad`, or `s3prl/NAME` for an s3prl upstream.
        point: the encoder's precision, `float16`, `bfloat16` or `tf32` in place of float32 (s3prl: `bfloat16` or
            `tf32`); each has its own protocol.

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("sim[ge2e]")(reference=[clip], estimate=[coarse])[0]["sim[ge2e]"].value, 1)
        0.8
    """

    kind = "pair"
    takes_prompt = True
    silence_flags = (SILENT_ESTIMATE, SILENT_REFERENCE)
    range = (-1.0, 1.0)
    paper = (
        "Anastassiou et al.: Seed-TTS, 2024; Chen et al.: WavLM, JSTSP 2022; Desplanques et al.: ECAPA-TDNN (sim); "
        "Chen et al.: ERes2Net, 2023; Wang et al.: CAM++, 2023; Wang et al.: WeSpeaker, ICASSP 2023; Yakovlev et al.: "
        "ReDimNet, 2024; Wan et al.: Generalized End-to-End Loss for Speaker Verification, ICASSP 2018 (ge2e, ge2e-vad)"
    )
    source = (
        "seed-tts-eval at 752f429, to 5e-6 (sim); transformers 5 (wavlm-base-plus-sv), 3D-Speaker at 09e7806 "
        "(eres2net, campplus), WeSpeaker at dfa7419, ReDimNet at dd9f519 and Resemblyzer 0.1.4, to 1e-5"
    )

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        self.name = "sim" + (f"[{variant}]" if variant else "") + (f"@{point}" if point else "")
        encoder = speaker_encoder("sim", variant, point)
        self._feature = encoder.feature
        self.estimate_features = self.reference_features = (encoder.feature,)
        self.protocol = f"sim/{encoder.protocol}"

    def _score(self, item: Inputs) -> Score:
        return Score.ok(cosine(item, self._feature), self.protocol)


def cosine(item: Inputs, feature: str) -> float:
    """Compute the cosine of a feature's embeddings of reference and estimate."""
    return cosine_of(*(result["embedding"] for result in item.features(feature)))


def cosine_of(one: np.ndarray, other: np.ndarray) -> float:
    """Compute the cosine of two vectors in float64; 0 if one of them is zero."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    norms = [max(float(np.linalg.norm(vector)), EPS) for vector in (one, other)]
    return min(1.0, max(-1.0, float(one @ other) / float(np.prod(norms))))
