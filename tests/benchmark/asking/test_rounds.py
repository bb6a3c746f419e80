"""A question of several rounds: the model's own answers are turns, and no answer is named twice."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from zlib import crc32

import numpy as np
import pytest
from refusals import refuses
from scripted_models import Recording

from codec_bench.audio.clip import Clip
from codec_bench.benchmark.asking.question_loop import Asking, format_request
from codec_bench.benchmark.asking.rounds import rounds_of
from codec_bench.benchmark.asking.sending import send_requests
from codec_bench.benchmark.definition.base import Question
from codec_bench.benchmark.definition.prompt import Prompt
from codec_bench.benchmark.definition.schema import Template
from codec_bench.config import fit
from codec_bench.messages.errors import UserError
from codec_bench.models.cache import ResponseCache
from codec_bench.report.open_run import open_run
from codec_bench.store.answers import AnswerWriter, exchanges
from codec_bench.store.record import DATABASE
from codec_bench.terminal.stopping import stopping
from codec_bench.types import Audio, Response

FACTS = {"protocol": "m/1", "kind": "answer", "unit": "", "higher_is_better": True, "aggregate": "mean"}
SPEECH = Audio(0.1 * np.sin(np.arange(1600) / 9, dtype=np.float32), 16000)
TEMPLATE = Template.model_validate(
    {"rounds": "audio", "messages": [{"role": "system", "content": ["Be brief."]}, {"content": [{"audio": "audio"}]}]}
)


def question(id, rounds):
    clips = [
        Clip(Audio(np.full(160, crc32(f"{id}/{at}".encode()) / 2**33), 16000), f"{id}/{at}") for at in range(rounds)
    ]
    return Question(id, {"audio": clips}, audio=clips[0])


def ask(folder, model, questions, *, wants="text", cache=None, again=False):
    """Runs the phase on a folder; earlier requests are in its record."""
    prompt = Prompt("inline", TEMPLATE, "messages", wants)

    def every(*options, **named):
        return send_requests(*options, cache=cache, identity={"m": 1}, **named)

    with closing(AnswerWriter(folder, {"asked": {}, "scored": {}})) as writer:
        writer.begin({"told": {}}, {"m": FACTS}, ())
        if again:
            writer.delete_failed_answers()
        keep, notify = (lambda n: False), (lambda *now: None)
        phase = Asking(model, model.start, prompt.render, writer, keep, every, notify, in_rounds=True)
        asyncio.run(phase.run(questions, writer.answered()))


def held(folder):
    with closing(open_run(folder)) as run:
        return {e.question.id: e for e in exchanges(run)}


def transcribe(request):
    """The turns that a model is given, with the names of sounds."""
    return [item.name if isinstance(item, Clip) else item for turn in request.messages for item in turn.content]


@pytest.fixture
def assert_stored(tmp_path, monkeypatch, capsys):
    """Checks what a person reads who presses Ctrl-C now."""
    monkeypatch.setattr("codec_bench.terminal.stopping.ignore_interrupts", lambda: None)  # Ctrl-C still ends the tests

    def check(words):
        with pytest.raises(SystemExit), stopping() as stop:
            stop.on_folder(tmp_path, "")
            raise KeyboardInterrupt
        assert f"stopped; {words}\n" in capsys.readouterr().err

    return check


@pytest.mark.parametrize("concurrency", [1, 3])
def test_each_round_is_sent_with_the_answers_before_it(tmp_path, concurrency):
    options = []
    model = Recording(lambda r: options.append(transcribe(r)) or f"to {transcribe(r)[-1]}", concurrency)
    ask(tmp_path, model, [question("a", 3), question("b", 1), question("c", 2)])
    assert sorted(options) == sorted([
        ["Be brief.", "a/0"], ["Be brief.", "a/0", "to a/0", "a/1"],
        ["Be brief.", "a/0", "to a/0", "a/1", "to a/1", "a/2"],
        ["Be brief.", "b/0"], ["Be brief.", "c/0"], ["Be brief.", "c/0", "to c/0", "c/1"],
    ])  # fmt: skip
    assert sorted(model.requests) == ["a", "a (round 1)", "a (round 2)", "b", "c", "c (round 1)"]
    result = held(tmp_path)
    assert list(result) == ["a", "b", "c"]
    assert [text.text for text, _ in result["a"].turns] == ["to a/0", "to a/1"] and result["a"].answer.text == "to a/2"
    assert result["b"].turns == () and result["b"].answer.text == "to b/0"
    assert "assistant: to a/0" in result["a"].question.prompt


def test_a_prompt_shows_where_the_model_will_answer():
    request = Prompt("inline", TEMPLATE, "messages").render(question("a", 2))
    assert rounds_of(request) == 2 and "assistant: (what the model answers)" in format_request(request)
    with refuses("does_not_fit", mistakes={"code": "wrong_field", "message": "rounds_without_sound"}):
        fit({"rounds": "sounds", "messages": [{"content": [{"audio": "audio"}]}]}, Template, source="mine.yaml")


def test_what_was_answered_is_on_the_disk_before_the_next_round_and_is_not_bought_again(tmp_path, assert_stored):
    seen, bought = [], []

    def spell(request):
        with closing(sqlite3.connect(tmp_path / DATABASE)) as db:  # as a command that is killed now would leave it
            seen.append(db.execute("SELECT COUNT(*) FROM turns, json_each(turns.answers)").fetchone()[0])
        if len(bought) == 2:
            return UserError("the power is off")
        bought.append(request.id)
        return Response(text=f"to {transcribe(request)[-1]}", usage={"cost_usd": 0.5}, latency_s=1.0)

    model = Recording(spell)
    model.charges = True
    with pytest.raises(UserError, match="power"):
        ask(tmp_path, model, [question("a", 3)])
    assert seen == [0, 1, 2] and held(tmp_path) == {}
    assert_stored(f"2 answers are recorded in {tmp_path}, 2 of them in conversations that are not finished")
    bought.append("power is back")
    ask(tmp_path, model, [question("a", 3)])
    assert_stored(f"3 answers are recorded in {tmp_path}")
    assert bought == ["a (round 1)", "a (round 2)", "power is back", "a"]
    (one,) = held(tmp_path).values()
    assert [text.text for text, _ in one.turns] == ["to a/0", "to a/1"] and one.answer.text == "to a/2"
    assert one.answer.usage == {"cost_usd": 1.5} and one.answer.latency_s == 3.0 and one.answer.attempts == 3


def test_a_round_that_fails_ends_its_conversation_and_is_sent_again_alone(tmp_path):
    broken = {"a (round 2)"}
    model = Recording(lambda r: Response.failed("the line was down") if r.id in broken else f"to {transcribe(r)[-1]}")
    ask(tmp_path, model, [question("a", 3), question("b", 2)])
    result = held(tmp_path)
    assert (result["a"].answer.status, result["a"].answer.reason) == ("failed", "round 2 of 3: the line was down")
    assert [text.text for text, _ in result["a"].turns] == ["to a/0"] and result["b"].answer.status == "ok"
    broken.clear()
    ask(tmp_path, model, [question("a", 3), question("b", 2)], again=True)
    assert model.requests == ["a (round 1)", "a (round 2)", "b (round 1)", "b", "a (round 2)", "a"]
    assert held(tmp_path)["a"].answer.text == "to a/2"


def test_a_round_that_fails_is_recorded_once(tmp_path, monkeypatch):
    recorded = []
    record = Asking._record
    monkeypatch.setattr(Asking, "_record", lambda self, *options: recorded.append(options) or record(self, *options))
    model = Recording(lambda r: Response(text=None))
    ask(tmp_path, model, [question("a", 3)])
    assert len(recorded) == len(model.requests) == 1
    assert held(tmp_path)["a"].answer.reason == "round 1 of 3: the model gave neither text nor audio"


def test_rounds_that_are_all_empty_at_the_limit_of_length_leave_no_turns(tmp_path):
    model = Recording(lambda r: Response(text="", finish="length"))
    with refuses("answers_empty_at_limit", count=8, model="told"):
        ask(tmp_path, model, [question(f"q{n}", 3) for n in range(9)])
    with closing(AnswerWriter(tmp_path, {"asked": {}, "scored": {}})) as writer:
        assert not writer.has_requests() and len(model.requests) == 8


@pytest.mark.parametrize("words", [None, "in words"])
def test_a_spoken_answer_is_a_turn_in_its_words_or_as_its_sound(tmp_path, words):
    options = []

    def spell(request):
        options.append([item for turn in request.messages if turn.role == "assistant" for item in turn.content])
        return Response(text=words, audio=SPEECH)

    ask(tmp_path, Recording(spell), [question("a", 2)], wants="audio")
    (actual,) = options[1]
    assert actual == words if words else actual.read().samples == pytest.approx(SPEECH.samples, abs=1e-4)
    (one,) = held(tmp_path).values()
    ((text, path),) = one.turns
    assert path.is_file() and one.answer_path.is_file() and path != one.answer_path and text.text == words


@pytest.mark.parametrize("lose", [lambda file: file.unlink(), lambda file: file.write_bytes(b"no sound")])
def test_a_round_whose_sound_is_missing_is_sent_again(tmp_path, lose):
    stopped = Recording(lambda r: UserError("the power is off") if r.id == "a" else Response(audio=SPEECH))
    with pytest.raises(UserError, match="power"):
        ask(tmp_path, stopped, [question("a", 4)], wants="audio")
    lose(next((tmp_path / "audio" / "answers").glob("0000000-2-*.flac")))
    model = Recording(lambda r: Response(audio=SPEECH))
    ask(tmp_path, model, [question("a", 4)], wants="audio")
    assert model.requests == ["a (round 2)", "a (round 3)", "a"] and held(tmp_path)["a"].answer.status == "ok"


def test_a_round_without_the_sound_that_is_needed_fails(tmp_path):
    ask(tmp_path, Recording(lambda r: "in words"), [question("a", 2)], wants="audio")
    (one,) = held(tmp_path).values()
    assert one.answer.reason == "round 1 of 2: the model gave no audio, and the benchmark needs it"


def test_cached_answers_stand_for_the_rounds_that_were_sent_in_another_run(tmp_path):
    questions = [question(f"q{n}", 1 + n % 3) for n in range(12)]
    first, second = (Recording(lambda r: f"to {transcribe(r)[-1]}", 4) for _ in range(2))
    with closing(ResponseCache(tmp_path / "cache")) as cache:
        ask(tmp_path / "one", first, questions, cache=cache)
        ask(tmp_path / "two", second, questions, cache=cache)
    assert len(first.requests) == 24 and second.requests == []
    assert [e.answer.text for e in held(tmp_path / "two").values()] == [
        e.answer.text for e in held(tmp_path / "one").values()
    ]
    assert all(e.answer.cached for e in held(tmp_path / "two").values())
