"""tau-Voice's definitions of turn-taking, over ticks of 0.2 s of both sides.

A user's turn, interruption or backchannel spans its first to last speech; a vocal tic or speech to others marks its
first tick. The model speaks in ticks with its audio, without silence of more than `SILENT_S` (theirs counts all audio).
Unlike the unprefixed measures, times are whole ticks, a turn that the model overlaps at its end or a last turn without
later speech is excluded, an interruption needs 2 s to show yielding, and asides over an answer count only if the model
stops. Reference implementation: `src/tau2/metrics/voice_interaction_metrics.py` of sierra-research/tau2-bench, metrics
version
1.0; equal on own cases and its three test simulations (paper: arXiv 2603.13686).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from codec_bench.apps.conversation.measures import OFFICIAL_TAU, STOPS_WITHIN_S, YIELDS_WITHIN_S, Value
from codec_bench.apps.conversation.script import ASIDES
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.turn_ends import THRESHOLD_DBFS, WINDOW_S, Stretch, levels_dbfs, stretches
from codec_bench.messages import Diagnostic

TICK_S, SILENT_S = 0.2, 1.0
YIELDS, STOPS, ANSWERS = (round(seconds / TICK_S) for seconds in (YIELDS_WITHIN_S, STOPS_WITHIN_S, 2.0))
"""Windows in ticks: to yield to an interruption, to stop for an aside, and to answer one."""
Run = tuple[int, int]


class Tick(NamedTuple):
    """Who speaks in a tick, whether as a backchannel, and which aside begins."""

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
    """Yield the measures of tau-Voice for a session."""
    if session.status == "ok":
        counts: dict[str, int] = {}
        for name, value, tick, reason in find_events(ticks_of(session)):
            index = counts[name] = counts.get(name, -1) + 1
            yield Value(session.id, index, f"{OFFICIAL_TAU}/{name}", value, round(tick * TICK_S, 6), reason)


def ticks_of(session: Session) -> list[Tick]:
    """Convert a session to ticks of `TICK_S`: who speaks, and which event begins."""
    windows = np.zeros((2, -(-session.user.size * 100 // session.rate_hz)), bool)
    user, model = windows
    for event in session.events:
        if event.speech and event.kind not in ASIDES:
            _mark(user, (event.speech[0][0], event.speech[-1][1]))
    for packet in session.packets:
        begin_s, end_s = (at / session.output_rate_hz for at in (packet.begin, packet.begin + packet.samples))
        _mark(model, (begin_s, min([end_s, *(at_s for at_s, _ in session.stops if at_s >= packet.at_s)])))
    sounding = np.zeros_like(model)
    for stretch in stretches(levels_dbfs(session.output, session.output_rate_hz) > THRESHOLD_DBFS, bridged_s=SILENT_S):
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
    """Yield the values of all measures, from a session's ticks."""
    if len(ticks) > 1 and ticks[-1].user and not ticks[-2].user:
        ticks = ticks[:-1]  # their simulated user ends a conversation with it
    user, model = _runs([tick.user for tick in ticks]), _runs([tick.model for tick in ticks])
    yield from _responses(ticks, user, model)
    for begin, end in user:
        yield from _speech_events(ticks, begin, end, model)
    for kind in ASIDES:
        for begin, end in _runs([tick.aside == kind and not tick.user for tick in ticks]):
            yield from _aside_events(kind, begin, end, model)
    yield VoiceEvent("agent_interruptions", float(sum(ticks[begin].user for begin, _ in model)), 0)


def _responses(ticks: Sequence[Tick], user: Sequence[Run], model: Sequence[Run]) -> Iterator[VoiceEvent]:
    """Yield whether and how fast the model answered each user turn."""
    over = [(a, b) for a, b in user if not ticks[a].backchannel and not (b < len(ticks) and ticks[b].model)]
    for number, (_, end) in enumerate(over):
        answer = next((begin for begin, _ in model if begin >= end), None)
        again = over[number + 1][0] if number + 1 < len(over) else None
        if answer is not None and (again is None or answer <= again):
            yield VoiceEvent("response_rate", 1.0, end)
            yield VoiceEvent("response_latency_s", (answer - end) * TICK_S, end)
        elif again is not None:
            yield VoiceEvent("response_rate", 0.0, end)
            yield VoiceEvent("response_latency_s", None, end, Diagnostic("user_spoke_again"))


def _speech_events(ticks: Sequence[Tick], begin: int, end: int, model: Sequence[Run]) -> Iterator[VoiceEvent]:
    """Yield how the model reacts to user speech: it yields, goes on, or answers.

    Args:
        begin, end: of the speech, in ticks; so are the pairs in `model`.
    """
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
    """Yield the model's reactions to asides while the user does not have the floor."""
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
