"""The simulated network: jitter and loss by seed, planted in the latencies by arithmetic."""

from __future__ import annotations

import pytest

from codec_bench.apps.conversation.measures import measure
from codec_bench.apps.conversation.script import random_of

from .server import FRAME_S, Plan

NETWORK = {"delay_s": 0.03, "jitter_s": 0.06, "loss": 0.1, "again_s": 0.15}
SEED, SPEECH_S, BEGINS_S, AFTER_S = 3, 0.8, 0.5, 0.7


def lates(name, variant, count):
    """How late each message of a direction is, drawn as the network says that it draws."""
    random, out = random_of(SEED, name, variant), []
    for _ in range(count):
        late = NETWORK["delay_s"] + NETWORK["jitter_s"] * random.random()
        while random.random() < NETWORK["loss"]:
            late += NETWORK["again_s"]
        out.append(late)
    return out


def truth(name):
    """The latency that a person hears: the first frame without speech arrives, the service waits, its first sound
    arrives.
    """
    frames = round((BEGINS_S + SPEECH_S) / FRAME_S) + 1  # up to the first one without speech
    up, down = lates(name, "up", frames + 1)[1:], lates(name, "down", 3)
    arrives = 0.0
    for number, late in enumerate(up):
        arrives = max(arrives, (number + 1) * FRAME_S + late)
    return arrives - FRAME_S + AFTER_S + down[2] - (BEGINS_S + SPEECH_S)  # after two messages that opened the session


def check(talk, count):
    turns = [{"say": "short.wav", "at_s": BEGINS_S}]
    talks = [{"id": f"n-{number}", "turns": turns} for number in range(count)]
    held, logs = talk.hold(talks, {"": Plan(answer_after_s=AFTER_S)}, network=NETWORK, seed=SEED)
    expected = {}
    for name, session in held.items():
        assert session.status == "ok" and abs(session.late_s).max() < 1e-4  # the machine itself is not late
        (value,) = (v.value for v in measure(session) if v.measure == "response_latency_s")
        expected[name] = truth(name)
        assert abs(value - expected[name]) <= FRAME_S, (name, value, expected[name])
        # Nothing is lost for good, and nothing overtakes: the service received the user's audio, as far as it came.
        assert session.user.tobytes().startswith(bytes(logs[name].sound)) and logs[name].frames > 100
    assert max(expected.values()) - min(expected.values()) > 2 * FRAME_S  # so that the draws matter


def test_jitter_and_loss_are_planted(talk):
    check(talk, 8)


@pytest.mark.long
def test_jitter_and_loss_are_planted_in_300_sessions(talk):
    check(talk, 300)
