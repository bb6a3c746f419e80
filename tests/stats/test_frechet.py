"""The Fréchet distance equals scipy's on the whole set and known Gaussians' own, states add, and bias is taken out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

from codec_bench.stats.blocks import BLOCKS, METHOD, block_of, jackknife_interval
from codec_bench.stats.frechet import FrechetSums, distance, frechet_distance


def drawn(rng, items, dimensions, shift=0.3, scale=1.3):
    """Pairs of independent Gaussian vectors with correlated dimensions, and names."""
    mix = rng.standard_normal((2, dimensions, dimensions)) / np.sqrt(dimensions) + np.eye(dimensions)
    pairs = rng.standard_normal((items, 2, dimensions))
    pairs = np.stack([pairs[:, 0] @ mix[0], scale * pairs[:, 1] @ mix[1] + shift], axis=1)
    return pairs.astype(np.float32), [f"item {n}" for n in range(items)]


def by_scipy(pairs):
    """fadtk's formula on the whole set: sqrtm of the product of numpy's covariances."""
    a, b = pairs[:, 0].astype(np.float64), pairs[:, 1].astype(np.float64)
    covariances = np.cov(a, rowvar=False), np.cov(b, rowvar=False)
    root = linalg.sqrtm(covariances[0] @ covariances[1])
    apart = a.mean(axis=0) - b.mean(axis=0)
    return apart @ apart + np.trace(covariances[0]) + np.trace(covariances[1]) - 2 * np.trace(root).real


@pytest.mark.compares("fad", weights="none")
@pytest.mark.parametrize(("items", "dimensions"), [(400, 12), (90, 40), (3000, 3)])
def test_it_is_scipys_on_the_whole_set(rng, items, dimensions):
    pairs, names = drawn(rng, items, dimensions)
    assert frechet_distance(pairs, names, names).value == pytest.approx(by_scipy(pairs), rel=1e-6)


def test_far_fewer_items_than_dimensions(rng):
    """Covariances without full rank.

    The product's trace comes from the small matrix of inner products of the centred sets.
    """
    pairs, names = drawn(rng, 9, 60)
    a, b = (role - role.mean(axis=0) for role in pairs.astype(np.float64).transpose(1, 0, 2))
    apart = (pairs[:, 0] - pairs[:, 1]).mean(axis=0, dtype=np.float64)
    common = np.linalg.svd(a @ b.T, compute_uv=False).sum()
    expected = apart @ apart + ((a**2).sum() + (b**2).sum() - 2 * common) / 8
    result = frechet_distance(pairs, names, names)
    assert result.value == pytest.approx(expected, rel=1e-6)
    assert (
        result.extrapolated is None
        and result.note.as_dict() == {"code": "biased_value", "items": 9, "dimensions": 60, "needed": 244}
        and "244" in result.note
    )


def test_known_gaussians():
    """Diagonal covariances have a formula of their own: the sum of squared differences of deviations."""
    a, b = np.array([1.0, 4.0, 0.0]), np.array([9.0, 4.0, 1.0])
    expected = 5.0 + ((np.sqrt(a) - np.sqrt(b)) ** 2).sum()
    assert distance(np.diag(a), np.diag(b), np.array([1.0, 0.0, 2.0])) == pytest.approx(expected, rel=1e-12)


def test_laws(rng):
    pairs, names = drawn(rng, 200, 8)
    value = frechet_distance(pairs, names, names).value
    assert frechet_distance(pairs[:, ::-1], names, names).value == pytest.approx(value, rel=1e-9)
    assert frechet_distance(3 * pairs, names, names).value == pytest.approx(9 * value, rel=1e-6)
    copy = np.stack([pairs[:, 0]] * 2, axis=1)
    assert frechet_distance(copy, names, names).value == pytest.approx(0, abs=1e-9)
    # It is at most what it costs to move each item to its partner (Gelbrich's bound; covariances over items, not items
    # - 1).
    moved = ((pairs[:, 0] - pairs[:, 1]) ** 2).sum(axis=1).mean()
    assert value <= moved * 200 / 199


def test_one_item_has_no_value(rng):
    pairs, names = drawn(rng, 1, 4)
    for result in (frechet_distance(pairs, names, names), frechet_distance(pairs[:0], [], [])):
        assert result.value is None and result.interval.ends is None and result.note.code == "few_items"
    pairs, names = drawn(rng, 2, 4)
    assert frechet_distance(pairs, names, names).value > 0


def test_extrapolation_takes_most_of_the_bias(rng):
    """Both sides from one Gaussian: the true distance is 0, and what is found is bias."""
    results = []
    for _ in range(12):
        pairs = rng.standard_normal((320, 2, 16)).astype(np.float32)
        results.append(frechet_distance(pairs, [f"item {n}" for n in range(320)], [f"item {n}" for n in range(320)]))
    bias = np.mean([one.value for one in results])
    assert bias > 0.2
    assert abs(np.mean([one.extrapolated for one in results])) < 0.15 * bias


def test_the_interval_is_as_wide_as_samples_differ(rng):
    """Over many samples of known Gaussians, the mean width is that of twice Student's t times the deviation of the
    values.
    """
    from scipy import stats

    values, widths = [], []
    for _ in range(60):
        pairs = rng.standard_normal((400, 2, 4)) + np.array([0.0, 0.7])[:, None]
        result = frechet_distance(
            pairs.astype(np.float32), [f"item {n}" for n in range(400)], [f"item {n}" for n in range(400)]
        )
        values.append(result.value)
        widths.append(result.interval.high - result.interval.low)
    expected = 2 * stats.t.ppf(0.975, BLOCKS - 1) * np.std(values, ddof=1)
    assert 0.75 < np.mean(widths) / expected < 1.35
    assert (result.interval.method, result.interval.units) == (METHOD, 8)


def test_few_blocks_give_no_interval():
    interval = jackknife_interval(1.0, [1.0, 1.2, None, 0.9])
    assert interval.ends is None and interval.note.as_dict() == {"code": "few_blocks", "blocks": 3, "needed": 4}
    assert {block_of(f"item {n}") for n in range(200)} == set(range(BLOCKS))


def test_a_speakers_items_stay_together(rng):
    pairs, _ = drawn(rng, 40, 3)
    assert len(set(FrechetSums.of(pairs, ["one speaker"] * 40).blocks)) == 1
