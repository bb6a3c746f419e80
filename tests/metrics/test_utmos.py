"""The metric gives the feature's score, only for English unless another variant is requested."""

from __future__ import annotations

import pytest
from refusals import refuses

from codec_bench.features import utmos
from codec_bench.metrics import build_metric
from codec_bench.metrics.base import Inputs, inputs_or_score

RESULT = {"utmos": 4.25, "frames": 193}


def send(metric, language, result=RESULT):
    """Computes as the engine does: first checks whether the item can be measured, then scores it."""
    features = {metric.estimate_features[0]: result}
    outcome = inputs_or_score(
        metric, id="a", rate_hz=16_000, language=language, estimate_features=features, reference_features={}
    )
    return metric.compute([outcome])[0] if isinstance(outcome, Inputs) else outcome


@pytest.mark.parametrize("language", [None, "en", "EN", "en-US", "en_GB", "eng", "English"])
def test_english_and_the_unknown_are_measured(language):
    score = send(build_metric("utmos"), language)
    assert (score.status, score.value, score.numerator, score.denominator) == ("ok", 4.25, 4.25, 1.0)
    assert score.detail == {"frames": 193}
    assert score.protocol == f"utmos/{utmos.Utmos.protocol_id()}"


@pytest.mark.parametrize("language", ["zh", "zh-CN", "Mandarin", "de", "enm"])
def test_other_languages_are_refused_with_the_way_out(language):
    metric = build_metric("utmos")
    for score in (send(metric, language), metric.compute([Inputs("a", 16_000, language=language)])[0]):
        assert (score.status, score.value) == ("refused", None)
        assert f"'{language}'" in score.reason and "utmos[any-language]" in score.reason


@pytest.mark.parametrize("language", [None, "en", "zh"])
def test_any_language_is_measured_under_its_own_protocol(language):
    metric = build_metric("utmos[any-language]")
    score = send(metric, language)
    assert score.value == 4.25
    assert score.protocol == f"utmos/{utmos.Utmos.protocol_id()}/any-language"
    assert metric.name == "utmos[any-language]"
    assert metric.estimate_features == ("utmos",)


def test_a_precision_is_the_features():
    metric = build_metric("utmos[any-language]@bfloat16")
    assert metric.name == "utmos[any-language]@bfloat16"
    assert metric.estimate_features == ("utmos@bfloat16",)
    assert metric.protocol == f"utmos/{utmos.Utmos.protocol_id('bfloat16')}/any-language"
    assert send(build_metric("utmos@bfloat16"), "en").value == 4.25


def test_what_cannot_be_is_one_sentence():
    with refuses("no_variant", variant="chinese"):
        build_metric("utmos[chinese]")
    with refuses("no_point_of_metric", point="int8"):
        build_metric("utmos@int8")


def test_no_score_where_the_feature_has_none():
    class Fault:
        status, reason = "undefined", "the signal has 3 samples; UTMOS needs at least 400"

    score = send(build_metric("utmos"), "en", Fault())
    assert (score.status, score.value) == ("undefined", None)
    assert score.reason.code == "feature_failed"
    assert send(build_metric("utmos"), "en", {"utmos": float("nan"), "frames": 1}).status == "failed"
