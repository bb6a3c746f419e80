"""The metrics over units equal the programs that their reference implementations call."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from codec_bench.metrics import build_metric
from codec_bench.metrics.base import SILENT_ESTIMATE, SILENT_REFERENCE, Inputs
from codec_bench.metrics.units import without_repeats


def inputs(reference, estimate, feature="hubert-km200"):
    sides = [
        {feature: {layer: np.asarray(role, np.int16) for layer in ("layer_6", "layer_11")}}
        for role in (reference, estimate)
    ]
    return Inputs("a", 16_000, reference_features=sides[0], estimate_features=sides[1])


@pytest.fixture(scope="module")
def pairs():
    """Sequences with runs, and others made of them by edits, from nearly equal to unrelated."""
    rng = np.random.default_rng(7)
    out = []
    for share in (0.0, 0.1, 0.4, 1.0):
        for length in (1, 2, 5, 80, 400):
            reference = np.repeat(rng.integers(0, 30, length), rng.integers(1, 4, length))
            estimate = np.where(rng.random(reference.size) < share, rng.integers(0, 30, reference.size), reference)
            out.append((reference, np.delete(estimate, rng.integers(0, estimate.size, estimate.size // 9))))
    return out


def values(name, pairs):
    scores = build_metric(name).compute([inputs(*pair) for pair in pairs])
    assert {score.status for score in scores} == {"ok"}
    return scores


@pytest.mark.compares("ter", weights="none")
def test_unit_errors_are_the_edit_distance_without_repeats(pairs):
    distance = pytest.importorskip("rapidfuzz.distance.Levenshtein").distance
    scores = values("ter", pairs)
    for score, (reference, estimate) in zip(scores, pairs, strict=True):
        reference, estimate = (without_repeats(units).tolist() for units in (reference, estimate))
        assert (score.numerator, score.denominator) == (distance(reference, estimate), len(reference))
        assert score.value == score.numerator / score.denominator
        counts = score.detail
        assert counts["hits"] + counts["substitutions"] + counts["deletions"] == len(reference)
    assert [score.value for score in scores[:2]] == [0.0, 0.0] and scores[-1].value > 0.5
    assert build_metric("ter").compute([]) == []


def test_repeats_are_runs():
    assert without_repeats(np.array([4, 4, 4, 1, 4, 4])).tolist() == [4, 1, 4]
    assert without_repeats(np.array([7])).tolist() == [7]
    assert without_repeats(np.zeros(0, int)).tolist() == []


@pytest.mark.compares("speechbleu", weights="none")
@pytest.mark.filterwarnings("ignore::UserWarning")  # nltk says where BLEU is 0
def test_speechbleu_is_nltks(pairs):
    bleu = pytest.importorskip("nltk.translate.bleu_score").sentence_bleu
    for score, (reference, estimate) in zip(values("speechbleu", pairs), pairs, strict=True):
        reference, estimate = (without_repeats(units).tolist() for units in (reference, estimate))
        assert score.value == pytest.approx(bleu([reference], estimate, weights=[0.5, 0.5]), abs=1e-9)


@pytest.mark.compares("speech_token_distance", weights="none")
def test_speech_token_distance_is_the_jaro_winkler_similarity(pairs):
    similarity = pytest.importorskip("rapidfuzz.distance.JaroWinkler").similarity
    scores = values("speech_token_distance", pairs)
    for score, (reference, estimate) in zip(scores, pairs, strict=True):
        assert score.value == pytest.approx(similarity(estimate.tolist(), reference.tolist()), abs=1e-12)
    # Two cases that are worked out by hand in Winkler's report, as numbers of letters.
    for one, other, expected in (("MARTHA", "MARHTA", 0.9611111), ("DWAYNE", "DUANE", 0.84)):
        (score,) = values("speech_token_distance", [([*map(ord, one)], [*map(ord, other)])])
        assert score.value == pytest.approx(expected, abs=1e-6)


def test_layers_repeats_and_names():
    protocols = {name: build_metric(name).protocol for name in ("ter", "speechbleu", "speech_token_distance")}
    assert protocols == {
        "ter": "ter/layer-6/without-repeats/hubert-km200-base-ls960/1",
        "speechbleu": "speechbleu/2-gram/layer-11/without-repeats/hubert-km200-base-ls960/1",
        "speech_token_distance": "speech_token_distance/jaro-winkler/layer-6/with-repeats/hubert-km200-base-ls960/1",
    }
    metric = build_metric("ter[hubert-km50]@bfloat16")
    assert metric.name == "ter[hubert-km50]@bfloat16" and metric.protocol.endswith(
        "hubert-km50-base-ls960/1/bfloat16-weights"
    )
    assert metric.estimate_features == metric.reference_features == ("hubert-km50@bfloat16",)
    with refuses("no_variant", name="ter", variant="hubert-km500"):
        build_metric("ter[hubert-km500]")
    doubts = [
        metric.check_silence(estimate_silent=one, reference_silent=other)
        for one, other in ((True, True), (False, True), (False, False))
    ]
    assert doubts == [SILENT_ESTIMATE, SILENT_REFERENCE, None]
