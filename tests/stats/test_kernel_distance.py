"""Kernel distances, density and coverage equal other programs."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.metrics import build_metric
from codec_bench.stats import blocks
from codec_bench.stats.breakdown import SetParts
from codec_bench.stats.intervals import ratios
from codec_bench.stats.kernel_distance import kernel_distance
from codec_bench.stats.sets import SETS

GOLDEN = [
    ((1, 60, 4, 0.8, 0.2), {"kid": 0.1910880697, "kl": 0.3025325173, "density": 1.3, "coverage": 1.0}),
    ((2, 200, 20, 0.5, 0.4), {"kid": 0.6641158576, "kl": 17.00096796, "density": 3.964, "coverage": 1.0}),
    ((3, 120, 8, 0.1, 0.5), {"kid": 1.041298339, "kl": 42.7041342, "density": 2.401666667, "coverage": 0.525}),
]
"""torch-fidelity 0.4.0's mmd2 (u-statistic, cubic kernel), torch's kl_divergence and prdc 0.2 (5 neighbours)."""


@pytest.mark.compares("kid", "kl", "density", "coverage", weights="none")
@pytest.mark.parametrize(("settings", "numbers"), GOLDEN)
def test_values_of_other_programs(settings, numbers):
    seed, items, dimensions, scale, shift = settings
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((items, dimensions))
    pairs = np.stack([x, scale * x + 0.3 * rng.standard_normal((items, dimensions)) + shift], 1).astype(np.float32)
    for name, number in numbers.items():
        result = SETS[build_metric(f"{name}[ge2e]").aggregate](pairs, names_of(items), names_of(items))
        assert result.value == pytest.approx(number, rel=1e-8), name
        assert result.interval.units == 8


@pytest.mark.parametrize(("name", "best"), [("kid", 0.0), ("kl", 0.0), ("coverage", 1.0)])
def test_a_copy_has_the_best_value_of_each(rng, name, best):
    x = rng.standard_normal((60, 6))
    statistic = SETS[build_metric(name).aggregate]
    value = lambda pairs: statistic(pairs.astype(np.float32), names_of(60), names_of(60)).value  # noqa: E731
    assert value(np.stack([x, x], 1)) == pytest.approx(best, abs=1e-9)
    assert abs(value(np.stack([x, x * 0.1 + 1.0], 1)) - best) > 0.1


@pytest.mark.parametrize(("name", "items", "code"), [
    ("kid", 1, "few_items"), ("density", 5, "few_items"), ("coverage", 5, "few_items"),
    ("kl", 6, "singular_covariance"),
])  # fmt: skip
def test_too_few_items_have_no_value(rng, name, items, code):
    result = SETS[build_metric(name).aggregate](rng.standard_normal((items, 2, 6)), names_of(items), names_of(items))
    assert result.value is None and result.note.code == code


def names_of(items):
    return [f"item {n}" for n in range(items)]


def detected_of(pairs):
    return kernel_distance(np.asarray(pairs, np.float32), names_of(len(pairs)), names_of(len(pairs)))


def by_loops(pairs):
    """The U-statistic of Gretton et al. as two loops, with the median distance between references as width."""
    x, y = np.asarray(pairs, np.float32).astype(np.float64).transpose(1, 0, 2)
    apart = [np.linalg.norm(x[i] - x[j]) for i in range(len(x)) for j in range(i)]
    gamma = 1 / (2 * np.median(apart) ** 2 + 1e-8)
    k = lambda a, b: np.exp(-gamma * ((a - b) ** 2).sum())  # noqa: E731
    total = sum(
        k(x[i], x[j]) + k(y[i], y[j]) - k(x[i], y[j]) - k(x[j], y[i])
        for i in range(len(x))
        for j in range(len(x))
        if i != j
    )
    return 100 * total / (len(x) * (len(x) - 1))


@pytest.mark.parametrize(("items", "dimensions"), [(2, 3), (25, 8), (60, 2)])
def test_it_is_the_loop(rng, items, dimensions):
    pairs = rng.standard_normal((items, 2, dimensions)) * [[[1.0], [1.5]]] + [[[0.0], [0.4]]]
    assert detected_of(pairs).value == pytest.approx(by_loops(pairs), rel=1e-6, abs=1e-9)


@pytest.mark.compares("kad", weights="none")
def test_it_is_kadtks_formula_but_for_partners(rng):
    """kadtk's three means with this width; its mean across the sets has the partners in it, which are taken out by
    hand.
    """
    pairs = (rng.standard_normal((80, 2, 5)) + np.array([[0.0], [0.5]])).astype(np.float32)
    x, y = pairs.astype(np.float64).transpose(1, 0, 2)
    squared = lambda a, b: ((a[:, None] - b[None]) ** 2).sum(axis=2)  # noqa: E731
    width = np.median(np.sqrt(squared(x, x)[np.triu_indices(80, 1)]))
    xx, yy, xy = (np.exp(-squared(*sides) / (2 * width**2 + 1e-8)) for sides in ((x, x), (y, y), (x, y)))
    n = 80
    kadtk = 100 * ((xx.sum() - n) / (n * (n - 1)) + (yy.sum() - n) / (n * (n - 1)) - 2 * xy.mean())
    partners = 100 * 2 * (xy.mean() - (xy.sum() - np.trace(xy)) / (n * (n - 1)))
    assert detected_of(pairs).value == pytest.approx(kadtk + partners, rel=1e-6)


def test_a_copy_has_nothing_and_more_is_worse(rng):
    reference = rng.standard_normal((60, 6))
    noise = rng.standard_normal((60, 6))
    values = [
        detected_of(np.stack([reference, reference + level * noise], axis=1)).value for level in (0, 0.5, 1.0, 2.0)
    ]
    assert values[0] == 0 and values == sorted(values)


def test_the_size_of_the_set_does_not_matter(rng):
    """Both sides from one Gaussian: the mean over samples is 0, with few items too, and values fall on both sides."""
    values = [detected_of(rng.standard_normal((12, 2, 3))).value for _ in range(400)]
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(400)
    assert min(values) < 0 < max(values)


def test_the_items_of_a_large_set_depend_on_their_names_alone(rng, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ITEMS", 20)
    pairs, names = rng.standard_normal((70, 2, 4)).astype(np.float32), names_of(70)
    order = rng.permutation(70)
    complete = kernel_distance(pairs, names, names)
    shuffled = [names[k] for k in order]
    assert kernel_distance(pairs[order], shuffled, shuffled) == complete and complete.items == 20
    assert complete.note.as_dict() == {"code": "chosen_items", "items": 20, "seen": 70}


def test_one_item_has_no_value(rng):
    result = detected_of(rng.standard_normal((1, 2, 4)))
    assert result.value is None and result.note.as_dict() == {"code": "few_items", "needed": 2, "items": 1}
    assert detected_of(rng.standard_normal((2, 2, 4))).interval.ends is None


def test_the_interval_is_as_wide_as_samples_differ(rng):
    from scipy import stats

    values, widths = [], []
    for _ in range(60):
        result = detected_of(rng.standard_normal((160, 2, 3)) + np.array([[0.0], [0.8]]))
        values.append(result.value)
        widths.append(result.interval.high - result.interval.low)
    expected = 2 * stats.t.ppf(0.975, 7) * np.std(values, ddof=1)
    assert 0.75 < np.mean(widths) / expected < 1.35


def test_the_ends_of_an_interval_are_within_the_range(rng):
    x = rng.standard_normal((40, 4))
    pairs = np.stack([x, x + 0.9 * rng.standard_normal((40, 4))], 1).astype(np.float32)
    statistic = SETS[build_metric("coverage").aggregate]
    free = statistic(pairs, [f"item {n}" for n in range(40)], [f"item {n}" for n in range(40)]).interval
    arguments = (list(range(40)), pairs.reshape(40, -1), [None] * 40, {}, ratios, {})
    ends = SetParts(*arguments, statistic=statistic, limits=build_metric("coverage").range).interval.ends
    assert free.high > 1 and ends == [pytest.approx(free.low), 1.0]
