"""Several answers to each question: intervals hold the truth of a simulation, and rules count questions as they say."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.draws import RULES, draw_statistics
from codec_bench.stats.intervals import interval, interval_of, ratios

QUESTIONS, DRAWS = 40, 5
ERRORS = (0, None)
"""The bounds that an error rate declares: a model that answers may write any number of words."""


def parts_of(right, *, speakers=None, wrong=None, missing=()):
    """The parts of answers that are right or wrong, `(questions, draws)`, and which draw each is."""
    questions, draws = right.shape
    where = {q * draws + d: (f"q{q}", d) for q in range(questions) for d in range(draws)}
    scored = [number for number in where if number not in missing]
    sums = np.stack([right.ravel()[scored].astype(float), np.ones(len(scored))], axis=1)
    units = [(speakers or {}).get(where[n][0], where[n][0]) for n in scored]
    dropped = {n: np.asarray([0.0, 1.0]) for n in (wrong or ())}
    return MetricParts(scored, sums, units, dropped, ratios, {}, True, frozenset(dropped), draws), where


def test_intervals_hold_the_truth_and_would_not_if_draws_were_used_for_questions():
    """Questions are right with a probability from Beta(1/2, 1/2), so that draws of one question resemble each other."""
    rng = np.random.default_rng(7)
    moment = float(np.prod([(0.5 + k) / (1 + k) for k in range(DRAWS)]))  # of the distribution: E[p^5]
    truth = {"mean": 0.5, "all": moment, "any": 1 - moment, "majority": 0.5}
    held, spreads, times = Counter(), [], 200
    for _ in range(times):
        p = rng.beta(0.5, 0.5, QUESTIONS)
        parts, where = parts_of(rng.random((QUESTIONS, DRAWS)) < p[:, None])
        result = draw_statistics(parts, where).as_dict()
        ends = {"mean": parts.interval.ends, **{rule: result["passes"][rule]["ci95"] for rule in RULES}}
        held.update(name for name, (low, high) in ends.items() if low <= truth[name] <= high)
        low, high = interval_of(ratios, parts.sums, None, share=True).ends
        held["naive"] += low <= 0.5 <= high
        spreads.append((result["spread"] ** 2, float((p * (1 - p)).mean()) / QUESTIONS))
    coverage = {name: held[name] / times for name in (*truth, "naive")}
    assert all(coverage[name] >= 0.91 for name in truth), coverage
    assert coverage["naive"] < 0.82, "draws are no questions, and the simulation sees it"
    seen, expected = np.mean(spreads, axis=0)
    assert seen == pytest.approx(expected, rel=0.12), "the variance between draws"


def test_rules_and_failures_by_hand():
    right = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]], bool)
    parts, where = parts_of(right, missing={7, 19}, wrong={7})  # a failure, and a draw that is undefined
    result = draw_statistics(parts, where).as_dict()
    assert (result["n"], result["questions"], result["values"]) == (4, 5, pytest.approx([4 / 5, 4 / 5, 2 / 5, 1 / 3]))
    expected = {"all": [1, 0, 0], "any": [1, 1, 0], "majority": [1, 0, 0]}
    counting = {"all": [1, 0, 0, 0], "any": [1, 1, 1, 0], "majority": [1, 0, 0, 0]}
    for rule in RULES:
        one = result["passes"][rule]
        assert (one["n"], one["failed"], one["value"]) == (3, 2, pytest.approx(np.mean(expected[rule]))), rule
        assert one["counting_failures"] == {"value": pytest.approx(np.mean(counting[rule])), "n": 4}, rule


def test_questions_of_one_speaker_are_one_unit():
    right = np.random.default_rng(1).random((12, 3)) < 0.6
    speakers = {f"q{q}": f"s{q // 3}" for q in range(12)}
    parts, where = parts_of(right, speakers=speakers)
    result = draw_statistics(parts, where, ["any"]).as_dict()["passes"]["any"]
    clusters = [speakers[question] for question in sorted(speakers)]
    passed = [right[int(question[1:])].any() for question in sorted(speakers)]
    assert result["units"] == parts.interval.units == 4 and result["ci95"] == interval(passed, clusters=clusters).ends


def test_a_value_from_which_an_answer_passes_holds_in_the_direction_of_the_metric():
    errors = np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 1.0]])
    sums = np.stack([errors.ravel(), np.full(6, 10.0)], axis=1)
    where = {n: (f"q{n // 2}", n % 2) for n in range(6)}
    parts = MetricParts(list(where), sums, [q for q, _ in where.values()], {}, ratios, {}, True, frozenset(), 2, ERRORS)
    assert draw_statistics(parts, where).as_dict()["passes"] == {}, "no error rate is right or wrong by itself"
    low = draw_statistics(parts, where, RULES, 0.2, False).as_dict()["passes"]
    assert [low[rule]["value"] for rule in RULES] == [pytest.approx(2 / 3), 1.0, pytest.approx(2 / 3)]
    high = draw_statistics(parts, where, RULES, 0.2, True).as_dict()["passes"]
    assert [high[rule]["value"] for rule in RULES] == [pytest.approx(1 / 3)] * 2 + [pytest.approx(1 / 3)]
    assert parts.interval.units == 3 and parts.interval.note.code == "few_units", "six answers to three questions"


def test_draws_of_one_question_do_not_make_an_error_rate_of_few_questions_sure():
    rng = np.random.default_rng(3)
    sums = np.stack([rng.integers(0, 4, 4000), np.full(4000, 10)], axis=1).astype(float)
    units = [f"q{n // 4}" for n in range(4000)]
    alone = MetricParts(range(4000), sums, [""] * 4000, {}, ratios, {}, bounds=ERRORS)
    together = MetricParts(range(4000), sums, units, {}, ratios, {}, draws=4, bounds=ERRORS)
    assert (alone.interval.units, together.interval.units) == (4000, 1000)
