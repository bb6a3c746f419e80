"""Every measure against values that were planted, and against sessions that are written down by hand."""

from __future__ import annotations

import numpy as np
import pytest

from codec_bench.apps.conversation.measures import MEASURES, from_people, measure, turns_of
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.user import UserEvent
from codec_bench.messages import Diagnostic

from .planted import session
from .server import FRAME_S, RATE_HZ, tone

SHARES = ("overlap", "real_time_factor")
ELSEWHERE = {"first_word_latency_s", "words_lost", "answer_matches", "answer_right", "backchannel_divergence"}
"""By words, which the server does not say (test_transcripts.py), or with what people did, below."""


def check_values(about, values, expected):
    """Every planted value within one frame, or 0.02 of a share; what has no value has a reason."""
    for name, planted in expected.items():
        got = [value.value for value in values if value.measure == name]
        assert len(got) == len(planted), (about, name, got, planted)
        for value, truth in zip(got, planted):
            if truth is None or value is None:
                assert value is truth, (about, name, got, planted)
            elif MEASURES[name].unit == "s":
                assert abs(value - truth) <= FRAME_S + 1e-6, (about, name, got, planted)
            else:
                assert value == pytest.approx(truth, abs=0.02 if name in SHARES else 1e-6), (about, name)
    for value in values:
        assert (value.value is None) == bool(value.reason), value


def check(talk, count):
    """Every planted value of so many sessions within one frame, or 0.02 of a share; every measure is among them."""
    built = [session(number) for number in range(count)]
    held, _ = talk.hold([one for one, _, _ in built], {one["id"]: plan for one, plan, _ in built})
    seen = set()
    for one, _, expected in built:
        result = held[one["id"]]
        assert result.status == "ok", (one["id"], result.reason)
        check_values(one["id"], measure(result), expected)
        seen |= set(expected)
    assert seen == {name for name in MEASURES if not name.startswith("official/")} - ELSEWHERE


def test_planted_values_are_measured(talk):
    check(talk, 22)


@pytest.mark.long
def test_planted_values_are_measured_in_300_sessions(talk):
    check(talk, 300)


def written(model, events, *, duration_s=10.0, stops=(), packets=()):
    output = np.zeros(round(duration_s * RATE_HZ), np.int16)
    for begin, end in model:
        output[round(begin * RATE_HZ) : round(end * RATE_HZ)] = tone(end - begin)
    frames = round(duration_s / FRAME_S)
    return Session(
        "w", RATE_HZ, RATE_HZ, events=events, output=output, user=np.zeros_like(output), stops=list(stops),
        packets=list(packets),
        sent_s=[FRAME_S * (n + 1) for n in range(frames)],
    )  # fmt: skip


def event(kind, *speech, pauses=()):
    return UserEvent(kind, speech[0][0], speech[-1][1], list(speech), list(pauses))


def values_of(session, name):
    return [value.value for value in measure(session) if value.measure == name]


def test_a_short_answer_is_a_turn_and_a_short_sound_in_between_is_none():
    session = written([(1.5, 1.9), (3.2, 3.6)], [event("turn", (1.0, 3.0))])
    assert turns_of(session) == ([(3.2, 3.6)], [(1.5, 1.9)])
    assert values_of(session, "response_latency_s") == [pytest.approx(0.2, abs=0.01)]


def test_a_false_turn_that_was_cut_off_is_no_backchannel():
    """0.6 s of the model in a pause, which the service then stops as the user goes on."""
    events = [event("turn", (1.0, 2.0), (3.0, 4.0), pauses=[(2.0, 3.0)])]
    output, answer = (2.5, 3.1), (4.5, 6.0)
    assert values_of(written([output, answer], events, stops=[(3.1, 4.5)]), "false_turn") == [1]
    assert values_of(written([output, answer], events), "false_turn") == [0]


def test_a_false_turn_that_ends_in_its_pause_does_not_make_the_answer_early():
    """1.2 s of the model in a pause of 1.5 s: false turn, and then an answer in time."""
    session = written([(2.1, 3.3), (5.0, 6.5)], [event("turn", (1.0, 2.0), (3.5, 4.5), pauses=[(2.0, 3.5)])])
    assert values_of(session, "false_turn") == [1] and values_of(session, "too_early") == [0]
    assert values_of(session, "response_latency_s") == [pytest.approx(0.5, abs=0.01)]


def test_an_answer_that_ended_by_itself_is_no_yield_to_a_backchannel():
    from codec_bench.apps.conversation.playback import Packet

    events = [event("turn", (0.5, 1.0)), event("backchannel", (2.6, 2.9))]
    complete = Packet(1.5, round(1.5 * RATE_HZ), round(1.5 * RATE_HZ), "a")
    by_itself = written([(1.5, 3.0)], events, packets=[complete])
    stopped = written([(1.5, 3.0)], events, packets=[complete], stops=[(3.0, 4.5)])
    assert values_of(by_itself, "kept_talking") == [None] and values_of(stopped, "kept_talking") == [0]


def test_a_session_that_is_not_whole_has_no_values():
    session = written([], [event("turn", (1.0, 2.0))])
    session.status, session.reason = "refused", "slower than real time"
    assert measure(session) == []


def test_backchannels_where_people_give_them_and_where_they_do_not():
    """Four parts of 2.5 s: the divergence of two spreads without a common part is 1 bit, and 0 of the same."""
    nods = [(1.0, 1.3), (6.0, 6.3)]
    session = written(nods, [event("turn", (0.5, 9.5))])
    results = [next(iter(from_people(session, people))).value for people in ([1, 0, 1, 0], [0, 2, 0, 2], [0, 0, 1, 0])]
    # Half of one spread lies where all of the other does: 1/2 log2(1/(3/4)) + 1/4 (log2((1/2)/(3/4)) + log2 2).
    assert results == pytest.approx([0.0, 1.0, 0.5 * np.log2(4 / 3) + 0.25 * (np.log2(2 / 3) + 1)], abs=1e-9)
    none = next(iter(from_people(written([], [event("turn", (0.5, 9.5))]), [1, 0])))
    assert none.value is None and none.reason == Diagnostic("no_backchannel")
    assert list(from_people(session, ())) == []
