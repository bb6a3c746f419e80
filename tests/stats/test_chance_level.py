"""Chance levels, win rate and position bias of a run against counts by hand and scipy."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from codec_bench.report.chance_level import chance_text, metric_notes
from codec_bench.stats.chance_level import policies
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import CountingFailures, MetricSummary
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score


def recorded(folder, metric, scores, *, kind, subsets=None, failures=None):
    """A run over questions with these scores of one metric."""
    writer = AnswerWriter(folder, {"asked": {}, "scored": {}})
    facts = {"protocol": "p", "unit": "", "higher_is_better": True, "kind": kind, "aggregate": "mean", "range": [0, 1]}
    writer.begin({"m": {}}, {metric: facts}, ())
    requests = [QuestionRecord(n, f"q{n}", subsets=(subsets or {}).get(n, {})) for n in range(len(scores))]
    writer.write_answers([(question, AnswerRecord("ok", None, "x")) for question in requests])
    writer.write_marked([(n, ItemRecord("m", f"q{n}", "ok", None, {metric: s})) for n, s in enumerate(scores)], {})
    writer.set_meta(benchmark={"name": "mine", **({"failures": failures} if failures else {})}, state="finished")
    writer.close()
    return summarise(Run(folder)).as_dict()["systems"]["m"]["metrics"][metric]


def test_the_chance_level_is_that_of_the_questions_that_were_scored(tmp_path):
    chances = [0.5, 0.5, 0.25, 0.25, 0.25]
    scores = [Score.ok(1.0, "p", detail={"chance": chance}) for chance in chances]
    scores += [Score(None, "unparsed", "nothing", "p"), Score.ok(0.0, "p")]
    subsets = {n: {"of": "two" if n < 2 else "four"} for n in range(5)} | {5: {"of": "none"}, 6: {"of": "none"}}
    entry = recorded(tmp_path, "accuracy[choice]", scores, kind="answer", subsets=subsets)
    assert (
        entry["chance"] == pytest.approx(fmean(chances))
        and chance_text(MetricSummary.from_dict(entry)) == "chance 0.35"
    )
    assert {name: row["chance"] for name, row in entry["subsets"]["of"].items()} == {
        "four": 0.25,
        "none": None,
        "two": 0.5,
    }
    assert "read" not in entry and "compared" not in entry and "policies" not in entry
    assert chance_text(MetricSummary.from_dict({"value": 1})) == chance_text(None) == ""


def test_win_rate_and_position_bias_have_intervals(tmp_path, rng):
    bias = rng.normal(0.4, 1.0, 60)
    actual, reference = rng.integers(1, 11, 60), rng.integers(1, 11, 60)
    scores = [
        Score.ok(
            float(a),
            "p",
            detail={"of_reference": float(r), "won": float(a > r), "tied": float(a == r), "first_minus_second": b},
        )
        for a, r, b in zip(actual, reference, bias.tolist())
    ]
    result = recorded(tmp_path, "rating[air-bench-chat]", scores, kind="rating")["compared"]
    assert result["win_rate"]["value"] == pytest.approx((actual > reference).mean()) and result["win_rate"]["n"] == 60
    assert result["ties"] == pytest.approx((actual == reference).mean()) and result["reference"] == pytest.approx(
        reference.mean()
    )
    within = stats.ttest_1samp(bias, 0).confidence_interval()
    assert result["position_bias"]["value"] == pytest.approx(bias.mean())
    assert result["position_bias"]["ci95"] == pytest.approx([within.low, within.high])
    low, high = result["win_rate"]["ci95"]
    assert 0 < low < result["win_rate"]["value"] < high < 1
    wins, level = metric_notes(
        [
            (system, name, MetricSummary.from_dict(held))
            for system, name, held in [("m", "rating[air-bench-chat]", {"compared": result, "unit": ""})]
        ]
    )
    assert "rated above the reference in" in wins and "position bias: the answer in the first place gets +" in level


def test_the_rule_of_the_toolkit_stands_next_to_both_others(tmp_path):
    worst = Score.ok(0.0, "p")
    scores = [Score.ok(1.0, "p"), Score.ok(0.0, "p"), Score(None, "unparsed", "?", "p").counting_wrong(worst)]
    for counts, expected in (("left-out", 1 / 2), ("as-wrong", 1 / 3)):
        failures = {"toolkit": "AudioBench", "counts": counts}
        entry = recorded(tmp_path / counts, "accuracy[choice]", scores, kind="answer", failures=failures)
        result = entry["policies"]
        assert (result["left_out"], result["as_wrong"]) == (1 / 2, pytest.approx(1 / 3))
        assert result["official"] == {"toolkit": "AudioBench", "counts": counts, "value": pytest.approx(expected)}
        (text,) = metric_notes(
            [(system, name, MetricSummary.from_dict(held)) for system, name, held in [("m", "accuracy[choice]", entry)]]
        )
        assert text.startswith("m with failures excluded and as wrong: accuracy[choice] 0.500 and 0.333; ")
        assert text.endswith(
            "AudioBench counts them as wrong" if counts == "as-wrong" else "AudioBench leaves them out"
        )
    same = policies(0.5, CountingFailures(0.5, 2), failures).as_dict()
    assert (
        metric_notes(
            [
                (system, name, MetricSummary.from_dict(held))
                for system, name, held in [("m", "x", {"policies": same, "unit": "", "value": 0.5, "ci95": None})]
            ]
        )
        == []
    )
    assert np.isfinite(same["official"]["value"])
