"""The clocked session against the scripted server, over a real WebSocket."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from codec_bench.apps.conversation.session import Session
from codec_bench.messages import Diagnostic

from .server import Plan, tone

TURN = {"say": "short.wav", "at_s": 0.5}
SHORT = {"id": "a", "turns": [TURN]}


def test_both_tracks_on_one_clock(talk):
    """The user's tone begins at 0.5 s and lasts 0.8 s; the answer begins 0.6 s after the last
    frame with speech came.
    """
    held, logs = talk.hold([SHORT], {"": Plan()})
    session = held["a"]
    assert (session.status, session.reason, session.model) == ("ok", "", "scripted-1")
    assert session.user.size == 480 * len(session.sent_s) and logs["a"].frames == len(session.sent_s)
    assert bytes(logs["a"].sound) == session.user.tobytes()
    begin = round(0.5 * 24_000)
    assert np.abs(session.user[begin : begin + 19_200].astype(int) - tone(0.8, 200.0)).max() <= 1
    assert not session.user[:begin].any() and np.abs(session.late_s).max() < 1e-4
    begin = round(1.9 * 24_000)
    assert not session.output[:begin].any() and np.array_equal(session.output[begin : begin + 48_000], tone(2.0))
    assert session.output.size == session.user.size and session.usage == {"input_tokens": 10, "output_tokens": 20}
    # The answer ends at 3.9 s, and the service has marked it complete. The user waits for `ends_s`.
    assert session.duration_s == pytest.approx(4.9, abs=0.03)


def test_an_interruption_counts_up_to_where_it_was_played(talk):
    """2 s of answer come in 0.4 s; what was not played when the service stops is discarded,
    and the service is notified.
    """
    cut = {"kind": "interruption", "say": "short.wav", "into_answer_s": 0.6}
    held, logs = talk.hold([{"id": "a", "turns": [TURN, cut]}], {"": Plan(yields_after_s=0.3)})
    session, log = held["a"], logs["a"]
    begins = session.events[1].speech[0][0]
    assert begins == pytest.approx(1.9 + 0.6, abs=0.02)
    (stop, waiting) = session.stops[0]
    assert stop == pytest.approx(begins + 0.02 + 0.3, abs=1e-3) and waiting == pytest.approx(3.9, abs=1e-3)
    at = round(stop * 24_000)
    assert session.output[at - 480 : at].any() and not session.output[at + 1 : at + 480].any()
    assert log.messages[0]["type"] == "conversation.item.truncate" and log.messages[0]["item_id"] == "item_r1"
    assert log.messages[0]["audio_end_ms"] == pytest.approx(1000 * (stop - 1.9), abs=1)


def test_a_turn_after_the_answer(talk):
    second = {"say": "hm.wav", "after_answer_s": 0.5}
    held, _ = talk.hold([{"id": "a", "turns": [TURN, second]}], {"": Plan()})
    assert held["a"].events[1].begin_s == pytest.approx(3.9 + 0.5, abs=0.02)


def test_nobody_answers(talk):
    """The user waits for `patience_s` and goes on; an interruption without an answer is skipped and reported."""
    turns = [
        TURN,
        {"kind": "interruption", "say": "hm.wav", "into_answer_s": 1},
        {"say": "hm.wav", "after_answer_s": 0.5},
    ]
    held, _ = talk.hold([{"id": "a", "turns": turns}], {"": Plan(answer_after_s=None)}, patience_s=2.0)
    session = held["a"]
    assert session.status == "ok" and not session.output.any()
    assert session.events[1].begin_s is None and session.events[1].reason == Diagnostic("no_answer_within", limit_s=2.0)
    assert session.events[2].begin_s == pytest.approx(1.3 + 2.0, abs=0.03)


@pytest.mark.parametrize(
    "plan, status, message",
    [
        (Plan(odd="mute"), "failed", {"code": "session_not_begun", "limit_s": 15.0}),
        (Plan(drops_at_s=1.5), "failed", {"code": "connection_closed", "at_s": pytest.approx(1.55, abs=0.05)}),
        (Plan(odd="rate"), "failed", {"code": "service_rate", "expected": 24000}),
        (Plan(odd="words"), "failed", {"code": "words_without_sound"}),
        (Plan(odd="hour"), "failed", {"code": "sound_beyond_session", "most_s": 15}),
        (Plan(odd="twice"), "failed", {"code": "message_twice", "id": "event_1"}),
        (Plan(odd="late"), "failed", {"code": "sound_after_answer"}),
        (Plan(odd="mixed"), "failed", {"code": "sound_after_answer", "answer": "r1-0"}),
        (Plan(odd="odd"), "failed", {"code": "odd_sound_bytes"}),
        (Plan(answer_s=20.0, speed=100.0), "failed", {"code": "sound_beyond_session", "most_s": 15}),
        (Plan(answer_s=12.8), "failed", {"code": "session_too_long", "longest_s": 15}),
    ],
)  # fmt: skip
def test_what_a_service_does_wrong_is_reported_for_that_session(talk, plan, status, message):
    held, _ = talk.hold([SHORT, {**SHORT, "id": "b"}], {"a": plan, "b": Plan()}, longest_s=15)
    assert held["b"].status == "ok", held["b"].reason
    shown = held["a"].reason.as_dict()
    assert held["a"].status == status and {**shown, **message} == shown
    assert Session.from_dict(json.loads(json.dumps(held["a"].as_dict()))).reason.as_dict() == shown


def test_a_machine_that_is_too_slow(talk, monkeypatch):
    """Each frame is made 25 ms late on the test's clock, so that its times are refused."""
    from codec_bench.apps.conversation import session

    sleep = asyncio.sleep

    async def slow(seconds):
        await sleep(seconds + 0.025)

    monkeypatch.setattr(session.asyncio, "sleep", slow)
    held, _ = talk.hold([SHORT], {"": Plan()})
    assert held["a"].status == "refused" and held["a"].reason.code == "frames_late"


@pytest.mark.parametrize(
    "jump_s, status, message", [(-0.5, "failed", "clock_went_back"), (0.5, "refused", "frames_late")]
)
def test_a_clock_that_jumps(talk, jump_s, status, message):
    class User:
        events = ()

        def frame(self, number, output):
            if number == 5:
                asyncio.get_running_loop().now += jump_s
            return np.zeros(480, np.int16) if number < 20 else None

        def tracks(self):
            return np.zeros(480 * 20, np.int16), np.zeros(480 * 20, np.int16)

    held, _ = talk.hold([SHORT], {"": Plan()}, users={"a": User()})
    assert (held["a"].status, held["a"].reason.code) == (status, message)


def test_in_real_time(talk):
    """The same on the machine's clock: 2 s of conversation take 2 s, whatever their lateness is."""
    began, ended = [], []

    def run(main):
        async def timed():
            began.append(asyncio.get_running_loop().time())
            try:
                return await main
            finally:
                ended.append(asyncio.get_running_loop().time())

        return asyncio.run(timed())

    hm = {"id": "a", "turns": [{"say": "hm.wav", "at_s": 0.1}]}
    held, _ = talk.hold([hm], {"": Plan(answer_s=0.5, answer_after_s=0.3)}, run=run, ends_s=0.3)
    session = held["a"]
    assert session.status in ("ok", "refused") and session.output.any()
    assert ended[0] - began[0] >= session.duration_s >= 1.2
    assert min(session.late_s) > -0.001  # no frame is sent before it has been spoken
