"""A check of a judge: its estimated cost comes first, a stopped check continues, and its results are stored."""

from __future__ import annotations

import json
import re

import pytest
from refusals import Containing, refuses

from codec_bench.apps.judging.injected import injected_answers, text_rubrics
from codec_bench.benchmark.judge.metric import JudgeMetric
from codec_bench.engine.running import Running
from codec_bench.messages import from_json
from codec_bench.store.judge_tests import HEARING, NOT_TESTED, judge_words, saved_test

LABEL = "openai-chat:m"
PRICED = {"prices": {"input": 1.0, "output": 2.0, "audio_tokens_s": 10}}


def test_findings_are_stored_and_stand_with_the_numbers(two, check, judge):
    assert judge_words(LABEL, "rating/instruct-tts-1/openai-chat:m", True) == NOT_TESTED
    findings = check(parts="sounds")
    assert (
        saved_test(LABEL) == findings.test
        and from_json(json.loads((findings.folder / "test.json").read_text())) == findings.test.as_dict()
    )
    item = findings.test.parts[HEARING]
    text = f"judge tested {item.date}: J 1.00 [{item.j.low:.2f}, 1.00]"
    assert judge_words(LABEL, "rating/instruct-tts-1/openai-chat:m", True, ["judge-1"]) == text
    assert (
        judge_words(LABEL, "rating/instruct-tts-1/x", True, ["judge-2"])
        == f"{text} of judge-1, and judge-2 gave these verdicts"
    )
    assert judge_words(LABEL, "rating/absolute-1-5-1/x", False) == f"{NOT_TESTED} with this rubric"
    assert judge_words("openai-chat:other", "rating/instruct-tts-1/x", True) == NOT_TESTED
    # A later check of texts keeps what is known of its ears.
    assert set(check(out="texts", parts="texts", rubrics="absolute-1-5").test.parts) < set(saved_test(LABEL).parts)


def test_a_check_that_was_stopped_goes_on(two, check, judge):
    complete = check(out="whole", parts="sounds").test.parts[HEARING]
    requests, judge.calls = judge.calls, 0

    class Stop(Exception):
        pass

    def progress(stage, done, total, failed, audio_s):
        if "asking" in stage and done >= 48:
            raise Stop

    with pytest.raises((Stop, BaseExceptionGroup)):
        check(parts="sounds", running=Running(progress=progress))
    before = judge.calls
    assert 48 <= before < requests
    item = check(parts="sounds").test.parts[HEARING]
    assert item == complete
    # Only requests that were in flight at the stop are sent again.
    assert judge.calls - requests <= 32


def test_repeats_are_sent_and_no_answer_comes_from_another_run(two, check, judge):
    check(parts="sounds")
    assert set(judge.requests.values()) == {2}
    check(out="again", parts="sounds")
    assert set(judge.requests.values()) == {4}


def test_calls_that_fail_are_counted_and_sent_again(two, check, judge):
    judge.override = lambda requests: "" if requests == 2 else None
    item = check(parts="sounds").test.parts[HEARING]
    assert item.failed == 48 and item.changed.n == 0 and item.j.value == 1.0
    judge.override = None
    assert check(parts="sounds").test.parts[HEARING].failed == 0


def test_replies_that_decline_or_are_silent_count_as_a_coin(two, check, judge):
    judge.override = lambda requests: "I'm sorry, I cannot listen to audio." if requests == 1 else "Hm."
    item = check(parts="sounds").test.parts[HEARING]
    assert (item.refused, item.unread, item.asked) == (48, 48, 96) and item.j.value == 0.0


def test_its_cost_is_reported_before_anything_is_sent(two, check, judge):
    messages = []
    findings = check(
        parts="sounds,texts",
        rubrics="absolute-1-5",
        options=PRICED,
        dry_run=True,
        running=Running(on_estimate=messages.append),
    )
    assert judge.calls == 0 and [one.benchmark for one in findings.previews] == [HEARING, "marks-absolute-1-5"]
    assert all("USD" in one.cost for one in findings.previews) and not saved_test(LABEL).parts
    check(
        parts="sounds", options=PRICED, running=Running(on_estimate=lambda words: messages.append((judge.calls, words)))
    )
    ((calls, words),) = messages
    assert calls == 0 and words.startswith("hearing: 96 questions with ") and "USD" in words


def test_a_limit_of_cost_stops_it_and_the_rest_is_sent_later(two, check, judge):
    from codec_bench.benchmark.run_request import Terms

    with refuses("spending_stopped", cause="cost_limit_reached"):
        check(parts="sounds", options=PRICED, terms=Terms(max_cost_usd=0.001))
    before = judge.calls
    assert 0 < before < 96
    assert (
        check(parts="sounds", options=PRICED).test.parts[HEARING].asked == 96 and judge.calls <= 96 + 5
    )  # five questions show that the same model answers


def test_a_judge_without_audio_is_not_tested_on_sounds(two, check, judge):
    deaf = {"inputs": ["text"]}
    findings = check(options=deaf, rubrics="absolute-1-5")
    ((kind, why),) = findings.excluded
    assert kind == "sounds" and why == "'openai-chat' takes text, and no sound" and HEARING not in findings.test.parts
    with refuses("judge_hearing_untestable"):
        check(out="other", options=deaf, parts="sounds")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"per_kind": 6}, {"code": "sounds_of_kind", "count": 6}),
        ({"repeats": 0}, {"code": "question_repeats", "count": 0}),
        ({"parts": "ears"}, {"code": "unknown_name", "name": "ears"}),
        ({"rubrics": "instruct-tts"}, {"code": "rubric_not_for_injected", "rubric": "instruct-tts"}),
        ({"rubrics": "nothing"}, {"code": "unknown_name", "name": "nothing"}),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(two, check, settings, message):
    with refuses(**message):
        check(**settings)


@pytest.mark.parametrize(
    ("judge", "settings", "message"),
    [
        ("whisper-large-v3", {}, {"code": "answers_no_text_question"}),
        ("tts-1", {}, {"code": "answers_no_text_question"}),
        ("gpt-4o-mini", {"parts": "sounds"}, {"code": "judge_hearing_untestable"}),
        ("nobody", {}, {"code": "unknown_name", "name": "nobody"}),
        ("gpt-4o-audio", {"parts": "texts", "rubrics": "absolute-1-5"}, {"code": "model_shut_down"}),
        (
            "gpt-4o",
            {"parts": "texts", "rubrics": "absolute-1-5"},
            {"code": "key_not_set", "variable": "OPENAI_API_KEY"},
        ),
        (
            "gpt-4o",
            {"parts": "texts", "rubrics": "absolute-1-5", "out": "named"},
            {"code": "key_not_set", "variable": "OPENAI_API_KEY"},
        ),
    ],
)
def test_what_is_no_judge_is_one_sentence_and_leaves_no_folder(tmp_path, monkeypatch, judge, settings, message):
    from codec_bench.apps.judging.api import judge_check

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with refuses(**message) as error:
        judge_check(judge, **settings)
    assert "\n" not in error.value.message and not list(tmp_path.iterdir())


def test_a_folder_of_another_check_is_refused(two, check):
    check(parts="sounds", dry_run=False)
    with refuses("folder_of_other_check", folder="check", field="seed"):
        check(parts="sounds", seed=1)


def test_the_command_prints_what_kind_of_judge_it_is(two, check, judge, command, tmp_path):
    judge.decide = lambda put: True if not put.chosen else put.right
    options = [f"--set=openai-chat.base_url={judge.url}", "--set=openai-chat.model=m", f"--out={tmp_path / 'typed'}"]
    options += [f"--set=openai-chat.prices.{name}={price}" for name, price in PRICED["prices"].items()]
    code, out, err = command("judge", "check", "openai-chat", "--parts", "sounds", *options)
    assert code == 0, err
    assert "hearing: the judge is better than a coin, and often wrong (J 0.33" in out
    assert "says yes nearly always (bias 1.00" in out and "side: its sounds have two channels" in err
    page = (tmp_path / "typed" / "report.html").read_text("utf-8")
    kinds = page.partition('id="kinds-table"')[2].partition("</table>")[0]
    assert kinds.count("<tr>") == 1 + 2 and "count of beeps" in kinds and "0.33 [" in page
    requests = re.sub(r"<[^>]+>", " ", page.partition('id="questions-table"')[2].partition("</table>")[0])
    assert "judge-1" in requests and re.search(r"9,600 input tokens; 192 output tokens; [\d.]+ USD", requests)


def test_own_code_is_sent_both_channels(check, judge, tmp_path, monkeypatch):
    from codec_bench.apps.judging.api import judge_check

    (tmp_path / "mine.py").write_text(
        "from codec_bench.models.base import Model, ModelInfo\n"
        "from codec_bench.types import Response\n"
        "class Ears(Model):\n"
        "    info = ModelInfo('ears', inputs=('text', 'audio'))\n"
        "    identity = {}\n"
        "    async def ask(self, request):\n"
        "        clip, text = request.messages[-1].content\n"
        "        samples = clip.read().samples\n"
        "        left = abs(samples[0]).max() > abs(samples[-1]).max()\n"
        "        return Response(text=('Yes' if ('left' in text) == left else 'No'))\n"
    )
    monkeypatch.setattr("codec_bench.apps.judging.api.KINDS", {"side": None})
    result = judge_check(f"{tmp_path / 'mine.py'}:Ears", parts="sounds", out=tmp_path / "own")
    assert result.excluded == () and result.test.parts[HEARING].biases["yes"].value == 0.0
    assert result.test.parts[HEARING].unread == 16


def test_a_rubric_of_ones_own_marks_the_planted_answers(two, check, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("extends: absolute-1-5\nsystem: Be strict.\n")
    findings = check(parts="texts", rubrics="./mine.yaml")
    (name,) = findings.test.parts
    stem, digest = name.removeprefix("rating/mine-").split("-")
    assert stem == digest and findings.test.parts[name].j.value == 1.0
    (tmp_path / "mine.yaml").write_text("extends: pair-speech\n")
    with refuses("rubric_not_for_injected", rubric=Containing("mine-")):
        check(out="other", parts="texts", rubrics="mine.yaml")
    with refuses("no_rubric_file", file="none.yaml"):
        check(out="other", parts="texts", rubrics="none.yaml")


def test_every_rubric_that_is_tested_by_default_asks_something():
    for name in text_rubrics():
        marked = list(injected_answers(JudgeMetric(name), 1, 0))
        assert marked and all(one.requests for one in marked), name


def test_a_rubric_that_reads_a_further_column_does_not_fit(two, check):
    with refuses("rubric_not_for_injected", rubric="uro-empathy"):
        check(parts="texts", rubrics="uro-empathy")
