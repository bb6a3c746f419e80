"""Conversations with models of this process: cascades behind a rule for the end of a turn, and models that hear and
speak at once.
"""

from __future__ import annotations

import asyncio
import time
from types import MappingProxyType

import numpy as np
import pytest
import soundfile
from refusals import refuses

from codec_bench.apps.conversation import api
from codec_bench.apps.conversation.in_process import CascadeSession, Streaming, StreamingModel
from codec_bench.apps.conversation.measures import measure
from codec_bench.apps.conversation.script import Conversation, Script
from codec_bench.apps.conversation.session import hold_conversation
from codec_bench.apps.conversation.turn_ends import Energy, Silero, TurnEnd, speech_of_model
from codec_bench.apps.conversation.user import ScriptedUser, Sounds
from codec_bench.data import open_source
from codec_bench.messages import Diagnostic
from codec_bench.models import load_model
from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response

from . import virtual
from .server import tone

TURN = {"say": "short.wav", "at_s": 0.5}  # 0.8 s of a tone from 0.5 to 1.3 s, and 0.2 s of silence


class Slowly(Model):
    """Answers each turn with 2 s of a tone, after 0.4 s."""

    identity = MappingProxyType({"kind": "slowly"})

    def __init__(self, outputs=("audio",), fails=False):
        self.info, self.requests, self.fails = ModelInfo("slowly", outputs=outputs), [], fails
        self.abandoned = 0

    async def ask(self, request):
        self.requests.append(request)
        try:
            await asyncio.sleep(0.4)
        except asyncio.CancelledError:
            self.abandoned += 1
            raise
        if self.fails == "raises":
            raise RuntimeError("it is broken")
        if self.fails:
            return Response.failed("it is broken")
        if request.wants == "text":
            return Response(text="yes")
        return Response(text="no", audio=Audio(tone(2.0)[None].astype(np.float32) / 32768, 24_000))


class Reader(Model):
    """Reads a text aloud: a tone of 0.5 s a character, at 16 kHz."""

    identity = MappingProxyType({"kind": "reader"})
    info = ModelInfo("reader", inputs=("text",), outputs=("audio",), reads="fields")

    async def ask(self, request):
        seconds = 0.5 * len(request.fields["text"])
        return Response(audio=Audio(tone(seconds, rate_hz=16_000)[None].astype(np.float32) / 32768, 16_000))


class Repeats(StreamingModel):
    """Repeats its input 0.5 s later, at half the level."""

    identity = MappingProxyType({"kind": "repeats"})
    rate_hz = output_rate_hz = 24_000

    def __init__(self, takes_s=0.0, fails_at=None):
        self.info, self.takes_s, self.fails_at = ModelInfo("repeats"), takes_s, fails_at

    def open(self, instructions):
        return Repeating(self)


class Repeating:
    def __init__(self, model):
        self.model, self.before, self.steps = model, [np.zeros(480, np.float32)] * 25, 0

    def step(self, frame):
        time.sleep(self.model.takes_s)
        self.before.append(frame)
        self.steps += 1
        if self.steps == self.model.fails_at:
            raise RuntimeError("it is broken")
        return self.before.pop(0) / 2


class Waits(StreamingModel):
    """Speaks for 3 s, 0.80 s after the user has stopped; marks no turns."""

    identity = MappingProxyType({"kind": "waits"})
    rate_hz = output_rate_hz = 24_000

    def __init__(self, stall_at=None):
        self.info, self.stall_at = ModelInfo("waits"), stall_at

    def open(self, instructions):
        return Waiting(self.stall_at)


class Waiting:
    def __init__(self, stall_at):
        self.quiet, self.left, self.stall_at = 0, 0, stall_at
        self.says = tone(0.02).astype(np.float32) / 32768

    def step(self, frame):
        spoke = np.abs(frame).max() > 0.01
        self.quiet = 0 if spoke else self.quiet + 1
        if self.quiet == 40:
            self.left = 150
        if self.left == self.stall_at:  # 10 frames without sound in every answer
            self.stall_at, self.waits = None, 10
        if getattr(self, "waits", 0):
            self.waits -= 1
            return np.zeros(0, np.float32)
        self.left -= self.left > 0
        return self.says if self.left else np.zeros(0, np.float32)


@pytest.fixture
def held(talk, monkeypatch):
    """Holds one conversation with a model of this process, on the virtual clock."""

    async def at_once(call, *args):
        return call(*args)

    def go(line, *turns, run=virtual.run, **more):
        if run is virtual.run:
            monkeypatch.setattr(asyncio, "to_thread", at_once)
        talk_ = Conversation(id="a", turns=turns)
        script = Script(version=1, title="t", conversations=[talk_], instructions="be brief", **more)

        async def main():
            await line.start()
            sounds = Sounds(None, talk.folder, line.rate_hz)
            return await hold_conversation(
                line, ScriptedUser(script, talk_, sounds, round(0.02 * line.rate_hz)), "a", script
            )

        return run(main())

    return go


def test_a_cascade_answers_when_the_rule_says_so(held):
    """The speech ends at 1.3 s; 0.5 s without any end the turn, and the answer takes 0.4 s."""
    model = Slowly()
    session = held(CascadeSession(model, None, TurnEnd.parse("energy:0.5")), TURN)
    assert (session.status, session.reason, session.text) == ("ok", "", "no")
    ((begin, end),) = speech_of_model(session.output, session.output_rate_hz)
    assert begin == pytest.approx(1.3 + 0.5 + 0.4, abs=0.03) and end - begin == pytest.approx(2.0, abs=0.02)
    (latency,) = [value.value for value in measure(session) if value.measure == "response_latency_s"]
    assert latency == pytest.approx(0.9, abs=0.03)
    (request,) = model.requests
    assert request.messages[0].content == ("be brief",) and request.wants == "audio"
    clip = request.messages[1].content[0].read()
    assert clip.sample_rate_hz == 16_000 and clip.duration_s == pytest.approx(0.3 + 0.8 + 0.5, abs=0.03)


def test_a_second_turn_knows_the_first(held):
    model = Slowly()
    held(CascadeSession(model, None, TurnEnd.parse("energy:0.5")), TURN, {"say": "hm.wav", "after_answer_s": 0.3})
    first, second = model.requests
    roles = [message.role for message in second.messages]
    assert roles == ["system", "user", "assistant", "user"] and second.messages[2].content == ("no",)
    assert second.messages[1] is first.messages[1]


def test_a_cascade_stops_when_it_is_interrupted(held):
    """An interruption of 0.8 s, 0.6 s into the answer; the rule is that 0.2 s of speech stop it."""
    model = Slowly()
    cut = {"kind": "interruption", "say": "short.wav", "into_answer_s": 0.6}
    session = held(CascadeSession(model, None, TurnEnd.parse("energy:0.5")), TURN, cut)
    begins = session.events[1].speech[0][0]
    assert session.stops[0][0] == pytest.approx(begins + 0.2, abs=0.04)
    (latency,) = [value.value for value in measure(session) if value.measure == "yield_latency_s"]
    assert latency == pytest.approx(0.2, abs=0.04) and len(model.requests) == 2


def test_an_answer_is_abandoned_when_the_user_goes_on(held):
    """A pause of 0.7 s ends the turn by the rule; 0.2 s later, before the answer is there, the user goes on."""
    model = Slowly()
    session = held(
        CascadeSession(model, None, TurnEnd.parse("energy:0.5")),
        {"say": ["hm.wav", {"pause_s": 0.5}, "hm.wav"], "at_s": 0.5},
    )
    assert model.abandoned == 1 and len(model.requests) == 2
    assert model.requests[1].messages[1].content[0].read().duration_s > 1.6  # both parts of the turn
    assert len(speech_of_model(session.output, session.output_rate_hz)) == 1


def test_another_model_reads_the_answer(held):
    model = Slowly(outputs=("text",))
    session = held(CascadeSession(model, Reader(), TurnEnd.parse("energy:0.5")), TURN)
    ((begin, end),) = speech_of_model(session.output, session.output_rate_hz)
    assert end - begin == pytest.approx(1.5, abs=0.03) and session.text == "yes"
    assert model.requests[0].wants == "text"


def test_a_model_that_fails_fails_its_session_alone(held):
    session = held(CascadeSession(Slowly(fails=True), None, TurnEnd.parse("energy:0.5")), TURN)
    assert (session.status, session.reason.code) == ("failed", "turn_not_answered")
    raises = CascadeSession(Slowly(fails="raises"), None, TurnEnd.parse("energy:0.5"))
    for line in (raises, Streaming(Repeats(fails_at=60))):
        session = held(line, TURN)
        assert session.status == "failed"
        assert session.reason == Diagnostic("model_raised", type="RuntimeError", message="it is broken")


def test_a_model_that_listens_and_speaks_at_once(held):
    """It says everything 0.5 s later: what is heard is the user's track, halved and moved by 25 frames and the one that
    is sent.
    """
    session = held(Streaming(Repeats()), TURN)
    assert session.status == "ok"
    moved = 26 * 480
    output, text = session.output[moved : moved + 40_000].astype(int), session.user[:40_000].astype(int)
    assert np.abs(output - text / 2).max() <= 1
    (overlap,) = [value.value for value in measure(session) if value.measure == "overlap"]
    assert overlap == pytest.approx((0.8 - 0.52) / (0.8 + 0.52), abs=0.03)


def test_a_model_slower_than_real_time_is_refused(held):
    """A step of 40 ms for frames of 20 ms, on the real clock: after 20 frames ten wait."""
    session = held(Streaming(Repeats(takes_s=0.04)), TURN, run=asyncio.run)
    assert session.status == "refused" and session.reason.code in ("frames_late", "frames_waiting")
    assert measure(session) == []


def test_silero_is_the_same_piece_by_piece():
    """Frame by frame it is what faster-whisper's own pass over the whole sound gives."""
    pytest.importorskip("faster_whisper")
    from faster_whisper.vad import get_vad_model

    sample = next(iter(open_source("embedded")))
    samples = Sounds(None, None, 16_000)
    samples._ids = {"one": sample}
    signal = samples.get("one")
    signal = signal[: signal.size // 512 * 512]
    detector = Silero()
    ours = [share for at in range(0, signal.size, 320) for share in detector.shares(signal[at : at + 320])]
    theirs = get_vad_model()(signal.copy()).ravel()
    ours, theirs = (
        ours[:-1],
        theirs[:-1],
    )  # their pass sets the end of the last window to zeros, where it builds the contexts
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert 0.3 < np.mean(np.array(ours) > 0.5) < 1


def test_noise_is_no_speech_to_silero_and_is_to_energy():
    pytest.importorskip("faster_whisper")
    noise = (0.05 * np.random.default_rng(0).standard_normal(16_000)).astype(np.float32)
    assert not any(Silero().push(noise)) and all(Energy().push(noise))


@pytest.mark.parametrize("rule", ["silero-vad", "silero-vad:", "other:0.7", "energy:0", "energy:60", "energy:nan"])
def test_a_rule_that_is_none(rule):
    with refuses("turn_end_rule"):
        TurnEnd.parse(rule)


def test_what_cannot_be_talked_with():
    rule = TurnEnd.parse("energy:0.7")
    with refuses("text_unspoken"):
        CascadeSession(Slowly(outputs=("text",)), None, rule)
    with refuses("does_not_speak"):
        CascadeSession(Slowly(outputs=("text",)), Slowly(outputs=("text",)), rule)
    with refuses("takes_no_conversation_sound"):
        CascadeSession(Reader(), None, rule)
    with refuses("takes_no_conversation_sound"):
        api._conversing(load_model("gpt-live-transcribe", {"key_env": None}), None, "energy:0.7")


def test_the_command_talks_with_a_model_of_ones_own(command, tmp_path, monkeypatch):
    """A cascade in one file, on the real clock, by the default rule; a second call asks nothing."""
    monkeypatch.setattr(
        "codec_bench.apps.conversation.session.too_slow", lambda late_s, frame_s: ""
    )  # this machine may be busy
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from codec_bench.models.base import Model, ModelInfo\n"
        "from codec_bench.types import Audio, Response\n"
        "class Mine(Model):\n"
        "    identity = {'kind': 'mine'}\n"
        "    def __init__(self, info):\n"
        "        self.info = ModelInfo('mine', outputs=('audio',))\n"
        "    async def ask(self, request):\n"
        "        sound = 0.3 * np.sin(np.arange(12000) / 20).astype(np.float32)\n"
        "        return Response(audio=Audio(sound[None], 24000))\n"
    )
    sample = next(iter(open_source("embedded")))
    soundfile.write(tmp_path / "said.wav", Audio.read(sample.audio).samples[0, :16_000], 16_000)
    (tmp_path / "script.yaml").write_text(
        "{version: 1, title: one, data: '', patience_s: 3, ends_s: 0.3,"
        " conversations: [{id: a, turns: [{say: said.wav, at_s: 0.1}]}]}"
    )
    typed = (
        "converse",
        "--model",
        f"{tmp_path}/mine.py:Mine",
        "--scripts",
        tmp_path / "script.yaml",
        "--out",
        tmp_path / "run",
    )
    for _ in range(2):
        code, out, err = command(*typed, "--end-of-turn", "silero-vad:0.3")
        assert code == 0, err
        assert "1 ok" in err and "response_latency" in out
    code, _, err = command(*typed, "--end-of-turn", "energy:0.3")
    assert code == 2 and "holds another run" in err


@pytest.mark.parametrize("stall_at", [None, 75])
def test_a_stream_that_marks_no_turns_has_an_answer_to_each_turn(held, stall_at):
    """Three turns; between the answers lies the user's speech and no stall."""
    later = {"say": "short.wav", "after_answer_s": 1.0}
    session = held(Streaming(Waits(stall_at)), TURN, later, later)
    assert session.status == "ok" and not session.marks_answers
    by_name = {}
    for value in measure(session):
        by_name.setdefault(value.measure, []).append(value.value)
    assert by_name["response_latency_s"] == pytest.approx([0.8] * 3, abs=0.03)
    stalled = 1.0 + (0.2 / 3 if stall_at else 0.0)
    assert by_name["real_time_factor"] == pytest.approx([stalled, 1.0, 1.0], abs=0.02)
    assert by_name["stalls"] == [float(stall_at is not None), 0.0, 0.0]
    assert by_name["stall_s"] == pytest.approx([0.2 if stall_at else 0.0, 0.0, 0.0], abs=0.021)


def test_an_answer_that_goes_on_through_a_backchannel_is_one(held):
    """The user says something short while the model speaks: no gap, so no other answer."""
    session = held(Streaming(Waits()), TURN, {"kind": "backchannel", "say": "hm.wav", "into_answer_s": 1.0})
    assert next(value.value for value in measure(session) if value.measure == "stalls") == 0.0
    factors = [value.value for value in measure(session) if value.measure == "real_time_factor"]
    assert factors[0] == pytest.approx(1.0, abs=0.02)
