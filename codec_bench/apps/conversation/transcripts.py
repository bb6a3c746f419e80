"""The words of what was heard, with their times, by a recogniser: kept beside a session, and what they show.

`output.json` has the layout that Full-Duplex-Bench's `get_transcript` writes, and beside it which recogniser wrote it and the words of what was thrown
away at each interruption. A file that somebody else wrote is read too and never replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from codec_bench.apps.conversation.measures import Value, turns_of
from codec_bench.apps.conversation.official import WORDS, Word
from codec_bench.apps.conversation.session import Session
from codec_bench.audio.resample import resample
from codec_bench.errors import UserError
from codec_bench.features import load_feature
from codec_bench.store.files import read_json, write_text

EARLY_S = 0.1
"""By how much a recogniser may hear a word before the sound has energy."""


class Timed(Protocol):
    """A recogniser that gives the times of words. `protocol` names it."""

    protocol: str
    rate_hz: int

    def timed(self, signal: np.ndarray) -> list[tuple[str, float, float]]:
        """Words with beginning and end in seconds; `signal` is float32 `(samples,)` at `rate_hz`."""


def load_timed(name: str, device: str) -> Timed:
    """A recogniser that gives the times of words.

    Raises:
        UserError: there is no such recogniser, or it gives no times.
    """
    feature: Any = load_feature(name, device="cpu" if device == "auto" else device)
    if not hasattr(feature, "timed"):
        raise UserError(
            f"the recogniser '{name}' gives no times of words",
            hint="--words pocketsphinx does; of any other, write its words into output.json and give --remark",
        )
    return feature


def write_words(folder: Path, session: Session, recogniser: Timed) -> None:
    """Keeps the words of a session, unless somebody else's are there, or this recogniser's already."""
    path = folder / WORDS
    if path.exists() and read_json(path).get("recogniser") in (None, recogniser.protocol):
        return
    words = recogniser.timed(_signal(session.heard, session.heard_hz, recogniser.rate_hz))
    chunks = [{"text": word, "timestamp": [begin, end]} for word, begin, end in words]
    kept = {
        "recogniser": recogniser.protocol,
        "text": " ".join(word for word, _, _ in words),
        "chunks": chunks,
        "lost": [_lost(session, number, recogniser) for number in range(len(session.stops))],
    }
    write_text(path, json.dumps(kept, ensure_ascii=False) + "\n")


def _lost(session: Session, number: int, recogniser: Timed) -> int:
    """How many words of what was being said come after a stop: the answer is heard whole, with what was thrown away behind it."""
    stop_s, _ = session.stops[number]
    begin_s = max((begin for begin, _ in turns_of(session)[0] if begin < stop_s), default=stop_s)
    sizes = [round(end * session.heard_hz) - round(at * session.heard_hz) for at, end in session.stops]
    at = sum(sizes[:number])
    said = session.heard[round(begin_s * session.heard_hz) : round(stop_s * session.heard_hz)]
    whole = np.concatenate([said, session.lost[at : at + sizes[number]]])
    words = recogniser.timed(_signal(whole, session.heard_hz, recogniser.rate_hz))
    return sum(end > stop_s - begin_s for _, _, end in words)


def _signal(track: np.ndarray, rate_hz: int, to_hz: int) -> np.ndarray:
    return resample(track.astype(np.float32) / 32768, rate_hz, to_hz)


def by_words(session: Session, folder: Path, words: Sequence[Word] | None) -> Iterator[Value]:
    """The first word after each of the user's turns, and the words that were lost at each stop."""
    if session.status != "ok" or words is None:
        return
    said = [(number, event) for number, event in enumerate(session.events) if event.speech]
    turns, _ = turns_of(session)
    for order, (number, event) in enumerate(said):
        if event.kind == "backchannel":
            continue
        end_s = event.speech[-1][1]
        until_s = said[order + 1][1].speech[0][0] if order + 1 < len(said) else session.duration_s
        # A word of what the model was saying before is none of the answer.
        answer = next((begin for begin, _ in turns if event.speech[0][0] < begin < until_s), until_s)
        first = next((begin for begin, _ in words if answer - EARLY_S <= begin < until_s), None)
        if first is None:
            late, why = None, "no word was heard"
        elif first < end_s:
            late, why = None, "the first word came before the user had ended"
        else:
            late, why = first - end_s, ""
        yield Value(session.id, number, "first_word_latency_s", late, end_s, why)
    for number, (count, (at_s, _)) in enumerate(zip(read_json(folder / WORDS).get("lost") or (), session.stops)):
        yield Value(session.id, number, "words_lost", float(count), at_s)
