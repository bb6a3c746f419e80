"""Sample sizes against the textbook formula and against simulated studies."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from codec_bench import paired_test
from codec_bench.stats.cluster_variance import detectable_effect
from codec_bench.stats.intervals import unit_codes
from codec_bench.stats.power import PilotSpread, plans_for, spread_of


@pytest.mark.parametrize("units", [3, 4, 7, 30, 100_000])
def test_the_detectable_effect_has_its_power(units):
    """By SciPy's noncentral t, from the fewest units on."""
    critical = stats.t.ppf(0.975, units - 1)
    effect = detectable_effect(1.0, units - 1, 0.95, 0.8)
    power = stats.nct.sf(critical, units - 1, effect) + stats.nct.cdf(-critical, units - 1, effect)
    assert power == pytest.approx(0.8, abs=1e-5)


def test_without_speakers_it_is_the_textbook_number_of_pairs():
    # Difference of half a standard deviation, two-sided 5 %, power 80 %: 34 pairs (Cohen 1988, table 2.4.1).
    (plan,) = plans_for(PilotSpread(0.0, 0.0, 1.0, 30, 30), 0.5)
    assert plan.utterances == pytest.approx(34, abs=1) and plan.utterances_per_speaker == 1
    (twice,) = plans_for(PilotSpread(0.0, 0.0, 1.0, 30, 30), 0.05)
    assert twice.utterances == pytest.approx(((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) / 0.05) ** 2, rel=0.01)


def test_the_variances_of_a_simulated_pilot_are_detected(rng):
    speakers = np.repeat(np.arange(400), 8)
    differences = rng.normal(0, 0.5, 400)[speakers] + rng.normal(0, 1.0, len(speakers))
    spread = spread_of(differences, unit_codes(speakers, len(speakers)))
    assert spread.between == pytest.approx(0.25, rel=0.2) and spread.within == pytest.approx(1.0, rel=0.1)
    assert (spread.units, spread.items) == (400, 3200)
    alone = spread_of(differences, None)
    assert (alone.between, alone.units) == (0.0, 3200)
    assert alone.within == pytest.approx(differences.var(ddof=1))


def test_the_planned_study_finds_the_difference_in_four_of_five(rng):
    plan = next(p for p in plans_for(PilotSpread(0.0, 0.25, 1.0, 30, 300), 0.3) if p.utterances_per_speaker == 5)
    result, studies = 0, 300
    speakers = np.repeat(np.arange(plan.speakers), 5)
    for _ in range(studies):
        differences = 0.3 + rng.normal(0, 0.5, plan.speakers)[speakers] + rng.normal(0, 1.0, len(speakers))
        result += paired_test(differences, np.zeros(len(speakers)), clusters=speakers).low > 0
    assert abs(result / studies - 0.8) < 4 * np.sqrt(0.8 * 0.2 / studies)


def test_more_utterances_of_a_speaker_help_only_so_far():
    plans = plans_for(PilotSpread(0.0, 0.25, 1.0, 30, 300), 0.2)
    assert plans[0].utterances_per_speaker == 1
    assert all(a.speakers > b.speakers for a, b in pairwise(plans)), "a plan that saves no speaker is not shown"
    assert plans[-1].speakers >= 0.25 * (1.96 + 0.84) ** 2 / 0.2**2, "the spread between speakers stays"


@pytest.mark.parametrize("difference", [0.0, float("nan"), float("inf"), 1e-9])
def test_a_difference_that_cannot_be_planned_for_is_named(difference):
    with refuses("difference_needs_more|difference_value"):
        plans_for(PilotSpread(0.0, 0.1, 1.0, 30, 300), difference)


def test_a_pilot_of_two_speakers_is_refused():
    with refuses("pilot_units", units=2):
        spread_of(np.ones(10), unit_codes(["a", "b"] * 5, 10))
