"""The delta rate of exactly known curves, compared with an integral computed in another way, and refused inputs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Containing, refuses

from codec_bench.stats.bd_rate import bd_rate, bd_rate_interval

RATES = [6000, 12000, 24000, 48000]
CURVE = list(zip(RATES, [2.0, 3.0, 3.6, 4.1]))


@settings(deadline=None)  # the first call imports scipy
@given(st.floats(0.2, 5))
def test_a_curve_at_another_rate_differs_by_that_rate(factor):
    test = [(rate * factor, quality) for rate, quality in CURVE]
    assert bd_rate(anchor=CURVE, test=test) == pytest.approx(factor - 1, abs=1e-12)


def test_the_same_curve_needs_the_same_rate_in_any_order():
    assert bd_rate(anchor=CURVE, test=CURVE[::-1]) == 0.0


@settings(deadline=None)  # the first call imports scipy
@given(st.floats(0.5, 2), st.floats(-0.3, 0.3))
def test_there_and_back_is_nothing(factor, shift):
    test = [(rate * factor, quality + shift * (rate / 48000)) for rate, quality in CURVE]
    there, back = bd_rate(anchor=CURVE, test=test), bd_rate(anchor=test, test=CURVE)
    assert (1 + there) * (1 + back) == pytest.approx(1, abs=1e-12)


def test_lower_can_be_better():
    errors = [(rate, 5 - quality) for rate, quality in CURVE]
    halved = [(rate / 2, error) for rate, error in errors]
    assert bd_rate(anchor=errors, test=halved, higher_is_better=False) == pytest.approx(-0.5)


def test_a_known_integral_over_the_overlap_only():
    # Rate doubles per unit of quality on both curves, which a cubic in the logarithm reproduces exactly; the second is
    # half a unit better and reaches further, so at equal quality its rate is 2 ** -0.5 of the first's.
    anchor = [(1000 * 2.0**q, q) for q in (1, 2, 3, 4)]
    test = [(1000 * 2.0 ** (q - 0.5), q) for q in (2.5, 3, 5, 8)]
    assert bd_rate(anchor=anchor, test=test) == pytest.approx(2**-0.5 - 1, abs=1e-12)


def test_against_a_sum_over_a_fine_grid():
    from scipy.interpolate import pchip_interpolate

    other = list(zip([5000, 9000, 20000, 30000, 64000], [1.5, 2.9, 3.8, 3.9, 4.3]))
    grid = np.linspace(2.0, 4.1, 200_001)
    logs = [
        pchip_interpolate([q for _, q in points], np.log([r for r, _ in points]), grid) for points in (CURVE, other)
    ]
    expected = np.expm1(np.trapezoid(logs[1] - logs[0], grid) / (grid[-1] - grid[0]))
    assert bd_rate(anchor=CURVE, test=other) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("test", "says"),
    [
        (CURVE[:3], {"code": "curve_points", "points": 3}),
        ([(0, 1.0), *CURVE], {"code": "curve_not_numbers"}),
        (
            [(r, q if r != 24000 else 2.5) for r, q in CURVE],
            {"code": "curve_not_rising", "rate": Containing("24000 bit/s")},
        ),
        ([(r, q + 10) for r, q in CURVE], {"code": "curves_apart"}),
        ([(r, float("nan")) for r, _ in CURVE], {"code": "curve_not_numbers"}),
    ],
)
def test_what_cannot_be_compared_is_refused(test, says):
    with refuses(**says):
        bd_rate(anchor=CURVE, test=test)


def test_a_refusal_names_the_qualities_as_they_were():
    errors = [(rate, 5 - quality) for rate, quality in CURVE]
    with refuses("curves_apart", ranges="3 to 0.9 and 13 to 10.9"):
        bd_rate(anchor=errors, test=[(r, e + 10) for r, e in errors], higher_is_better=False)


def test_the_interval_is_that_of_the_full_jackknife():
    rng = np.random.default_rng(0)
    rates = [3000.0, 6000.0, 12000.0, 24000.0]
    hard = rng.normal(0, 0.3, (30, 1))
    items = np.concatenate([[2.0, 2.6, 3.1, 3.5], [2.2, 2.8, 3.3, 3.6]]) + hard + rng.normal(0, 0.1, (30, 8))
    result, left = items.mean(axis=0), (items.sum(axis=0) - items) / 29
    rated = lambda row: {"anchor": list(zip(rates, row[:4])), "test": list(zip(rates, row[4:]))}  # noqa: E731
    interval = bd_rate_interval(**rated(result), leave_one_out=left - result)
    logs = np.log1p([bd_rate(**rated(row)) for row in left])
    reach = float(scipy.stats.t.ppf(0.975, 29)) * np.sqrt(29 / 30 * np.square(logs - logs.mean()).sum())
    value = np.log1p(bd_rate(**rated(result)))
    assert interval.units == 30 and interval.low < bd_rate(**rated(result)) < interval.high < 0
    assert np.log1p([interval.low, interval.high]) == pytest.approx([value - reach, value + reach], abs=0.02 * reach)
    assert bd_rate_interval(**rated(result), leave_one_out=np.zeros((2, 8))).note.as_dict() == {
        "code": "too_few_units",
        "units": 2,
        "needed": 3,
        "purpose": "interval",
    }


@pytest.mark.parametrize("sizes", [(1,) * 5, (1,) * 30, (40, 40, *[2] * 8), (40, *[1] * 7)], ids=str)
def test_the_interval_holds_the_truth_also_where_speakers_are_unequal(sizes):
    """With (units - 1) degrees of freedom it held in 0.83 to 0.88 of such runs; 120 of them scatter by 0.02."""
    rng, sizes = np.random.default_rng(0), np.array(sizes, float)
    codes, rates = np.repeat(np.arange(len(sizes)), sizes.astype(int)), [3000.0, 6000.0, 12000.0, 24000.0]
    rated = lambda row: {"anchor": list(zip(rates, row[:4])), "test": list(zip(rates, row[4:]))}  # noqa: E731
    means, held = np.array([2.0, 2.6, 3.1, 3.5, 2.2, 2.8, 3.3, 3.6]), []
    for _ in range(120):
        items = means + rng.normal(0, 0.04, (len(sizes), 8))[codes] + rng.normal(0, 0.04, (len(codes), 8))
        sums = np.stack([np.bincount(codes, column) for column in items.T], axis=1)
        result, left = sums.sum(axis=0) / len(codes), (sums.sum(axis=0) - sums) / (len(codes) - sizes)[:, None]
        interval = bd_rate_interval(**rated(result), leave_one_out=left - result, sizes=sizes)
        held.append(interval.low <= bd_rate(**rated(means)) <= interval.high)
    assert np.mean(held) >= 0.9
    small = bd_rate_interval(**rated(means), leave_one_out=left[:3] - result, sizes=np.array([40.0, 1, 1]))
    assert small.low < small.high and small.note.code == "few_units"
