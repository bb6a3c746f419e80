"""Event accuracy: whether CLAP classifies a sound as its label."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from codec_bench.features.clap import Clap, TextEncoder
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import SILENT_ESTIMATE, Inputs, Metric
from codec_bench.types import Score

ESC_50 = (
    *("airplane", "breathing", "brushing teeth", "can opening", "car horn", "cat", "chainsaw", "chirping birds"),
    *("church bells", "clapping", "clock alarm", "clock tick", "coughing", "cow", "crackling fire", "crickets", "crow"),
    *("crying baby", "dog", "door wood creaks", "door wood knock", "drinking sipping", "engine", "fireworks"),
    *("footsteps", "frog", "glass breaking", "hand saw", "helicopter", "hen", "insects", "keyboard typing", "laughing"),
    *("mouse click", "pig", "pouring water", "rain", "rooster", "sea waves", "sheep", "siren", "sneezing", "snoring"),
    *("thunderstorm", "toilet flush", "train", "vacuum cleaner", "washing machine", "water drops", "wind"),
)
SETS = MappingProxyType({"esc-50": ESC_50})
"""The labels of each set, in alphabetical order."""
PROMPT = "this is the sound of {}"


class EventAccuracy(Metric):
    """Whether CLAP ranks the item's label first: 1, else 0. Higher is better.

    The item's text is its label, without regard to case and `_`. Labels are in the sentence "this is the sound of
    LABEL"; the largest cosine with the sound's embedding wins. Codec-SUPERB does so with ESC-50 and Microsoft's CLAP of
    2023; this is another CLAP, so the numbers do not compare. Compare with the unprocessed sound. `detail` holds the
    event.

    Args:
        variant: the set of labels: `esc-50` (default; 2,000 clips of 50 events; K. J. Piczak, ACM Multimedia 2015).

    Examples:
        >>> labels = np.array([[1.0, 0.0], [0.0, 1.0]])  # as CLAP may embed the sentences of "cat" and "dog"
        >>> ("cat", "dog")[nearest(labels, np.array([0.6, 0.8]))]
        'dog'
    """

    name = "event_accuracy"
    kind = "text"
    silence_flags = (SILENT_ESTIMATE, None)
    signals = False
    rate_hz = 48_000
    range = (0.0, 1.0)
    estimate_features = (Clap.name,)
    paper = "Wu et al.: Codec-SUPERB: An In-Depth Analysis of Sound Codec Models, Findings of ACL 2024"
    source = "transformers 5 ClapModel, equal in every item"
    own_weights = "it reads both halves of the published CLAP"
    where = "cpu"

    def __init__(self, variant: str | None = None) -> None:
        chosen = variant or next(iter(SETS))
        if chosen not in SETS:
            raise UserError("no_variant", variant=variant, name="event_accuracy", hint=f"it has {', '.join(SETS)}")
        self.name = "event_accuracy" + (f"[{variant}]" if variant else "")
        self.protocol = f"event_accuracy/{chosen}/{Clap.protocol}"
        self._labels, self._label_embeddings = SETS[chosen], np.zeros(0)

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item."""
        if not self._label_embeddings.size:
            prompts = [PROMPT.format(label) for label in self._labels]
            self._label_embeddings = np.stack(TextEncoder().embeddings(prompts))
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        """Return 1 if the label nearest to the audio's embedding is the item's, else 0."""
        label = " ".join((item.text or "").replace("_", " ").lower().split())
        if label not in self._labels:
            return Score.undefined(Diagnostic("no_label_of_set", text=(item.text or "")[:40]), self.protocol)
        embedding: Any = np.asarray(item.estimate_features[Clap.name]["embedding"], np.float64)
        if embedding.shape != self._label_embeddings[0].shape:
            raise UserError(
                "unequal_embeddings",
                sound=embedding.size,
                text=self._label_embeddings[0].size,
                hint="use one CLAP for both",
            )
        if not embedding.any():
            return Score.undefined(Diagnostic("zero_embedding"), self.protocol)
        event = self._labels[nearest(self._label_embeddings, embedding)]
        return Score.ok(float(event == label), self.protocol, detail={"event": event})


def nearest(labels: np.ndarray, sound: np.ndarray) -> int:
    """Return the row of `labels` with the largest cosine; all vectors have norm 1."""
    return int((labels @ sound).argmax())
