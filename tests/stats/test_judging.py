"""What a judge did: counted over records whose scores say how often it was called, and what that cost."""

from __future__ import annotations

from contextlib import closing

import pytest

from codec_bench.report.open_run import open_run
from codec_bench.stats import chance_level as judging
from codec_bench.stats.chance_level import failing
from codec_bench.stats.recorded import RecordedRun
from codec_bench.stats.summary import summarise
from codec_bench.stats.summary_types import Judging
from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord
from codec_bench.store.judge_tests import NOT_TESTED
from codec_bench.store.rows import ItemRecord
from codec_bench.types import Score

NAME = "rating[mine]"
FACTS = {
    "protocol": "rating/mine-0/gpt",
    "kind": "rating",
    "judge": "gpt",
    "rubric": "mine",
    "unit": "",
    "range": [0, 5],
    "higher_is_better": True,
}


def judging_of(run, system, metric):
    """What the judge of a metric did, as the summary writes it."""
    recorded = RecordedRun(run)
    result = judging.judging_of(recorded.scores(system, metric), recorded.metrics[metric])
    return None if result is None else result.as_dict()


def judged(folder, calls, failed=(), unasked=0, facts=FACTS):
    """A record of answers with these calls of the judge, which gave no verdict on those in `failed`."""
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"m": {}}, {NAME: facts}, ())
        count = len(calls) + unasked
        writer.write_answers(
            [(QuestionRecord(n, f"q{n}", {}, ("yes",)), AnswerRecord("ok", None, "x")) for n in range(count)]
        )
        items = []
        for n in range(count):
            detail = {"calls": calls[n]} if n < len(calls) else {}
            score = (
                Score(None, "unparsed", "no rating", "p", detail=detail)
                if n in failed
                else Score.ok(3.0, "p", detail=detail)
            )
            items.append((n, ItemRecord("m", f"q{n}", "ok", None, {NAME: score})))
        writer.write_marked(items, {})
    return open_run(folder)


def test_calls_tokens_and_cost_add_up(tmp_path):
    dear = {
        "n": 2,
        "cached": 0,
        "unpriced": 0,
        "usage": {"input_tokens": 100, "output_tokens": 7, "cost_usd": 0.25},
        "served": ["a"],
        "tested": "this judge was not tested",
    }
    free = {"n": 1, "cached": 1, "unpriced": 0}
    with closing(judged(tmp_path, [dear, free, dear], failed={1}, unasked=4)) as run:
        assert judging_of(run, "m", NAME) == {
            "judge": "gpt", "rubric": "mine", "asked": 3, "failed": 1, "share": pytest.approx(1 / 3), "calls": 5,
            "cached": 1,
            "usage": {"input_tokens": 200, "output_tokens": 14}, "cost_usd": 0.5, "served": ["a"],
            "tested": NOT_TESTED, "tested_code": {"code": "judge_not_tested"},
        }  # fmt: skip


def test_a_cost_of_which_a_part_is_unknown_is_not_known(tmp_path):
    priced = {"n": 1, "cached": 0, "unpriced": 0, "usage": {"cost_usd": 0.25}}
    with closing(judged(tmp_path, [priced, {"n": 1, "cached": 0, "unpriced": 1}])) as run:
        assert judging_of(run, "m", NAME)["cost_usd"] is None


@pytest.mark.parametrize(("count", "message"), [(5, False), (6, True)])
def test_a_judge_that_fails_on_more_than_5_percent_says_so(tmp_path, count, message):
    call = {"n": 1, "cached": 0, "unpriced": 0}
    with closing(judged(tmp_path, [call] * 100, failed=set(range(count)))) as run:
        entry = summarise(run).as_dict()["systems"]["m"]["metrics"][NAME]
    assert (failing(Judging.from_dict(entry["judging"])) is not None) is message
    assert ({"code": "judge_silent", "failed": 6, "asked": 100} in entry["note_code"]["notes"]) is message


def test_a_metric_without_a_judge_has_no_judging(tmp_path):
    with closing(judged(tmp_path, [], facts={k: v for k, v in FACTS.items() if k != "judge"})) as run:
        assert judging_of(run, "m", NAME) is None and failing(None) is None
