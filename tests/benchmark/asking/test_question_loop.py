"""The first phase: every question gets one record, whatever the model does, and what was
answered is never sent again.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from refusals import Containing, refuses
from scripted_models import Recording

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.asking.canaries import Watch
from codec_bench.benchmark.asking.question_loop import WRITE_ANSWERS, Asking, format_request, plain_fields
from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.benchmark.asking.variants import check_drawn
from codec_bench.benchmark.definition.base import Question
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.endpoints.retries import RetryPolicy
from codec_bench.report.open_run import open_run
from codec_bench.store.answers import AnswerWriter, exchanges
from codec_bench.store.record import DATABASE, Run
from codec_bench.types import Audio, Message, Request, Response

SPEECH = Audio(0.1 * np.sin(np.arange(1600) / 9, dtype=np.float32), 16000)
FACTS = {"protocol": "m/1", "kind": "answer", "unit": "", "higher_is_better": True, "aggregate": "mean"}


def questions(n, **more):
    return [Question(f"q{k}", {"question": f"{k}?"}, (str(k),), **more) for k in range(n)]


def render(question, wants="text"):
    if question.fields.get("question") is None:
        raise UserError(f"the prompt needs 'question', which '{question.id}' has not", hint="not part of a reason")
    return Request(question.id, (Message("user", (question.fields["question"],)),), wants=wants)


def ask_everything(folder, model, requests, *, wants="text", keep=lambda n: False, progress=lambda *a: None):
    """Runs the phase on a folder: (what `run` returned, counts)."""
    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"told": {}}, {"m": FACTS}, ())
        phase = Asking(model, model.start, lambda q: render(q, wants), writer, keep, send_requests, progress)
        return asyncio.run(phase.run(requests, writer.answered()))


def held(folder):
    with closing(open_run(folder)) as run:
        return {e.question.id: e for e in exchanges(run)}


def test_every_question_is_recorded_once_with_its_answer(tmp_path):
    model = Recording(lambda r: Response(text=f"to {r.id}", usage={"input_tokens": 2}, latency_s=0.5, notes=("n",)))
    messages = []
    timings = ask_everything(tmp_path, model, questions(150), progress=lambda *now: messages.append(now))
    result = held(tmp_path)
    assert [e.answer.text for e in result.values()] == [f"to q{k}" for k in range(150)]
    one = result["q7"]
    assert one.question.prompt == "user: 7?" and one.question.expected == ("7",) and one.question.number == 7
    assert one.answer.usage == {"input_tokens": 2} and one.answer.notes == ("n",) and one.answer.latency_s == 0.5
    assert (timings["asked"], timings["failed"], timings["cached"]) == (150, 0, 0) and timings["wall_s"] > 0
    assert messages[-1] == (150, 0, 0.0) and len(messages) >= 150 // WRITE_ANSWERS


def test_many_at_once_are_not_mixed_up(tmp_path):
    class Slow(Recording):
        async def ask(self, request):
            for _ in range(hash(request.id) % 7):
                await asyncio.sleep(0)
            return await super().ask(request)

    ask_everything(tmp_path, Slow(lambda r: f"to {r.id}", concurrency=16), questions(300))
    assert all(e.answer.text == f"to {id}" for id, e in held(tmp_path).items())


@pytest.mark.parametrize("concurrency", [1, 4, 32])
def test_what_costs_is_in_the_record_before_its_slot_asks_the_next(tmp_path, concurrency):
    options, dropped = [], []

    class Paid(Recording):
        charges = True

        async def ask(self, request):
            with closing(sqlite3.connect(tmp_path / DATABASE)) as db:  # as a command that is killed now would leave it
                dropped.append(len(options) - db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
            for _ in range(hash(request.id) % 7):
                await asyncio.sleep(0)
            options.append(request.id)
            return await super().ask(request)

    ask_everything(tmp_path, Paid(lambda r: f"to {r.id}", concurrency=concurrency), questions(150))
    assert len(held(tmp_path)) == len(options) == 150
    assert max(dropped) < concurrency, "answers that came and are not written are at most those in the other slots"


@pytest.mark.parametrize("places", [1, 4])
def test_what_waits_at_a_gate_is_not_sent_before_the_answer_of_its_place_is_in_the_record(tmp_path, places):
    """A model over HTTP has twice as many questions at hand as its gate lets through; some ask twice, and canaries go
    past.
    """
    options, dropped, client = [], [], RetryPolicy(places)

    class Paid(Recording):
        charges, tells_apart = True, False

        async def ask(self, request):
            async def attempt():
                if request.id not in options:  # canaries are in nobody's place
                    with closing(sqlite3.connect(tmp_path / DATABASE)) as db:
                        dropped.append(len(set(options)) - db.execute("SELECT COUNT(*) FROM answers").fetchone()[0])
                for _ in range(hash(request.id) % 7):
                    await asyncio.sleep(0)

            for _ in range(1 + hash(request.id) % 2):
                await client.run(attempt)
            options.append(request.id)
            return await super().ask(request)

    model = Paid(lambda r: f"to {r.id}", concurrency=2 * places)
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"told": {}}, {"m": FACTS}, ())
        watch = Watch(model, writer, lambda sentence: None, every=20)
        greedy = lambda question: replace(render(question), parameters={"temperature": 0})  # noqa: E731
        phase = Asking(model, model.start, greedy, writer, lambda n: False, send_requests, lambda *a: None, watch)
        asyncio.run(asyncio.wait_for(phase.run(questions(150), {}), 60))
        assert writer.meta("canary")[0]["asked"] == 5
    assert len(held(tmp_path)) == len(set(options)) == 150
    assert max(dropped) < places, "answers that came and are not written are at most those in the other places"
    assert client.gate.busy == client.gate.held == 0


def test_a_run_whose_first_answers_are_empty_at_the_limit_of_length_ends(tmp_path):
    cut = Response(text="", finish="length")
    model = Recording(lambda r: cut)
    with refuses("answers_empty_at_limit", count=8, model="told") as end:
        ask_everything(tmp_path / "a", model, questions(100))
    assert (
        end.value.hint == "'parameters: {max_tokens: 4096}' in the definition of the benchmark"
        and len(model.requests) < 100
        and held(tmp_path / "a") == {}
    )
    ask_everything(tmp_path / "b", Recording(lambda r: "fine" if r.id == "q3" else cut), questions(100))
    assert len(held(tmp_path / "b")) == 100, "one that answered shows that the settings are not wrong"
    ask_everything(tmp_path / "c", Recording(lambda r: cut), questions(5))
    assert len(held(tmp_path / "c")) == 5


def test_a_model_without_parameters_draws_by_the_definition():
    with pytest.raises(UserError) as end:
        check_drawn(2, {"temperature": 0}, "mine", Recording(lambda r: "fine"))
    assert end.value.hint.startswith(
        "'parameters: {temperature: 0.7}' in the definition of the benchmark draws answers at random"
    )


def test_a_model_that_takes_parameters_and_thinks_gets_more_room_by_its_options(tmp_path):
    class Service(Recording):
        def __init__(self, spell, parameters=None, reasons=False):
            super().__init__(spell)
            self.reasons = reasons

    for reasons, thinks in ((False, "--set told.reasons=true if it thinks before it answers, or "), (True, "")):
        with pytest.raises(UserError) as end:
            ask_everything(
                tmp_path / str(reasons),
                Service(lambda r: Response(text="", finish="length"), reasons=reasons),
                questions(9),
            )
        assert end.value.hint == f"{thinks}--set told.parameters.max_tokens=4096"


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("text", 5, "a text or None"), ("status", "weird", "'ok', 'failed' or 'refused'"),
        ("latency_s", float("nan"), "seconds or None"),
        ("notes", "abc", "a tuple of texts"), ("served", "me", "a mapping"), ("usage", None, "a mapping"),
        ("cut_s", None, "seconds"),
        ("audio", [0.1], "an Audio or None"), ("finish", 3, "a text or None"), ("attempts", None, "a whole number"),
    ],
)  # fmt: skip
def test_a_response_with_a_field_of_another_type_fails_its_question_alone(tmp_path, field, value, expected):
    model = Recording(lambda r: Response(**{"text": "fine", field: value}) if r.id == "q1" else "fine")
    ask_everything(tmp_path, model, questions(3))
    result = held(tmp_path)
    assert [result[f"q{n}"].answer.status for n in range(3)] == ["ok", "failed", "ok"]
    assert result["q1"].answer.reason == f"the model gave a Response whose {field} is {value!r}; expected {expected}"


def test_what_cannot_be_sent_is_a_failure_that_counts(tmp_path):
    requests = questions(4)
    requests[1] = Question("q1", {"question": "1?"}, ("1",), problem=Diagnostic("row_without_value", field="a"))
    requests[2] = Question("q2", {}, ("2",))
    model = Recording(lambda r: "fine")
    timings = ask_everything(tmp_path, model, requests)
    result = held(tmp_path)
    assert model.requests == ["q0", "q3"]
    assert list(result) == ["q0", "q1", "q2", "q3"] and (timings["asked"], timings["failed"]) == (4, 2)
    assert result["q1"].answer.status == "failed"
    assert result["q1"].answer.reason == Diagnostic("row_without_value", field="a")
    assert result["q2"].answer.reason == "the prompt needs 'question', which 'q2' has not"
    assert result["q1"].question.prompt is None and result["q1"].question.expected == ("1",)


def test_a_benchmark_in_which_nothing_can_be_sent(tmp_path):
    model = Recording(lambda r: "fine")
    timings = ask_everything(tmp_path, model, questions(3, problem="no"))
    assert model.requests == [] and timings["failed"] == 3
    assert ask_everything(tmp_path / "none", model, [])["asked"] == 0


@pytest.mark.parametrize(
    ("message", "status", "reason"),
    [
        ("", "ok", None),
        ("x" * 100_000, "ok", None),
        ("cut \ud83d", "ok", None),
        (Response(text=None), "failed", Diagnostic("no_answer")),
        (Response.failed("429 for an hour", attempts=9), "failed", "429 for an hour"),
        (Response.refused("no such audio"), "refused", "no such audio"),
        (ValueError("my bug"), "failed", Diagnostic("model_raised", type="ValueError", message="my bug")),
        (SystemExit("no GPU"), "failed", Diagnostic("model_raised", type="SystemExit", message="no GPU")),
    ],
)
def test_what_a_model_says_is_recorded_as_it_is(tmp_path, message, status, reason):
    model = Recording(lambda r: message if r.id == "q1" else "fine")
    ask_everything(tmp_path, model, questions(3))
    result = held(tmp_path)
    assert (result["q1"].answer.status, result["q1"].answer.reason) == (status, reason)
    assert [result[id].answer.text for id in ("q0", "q2")] == ["fine", "fine"]
    if isinstance(message, str) and message.isascii():
        assert result["q1"].answer.text == message


def test_a_synchronous_ask_is_reported(tmp_path):
    class Plain(Recording):
        def ask(self, request):
            return Response(text="fine")

    ask_everything(tmp_path, Plain(None), questions(1))
    reason = held(tmp_path)["q0"].answer.reason
    assert reason == Diagnostic("ask_is_not_async", kind="Response")


ANSWER = "audio of the answer"
NAN = Audio(np.asarray([0.1, np.nan, 0.2], np.float32), 16000)
INF = Audio(np.asarray([0.1, np.inf, 0.2], np.float32), 16000)


@pytest.mark.parametrize(
    ("message", "status", "reason"),
    [
        (Response(audio=SPEECH), "ok", None),
        (Response(audio=SPEECH, text="and words"), "ok", None),
        (Response(audio=Audio(np.zeros(1600, np.float32), 16000)), "ok", None),
        (Response(text="only words"), "failed", Diagnostic("no_audio_answer")),
        (
            Response(audio=NAN),
            "failed",
            Diagnostic("samples_not_finite", name=ANSWER, samples=1, value="nan", at_s=1 / 16000),
        ),
        (
            Response(audio=INF),
            "failed",
            Diagnostic("samples_not_finite", name=ANSWER, samples=1, value="inf", at_s=1 / 16000),
        ),
        (
            Response(audio=Audio(np.zeros(0, np.float32), 16000)),
            "failed",
            Diagnostic("sound_without_samples", name=ANSWER),
        ),
    ],
)
def test_spoken_answers_are_stored_or_state_why_not(tmp_path, message, status, reason):
    ask_everything(tmp_path, Recording(lambda r: message), questions(1), wants="audio")
    (result,) = held(tmp_path).values()
    assert (result.answer.status, result.answer.reason, result.answer.text) == (status, reason, message.text)
    if status == "ok":
        retained = Audio.read(result.answer_path)
        assert (retained.sample_rate_hz, retained.samples.shape) == (16000, (1, 1600))
        np.testing.assert_allclose(retained.samples, message.audio.samples, atol=2.0**-15)
    else:
        assert result.answer_path is None and not (tmp_path / "audio").exists()


def test_only_missing_answers_are_requested(tmp_path):
    broken = Recording(lambda r: Response.failed("down") if r.id == "q1" else "first")
    ask_everything(tmp_path, broken, questions(4))
    again = Recording(lambda r: "second")
    timings = ask_everything(tmp_path, again, questions(6))
    assert again.requests == ["q4", "q5"] and timings["asked"] == 2
    assert [e.answer.text for e in held(tmp_path).values()] == ["first", None, "first", "first", "second", "second"]


@pytest.mark.parametrize("stop", ["interrupted", "unusable"])
def test_what_was_answered_before_a_stop_is_stored(tmp_path, stop):
    def spell(request):
        if request.id != "q5":
            return "first"
        if stop == "interrupted":
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C does
            return "too late"
        raise UserError("the key is wrong")

    with pytest.raises(KeyboardInterrupt if stop == "interrupted" else UserError):
        ask_everything(tmp_path, Recording(spell), questions(9))
    retained = [e.answer.text for e in held(tmp_path).values()]
    assert retained in (["first"] * 5, ["first"] * 5 + ["too late"])
    again = Recording(lambda r: "second")
    ask_everything(tmp_path, again, questions(9))
    assert again.requests == [f"q{k}" for k in range(len(retained), 9)]
    assert [e.answer.text for e in held(tmp_path).values()] == retained + ["second"] * (9 - len(retained))


def test_questions_that_break_off_leave_what_was_answered(tmp_path):
    def breaking():
        yield from questions(800)
        raise UserError("the network went away")

    model = Recording(lambda r: "fine")
    with pytest.raises(UserError, match="went away"):
        ask_everything(tmp_path, model, breaking())
    assert 100 < len(held(tmp_path)) >= len(model.requests) - model.concurrency


def test_questions_are_read_as_they_are_needed(tmp_path):
    read = []

    def many():
        for question in questions(2000):
            read.append(question.id)
            yield question

    def spell(request):
        assert len(read) <= len(model.requests) + 600, "read far beyond what was asked"
        return "fine"

    model = Recording(spell)
    assert ask_everything(tmp_path, model, many())["failed"] == 0


def test_a_questions_sound_is_copied_where_it_is_requested_or_only_in_memory(tmp_path):
    file = tmp_path / "said.wav"
    import soundfile

    soundfile.write(file, SPEECH.samples.T, 16000)
    sounds = [
        Clip(str(file)),
        Clip(str(file)),
        Clip(SPEECH),
        Clip(file.read_bytes()),
        Clip("/gone.wav"),
        Clip(b"no sound"),
    ]
    requests = [Question(f"q{k}", {"question": "?", "audio": s}, ("a",), s) for k, s in enumerate(sounds)]
    folder = tmp_path / "run"
    ask_everything(folder, Recording(lambda r: "fine"), requests, keep=lambda n: n in (0, 4))
    result = list(held(folder).values())
    assert [e.question.source for e in result] == [str(file), str(file), None, None, "/gone.wav", None]
    assert [e.question.audio is not None for e in result] == [True, False, True, True, False, False]
    assert [e.question.duration_s for e in result] == [0.1, None, 0.1, 0.1, None, None]
    assert all(e.question.fields == {"question": "?"} for e in result), "sounds are no JSON"
    assert Audio.read(result[2].audio_path).num_samples == 1600 and str(result[1].audio_path) == str(file)


def test_a_full_disk_is_reported_and_the_answers_before_are_stored(tmp_path, monkeypatch):
    from codec_bench.benchmark.asking import question_loop as answering

    keep = answering.keep_sound

    def full(folder, stem, audio):
        if stem.endswith("0000003"):
            raise OSError(28, "No space left on device")
        return keep(folder, stem, audio)

    monkeypatch.setattr(answering, "keep_sound", full)
    model = Recording(lambda r: Response(audio=SPEECH))
    with refuses("answer_audio_not_written", cause=Containing("No space left"), hint="disk space"):
        ask_everything(tmp_path, model, questions(6), wants="audio")
    assert list(held(tmp_path)) == ["q0", "q1", "q2"]
    monkeypatch.setattr(answering, "keep_sound", keep)
    ask_everything(tmp_path, model, questions(6), wants="audio")
    assert len(held(tmp_path)) == 6 and Run(tmp_path).counts()["samples"] == 6


def test_what_a_model_received_is_shown_in_words():
    sound = Clip(SPEECH)
    request = Request(
        "a",
        (Message("system", ("Be brief.",)), Message("user", ("Who?", sound))),
        {"text": "Hi", "prompt_audio": sound},
    )
    assert format_request(request) == "system: Be brief.\n\nuser: Who? <audio>\n\ntext: Hi\n\nprompt_audio: <audio>"
    fields = {"a": 1, "b": sound, "c": [sound, "x"], "d": b"RIFF", "e": ["x"], "f": None}
    assert plain_fields(fields) == {"a": 1, "e": ["x"], "f": None}


def test_a_model_is_started_only_where_a_question_is_left(tmp_path):
    class Counted(Recording):
        started = 0

        async def start(self):
            self.started += 1

    first, again = Counted(lambda r: "yes"), Counted(lambda r: "yes")
    ask_everything(tmp_path, first, questions(3))
    ask_everything(tmp_path, again, questions(3))
    assert (first.started, again.started, again.requests) == (1, 0, [])
