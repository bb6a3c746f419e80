"""Two small classifiers: linear, and with one hidden layer.

linear   Ridge regression onto classes of 1 and -1, scikit-learn's `RidgeClassifier(alpha=RIDGE)` to 1e-9, in the dual
form because codes have more features than items.
hidden   `COMPONENTS` principal components, `HIDDEN` ReLU units and softmax, by at most `STEPS` steps of L-BFGS:
scikit-learn's `MLPClassifier(solver="lbfgs", alpha=DECAY)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

RIDGE, DECAY = 0.1, 0.01
HIDDEN, COMPONENTS, STEPS = 16, 64, 60


def predict_correct(features: Any, classes: np.ndarray, folds: np.ndarray, *, hidden: int, seed: int) -> np.ndarray:
    """Return the items that cross-validation classifies correctly, bool `(items,)`.

    Args:
        features: float64 `(items, dimensions)`, a NumPy array or a SciPy CSR array.
        classes: int64 `(items,)`, from 0.
        folds: int64 `(items,)`.
        hidden: units of the hidden layer; 0 for a linear one.
        seed: of the initial weights of the hidden layer.
    """
    count = int(classes.max()) + 1
    reduced = principal_components(features) if hidden else features
    correct = np.zeros(len(classes), bool)
    for fold in np.unique(folds):
        is_test, is_train = folds == fold, folds != fold
        if hidden:
            scores = train(reduced[is_train], classes[is_train], count, hidden=hidden, seed=seed)(reduced[is_test])
        else:
            scores = ridge_scores(features[is_train], classes[is_train], count, features[is_test])
        correct[is_test] = scores.argmax(axis=1) == classes[is_test]
    return correct


def ridge_scores(features: Any, classes: np.ndarray, count: int, others: Any) -> np.ndarray:
    """Fit ridge regression to items of known class, and score other items.

    Args:
        classes: of `features`, int64 from 0 to `count - 1`.
        others: features of the items to score.

    Returns:
        A score for each class, `(others, count)`; the highest wins.
    """
    targets = 2 * np.eye(count)[classes] - 1
    among = _dense(features @ features.T)
    across = _dense(others @ features.T)
    # Centring uses the fitted items; the mean is no weight and not penalised.
    rows, mean = among.mean(axis=0), among.mean()
    centred = among - rows - rows[:, None] + mean
    weights = np.linalg.solve(centred + RIDGE * np.eye(len(among)), targets - targets.mean(axis=0))
    towards = across - across.mean(axis=1, keepdims=True) - rows + mean
    scores: np.ndarray = towards @ weights + targets.mean(axis=0)
    return scores


def principal_components(features: Any) -> np.ndarray:
    """Compute the leading principal components of items, with mean squared length 1."""
    among = _dense(features @ features.T)
    rows = among.mean(axis=0)
    values, vectors = np.linalg.eigh(among - rows - rows[:, None] + among.mean())
    leading = vectors[:, ::-1][:, :COMPONENTS] * np.sqrt(np.maximum(values[::-1][:COMPONENTS], 0))
    scaled: np.ndarray = leading / max(np.sqrt((leading**2).sum() / len(leading)), 1e-12)
    return scaled


def _dense(matrix: Any) -> np.ndarray:
    dense: np.ndarray = matrix.toarray() if hasattr(matrix, "toarray") else matrix
    return dense


def train(
    features: np.ndarray, classes: np.ndarray, count: int, *, hidden: int, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Fit an MLP with one hidden layer to `count` classes.

    Returns:
        A function from features to log-probabilities, `(items, count)`.
    """
    from scipy.optimize import minimize

    shapes = _shapes(features.shape[1], count, hidden)
    start, targets = _start(shapes, np.random.default_rng(seed)), np.eye(count)[classes]
    fitted = minimize(
        loss_and_gradient, start, (features, targets, shapes), method="L-BFGS-B", jac=True, options={"maxiter": STEPS}
    )  # fmt: skip
    layers = _unflatten(fitted.x, shapes)
    return lambda others: _log_probabilities(_forward(others, layers)[-1])


def _shapes(dimensions: int, count: int, hidden: int) -> list[tuple[int, ...]]:
    return [(dimensions, hidden), (hidden,), (hidden, count), (count,)]


def _start(shapes: list[tuple[int, ...]], rng: np.random.Generator) -> np.ndarray:
    """Draw Glorot's uniform weights, with biases of 0."""
    parts = [
        rng.uniform(-1, 1, s) * np.sqrt(6 / sum(s)) if len(s) == 2 else np.zeros(s) for s in shapes
    ]  # fmt: skip
    return np.concatenate([array.ravel() for array in parts])


def _unflatten(flat: np.ndarray, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [array.reshape(shape) for array, shape in zip(np.split(flat, ends[:-1]), shapes)]


def _forward(features: np.ndarray, layers: list[np.ndarray]) -> list[np.ndarray]:
    """Return the input of each layer, and last the scores `(items, classes)`.

    Args:
        layers: weights and biases in turn.
    """
    out = [features]
    for layer in range(0, len(layers), 2):
        scores = out[-1] @ layers[layer] + layers[layer + 1]
        out.append(np.maximum(scores, 0) if layer + 2 < len(layers) else scores)
    return out


def _log_probabilities(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=1, keepdims=True)
    log: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log


def loss_and_gradient(
    flat_weights: np.ndarray, features: np.ndarray, targets: np.ndarray, shapes: list[tuple[int, ...]]
) -> tuple[float, np.ndarray]:
    """Compute the mean cross-entropy with an L2 penalty, and its gradient.

    Args:
        targets: one-hot `(items, classes)`.
        shapes: of `flat_weights`, by layer.
    """
    layers, items = _unflatten(flat_weights, shapes), len(targets)
    inputs = _forward(features, layers)
    log = _log_probabilities(inputs[-1])
    value = -float((targets * log).sum()) / items
    back = (np.exp(log) - targets) / items
    parts: list[np.ndarray] = []
    for layer in range(len(layers) - 2, -1, -2):
        weights, entering = layers[layer], inputs[layer // 2]
        value += DECAY * float((weights**2).sum()) / (2 * items)
        parts = [entering.T @ back + weights * DECAY / items, back.sum(axis=0), *parts]
        if layer:
            back = (back @ weights.T) * (entering > 0)
    return value, np.concatenate([array.ravel() for array in parts])
