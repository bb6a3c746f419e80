"""The probes' classifiers beside scikit-learn's and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.sparse import csr_array

from codec_bench.apps.profiling.classifiers import (
    DECAY,
    RIDGE,
    _shapes,
    _start,
    loss_and_gradient,
    predict_correct,
    principal_components,
    ridge_scores,
    train,
)


def problem(items=120, dimensions=9, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(items, dimensions))
    return features, (features @ rng.normal(size=(dimensions, classes))).argmax(axis=1)


@pytest.mark.parametrize("dimensions", [9, 300])
def test_the_linear_one_is_scikit_learns_ridge_classifier(dimensions):
    from sklearn.linear_model import RidgeClassifier

    features, classes = problem(dimensions=dimensions)
    oracle = RidgeClassifier(alpha=RIDGE).fit(features[:90], classes[:90])
    for ours in (features, csr_array(features)):
        scores = ridge_scores(ours[:90], classes[:90], 4, ours[90:])
        assert scores == pytest.approx(oracle.decision_function(features[90:]), abs=1e-9)


def test_what_the_hidden_layer_minimises_is_that_of_a_plain_loop_with_its_gradient():
    features, classes = problem(items=20)
    shapes = _shapes(9, 4, 5)
    flat = _start(shapes, np.random.default_rng(1)) + 0.1
    expected = np.eye(4)[classes]
    first, bias, second, last = (item.reshape(s) for item, s in zip(np.split(flat, np.cumsum([45, 5, 20])), shapes))
    total = 0.0
    for row, actual in zip(features, classes):
        scores = [
            sum(max(0.0, row @ first[:, h] + bias[h]) * second[h, c] for h in range(5)) + last[c] for c in range(4)
        ]
        total -= scores[actual] - math.log(sum(map(math.exp, scores)))
    squares = float((first**2).sum() + (second**2).sum())
    value = loss_and_gradient(flat, features, expected, shapes)[0]
    assert value == pytest.approx(total / 20 + DECAY * squares / 40)
    assert (
        check_grad(
            lambda x: loss_and_gradient(x, features, expected, shapes)[0],
            lambda x: loss_and_gradient(x, features, expected, shapes)[1],
            flat,
        )
        < 1e-5
    )


def test_the_hidden_layer_reads_what_no_line_parts():
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (400, 2))
    classes = (features[:, 0] * features[:, 1] > 0).astype(int)
    folds = np.arange(400) % 5
    assert predict_correct(features, classes, folds, hidden=0, seed=0).mean() < 0.65
    assert predict_correct(features, classes, folds, hidden=16, seed=0).mean() > 0.9
    chances = np.exp(train(features, classes, 2, hidden=4, seed=0)(features))
    assert chances.sum(axis=1) == pytest.approx(np.ones(400))


def test_components_keep_the_distances_of_few_dimensions():
    features, _ = problem(items=50)
    built, centred = principal_components(csr_array(features)), features - features.mean(axis=0)
    assert (built**2).sum() / 50 == pytest.approx(1.0)
    ours, theirs = built @ built.T, centred @ centred.T
    assert ours / ours.max() == pytest.approx(theirs / theirs.max(), abs=1e-9)
