"""The spread over wordings: against sums by hand, leaving units out one by one, and dealing answers out at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codec_bench.stats import robustness as over_wordings
from codec_bench.stats.answers import wordings_of
from codec_bench.stats.breakdown import MetricParts
from codec_bench.stats.cluster_variance import degrees_of_freedom, t_quantile
from codec_bench.stats.intervals import ratios

NAMES = ("01", "02", "03", "04")


def robustness(*about):
    """How far a value depends on the wording, as the summary writes it."""
    result = over_wordings.robustness(*about)
    return None if result is None else result.as_dict()


def send(sums, *, missing=(), wrong=(), share=True, speakers=None):
    """Answers to every question in every wording, `(questions, wordings, 2)`: parts, groups, and which draw each answer
    is.
    """
    questions, wordings, _ = sums.shape
    where = {q * wordings + w: (f"q{q}", w) for q in range(questions) for w in range(wordings)}
    held = [n for n in where if n not in missing]
    units = [(speakers or {}).get(where[n][0], where[n][0]) for n in held]
    dropped = {n: np.asarray([0.0, 1.0]) for n in wrong}
    parts = MetricParts(
        held, sums.reshape(-1, 2)[held].astype(float), units, dropped, ratios, {}, share, len(dropped), wordings
    )
    return parts, {NAMES[w]: [n for n in where if where[n][1] == w] for w in range(wordings)}, where


def rights(right):
    right = np.asarray(right, float)
    return np.stack([right, np.ones_like(right)], axis=-1)


def test_values_by_hand():
    right = [[1, 0, 1, 1], [1, 0, 0, 1], [1, 0, 1, 1], [0, 0, 1, 1], [1, 0, 1, 1]]
    result = robustness(*send(rights(right)), True)
    values = np.asarray([0.8, 0.0, 0.8, 1.0])
    assert result["n"] == 4 and result["same_questions"] and result["without_value"] == [] and result["units"] == 5
    assert result["mean"]["value"] == pytest.approx(values.mean())
    assert result["sd"]["value"] == pytest.approx(values.std(ddof=1)) and result["range"]["value"] == 1
    assert (result["worst"]["wording"], result["best"]["wording"]) == ("02", "04")
    assert result["worst"]["ci95"] == robustness(*send(rights(right)), False)["best"]["ci95"], "the direction decides"
    undirected = robustness(*send(rights(right)), None)
    assert undirected["worst"] is None and undirected["best"] is None


def test_intervals_leave_out_one_question_with_all_its_answers():
    rng = np.random.default_rng(3)
    words = rng.integers(3, 12, (30, 1)).repeat(4, axis=1)
    sums = np.stack([rng.binomial(words, [0.1, 0.2, 0.2, 0.6]), words], axis=-1)
    result = robustness(*send(sums, share=False), False)
    for name, statistic in (("mean", np.mean), ("sd", lambda v: np.std(v, ddof=1)), ("range", np.ptp)):
        value = statistic(sums[..., 0].sum(0) / sums[..., 1].sum(0))
        without = [np.delete(sums, q, axis=0).sum(0) for q in range(30)]
        left = np.asarray([statistic(one[:, 0] / one[:, 1]) for one in without])
        shares = words[:, 0] / words[:, 0].sum()
        error = np.sqrt(((1 - shares) * np.square(left - value)).sum())
        half = t_quantile(0.95, degrees_of_freedom(words[:, 0].astype(float))) * error
        assert result[name]["value"] == pytest.approx(value)
        assert result[name]["ci95"] == pytest.approx([max(0, value - half), value + half]), name


def test_the_mean_of_shares_reaches_no_further_than_a_share():
    parts, groups, drawn = send(rights([[1, 1, 1, 1]] * 4 + [[0, 0, 1, 1]]))
    free = robustness(parts, groups, drawn, True)["mean"]
    bound = robustness(replace(parts, bounds=(0.0, 1.0)), groups, drawn, True)["mean"]
    assert free["ci95"][1] > 1 and bound == {"value": free["value"], "ci95": [free["ci95"][0], 1.0]}


@pytest.mark.parametrize("same", [True, False])
def test_what_chance_does_is_what_dealing_the_answers_out_does(same):
    rng = np.random.default_rng(5)
    words = rng.integers(4, 9, (40, 1)).repeat(4, axis=1)
    sums = np.stack([rng.binomial(words, rng.beta(1, 3, (40, 1))), words], axis=-1).astype(float)
    parts, groups, where = send(sums, share=False)
    result = robustness(parts, groups, where if same else {}, False)
    assert result["same_questions"] is same
    dealt = []
    for _ in range(400):
        if same:
            shuffled = np.take_along_axis(sums, rng.permuted(np.tile(np.arange(4), (40, 1)), axis=1)[..., None], axis=1)
        else:
            shuffled = rng.permutation(sums.reshape(-1, 2)).reshape(sums.shape)
        dealt.append(np.var(shuffled[..., 0].sum(0) / shuffled[..., 1].sum(0), ddof=1))
    assert result["sd_by_chance"] == pytest.approx(np.sqrt(np.mean(dealt)), rel=0.1)


def test_failures_count_as_wrong_so_that_a_wording_whose_answers_cannot_be_read_is_the_worst():
    right = rights([[1, 1, 1, 0]] * 6)
    dropped = [q * 4 + 1 for q in range(6)]
    result = robustness(*send(right, missing=dropped, wrong=dropped), True)
    assert {name: one["value"] for name, one in result["wordings"].items()} == {"01": 1, "02": 0, "03": 1, "04": 0}
    assert (result["worst"]["wording"], result["wordings"]["02"]["n"], result["wordings"]["02"]["failed"]) == (
        "02",
        0,
        6,
    )
    assert result["units"] == 6 and result["wordings"]["02"]["ci95"] == result["wordings"]["04"]["ci95"]
    unknown = robustness(*send(right, missing=dropped), True)
    assert unknown["without_value"] == ["02"] and unknown["n"] == 3, "a metric without a worst value"
    assert robustness(*send(right[:, :2], missing=[q * 2 + 1 for q in range(6)]), True) is None, "one is left"


def test_questions_of_one_speaker_are_one_unit():
    speakers = {f"q{q}": f"s{q // 3}" for q in range(12)}
    right = np.random.default_rng(1).random((12, 4)) < 0.5
    assert robustness(*send(rights(right), speakers=speakers), True)["units"] == 4


def test_the_wordings_are_those_of_the_fingerprint():
    turns = [{"role": "user", "content": [{"audio": "audio"}, {"wordings": ["a", "b"]}]}]
    assert wordings_of({"fingerprint": {"asked": {"prompt": {"name": "x", "messages": turns}}}}) == ["a", "b"]
    assert wordings_of({}) == wordings_of({"fingerprint": {"asked": {"prompt": {"fields": {}}}}}) == []
