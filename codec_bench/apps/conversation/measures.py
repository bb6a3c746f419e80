"""Measures of two tracks on one clock: turns, latencies, pauses, audio delivery.

Times are in seconds of the session. Speech is by energy, exact to 10 ms; what depends on the service is
exact to a frame. A model's stretch below `BACKCHANNEL_S`, mostly while the user has the floor (first to last speech of
a turn, pauses included), is a backchannel unless cut off; others are turns. An event is answered by turns between its
first speech and the next event. Without marks, audio after a gap with user speech is another answer. Missing values
have a `reason`; an answer that never came is counted by `turn_taken`.
Sources: `YIELDS_WITHIN_S` and `STOPS_WITHIN_S` are those of tau-Voice (`tau_voice.py`); floor transfer as in Heldner
and Edlund 2010, doi:10.1016/j.wocn.2010.08.002.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from codec_bench.apps.conversation.playback import Packet
from codec_bench.apps.conversation.script import NO_ANSWER
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.turn_ends import PROTOCOL as ACTIVITY
from codec_bench.apps.conversation.turn_ends import Stretch, speech_of_model
from codec_bench.apps.conversation.user import UserEvent
from codec_bench.config import load_yaml
from codec_bench.messages import Diagnostic, to_json

BACKCHANNEL_S = 1.0
YIELDS_WITHIN_S, STOPS_WITHIN_S = 2.0, 1.0
STALL_S = 0.02
OFFICIAL, OFFICIAL_15 = "official/full-duplex-bench-v1", "official/full-duplex-bench-v1.5"
OFFICIAL_TAU = "official/tau-voice"
PROTOCOL = f"conversation/1/{ACTIVITY}"


BEHAVIOURS = ("responds", "resumes", "is_uncertain", "does_none_of_these")
"""Behaviours after speech over an answer, in the order of the rubric's numbers."""
VOICE = {
    "utmosv2": "",
    "wpm": "words/min",
    "mean_pitch": "Hz",
    "std_pitch": "Hz",
    "mean_intensity": "dB",
    "std_intensity": "dB",
}
PARTS = {"pre": "before the event", "post": "after it", "clean": "without it"}


class Measure(NamedTuple):
    """Definition of a measure of conversations.

    Args:
        unit: `s`, `share`, `1/min`, `1/s`, `1/turn`, `count`, `×`, `points`, `Hz`, `dB`, or none.
        of: what has a value: an `event`, a `pause`, an `answer` or a `session`.
        per: the measure that gives the count.
    """

    description: str
    unit: str
    higher_is_better: bool | None
    of: str
    per: str = ""


MEASURES = {name: Measure(**facts) for name, facts in load_yaml(files(__package__) / "measures.yaml").items()}
for _behaviour in BEHAVIOURS:
    _described = f"share of events after which the model {_behaviour.replace('_', ' ')}, by a judge"
    MEASURES[f"{OFFICIAL_15}/{_behaviour}"] = Measure(_described, "share", None, "event")
for (_section, _when), (_name, _unit) in product(PARTS.items(), VOICE.items()):
    MEASURES[f"{OFFICIAL_15}/{_section}/{_name}"] = Measure(
        f"{_name} of the model's speech {_when}", _unit, None, "session"
    )


def display_name(name: str) -> str:
    """Return the name of a measure next to its unit: without the `_s` of seconds."""
    return name.removesuffix("_s") if MEASURES[name].unit == "s" else name


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a measure.

    Args:
        index: the number of the event, pause or answer in the session, from 0.
        value: None with a `reason`, a `Diagnostic`, if there is none; else the reason is "".
    """

    session: str
    index: int
    measure: str
    value: float | None
    at_s: float | None = None
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return to_json(asdict(self))


def measure(session: Session) -> list[Value]:
    """Measure every value of a session. A session that is not `ok` has none."""
    if session.status != "ok":
        return []
    return list(_SessionTurns(session).values())


def from_people(session: Session, people: Sequence[float]) -> Iterator[Value]:
    """Yield the Jensen-Shannon divergence of backchannel times from people's, in bits.

    A backchannel counts in the equal segment of the session that contains its middle. 0 is the same distribution, 1 is
    disjoint.

    Args:
        people: the number or share of people's backchannels in each equal segment of the session.
    """
    if session.status != "ok" or not sum(people):
        return
    middles = [(begin + end) / 2 / session.duration_s for begin, end in turns_of(session)[1]]
    counts, _ = np.histogram(middles, len(people), (0, 1))
    if not middles:
        yield Value(session.id, 0, "backchannel_divergence", None, 0.0, Diagnostic("no_backchannel"))
        return
    shares, theirs = counts / counts.sum(), np.asarray(people) / sum(people)
    both = (shares + theirs) / 2
    parts = [np.sum(one[one > 0] * np.log2(one[one > 0] / both[one > 0])) / 2 for one in (shares, theirs)]
    yield Value(session.id, 0, "backchannel_divergence", float(sum(parts)), 0.0)


def turns_of(session: Session) -> tuple[list[Stretch], list[Stretch]]:
    """Split the model's speech into (turns, backchannels), each as (begin, end) in s."""
    floors = [(e.speech[0][0], e.speech[-1][1]) for e in session.events if e.speech and e.kind == "turn"]
    turns: list[Stretch] = []
    short: list[Stretch] = []
    for begin, end in speech_of_model(session.output, session.output_rate_hz):
        shared = sum(_shared((begin, end), floor) for floor in floors)
        cut = any(abs(at_s - end) <= STALL_S for at_s, _ in session.stops)
        is_short = end - begin < BACKCHANNEL_S and shared > (end - begin) / 2 and not cut
        (short if is_short else turns).append((begin, end))
    return turns, short


class _SessionTurns:
    """The turns of a session, and the values of its measures.

    In its methods, `number` is the position of a user's event in the session, from 0, as `Value.index`.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.turns, self.short = turns_of(session)
        self.user_turns = [(n, event) for n, event in enumerate(session.events) if event.speech]

    def values(self) -> Iterator[Value]:
        """Yield every value of the session's measures."""
        pauses = 0
        for order, (number, event) in enumerate(self.user_turns):
            until_s = self.session.duration_s
            if order + 1 < len(self.user_turns):
                until_s = self.user_turns[order + 1][1].speech[0][0]
            if event.kind in NO_ANSWER:
                yield self._continues_speaking(number, event)
            else:
                if event.kind == "interruption":
                    yield from self._yield_values(number, event)
                yield from self._answer_values(number, event, until_s)
            for pause in event.pauses:
                false = any(pause[0] <= begin < pause[1] for begin, _ in self.turns)
                yield self._value(pauses, "false_turn", float(false), pause[0])
                pauses += 1
        for number, event in enumerate(self.session.events):
            if not event.speech and event.kind == "interruption":
                for name in ("yielded", "yield_latency_s"):
                    yield self._value(number, name, None, None, event.reason)
        yield from self._session_values()
        yield from self._delivery_values()

    def _value(self, index: int, name: str, value: float | None, at_s: float | None = None, reason: str = "") -> Value:
        return Value(self.session.id, index, name, None if value is None else round(value, 6), at_s, reason)

    def _answer_values(self, number: int, event: UserEvent, until_s: float) -> Iterator[Value]:
        """Yield turn-taking and latency of the answer to an event, up to `until_s`."""
        first_s, last_s = event.speech[0][0], event.speech[-1][1]
        inside = [turn for turn in self.turns if first_s < turn[0] < last_s]
        after = [turn for turn in self.turns if last_s <= turn[0] < until_s]
        # A turn within a pause that ends before the user's last word is no answer.
        early = [turn for turn in inside if turn[1] > last_s or not any(a <= turn[0] < b for a, b in event.pauses)]
        yield self._value(number, "turn_taken", float(bool(after) or any(end > last_s for _, end in inside)), last_s)
        yield self._value(number, "too_early", float(bool(early)), last_s)
        begin_s = early[0][0] if early else after[0][0] if after else None
        reason = Diagnostic("not_answered" if begin_s is None else "answered_early")
        late = None if early or begin_s is None else begin_s
        end_s = last_s if event.end_s is None else event.end_s
        latency_s, why = (None, reason) if late is None else (late - last_s, "")
        yield self._value(number, "response_latency_s", latency_s, last_s, why)
        yield self._value(number, "sent_latency_s", None if late is None else late - end_s, end_s,
            reason if late is None else "")  # fmt: skip
        transfer = None if begin_s is None else begin_s - last_s
        yield self._value(number, "floor_transfer_s", transfer, last_s, reason if transfer is None else "")

    def _spoken_at(self, at_s: float) -> Stretch | None:
        return next((turn for turn in self.turns if turn[0] <= at_s < turn[1]), None)

    def _yield_values(self, number: int, event: UserEvent) -> Iterator[Value]:
        """Yield whether and how fast the model stopped speaking after an interruption."""
        begin_s = event.speech[0][0]
        turn = self._spoken_at(begin_s)
        if turn is None:
            for name in ("yielded", "yield_latency_s"):
                yield self._value(number, name, None, begin_s, Diagnostic("interrupted_silence"))
            return
        took_s = turn[1] - begin_s
        yielded = took_s <= YIELDS_WITHIN_S
        why = "" if yielded else Diagnostic("not_yielded", limit_s=YIELDS_WITHIN_S)
        yield self._value(number, "yielded", float(yielded), begin_s)
        yield self._value(number, "yield_latency_s", took_s if yielded else None, begin_s, why)

    def _continues_speaking(self, number: int, event: UserEvent) -> Value:
        """Measure whether the model spoke on through a backchannel, cough or aside."""
        begin_s = event.speech[0][0]
        turn = self._spoken_at(begin_s)
        if turn is None:
            return self._value(number, "kept_talking", None, begin_s, Diagnostic("backchannel_in_silence"))
        cut = any(begin_s <= at_s <= begin_s + STOPS_WITHIN_S for at_s, _ in self.session.stops)
        if turn[1] - begin_s < STOPS_WITHIN_S and not cut and self._was_whole(turn[1]):
            return self._value(number, "kept_talking", None, begin_s, Diagnostic("answer_ended_then"))
        return self._value(number, "kept_talking", float(turn[1] - begin_s >= STOPS_WITHIN_S), begin_s)

    def _was_whole(self, at_s: float) -> bool:
        """Whether the audio up to a time was played completely."""
        ends = [(p.begin + p.samples) / self.session.output_rate_hz for p in self.session.packets]
        return any(abs(end - at_s) <= 2 * STALL_S for end in ends)

    def _session_values(self) -> Iterator[Value]:
        """Yield overlap and backchannel rate, or for a silent user the model's silence."""
        floors = [(event.speech[0][0], event.speech[-1][1]) for _, event in self.user_turns]
        user = [interval for _, event in self.user_turns for interval in event.speech]
        model = sorted([*self.turns, *self.short])
        if not self.user_turns:
            yield self._value(0, "silence_kept", float(not model), 0.0)
            return
        both = sum(_shared(one, other) for one in user for other in model)
        spoken = sum(end - begin for begin, end in (*user, *model)) - both
        yield self._value(0, "overlap", both / spoken if spoken else None, 0.0)
        minutes = sum(end - begin for begin, end in floors) / 60
        yield self._value(0, "backchannels_per_min", len(self.short) / minutes, 0.0)

    def _delivery_values(self) -> Iterator[Value]:
        """Yield real-time factor, number of stalls and stalled seconds of each answer."""
        rate_hz = self.session.output_rate_hz
        for number, packets in enumerate(self._answers()):
            took_s = packets[-1].at_s - packets[0].at_s
            # The last packet's own length takes no time.
            length_s = sum(packet.samples for packet in packets[:-1]) / rate_hz
            why = "" if length_s else Diagnostic("answer_at_once")
            yield self._value(number, "real_time_factor", took_s / length_s if length_s else None, packets[0].at_s, why)
            waits = list(_stalls(packets, rate_hz, [at_s for at_s, _ in self.session.stops]))
            yield self._value(number, "stalls", float(len(waits)), packets[0].at_s)
            yield self._value(number, "stall_s", sum(waits), packets[0].at_s)

    def _answers(self) -> list[list[Packet]]:
        """Group audio packets by answer; without a service's ids, split them at gaps.

        A gap counts if the user speaks in it.
        """
        answers: dict[str, list[Packet]] = {}
        for packet in self.session.packets:
            answers.setdefault(packet.answer, []).append(packet)
        if self.session.marks_answers:
            return list(answers.values())
        spoken, rate_hz = [span for _, event in self.user_turns for span in event.speech], self.session.output_rate_hz
        out: list[list[Packet]] = []
        for packets in answers.values():
            out.append(packets[:1])
            for before, after in pairwise(packets):
                gap = (before.begin + before.samples) / rate_hz, after.begin / rate_hz
                if gap[1] - gap[0] >= STALL_S and any(_shared(gap, span) for span in spoken):
                    out.append([])
                out[-1].append(after)
        return out


def _stalls(packets: Sequence[Packet], rate_hz: int, stops: Sequence[float]) -> Iterator[float]:
    """Yield the gaps of playback between packets, in seconds, except after a stop."""
    for before, after in pairwise(packets):
        end_s = (before.begin + before.samples) / rate_hz
        wait_s = after.begin / rate_hz - end_s
        if wait_s >= STALL_S and not any(before.at_s <= at_s <= after.at_s for at_s in stops):
            yield wait_s


def _shared(one: Stretch, other: Stretch) -> float:
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))
