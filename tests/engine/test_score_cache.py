"""A run computes the signal metrics of a sound once, however many systems follow, and other
code computes them again.
"""

from __future__ import annotations

import pytest

from codec_bench import evaluate
from codec_bench.engine import score_cache
from codec_bench.engine.score_cache import key_of, pack_scores, unpack_scores
from codec_bench.messages import Diagnostic
from codec_bench.types import Score

REQUEST = {"data": "embedded", "limit": 3, "page": False, "workers": 1, "check": False}
STAGE = "signal metrics"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CODEC_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def computed(run):
    """How many items the signal metrics were computed for, with a recorded one for each row."""
    (stage,) = (row for row in run.meta["timings"]["stages"] if row["stage"] == STAGE)
    return stage["items"]


def test_an_added_system_alone_is_computed(monkeypatch):
    metrics = "stoi,pesq_nb,si_sdr"
    first = evaluate(codec="g711-ulaw", metrics=metrics, out="a", **REQUEST)
    second = evaluate(codec="g711-ulaw,g711-alaw", metrics=metrics, out="b", **REQUEST)
    assert (computed(first), computed(second)) == (3, 3)
    assert second.meta["timings"]["cache"] == {"hits": 3, "misses": 3}
    scores = [{(s.id, s.metric): s for s in run.scores() if s.system == "g711-ulaw"} for run in (first, second)]
    assert len(scores[0]) == 9 and scores[0] == scores[1]
    third = evaluate(codec="g711-ulaw,g711-alaw", metrics=metrics, out="c", cache=False, **REQUEST)
    assert computed(third) == 6 and [*third.scores()] == [*second.scores()]
    score_cache._code_hash.cache_clear()
    monkeypatch.setattr(score_cache, "_code_hash", lambda: "other code")
    assert computed(evaluate(codec="g711-ulaw", metrics=metrics, out="d", **REQUEST)) == 3


def test_metrics_that_cost_less_than_an_entry_are_not_cached():
    for out in ("a", "b"):
        run = evaluate(codec="g711-ulaw", metrics="si_sdr", out=out, **REQUEST)
        assert computed(run) == 3 and run.meta["timings"]["cache"] == {"hits": 0, "misses": 0}


def test_whatever_a_metric_reads_is_in_the_key():
    known = {"id": "a", "text": "one", "bits": 8.0}
    key = key_of("metrics", "estimate", "reference", known)
    assert key == key_of("metrics", "estimate", "reference", {**known, "id": "b"})
    others = [
        key_of("other", "estimate", "reference", known),
        key_of("metrics", "other", "reference", known),
        key_of("metrics", "estimate", None, known),
        key_of("metrics", "reference", "estimate", known),
        *(key_of("metrics", "estimate", "reference", {**known, **change}) for change in ({"text": "1"}, {"bits": 9.0})),
    ]
    assert len({key, *others}) == len(others) + 1


def test_scores_come_back_exactly_or_are_not_stored():
    scores = {"a": Score.ok(0.1 + 0.2, "a/1", numerator=1, denominator=3, detail={"n": [1, 2.5], "word": "é"})}
    assert unpack_scores(pack_scores(scores)) == scores
    for other in (
        Score.undefined(Diagnostic("reference_silent"), "b/1"),
        Score.failed("broken", "b/1"),
        Score.ok(1.0, "b/1", detail={"pair": (1, 2)}),
        Score.ok(1.0, "b/1", detail={1: 2}),
        Score.ok(1.0, "b/1", detail={"what": object()}),
    ):
        assert pack_scores({**scores, "b": other}) is None
