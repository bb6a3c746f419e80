"""Recognised words of the output with times, and their values.

`output.json` has the layout of Full-Duplex-Bench's `get_transcript`, plus the recogniser and the words discarded at
each interruption. Files of others are read and never replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.conversation.full_duplex import INPUT, WORDS, Word, is_of_session
from codec_bench.apps.conversation.measures import Value, turns_of
from codec_bench.apps.conversation.script import NO_ANSWER
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.session_files import FACTS, content_hash
from codec_bench.audio.resample import resample
from codec_bench.engine.device import resolve_devices
from codec_bench.features import Unavailable, exact_name, load_feature
from codec_bench.features.base import Feature
from codec_bench.features.base import Word as Named
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.store.files import read_json, write_text

EARLY_S = 0.1
"""How early a recogniser may place a word before its audio."""


def load_timed(name: str, device: str) -> Feature:
    """Load a recogniser by name; raises UserError if it gives no word times."""
    # Some recognisers' default GPU kernels do not align words.
    feature = load_feature(exact_name(name, gpu=False), device=resolve_devices(device)[0])
    if not feature.times_words:
        raise UserError(
            "recogniser_without_times",
            recogniser=name,
            hint="pocketsphinx, whisper-*, parakeet-*, hubert-large-ls960 and wav2vec2-* do; of any other, write its "
            "words into output.json and give --remark",
        )
    return feature


def write_words(folder: Path, session: Session, recogniser: Feature, user: bool = False) -> None:
    """Write transcripts of model and, if `user`, user to the folder, unless present."""
    if not _is_written(folder / WORDS, recogniser):
        words = _transcribe(session.output, session.output_rate_hz, recogniser)
        discarded = [_count_discarded(session, number, recogniser) for number in range(len(session.stops))]
        _keep(folder / WORDS, words, recogniser, lost=discarded)
    if user and not _is_written(folder / INPUT, recogniser):
        _keep(folder / INPUT, _transcribe(session.user, session.rate_hz, recogniser), recogniser)


def _is_written(path: Path, recogniser: Feature) -> bool:
    held = read_json(path) if path.exists() else {"recogniser": ""}
    return held.get("recogniser") in (None, recogniser.protocol) and is_of_session(path, held)


def _keep(path: Path, words: Sequence[Named], recogniser: Feature, **more: Any) -> None:
    """Write words with times to a file, with the recogniser and a hash of the session."""
    chunks = [{"text": word, "timestamp": [begin, end]} for word, begin, end in words]
    text = " ".join(word for word, _, _ in words)
    session = content_hash(path.parent / FACTS)
    content = {"recogniser": recogniser.protocol, "session": session, "text": text, "chunks": chunks, **more}
    write_text(path, json.dumps(content, ensure_ascii=False) + "\n")


def _count_discarded(session: Session, number: int, recogniser: Feature) -> int:
    """Count the words cut by a stop, by transcribing the audio that was discarded."""
    stop_s, _ = session.stops[number]
    begin_s = max((begin for begin, _ in turns_of(session)[0] if begin < stop_s), default=stop_s)
    sizes = [round(end * session.output_rate_hz) - round(at * session.output_rate_hz) for at, end in session.stops]
    at = sum(sizes[:number])
    before = session.output[round(begin_s * session.output_rate_hz) : round(stop_s * session.output_rate_hz)]
    full = np.concatenate([before, session.discarded[at : at + sizes[number]]])
    words = _transcribe(full, session.output_rate_hz, recogniser)
    return sum(end > stop_s - begin_s for _, _, end in words)


def _transcribe(track: np.ndarray, rate_hz: int, recogniser: Feature) -> list[Named]:
    """Transcribe a track; no words where it is too short."""
    try:
        return recogniser.timed(resample(track.astype(np.float32) / 32768, rate_hz, recogniser.rate_hz))
    except Unavailable:
        return []


def by_words(session: Session, folder: Path, words: Sequence[Word] | None) -> Iterator[Value]:
    """Yield the latency to the first word of each answer, and words cut at each stop.

    Args:
        words: times of the model's words; None yields nothing.
    """
    if session.status != "ok" or words is None:
        return
    user_turns = [(number, event) for number, event in enumerate(session.events) if event.speech]
    turns, _ = turns_of(session)
    for order, (number, event) in enumerate(user_turns):
        if event.kind in NO_ANSWER:
            continue
        end_s = event.speech[-1][1]
        until_s = user_turns[order + 1][1].speech[0][0] if order + 1 < len(user_turns) else session.duration_s
        # Words of the model's earlier speech are not part of the answer.
        answer = next((begin for begin, _ in turns if event.speech[0][0] < begin < until_s), until_s)
        first = next((begin for begin, _ in words if answer - EARLY_S <= begin < until_s), None)
        late = first - end_s if first is not None and first >= end_s else None
        why = "" if late is not None else Diagnostic("no_word_recognised" if first is None else "first_word_early")
        yield Value(session.id, number, "first_word_latency_s", late, end_s, why)
    for number, (count, (at_s, _)) in enumerate(zip(read_json(folder / WORDS).get("lost") or (), session.stops)):
        yield Value(session.id, number, "words_lost", float(count), at_s)
