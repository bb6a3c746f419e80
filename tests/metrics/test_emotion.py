"""The predicted emotion against its definition, and audio without a value."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.features.emotion2vec import EMOTIONS
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs

FEATURE = "emotion2vec-plus-large"


def transcribe(emotion):
    probabilities = np.full(9, 0.05, np.float32)
    probabilities[EMOTIONS.index(emotion)] = 0.6
    return {FEATURE: {"embedding": np.zeros(3, np.float32), "probabilities": probabilities}}


@pytest.mark.parametrize(
    ("id", "emotion", "value"),
    [("happy_high_uttid_1", "happy", 1.0), ("happy_high_uttid_1", "sad", 0.0), ("Angry_low_uttid_50", "angry", 1.0)],
)
def test_an_item_counts_by_the_emotion_of_its_id(id, emotion, value):
    (score,) = build_metric("emotion_accuracy").compute([Inputs(id, 16_000, estimate_features=transcribe(emotion))])
    assert score.value == value and score.status == "ok"
    assert score.detail == {"emotion": emotion, "probability": pytest.approx(0.6)}
    assert score.protocol == "emotion_accuracy/emotion2vec-plus-large/funasr-1.4/cv3-eval"


@pytest.mark.parametrize("id", ["happy", "clip_1", "", "unhappy_high_1"])
def test_an_id_that_names_no_emotion_has_no_value(id):
    (score,) = build_metric("emotion_accuracy").compute([Inputs(id, 16_000, estimate_features=transcribe("happy"))])
    assert score.value is None and score.status == "undefined"
    assert score.reason == f"the id '{id}' does not begin with an emotion and '_'"


def test_similarity_is_the_cosine_of_the_embeddings():
    one, two = np.array([3, 4, 0], np.float32), np.array([0, 2, 0], np.float32)
    features = [{FEATURE: {"embedding": role}} for role in (one, two)]
    (score,) = build_metric("emotion_sim").compute(
        [Inputs("a", 16_000, reference_features=features[0], estimate_features=features[1])]
    )
    assert score.value == pytest.approx(0.8)
    assert score.protocol == "emotion_sim/emotion2vec-plus-large/funasr-1.4"


def test_the_emotion_is_reported_with_all_probabilities():
    (score,) = build_metric("emotion_heard").compute([Inputs("a", 16_000, estimate_features=transcribe("sad"))])
    assert score.value == pytest.approx(0.6) and score.detail["emotion"] == "sad"
    assert list(score.detail["probabilities"]) == list(EMOTIONS)
    assert score.detail["probabilities"]["happy"] == pytest.approx(0.05)


@pytest.mark.parametrize(("text", "value"), [("happy", 1.0), (" Sad ", 0.0), ("calm", None), (None, None)])
def test_an_item_counts_by_its_label(text, value):
    item = Inputs("03-01-03", 16_000, text=text, estimate_features=transcribe("happy"))
    (score,) = build_metric("emotion_labelled").compute([item])
    assert score.value == value and score.protocol == "emotion_labelled/emotion2vec-plus-large/funasr-1.4/label"
    assert score.status == ("undefined" if value is None else "ok")


@pytest.mark.parametrize("stem", ["emotion_sim", "emotion_accuracy", "emotion_heard", "emotion_labelled"])
def test_names(stem):
    metric = build_metric(f"{stem}[{FEATURE}]@float16")
    assert metric.name == f"{stem}[{FEATURE}]@float16"
    assert metric.estimate_features == (f"{FEATURE}@float16",)
    assert metric.reference_features == (metric.estimate_features if stem == "emotion_sim" else ())
    assert "/float16-weights" in metric.protocol
    with refuses("no_variant", variant="other"):
        build_metric(f"{stem}[other]")
    assert metric.check_silence(estimate_silent=True, reference_silent=False)
