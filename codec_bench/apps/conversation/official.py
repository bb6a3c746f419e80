"""Full-Duplex-Bench's own definitions: version 1 uses word times, and 1.5 silero-vad.

`output.json` of a session holds the words (`transcripts.py`) in the layout of that benchmark's `get_transcript`:
`{"chunks": [{"text": "well", "timestamp": [1.2, 1.4]}, ...]}`. Sessions without it have no values of version 1; those
of 1.5 are of recorded users. An answer of less than 1 s and at most three words counts as none; one that begins before
the user's end has latency 0. An event's words lie between its beginning and the next event. Reference implementation:
`evaluation/eval_smooth_turn_taking.py`, `eval_user_interruption.py`, `eval_pause_handling.py`, `eval_backchannel.py`
and `get_timing.py` of DanielLin94144/Full-Duplex-Bench; equal on own cases (paper: arXiv 2503.04721).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codec_bench.apps.conversation.full_duplex import Word, backchannels, divergence, speech_by_silero, timing
from codec_bench.apps.conversation.measures import OFFICIAL, OFFICIAL_15, Value
from codec_bench.apps.conversation.script import NO_ANSWER, Conversation
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.session_files import FACTS, content_hash
from codec_bench.errors import DamagedRecord, UserError

WORDS, INPUT = "output.json", "input.json"
"""Words of the output, and of the user, in the folder of a session."""
Chunk = tuple[str, float, float]
"""A word with its beginning and end."""
TAKES_S, TAKES_WORDS = 1.0, 3


def takes_turn(words: Sequence[Word]) -> bool:
    """Whether words `(begin, end)` are a turn: over 1 s, or more than three."""
    return bool(words) and (words[-1][1] - words[0][0] >= TAKES_S or len(words) > TAKES_WORDS)


def latency_s(words: Sequence[Word], end_s: float) -> float | None:
    """Return the time from the user's end to the first word; None for no turn."""
    return max(0.0, words[0][0] - end_s) if takes_turn(words) else None


def read_words(folder: Path) -> list[Word] | None:
    """Read the word times of a session; as `read_chunks`."""
    chunks = read_chunks(folder / WORDS)
    return None if chunks is None else [(begin, end) for _, begin, end in chunks]


def is_of_session(path: Path, held: Mapping[str, Any]) -> bool:
    """Whether codec-bench's words are of the session next to them."""
    return held.get("session") in (None, content_hash(path.parent / FACTS))


def read_chunks(path: Path) -> list[Chunk] | None:
    """Read words with their times; None without a file; raises UserError."""
    if not path.exists():
        return None
    try:
        held = json.loads(path.read_text("utf-8-sig"))
        chunks = [(chunk.get("text", ""), *chunk["timestamp"]) for chunk in held["chunks"]]
        if not is_of_session(path, held):
            raise DamagedRecord(
                f"the words in '{path}' are of another session", hint="--words writes them again; or delete the file"
            )
        # A last word without an end counts by its beginning, as in their script.
        return [(str(text), float(begin), float(begin if end is None else end)) for text, begin, end in chunks]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"'{path}' does not hold words: {type(error).__name__}: {error}",
            hint='expected {"chunks": [{"text": "well", "timestamp": [1.2, 1.4]}, ...]}',
        ) from None


def official(session: Session, words: Sequence[Word] | None, talk: Conversation | None = None) -> Iterator[Value]:
    """Yield the values of a session; `talk` is its scripted conversation."""
    if session.status != "ok":
        return
    if talk is not None and talk.recording is not None:
        yield from _timing(session)
    if words is not None:
        yield from _by_words(session, words, talk is not None and talk.recording is not None)
        if talk is not None and talk.backchannels:
            yield from _backchannels(session, words, talk.backchannels)


def _timing(session: Session) -> Iterator[Value]:
    user, model = speech_by_silero(session.user, session.rate_hz), speech_by_silero(session.heard, session.heard_hz)
    stops, gaps = timing(user, model)
    for name, intervals in (("stop_latency_s", stops), ("response_latency_s", gaps)):
        for number, (begin, end) in enumerate(intervals):
            yield Value(session.id, number, f"{OFFICIAL_15}/{name}", end - begin, begin)


def _backchannels(session: Session, words: Sequence[Word], people: Sequence[float]) -> Iterator[Value]:
    takes, stretches = backchannels(speech_by_silero(session.heard, session.heard_hz), words)
    named = {
        "backchannel_take_turn": float(takes),
        "backchannels_per_s": len(stretches) / session.duration_s,
        "backchannel_divergence": divergence(stretches, people, session.duration_s),
    }
    for name, value in named.items():
        yield Value(session.id, 0, f"{OFFICIAL}/{name}", value, 0.0)


def _by_words(session: Session, words: Sequence[Word], recorded: bool) -> Iterator[Value]:
    user_turns = [(n, event) for n, event in enumerate(session.events) if event.speech and event.kind not in NO_ANSWER]
    begins = [event.speech[0][0] for event in session.events if event.speech]
    for number, event in user_turns:
        begin_s, end_s = event.speech[0][0], event.speech[-1][1]
        until_s = min((b for b in begins if b > begin_s), default=session.duration_s)
        # For an interruption in a recording they start at its stated end.
        from_s = event.end_s if recorded and event.kind == "interruption" and event.end_s is not None else begin_s
        spoken = [word for word in words if from_s <= word[0] < until_s]
        late = latency_s(spoken, end_s)
        named: dict[str, tuple[float | None, str]] = {
            "take_turn": (float(takes_turn(spoken)), ""),
            "latency_s": (late, "" if late is not None else "the words are no turn"),
        }
        if event.pauses:
            named["pause_take_turn"] = (float(takes_turn([word for word in spoken if word[0] < end_s])), "")
        for name, (value, reason) in named.items():
            yield Value(session.id, number, f"{OFFICIAL}/{name}", value, end_s, reason)
