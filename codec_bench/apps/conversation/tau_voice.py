"""tau-Voice's own definitions of how a model takes turns, over ticks of 0.2 s in each of which a side speaks or does
not.

A user's turn, interruption or backchannel is spoken from its first speech to its last. Vocal tics and speech to others
are no turns: each is marked in the tick in which it begins. The model speaks in a tick in which sound of it is played.
Theirs takes all of that sound; here silence of more than `SILENT_S` in it is none, as some streams are never without
sound.

Reference implementation: `src/tau2/metrics/voice_interaction_metrics.py` of sierra-research/tau2-bench, version 1.0 of
its metrics; equal on own cases and on the three simulations of its tests (paper: arXiv 2603.13686).

Where it differs from the measures without the prefix: times are whole ticks; a turn into whose end the model speaks is
left out, and so is the last one if no one speaks after it; an interruption must be yielded to before 2 s are over, and
the session must show it; a vocal tic or speech to others over an answer is counted only where the model stops for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from codec_bench.apps.conversation.activity import THRESHOLD_DBFS, WINDOW_S, Stretch, levels_dbfs, stretches
from codec_bench.apps.conversation.measures import OFFICIAL_TAU, STOPS_WITHIN_S, YIELDS_WITHIN_S, Value
from codec_bench.apps.conversation.script import ASIDES
from codec_bench.apps.conversation.session import Session

TICK_S, SILENT_S = 0.2, 1.0
YIELDS, STOPS, ANSWERS = (round(seconds / TICK_S) for seconds in (YIELDS_WITHIN_S, STOPS_WITHIN_S, 2.0))
"""The windows in ticks: to yield to an interruption, to stop for what asks for no answer, and to answer a vocal tic or
speech to others.
"""
Run = tuple[int, int]


class Tick(NamedTuple):
    """A tick.

    Args:
        user, model: whether they speak. backchannel: whether what the user says is one. aside: which of `ASIDES` is
            heard.
    """

    user: bool = False
    model: bool = False
    backchannel: bool = False
    aside: str = ""


class VoiceEvent(NamedTuple):
    """A value of a measure at a tick; `reason` says why there is none."""

    measure: str
    value: float | None
    tick: int
    reason: str = ""


def tau_voice(session: Session) -> Iterator[Value]:
    """The values of a session."""
    if session.status == "ok":
        counts: dict[str, int] = {}
        for name, value, tick, reason in find_events(ticks_of(session)):
            index = counts[name] = counts.get(name, -1) + 1
            yield Value(session.id, index, f"{OFFICIAL_TAU}/{name}", value, round(tick * TICK_S, 6), reason)


def ticks_of(session: Session) -> list[Tick]:
    """A session as ticks."""
    windows = np.zeros((2, -(-session.user.size * 100 // session.rate_hz)), bool)
    user, model = windows
    for event in session.events:
        if event.speech and event.kind not in ASIDES:
            _mark(user, (event.speech[0][0], event.speech[-1][1]))
    for packet in session.packets:
        begin_s, end_s = (at / session.heard_hz for at in (packet.begin, packet.begin + packet.samples))
        _mark(model, (begin_s, min([end_s, *(at_s for at_s, _ in session.stops if at_s >= packet.at_s)])))
    sounding = np.zeros_like(model)
    for stretch in stretches(levels_dbfs(session.heard, session.heard_hz) > THRESHOLD_DBFS, bridged_s=SILENT_S):
        _mark(sounding, stretch)
    model &= sounding
    size = round(TICK_S / WINDOW_S)
    spoken = np.pad(windows, ((0, 0), (0, -windows.shape[1] % size))).reshape(2, -1, size).max(axis=2)
    ticks = [Tick(bool(a), bool(b)) for a, b in zip(*spoken)]
    for event in session.events:
        start = int(event.speech[0][0] / TICK_S + 1e-6) if event.speech else len(ticks)
        if start < len(ticks) and event.kind in ASIDES:
            ticks[start] = ticks[start]._replace(aside=event.kind)
        elif start < len(ticks) and event.kind == "backchannel":
            ticks[start] = ticks[start]._replace(backchannel=True)
    return ticks


def _mark(windows: np.ndarray, stretch: Stretch) -> None:
    begin, end = (round(at_s / WINDOW_S) for at_s in stretch)
    windows[begin : max(begin, end)] = True


def find_events(ticks: Sequence[Tick]) -> Iterator[VoiceEvent]:
    """Every value that ticks give."""
    if len(ticks) > 1 and ticks[-1].user and not ticks[-2].user:
        ticks = ticks[:-1]  # what their simulated user ends a conversation with
    user, model = _runs([tick.user for tick in ticks]), _runs([tick.model for tick in ticks])
    yield from _responses(ticks, user, model)
    for begin, end in user:
        yield from _speech_events(ticks, begin, end, model)
    for kind in ASIDES:
        for begin, end in _runs([tick.aside == kind and not tick.user for tick in ticks]):
            yield from _aside_events(kind, begin, end, model)
    yield VoiceEvent("agent_interruptions", float(sum(ticks[begin].user for begin, _ in model)), 0)


def _responses(ticks: Sequence[Tick], user: Sequence[Run], model: Sequence[Run]) -> Iterator[VoiceEvent]:
    over = [(a, b) for a, b in user if not ticks[a].backchannel and not (b < len(ticks) and ticks[b].model)]
    for number, (_, end) in enumerate(over):
        answer = next((begin for begin, _ in model if begin >= end), None)
        again = over[number + 1][0] if number + 1 < len(over) else None
        if answer is not None and (again is None or answer <= again):
            yield VoiceEvent("response_rate", 1.0, end)
            yield VoiceEvent("response_latency_s", (answer - end) * TICK_S, end)
        elif again is not None:
            yield VoiceEvent("response_rate", 0.0, end)
            yield VoiceEvent("response_latency_s", None, end, "the user spoke again before the model did")


def _speech_events(ticks: Sequence[Tick], begin: int, end: int, model: Sequence[Run]) -> Iterator[VoiceEvent]:
    """What the model does at something that the user says."""
    asides = {tick.aside for tick in ticks[begin:end]}
    aside = next((one for one in ASIDES if one in asides), "")
    if ticks[begin].model:
        kind = "backchannel" if ticks[begin].backchannel else aside
        window = ticks[begin : begin + (STOPS if kind else YIELDS)]
        quiet = next((number for number, tick in enumerate(window) if not tick.model), None)
        if kind:
            yield VoiceEvent(f"selectivity_{kind}", float(quiet is None), begin)
            return
        why = "" if quiet is not None else f"the model did not stop within {YIELDS_WITHIN_S:g} s"
        yield VoiceEvent("yield_rate", float(quiet is not None), begin)
        yield VoiceEvent("yield_latency_s", None if quiet is None else quiet * TICK_S, begin, why)
    elif aside:
        yield VoiceEvent(f"selectivity_{aside}", float(not _answered(begin, end, model)), begin)


def _aside_events(kind: str, begin: int, end: int, model: Sequence[Run]) -> Iterator[VoiceEvent]:
    """What the model does at a vocal tic or speech to others while the user has not the floor."""
    stops = next((last for first, last in model if first <= begin < last), None)
    if stops is None:
        yield VoiceEvent(f"selectivity_{kind}", float(not _answered(begin, end, model)), begin)
    elif stops - begin <= STOPS:
        yield VoiceEvent(f"selectivity_{kind}", 0.0, begin)


def _answered(begin: int, end: int, model: Sequence[Run]) -> bool:
    return any(begin <= first <= end + ANSWERS for first, _ in model)


def _runs(speaks: Sequence[bool]) -> list[Run]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], np.asarray(speaks, bool), [False]])))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
