"""tau-Voice's definitions against what its own script gives, and against sessions whose values are planted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from codec_bench.apps.conversation.distributions import summarise
from codec_bench.apps.conversation.measures import MEASURES, OFFICIAL_TAU, Value, measure
from codec_bench.apps.conversation.playback import Packet
from codec_bench.apps.conversation.tau_voice import TICK_S, Tick, find_events, tau_voice, ticks_of

from .planted import session
from .server import FRAME_S, RATE_HZ, Plan
from .test_measures import event, written

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "tau_voice.json").read_text())
PANEL = (
    "response_latency_s", "yield_latency_s", "response_rate", "yield_rate", "agent_interruptions",
    "selectivity_backchannel", "selectivity_vocal_tic", "selectivity_non_directed",
)  # fmt: skip
ASIDE = {".": "", "t": "vocal_tic", "n": "non_directed"}


def read(spoken, extra):
    """Ticks as letters: nobody, user, model, both; upper case for a backchannel, and what is beside."""
    return [Tick(a in "ubUB", a in "mbB", a in "UB", ASIDE[b]) for a, b in zip(spoken, extra, strict=True)]


def panel(several):
    """(the eight figures in their order, how many of each) of sessions given as ticks, by the summary of a run."""
    values = [
        Value(str(number), 0, f"{OFFICIAL_TAU}/{one.measure}", one.value, 0.0, one.reason)
        for number, ticks in enumerate(several)
        for one in find_events(ticks)
    ]
    held = summarise([], values)["measures"]
    options = [held[f"{OFFICIAL_TAU}/{name}"] for name in PANEL]
    turns = held[f"{OFFICIAL_TAU}/response_rate"]["n"]
    counts = [
        turns,
        *(one["n"] for one in (options[3], *options[5:])),
        sum(v.value or 0 for v in values if v.measure.endswith("/agent_interruptions")),
    ]
    return [one.get("mean", one.get("value")) for one in options], counts


def same(actual, case):
    figures, counts = actual
    assert counts == case["counts"]
    for name, got, theirs in zip(PANEL, figures, case["figures"], strict=True):
        assert got is None if theirs is None else got == pytest.approx(theirs, abs=1e-9), (name, got, theirs)


def test_their_script_gives_the_same_for_synthetic_ticks():
    cases = GOLDEN["cases"]
    assert len(cases) == 150 and all(sum(case["counts"][n] > 0 for case in cases) > 60 for n in range(6))
    for case in cases:
        same(panel([read(*case["ticks"])]), case)


@pytest.mark.parametrize("which", ["simulations", "sessions"])
def test_their_script_gives_the_same_for_conversations(which):
    """The three simulations of its own tests, and 44 sessions with the scripted server."""
    several = [read(*ticks) for ticks in GOLDEN[which]["ticks"]]
    assert len(several) == {"simulations": 3, "sessions": 44}[which]
    same(panel(several), GOLDEN[which])


def test_planted_latencies_are_measured_within_two_ticks(talk):
    """A tick in which a side speaks at all is its own: a gap is shorter by up to two ticks,
    and the speech is longer.
    """
    built = [session(number) for number in range(44)]
    held, _ = talk.hold([one for one, _, _ in built], {one["id"]: plan for one, plan, _ in built})
    seen = 0
    for one, _, expected in built:
        result = list(tau_voice(held[one["id"]]))
        for value in result:
            assert (value.value is None) == bool(value.reason) and value.measure in MEASURES
        for name, sign in (("response_latency_s", -1), ("yield_latency_s", 1)):
            planted = [value for value in expected.get(name, ()) if value is not None]
            got = [v.value for v in result if v.measure == f"{OFFICIAL_TAU}/{name}" and v.value is not None]
            if planted and one["id"].partition("-")[0] in ("plain", "interrupted", "nodding"):
                assert len(got) == len(planted)
                assert all(-FRAME_S <= sign * (a - b) <= 2 * TICK_S + FRAME_S for a, b in zip(got, planted)), (
                    one["id"],
                    name,
                    got,
                    planted,
                )
                seen += len(planted)
    assert seen >= 16


@pytest.mark.parametrize("kind", ["vocal_tic", "non_directed"])
@pytest.mark.parametrize("ignored", [False, True])
def test_what_is_not_for_the_model(talk, kind, ignored):
    """Into an answer, where theirs counts only that the model stops, and into the silence after it."""
    # A server that ignores what comes later answers once, 0.5 s after the user's first speech of 0.8 s.
    plan = (
        Plan(answer_after_s=None, barges_at_s=1.3, answer_s=3.0, deaf_s=0.5)
        if ignored
        else Plan(answer_s=3.0, yields_after_s=0.1)
    )
    first, aside = {"say": "short.wav", "at_s": 0.5}, {"kind": kind, "say": "hm.wav"}
    places = {"over": {"into_answer_s": 1.0}, "silent": {"after_answer_s": 0.2}}
    held, _ = talk.hold(
        [{"id": name, "turns": [first, {**aside, **at}]} for name, at in places.items()], dict.fromkeys(places, plan)
    )
    by_name = {
        name: [v.value for v in tau_voice(one) if v.measure == f"{OFFICIAL_TAU}/selectivity_{kind}"]
        for name, one in held.items()
    }
    assert by_name == {"over": [] if ignored else [0.0], "silent": [float(ignored)]}
    assert [v.value for v in measure(held["over"]) if v.measure == "kept_talking"] == [float(ignored)]


def test_what_was_thrown_away_and_long_silence_are_no_speech():
    """An answer of 4 s that is stopped after 1 s, then one with silences of 0.6 and 1.4 s in it."""
    rate = RATE_HZ
    sound = [(1.0, 2.0), (6.0, 7.0), (7.6, 8.0), (9.4, 10.0)]
    packets = [Packet(1.0, rate, 4 * rate, "a"), Packet(6.0, 6 * rate, 4 * rate, "b")]
    held = written(
        sound,
        [event("turn", (0.0, 0.4)), event("backchannel", (3.1, 3.3))],
        duration_s=11.0,
        packets=packets,
        stops=[(2.0, 5.0)],
    )
    ticks = ticks_of(held)
    spoken = np.flatnonzero([tick.model for tick in ticks])
    assert len(ticks) == 55 and spoken.tolist() == [*range(5, 10), *range(30, 40), *range(47, 50)]
    assert [n for n, tick in enumerate(ticks) if tick.user] == [0, 1, 15, 16]
    assert [n for n, tick in enumerate(ticks) if tick.backchannel] == [15]


def test_a_session_that_is_not_whole_has_none():
    session = written([], [event("turn", (1.0, 2.0))])
    session.status, session.reason = "failed", "closed"
    assert list(tau_voice(session)) == []
