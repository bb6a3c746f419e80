"""Contradictions in a judge's verdicts, and spoken answers that are flagged before they are judged."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.benchmark.judge import metric as metric_module
from codec_bench.benchmark.judge import rubric as rubric_module
from codec_bench.benchmark.judge.metric import JudgeMetric
from codec_bench.benchmark.judge.replies import ALSO_SAYS, read_rating, read_yes_no
from codec_bench.benchmark.judge.spoken_answers import COPY, SILENT, STEADY, TOO_SHORT, warning_of
from codec_bench.benchmark.metrics.base import Answer
from codec_bench.data import open_source
from codec_bench.types import Audio, Response

ANSWER = "A dog barks twice, so the score is 5."


@pytest.mark.parametrize(
    "reply",
    [
        '{"reason": "Much is wrong, so the score is 2.", "score": 5}', "It deserves a 2.\nRating: 5",
        "Overall, a mark of 2.\nRating: 5",
        "I would rate it 2.\n[[5]]", '{"score": 2}\n{"score": 4}', '{"score": 2} {"score": 4}',
        '{"score": 2, "score": 4}',
        "Rating: 3\nIt names the dog.\nRating: 4", "[[3]] It names the dog. [[4]]",
    ],
)  # fmt: skip
def test_two_ratings_are_none_and_the_reason_is_reported(reply):
    verdict = read_rating(reply, low=1, high=5, answer="A dog barks.")
    assert not verdict.values and verdict.reason


@pytest.mark.parametrize(
    "reply", ['{"score": 5}\nRating: 2', "4\nIt names the dog.\nRating: 5", "[[4]]\nScore: 2 for its style."]
)
def test_another_rating_that_counts_less_is_flagged(reply):
    verdict = read_rating(reply, low=1, high=5, answer="A dog barks.")
    assert verdict.values and verdict.warning == ALSO_SAYS


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("It deserves a 5.\nRating: 5", 5), ("Overall, a score of 4 is fair.\nRating: 4", 4),
        ('{"reason": "fine", "score": 5}', 5),
        ("The reference says 4 strings, so the answer is 4, and that is right. Rating: 5", 5),
        ("Of 2 sounds it names 1. Rating: 3", 3),
        ("Therefore 3 of 5 are right. Rating: 3", 3), (f"The answer says: {ANSWER}\nRating: 1", 1),
        ('It claims "it deserves a 5".\nRating: 1', 1),
    ],
)  # fmt: skip
def test_reasoning_that_agrees_or_speaks_of_other_numbers_is_no_contradiction(reply, value):
    verdict = read_rating(reply, low=1, high=5, answer=ANSWER)
    assert verdict.values == {"score": value} and verdict.warning is None


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Yes\nThe pitch is high. So the answer is no.", None), ("No\nTherefore, yes.", None),
        ("Yes\nThe verdict: no", None),
        ("Yes\nThe verdict: yes", 1), ("No\nThe right answer is no option.", 0), ("Yes\nIt is so, no doubt.", 1),
        ("Yes. It fits, so yes.", 1),
    ],
)  # fmt: skip
def test_a_decision_against_its_reasoning_is_none(reply, value):
    verdict = read_yes_no(reply, answer="A dog barks.")
    assert verdict.values == ({} if value is None else {"score": value}) and (value is not None) == (
        verdict.reason is None
    )


def test_a_flag_and_a_cut_reply_reach_the_score():
    metric = JudgeMetric("alpaca-1-10", "judge")
    answer = Answer("q", "A dog barks.", (), {"question": "?"})
    score = metric.score(answer, 1, {"q#0": Response(text="[[4]]\nScore: 2 for its style.")})
    assert (score.value, score.detail["flag"]) == (4.0, ALSO_SAYS)
    cut = metric.score(answer, 1, {"q#0": Response(text="Rating: 1", finish="length")})
    assert (cut.value, cut.status) == (None, "unparsed")
    assert cut.reason.as_dict() == {"code": "judge_reply_cut", "characters": 9}
    official = JudgeMetric("audiobench-0-5-official", "judge").score(
        answer, 1, {"q#0": Response(text="I rate it 2. Rating: 1", finish="length")}
    )
    assert official.value == 1.0, "a published reader keeps its quirks"


def test_the_readers_are_a_part_of_the_protocol():
    actual, official = (rubric_module.load_rubric(name) for name in ("audiobench-0-5", "audiobench-0-5-official"))
    held = rubric_module.READER
    try:
        before = actual.digest, official.digest
        rubric_module.READER = held + 1
        assert actual.digest != before[0] and official.digest == before[1]
    finally:
        rubric_module.READER = held


RATE = 16_000
DRAWS = np.random.default_rng(0)
SPOKEN = [Audio.read(str(one.audio)) for one in open_source("embedded")]


def sound(samples, rate=RATE):
    return Audio(np.asarray(samples, np.float32), rate)


@pytest.mark.parametrize(
    ("answer", "flag"),
    [
        (sound(np.zeros(RATE)), SILENT), (sound(1e-5 * DRAWS.standard_normal(RATE)), SILENT),
        (sound(0.1 * DRAWS.standard_normal(2 * RATE)), STEADY),
        (sound(0.3 * np.sin(np.arange(RATE) / 7)), STEADY), (sound(SPOKEN[0].samples[0, 8000:12000]), TOO_SHORT),
        (sound([0.1]), TOO_SHORT),
        (sound(np.concatenate([np.zeros(RATE), SPOKEN[3].samples[0], np.zeros(RATE)])), None), (SPOKEN[1], None),
    ],
)  # fmt: skip
def test_what_is_no_spoken_answer_is_flagged(answer, flag):
    assert warning_of(answer, None) == flag


def test_a_copy_of_the_question_is_flagged_however_it_is_delayed_and_scaled():
    question = SPOKEN[5]
    late = sound(0.4 * np.concatenate([np.zeros(5000), question.samples[0]]))
    assert warning_of(late, question) == COPY and warning_of(question, question) == COPY
    from codec_bench.audio.resample import to_rate

    assert warning_of(to_rate(question, 24_000), question) == COPY


@pytest.mark.parametrize("number", range(0, 32, 5))
def test_speech_is_not_flagged(number):
    others = [one for at, one in enumerate(SPOKEN) if at != number]
    assert warning_of(SPOKEN[number], others[number % 31]) is None


def test_a_flag_accompanies_the_verdict_and_is_counted(tmp_path, monkeypatch):
    """Of three spoken answers one is silent and one is the question; all are judged, and both carry their flag."""
    import asyncio
    from contextlib import closing

    from scripted_models import Recording

    from codec_bench.audio.encode import write_flac
    from codec_bench.benchmark.asking.sending import send_requests
    from codec_bench.benchmark.judge.rubric import Rubric
    from codec_bench.benchmark.judging import judge_all
    from codec_bench.benchmark.scoring.scheme import Scheme
    from codec_bench.report.open_run import open_run
    from codec_bench.stats.summary import summarise
    from codec_bench.store.answers import AnswerRecord, AnswerWriter, QuestionRecord, Reading
    from codec_bench.store.rows import ItemRecord

    held = Rubric(
        version=1,
        summary="How.",
        prompt="Rate. {{ question }}",
        reply="rating",
        range=(1, 5),
        needs=["question"],
        hears=True,
    )
    monkeypatch.setattr(metric_module, "load_rubric", lambda name: held)
    built = Scheme.of((), {"rating[mine]": None}, ["judge"])
    write_flac(tmp_path / "q.flac", SPOKEN[2])
    for number, text in enumerate((SPOKEN[9], sound(np.zeros(RATE)), SPOKEN[2])):
        write_flac(tmp_path / f"{number}.flac", text)
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"model": {}}, built.facts(), ())
        requests = [QuestionRecord(n, f"q#{n}", {"question": "Say it."}, ("x",), audio="q.flac") for n in range(3)]
        writer.write_answers([(one, AnswerRecord("ok", None, "said", f"{n}.flac")) for n, one in enumerate(requests)])
        items = [(n, ItemRecord("model", one.id, "ok", None, {})) for n, one in enumerate(requests)]
        writer.write_marked(items, {n: Reading("said", "said", None) for n in range(3)})
        with closing(open_run(tmp_path)) as run:
            asyncio.run(
                judge_all(
                    run, writer, built.judged, Recording(lambda request: "Rating: 4"), send_requests, lambda *_: None, 0
                )
            )
    with closing(open_run(tmp_path)) as run:
        by_name = {score.id: (score.value, score.detail.get("flag")) for score in run.scores()}
        assert by_name == {"q#0": (4.0, None), "q#1": (4.0, SILENT), "q#2": (4.0, COPY)}
        assert summarise(run).systems["model"].metrics["rating[mine]"].flagged == 2
