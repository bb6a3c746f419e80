"""Two at a time: strengths against a general optimiser of the same likelihood, against closed forms, and on systems of
known strength.
"""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses
from scipy.optimize import linprog, minimize

from codec_bench.stats.intervals import interval
from codec_bench.stats.pairwise_preferences import POINTS, Duel, _finite, strengths, win_rate

NAMES = ("a", "b", "c", "d")
TRUE = np.array([1.0, 0.3, -0.2, -1.1])
NU = 0.6


def drawn(draw, items):
    """Comparisons of every pair about each item, by Davidson's model."""
    duels = []
    for item in range(items):
        for i in range(len(TRUE)):
            for j in range(i + 1, len(TRUE)):
                odds = np.array([np.exp(TRUE[i]), np.exp(TRUE[j]), NU * np.exp((TRUE[i] + TRUE[j]) / 2)])
                score = (1.0, 0.0, 0.5)[draw.choice(3, p=odds / odds.sum())]
                duels.append(
                    Duel(NAMES[i], NAMES[j], score, item)
                    if draw.random() < 0.5
                    else Duel(NAMES[j], NAMES[i], 1 - score, item)
                )
    return duels


def by_optimiser(duels):
    """The strengths in points by scipy's BFGS over Davidson's likelihood, one comparison at a time."""
    names = sorted({name for duel in duels for name in duel[:2]})

    def loss(options):
        theta = dict(zip(names, options)) | {"nu": options[-1]}
        total = 0.0
        for duel in duels:
            a, b = theta[duel.a], theta[duel.b]
            tie = theta["nu"] + (a + b) / 2
            total -= {1.0: a, 0.0: b, 0.5: tie}[duel.score] - np.logaddexp(np.logaddexp(a, b), tie)
        return total + 1e-3 * sum(options[:-1]) ** 2

    result = minimize(loss, np.zeros(len(names) + 1), method="BFGS", options={"gtol": 1e-8})
    theta = result.x[:-1] - result.x[:-1].mean()
    return dict(zip(names, POINTS * theta)), np.exp(result.x[-1])


def test_strengths_are_those_of_a_general_optimiser():
    duels = drawn(np.random.default_rng(3), 40)
    expected, nu = by_optimiser(duels)
    result = strengths(duels, resamples=50)
    assert {one.system: one.points for one in result.systems} == pytest.approx(expected, abs=0.01)
    assert result.tie == pytest.approx(nu, rel=1e-4)
    assert [one.system for one in result.systems] == sorted(expected, key=expected.get, reverse=True)


def test_two_systems_have_the_odds_of_their_wins():
    """In Davidson's model of two systems the strengths are the log of wins over losses, whatever the ties."""
    duels = [Duel("a", "b", score, n) for n, score in enumerate([1.0] * 30 + [0.0] * 10 + [0.5] * 20)]
    by_name = {one.system: one.points for one in strengths(duels).systems}
    assert by_name["a"] - by_name["b"] == pytest.approx(POINTS * np.log(3), abs=1e-6)
    assert strengths(duels).tie == pytest.approx(20 / np.sqrt(30 * 10), rel=1e-6)


def test_without_a_tie_it_is_bradley_and_terry():
    """Zermelo's condition: the wins of each system are those that its strength expects."""
    draw = np.random.default_rng(5)
    duels = [duel for duel in drawn(draw, 60) if duel.score != 0.5]
    result = strengths(duels, resamples=20)
    points = {one.system: one.points for one in result.systems}
    assert result.tie == 0
    for name in NAMES:
        wins = sum((duel.score if duel.a == name else 1 - duel.score) for duel in duels if name in duel[:2])
        expected = sum(
            1 / (1 + 10 ** ((points[other] - points[name]) / 400))
            for duel in duels if name in duel[:2] for other in [duel.b if duel.a == name else duel.a]
        )  # fmt: skip
        assert wins == pytest.approx(expected, abs=1e-6)


def test_neither_the_order_nor_the_side_matters_to_strengths():
    duels = drawn(np.random.default_rng(7), 30)
    turned = [Duel(duel.b, duel.a, 1 - duel.score, duel.unit) for duel in reversed(duels)]
    one, other = (strengths(options, resamples=20).systems for options in (duels, turned))
    assert [s.points for s in one] == pytest.approx([s.points for s in other], abs=1e-6)


def test_a_graph_that_is_not_connected_is_one_sentence():
    with refuses("comparisons_apart", groups="a, b and c, d") as error:
        strengths([Duel("a", "b", 1.0, 1), Duel("c", "d", 0.0, 2)])
    assert "\n" not in error.value.message
    with refuses("no_comparison"):
        strengths([])


def test_who_always_wins_has_no_finite_strength():
    result = strengths([Duel("a", "b", 1.0, n) for n in range(20)] + [Duel("b", "c", n % 2, n) for n in range(20)])
    assert all(one.points is None for one in result.systems) and result.note.code == "infinite_strengths"


def test_wins_and_ties_alone_have_no_finite_strength():
    """Of 11 wins and a tie the likelihood grows with the strength, if nu grows with it."""
    result = strengths([Duel("a", "b", 1.0, n) for n in range(11)] + [Duel("a", "b", 0.5, 11)])
    assert all(one.points is None for one in result.systems) and result.note.code == "infinite_strengths"
    likelihood = []
    for half in (1.0, 2.0, 4.0, 8.0):  # of the difference; nu so that a tie has 1 of 12
        parts = np.array([np.exp(half), np.exp(-half), np.exp(half) / 11])
        likelihood.append(11 * np.log(parts[0] / parts.sum()) + np.log(parts[2] / parts.sum()))
    assert likelihood == sorted(likelihood)


def test_strengths_are_finite_exactly_where_no_direction_raises_the_likelihood():
    """Against a linear program over all directions of strengths and nu."""
    draw, sides = np.random.default_rng(2), np.array([[0, 1], [0, 2], [1, 2]])
    counts = draw.integers(1, 3, (400, 3, 3)) * (draw.random((400, 3, 3)) < 0.45)
    counts = counts[
        (counts.sum(axis=2) > 0).all(axis=1) & (counts[:, :, 2].any(axis=1)) & counts[:, :, :2].any(axis=(1, 2))
    ]
    eta = [[np.eye(4)[a], np.eye(4)[b], np.eye(4)[3] + (np.eye(4)[a] + np.eye(4)[b]) / 2] for a, b in sides]
    expected = []
    for table in counts:
        rises = [eta[n][k] - eta[n][m] for n in range(3) for k in range(3) if table[n, k] for m in range(3) if m != k]
        best = linprog(
            -np.sum(rises, axis=0),
            A_ub=-np.array(rises),
            b_ub=np.zeros(len(rises)),
            A_eq=[[1, 1, 1, 0]],
            b_eq=[0],
            bounds=[(-1, 1)] * 4,
        )
        expected.append(-best.fun < 1e-9)
    assert _finite(counts, sides, 3).tolist() == expected and 0.1 < np.mean(expected) < 0.9


def test_few_units_and_draws_without_a_strength_have_no_interval():
    small = strengths([Duel("a", "b", n % 2, n // 20) for n in range(40)])
    assert (
        small.units == 2
        and small.systems[0].low is None
        and small.note.as_dict() == {"code": "too_few_units", "units": 2, "needed": 3, "purpose": "interval"}
    )
    rare = strengths([Duel("a", "b", float(n > 0), n) for n in range(20)])
    assert (
        rare.systems[0].points is not None
        and rare.systems[0].low is None
        and rare.note.as_dict() == {"code": "infinite_draws", "infinite": 339, "draws": 1000}
    )


def test_a_win_rate_is_the_mean_with_the_interval_of_clusters():
    scores, clusters = [1, 0, 0.5, 1, 1, 0.5, 0, 1] * 3, [n // 2 for n in range(24)]
    result = win_rate(scores, clusters)
    assert result.value == np.mean(scores) and (result.wins, result.ties, result.losses) == (12, 6, 6)
    assert result.interval == interval(scores, clusters=clusters, bounds=(0, 1))


def covered(repetitions, items):
    draw, inside, requested = np.random.default_rng(11), 0, 0
    true = POINTS * (TRUE - TRUE.mean())
    for _ in range(repetitions):
        by_name = {one.system: one for one in strengths(drawn(draw, items), resamples=300, seed=1).systems}
        for name, value in zip(NAMES, true):
            if by_name[name].low is not None:
                requested += 1
                inside += by_name[name].low <= value <= by_name[name].high
    return inside / requested, requested / (repetitions * len(NAMES))


def test_intervals_hold_the_strengths_that_are_known():
    coverage, retained = covered(25, 50)
    assert coverage >= 0.88 and retained == 1


@pytest.mark.long
def test_intervals_hold_the_strengths_that_are_known_in_a_thousand_repetitions():
    coverage, retained = covered(1000, 50)
    assert coverage >= 0.92 and retained >= 0.99
