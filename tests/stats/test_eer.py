"""The equal error rate against scikit-learn's curve, a plain loop, a simulation with a known rate, and its interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.interpolate import interp1d
from scipy.optimize import brentq
from scipy.stats import norm

from codec_bench.messages import Diagnostic
from codec_bench.stats.eer import equal_error_rate, equal_error_rates, listed_error_rates


def by_scikit_learn(same, other):
    from sklearn.metrics import roc_curve

    labels = np.concatenate([np.ones(len(same)), np.zeros(len(other))])
    accepted, result, _ = roc_curve(labels, np.concatenate([same, other]))
    return brentq(lambda x: 1 - x - interp1d(accepted, result)(x), 0, 1)


@pytest.mark.parametrize("digits", [8, 1])
@pytest.mark.parametrize("seed", range(5))
def test_the_rate_is_scikit_learns(seed, digits):
    rng = np.random.default_rng(seed)
    same, other = rng.normal(1, 1, 57).round(digits), rng.normal(0, 1, 400).round(digits)
    assert equal_error_rate(same, other) == pytest.approx(by_scikit_learn(same, other), abs=1e-9)


def test_extremes():
    assert equal_error_rate(np.array([0.9, 0.8]), np.array([0.1])) == 0
    assert equal_error_rate(np.array([0.1]), np.array([0.9, 0.8])) == 1
    assert equal_error_rate(np.array([0.5]), np.array([0.5])) == 0.5


def test_the_rate_of_known_distributions_is_detected():
    """Scores of two normal distributions of one deviation, d apart, have the rate at -d / 2."""
    rng = np.random.default_rng(0)
    result = equal_error_rate(rng.normal(2, 1, 200_000), rng.normal(0, 1, 200_000))
    assert result == pytest.approx(norm.cdf(-1), abs=3e-3)


def voices(rng, speakers=16, each=4, spread=1.6):
    """Embeddings of speakers whose items lie around their own point; the estimate is the reference with noise."""
    centres = np.repeat(rng.standard_normal((speakers, 8)), each, axis=0)
    reference = centres + spread * rng.standard_normal(centres.shape)
    pairs = np.stack([reference, reference + 0.3 * rng.standard_normal(centres.shape)], axis=1).astype(np.float32)
    units = [f"speaker {n // each}" for n in range(len(centres))]
    return pairs, [f"item {n}" for n in range(len(centres))], units


@pytest.mark.compares("asv_eer", weights="none")
def test_the_trials_are_every_estimate_with_every_other_reference():
    pairs, names, units = voices(np.random.default_rng(3))
    same, other = [], []
    for i, (_, estimate) in enumerate(pairs.astype(float)):
        for j, (reference, _) in enumerate(pairs.astype(float)):
            if i != j:
                score = estimate @ reference / math.sqrt((estimate @ estimate) * (reference @ reference))
                (same if units[i] == units[j] else other).append(score)
    result = equal_error_rates(pairs, names, units)
    assert 0.05 < result.value < 0.45
    assert result.value == pytest.approx(by_scikit_learn(np.array(same), np.array(other)), abs=1e-9)
    assert result.interval.low < result.value < result.interval.high and result.items == 64 and result.note is None


def test_the_interval_holds_the_true_rate():
    pairs, _, units = voices(np.random.default_rng(99), speakers=400)
    reference, estimate = (pairs[:, k] / np.linalg.norm(pairs[:, k], axis=1, keepdims=True) for k in range(2))
    same, scores = np.equal.outer(units, units), estimate @ reference.T
    truth = equal_error_rate(scores[same & ~np.eye(len(same), dtype=bool)], scores[~same])
    held = 0
    for seed in range(60):
        interval = equal_error_rates(*voices(np.random.default_rng(seed), speakers=24)).interval
        held += interval.low <= truth <= interval.high
    assert held >= 0.85 * 60


def test_a_set_without_trials_says_why():
    pairs, names, units = voices(np.random.default_rng(1), speakers=2, each=2)
    small = equal_error_rates(pairs, names, units)
    assert small.value is not None and small.note == Diagnostic("few_trials", trials=4)
    assert equal_error_rates(pairs, names, names).note.as_dict() == {"code": "no_own_trial", "needed": 2}
    assert equal_error_rates(pairs, names, ["a"] * 4).note.code == "one_speaker"
    assert equal_error_rates(pairs[:1], names[:1], units[:1]).value is None


@pytest.mark.compares("asv_eer_listed", weights="none")
def test_the_rate_over_listed_trials_is_scikit_learns():
    pairs, names, units = voices(np.random.default_rng(4))
    rng = np.random.default_rng(5)
    drawn = [tuple(rng.choice(64, 2, replace=False)) for _ in range(900)]
    trials = [(names[i], names[j], units[i] == units[j]) for i, j in drawn]
    scores = {True: [], False: []}
    for (i, j), (_, _, is_same) in zip(drawn, trials):
        one, other = pairs[i, 0].astype(float), pairs[j, 1].astype(float)
        scores[is_same].append(one @ other / math.sqrt((one @ one) * (other @ other)))
    result = listed_error_rates(pairs, names, units, trials=trials)
    assert result.value == pytest.approx(by_scikit_learn(np.array(scores[True]), np.array(scores[False])), abs=1e-9)
    assert result.interval.low < result.value < result.interval.high and result.note is None
    every = [(a, b, u == v) for a, u in zip(names, units) for b, v in zip(names, units) if a != b]
    assert listed_error_rates(pairs, names, units, trials=every).value == pytest.approx(
        equal_error_rates(pairs, names, units).value, abs=1e-12
    )


def test_listed_trials_that_state_nothing_state_so():
    pairs, names, units = voices(np.random.default_rng(1), speakers=2, each=2)
    assert listed_error_rates(pairs, names, units).note == Diagnostic("no_listed_trial")
    dropped = listed_error_rates(pairs, names, units, trials=[("x", names[0], True)])
    assert dropped.value is None and dropped.note == Diagnostic("no_known_trial", trials=1)
    alike = listed_error_rates(pairs, names, units, trials=[(names[0], names[1], True)])
    assert alike.value is None and alike.note.code == "one_kind_of_trial"
    some = [(names[0], names[1], True), (names[0], names[2], False), ("x", names[1], False)]
    assert listed_error_rates(pairs, names, units, trials=some).note.as_dict() == {
        "code": "excluded_trials",
        "excluded": 1,
        "trials": 3,
    }
