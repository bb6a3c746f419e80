"""The score equals its definition with scipy's square root of a matrix and with sorted values, and its laws hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg, stats

from codec_bench.audio.noises import NOISES
from codec_bench.stats.blocks import METHOD, block_of
from codec_bench.stats.ttsds import SIDES, score_of, ttsds


def drawn(rng, items, dimensions):
    """Embeddings of items whose sides are apart in place and form, and names."""
    sides = [
        rng.standard_normal((items, dimensions))
        @ (np.eye(dimensions) + 0.3 * rng.standard_normal((dimensions, dimensions)))
        for _ in SIDES
    ]
    places = rng.normal(0, 3, (len(SIDES), dimensions)) * np.array([0.1, 0.2, 1, 1, 1, 1])[:, None]
    return np.stack([role + position for role, position in zip(sides, places)], axis=1).astype(np.float32), names_of(
        items
    )


def names_of(items):
    return [f"item {number}" for number in range(items)]


def by_scipy(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    covariances = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    apart = a.mean(axis=0) - b.mean(axis=0)
    root = linalg.sqrtm(covariances[0] @ covariances[1])
    return apart @ apart + np.trace(covariances[0]) + np.trace(covariances[1]) - 2 * np.trace(root).real


def test_of_vectors_it_is_the_definition_with_scipy(rng):
    embeddings, names = drawn(rng, 300, 12)
    reference, estimate, *noise = embeddings.transpose(1, 0, 2)
    nearest = min(by_scipy(estimate, one) for one in noise)
    expected = 100 * nearest / (nearest + by_scipy(estimate, reference))
    result = ttsds(embeddings, names, names)
    assert 5 < expected < 99 and result.value == pytest.approx(expected, rel=1e-6)
    assert result.items == 300 and result.note is None and result.extrapolated is None


def test_of_numbers_it_is_the_definition_with_sorted_values(rng):
    values = rng.normal([[100.0], [110.0], [60.0], [400.0], [0.0], [0.0]], [[20], [15], [3], [9], [0], [0]], (6, 90))
    reference, estimate, *noise = values.astype(np.float32).astype(np.float64)

    def apart(x, y):
        """By quantiles: the mean over the places of equal rank."""
        return np.sqrt(np.mean([(a - b) ** 2 for a, b in zip(sorted(x), sorted(y), strict=True)]))

    nearest = min(apart(estimate, one) for one in noise)
    expected = 100 * nearest / (nearest + apart(estimate, reference))
    result = ttsds(values.T[..., None].astype(np.float32), names_of(90), names_of(90))
    assert result.value == pytest.approx(expected, rel=1e-9) and result.note is None
    assert stats.wasserstein_distance(estimate, reference) <= apart(estimate, reference), "the first moment is the less"


@pytest.mark.parametrize("dimensions", [1, 5])
def test_a_copy_has_100_and_noise_has_0(rng, dimensions):
    embeddings, names = drawn(rng, 80, dimensions)
    embeddings[:, 1] = embeddings[rng.permutation(80), 0]  # the set is the same, in another order
    assert ttsds(embeddings, names, names).value == pytest.approx(100, abs=1e-6)
    embeddings[:, 1] = embeddings[rng.permutation(80), 3]
    assert ttsds(embeddings, names, names).value == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("dimensions", [1, 5])
def test_order_and_scale_do_not_matter(rng, dimensions):
    embeddings, names = drawn(rng, 80, dimensions)
    result = ttsds(embeddings, names, names)
    order = rng.permutation(80)
    again = ttsds(4 * embeddings[order], names, [names[index] for index in order])
    assert again.value == pytest.approx(result.value, rel=1e-6)
    assert again.interval.ends == pytest.approx(result.interval.ends, rel=1e-6)


@pytest.mark.parametrize("dimensions", [1, 5])
def test_the_interval_is_the_jackknifes_over_blocks(rng, dimensions):
    embeddings, names = drawn(rng, 120, dimensions)
    result = ttsds(embeddings, names, names)
    blocks = np.array([block_of(name) for name in names])
    without = [
        ttsds(
            embeddings[blocks != block],
            [n for n in names if block_of(n) != block],
            [n for n in names if block_of(n) != block],
        ).value
        for block in range(8)
    ]
    error = np.sqrt(7 / 8 * np.sum((np.array(without) - np.mean(without)) ** 2))
    assert result.interval.method == METHOD
    assert result.interval.high - result.value == pytest.approx(stats.t.ppf(0.975, 7) * error, rel=1e-6)
    small = ttsds(embeddings, names, ["one speaker"] * 120)
    assert small.value == pytest.approx(result.value, rel=1e-9) and small.interval.low is None
    assert small.interval.note.as_dict() == {"code": "few_blocks", "blocks": 0, "needed": 4}


def test_noise_without_a_spread_is_a_point(rng):
    embeddings, names = drawn(rng, 60, 4)
    embeddings[:, 4:] = 2.0
    estimate = embeddings[:, 1].astype(np.float64)
    to_point = ((estimate.mean(axis=0) - 2) ** 2).sum() + np.trace(np.cov(estimate, rowvar=False))
    others = [by_scipy(estimate, embeddings[:, role]) for role in (2, 3)]
    nearest = min(to_point, *others)
    expected = 100 * nearest / (nearest + by_scipy(estimate, embeddings[:, 0]))
    assert ttsds(embeddings, names, names).value == pytest.approx(expected, rel=1e-6)


def test_no_value_is_reported(rng):
    embeddings, names = drawn(rng, 9, 20)
    assert ttsds(embeddings, names, names).note.as_dict() == {"code": "low_rank", "items": 9, "dimensions": 20}
    one = ttsds(embeddings[:1], names[:1], names[:1])
    assert one.value is None and one.note.as_dict() == {"code": "few_items", "needed": 2, "items": 1}
    same = ttsds(np.ones((9, 6, 1), np.float32), names, names)
    assert same.value is None and same.note.code == "both_equal" and same.interval.low is None
    assert score_of(0.0, [0.0, 1.0]) is None and score_of(1.0, [3.0, 5.0]) == 75.0


def test_the_noises_are_those_that_are_created():
    assert SIDES == ("reference", "estimate", *NOISES)
