"""CLAP score: how well audio fits its description, by a network trained on both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.features.clap import Clap, TextEncoder
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import SILENT_ESTIMATE, Inputs, Metric
from codec_bench.metrics.sim import cosine_of
from codec_bench.types import Score


class ClapScore(Metric):
    """The cosine of CLAP's embeddings of estimate and text. Higher is better, -1 to 1.

    For audio generated from a description, which is the item's text. The audio embedding is that of
    `fad[clap-htsat-unfused]`: the mean of the unit vectors of 10 s windows, one every second. The text is cut to 77
    tokens. CLAP was trained on English captions. Other CLAPs and windows give other numbers.

    Examples:
        >>> sound, text = np.array([0.6, 0.8]), np.array([1.0, 0.0])  # as the two halves of CLAP may give them
        >>> round(cosine_of(sound, text), 3)
        0.6
    """

    name = "clap_score"
    kind = "text"
    silence_flags = (SILENT_ESTIMATE, None)
    signals = False
    rate_hz = 48_000
    range = (-1.0, 1.0)
    estimate_features = (Clap.name,)
    protocol = f"clap_score/{Clap.protocol}"
    paper = "Wu et al.: Large-Scale Contrastive Language-Audio Pretraining with Feature Fusion, ICASSP 2023"
    source = "transformers 5 ClapModel, to 1e-5"
    own_weights = "it reads both halves of the published CLAP"
    where = "cpu"

    def __init__(self) -> None:
        self._texts: Any = None

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item."""
        texts = [(item.text or "").strip() for item in batch]
        self._texts = self._texts or TextEncoder()
        embeddings = iter(self._texts.embeddings([text for text in texts if text]))
        return [
            self._score(item, next(embeddings)) if text else Score.undefined(Diagnostic("empty_text"), self.protocol)
            for item, text in zip(batch, texts)
        ]

    def _score(self, item: Inputs, text_embedding: np.ndarray) -> Score:
        """Compute the cosine of the estimate's and the text's embedding."""
        audio_embedding = np.asarray(item.estimate_features[Clap.name]["embedding"], np.float64)
        if audio_embedding.shape != text_embedding.shape:
            raise UserError(
                "unequal_embeddings", sound=audio_embedding.size, text=text_embedding.size, hint="use one CLAP for both"
            )
        if not (audio_embedding.any() and text_embedding.any()):
            return Score.undefined(Diagnostic("zero_embedding"), self.protocol)
        return Score.ok(cosine_of(audio_embedding, text_embedding), self.protocol)
