"""Emotion by emotion2vec+: similarity, agreement with labels, confidence."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from codec_bench.features.emotion2vec import EMOTIONS, Emotion2vecPlusLarge
from codec_bench.features.precision_names import BY_WEIGHTS, parse_precision, suffix
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, FeatureMetric, Inputs
from codec_bench.metrics.sim import cosine
from codec_bench.types import Score

ENCODER = Emotion2vecPlusLarge.name


class _Emotion(FeatureMetric):
    """Base class of the emotion metrics."""

    rate_hz = 16_000
    paper = "Ma et al.: emotion2vec: Self-Supervised Pre-Training for Speech Emotion, Findings of ACL 2024"
    stem: str

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        if variant not in (None, ENCODER):
            raise UserError(
                "no_variant", name=self.stem, variant=variant, hint=f"use {self.stem} or {self.stem}[{ENCODER}]"
            )
        precision = parse_precision(self.stem, point, BY_WEIGHTS)
        at = f"@{point}" if point else ""
        self.name = self.stem + (f"[{variant}]" if variant else "") + at
        self._feature = ENCODER + at
        self.estimate_features = (self._feature,)
        self.protocol = f"{self.stem}/{Emotion2vecPlusLarge.protocol}{suffix(precision)}"


class EmotionSim(_Emotion):
    """The cosine of emotion2vec+ embeddings. Higher is better; 1 is the same emotion.

    Each signal is embedded as a whole, so lengths may differ. Embeddings also hold the voice and the language, so
    values of different sets do not compare.

    Args:
        variant: the encoder: `emotion2vec-plus-large` (default).
        point: `float16`, `bfloat16` or `tf32` in place of float32; each has its own protocol.

    Examples:
        >>> from codec_bench.metrics import Inputs, build_metric
        >>> features = [{"emotion2vec-plus-large": {"embedding": np.array(side)}} for side in ([3.0, 4.0], [0.0, 2.0])]
        >>> item = Inputs("a", 16000, reference_features=features[0], estimate_features=features[1])
        >>> round(build_metric("emotion_sim").compute([item])[0].value, 2)
        0.8
    """

    kind = "pair"
    takes_prompt = True
    range = (-1.0, 1.0)
    source = "FunASR 1.4's Emotion2vec, to 1e-5"
    stem = "emotion_sim"
    silence_flags = (SILENT_ESTIMATE, SILENT_REFERENCE)

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        super().__init__(variant, point)
        self.reference_features = self.estimate_features

    def _score(self, item: Inputs) -> Score:
        return Score.ok(cosine(item, self._feature), self.protocol)


class EmotionAccuracy(_Emotion):
    """Whether the emotion in the item's id is predicted: 1 or 0. Higher is better.

    As CV3-Eval scores: ids begin with the emotion (`happy_high_uttid_1`), and the most probable of nine emotions
    counts. Other ids are undefined. `detail` holds the predicted emotion and its probability.
    """

    kind: ClassVar[Literal["single", "text"]] = "single"
    silence_flags = (SILENT_ESTIMATE, None)
    range = (0.0, 1.0)
    paper = f"Du et al.: CosyVoice 3, 2025; {_Emotion.paper}"
    source = "FunASR 1.4's Emotion2vec, to 1e-5"
    stem = "emotion_accuracy"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        super().__init__(variant, point)
        self.protocol += "/cv3-eval"

    def _score(self, item: Inputs) -> Score:
        """Compare the predicted emotion with the one that begins the item's id."""
        expected = item.id.partition("_")[0].lower()
        if expected not in EMOTIONS or "_" not in item.id:
            return Score.undefined(Diagnostic("id_without_emotion", id=item.id), self.protocol)
        return self._compare(item, expected)

    def _compare(self, item: Inputs, expected: str) -> Score:
        """Return 1 if the most probable emotion is the expected one, else 0."""
        probabilities = np.asarray(item.estimate_features[self._feature]["probabilities"])
        predicted = int(probabilities.argmax())
        detail = {"emotion": EMOTIONS[predicted], "probability": float(probabilities[predicted])}
        return Score.ok(float(EMOTIONS[predicted] == expected), self.protocol, detail=detail)


class EmotionLabelled(EmotionAccuracy):
    """Whether emotion2vec+ large predicts the item's label: 1 or 0. Higher is better.

    As `emotion_accuracy`, but the text of the item is the label. Codec-SUPERB does so with RAVDESS and an earlier
    network (emotion2vec base, fine-tuned), so its numbers do not compare. Compare with the accuracy of the unprocessed
    speech.
    """

    kind = "text"
    paper = f"Wu et al.: Codec-SUPERB, Findings of ACL 2024; {_Emotion.paper}"
    stem = "emotion_labelled"

    def __init__(self, variant: str | None = None, point: str | None = None) -> None:
        super().__init__(variant, point)
        self.protocol = self.protocol.removesuffix("/cv3-eval") + "/label"

    def _score(self, item: Inputs) -> Score:
        """Compare the predicted emotion with the label in the item's text."""
        label = (item.text or "").strip().lower()
        if label not in EMOTIONS:
            reason = Diagnostic("text_not_among", text=(item.text or "")[:40], labels=", ".join(EMOTIONS))
            return Score.undefined(reason, self.protocol)
        return self._compare(item, label)


class EmotionProbability(_Emotion):
    """The probability of the predicted emotion, 0 to 1. No direction is better.

    `detail["probabilities"]` holds all nine emotions by name, `detail["emotion"]` the likeliest. Metrics of answers
    read them (`said_with_emotion`, `said_as_told`, `said_fittingly`).
    """

    kind: ClassVar[Literal["single", "text"]] = "single"
    range = (0.0, 1.0)
    higher_is_better = None
    source = "FunASR 1.4's Emotion2vec, to 1e-5"
    stem = "emotion_heard"

    def _score(self, item: Inputs) -> Score:
        """Return the probability of the most probable emotion, with those of all."""
        probabilities = dict(zip(EMOTIONS, map(float, item.estimate_features[self._feature]["probabilities"])))
        predicted = max(EMOTIONS, key=probabilities.__getitem__)
        detail = {"emotion": predicted, "probabilities": probabilities}
        return Score.ok(probabilities[predicted], self.protocol, detail=detail)
