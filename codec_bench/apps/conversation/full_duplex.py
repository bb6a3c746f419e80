"""Full-Duplex-Bench 1 and 1.5: its layout as a script, and its definitions.

A sample is a folder with `input.wav`, sent as it is, and one of `pause.json`, `turn_taking.json`, `interrupt.json`
(version 1) or `metadata.json` (1.5, with `clean_input.wav`, the same without the event). Without any it is a
backchannel sample, with people's in `icc_gt_distribution.json`. Kinds of 1.5 are the folders above the samples.
Papers: arXiv 2503.04721 and 2507.23159. Reference implementation: `evaluation/eval_backchannel.py` and `get_timing.py`
of DanielLin94144/Full-Duplex-Bench; equal on own cases.

Full-Duplex-Bench's own definitions: version 1 uses word times, and 1.5 silero-vad.
`output.json` of a session holds the words (`transcripts.py`) in the layout of that benchmark's `get_transcript`:
`{"chunks": [{"text": "well", "timestamp": [1.2, 1.4]}, ...]}`. Sessions without it have no values of version 1; those
of 1.5 are of recorded users. An answer of less than 1 s and at most three words counts as none; one that begins before
the user's end has latency 0. An event's words lie between its beginning and the next event. Reference implementation:
`evaluation/eval_smooth_turn_taking.py`, `eval_user_interruption.py`, `eval_pause_handling.py`, `eval_backchannel.py`
and `get_timing.py` of DanielLin94144/Full-Duplex-Bench; equal on own cases (paper: arXiv 2503.04721).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from codec_bench.apps.conversation.measures import OFFICIAL, OFFICIAL_15, Value
from codec_bench.apps.conversation.script import NO_ANSWER, Conversation, Script
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.session_files import FACTS, content_hash
from codec_bench.apps.conversation.turn_ends import Stretch
from codec_bench.audio.resample import resample
from codec_bench.config import fit
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import DamagedRecord, UserError

PEOPLE = "icc_gt_distribution.json"
KINDS = {"user_interruption": "interruption", "user_backchannel": "backchannel", "talking_to_other": "non_directed",
    "background_speech": "non_directed"}  # fmt: skip
END_S = 100_000.0
WINDOW_S, FORMAL_S, SHORT_S = 0.2, 3.0, 1.0
USER_GAP_S, MODEL_GAP_S = 0.6, 0.5

Word = tuple[float, float]
WORDS, INPUT = "output.json", "input.json"
"""Words of the output, and of the user, in the folder of a session."""
Chunk = tuple[str, float, float]
"""A word with its beginning and end."""
TAKES_S, TAKES_WORDS = 1.0, 3


def script_of(folder: Path) -> Script:
    """Convert a folder in Full-Duplex-Bench's layout to a script; raises UserError."""
    folders = sorted(Path(root) for root, _, names in os.walk(folder) if "input.wav" in names)
    if not folders:
        raise UserError(
            "no_full_duplex_sample",
            folder=folder,
            hint="expected folders with input.wav and turn_taking.json, pause.json, interrupt.json or metadata.json",
        )
    people = _people(folder)
    talks = [talk for sample in folders for talk in _talks(sample, folder, people)]
    return fit(
        {"version": 1, "title": "Full-Duplex-Bench", "data": "", "longest_s": 600, "conversations": talks},
        Script,
        source=str(folder),
    )


def _talks(sample: Path, folder: Path, people: dict[str, list[float]]) -> Iterator[dict[str, Any]]:
    """Yield the conversations of one sample folder, as mappings for `Conversation`.

    Args:
        people: people's backchannels by sample name.
    """
    name = "-".join(sample.relative_to(folder).parts) or sample.name
    about = {"id": name, "recording": str((sample / "input.wav").absolute())}
    files = {path.name for path in sample.iterdir()}
    if "pause.json" in files:
        pauses = [mark["timestamp"] for mark in _read(sample / "pause.json")]
        yield {**about, "said": [{"begin_s": 0, "end_s": END_S, "pauses": pauses}]}
    elif "turn_taking.json" in files:
        yield {**about, "said": [{"begin_s": 0, "end_s": _read(sample / "turn_taking.json")[0]["timestamp"][0]}]}
    elif "interrupt.json" in files:
        held = _read(sample / "interrupt.json")[0]
        texts = (held.get("context", ""), held.get("interrupt", ""))
        yield {**about, "said": _with_event("interruption", held["timestamp"], texts)}
    elif "metadata.json" in files:
        kind = KINDS.get(sample.parent.name)
        if kind is None:
            raise UserError(
                "full_duplex_kind",
                sample=sample,
                folder=sample.parent.name,
                hint=f"expected a folder named {', '.join(KINDS)}",
            )
        held = _read(sample / "metadata.json")
        texts = (held.get("context_text", ""), held.get("current_turn_text", ""))
        yield {**about, "clean": f"{name}-clean", "said": _with_event(kind, held["timestamps"], texts)}
        yield {
            "id": f"{name}-clean",
            "recording": str((sample / "clean_input.wav").absolute()),
            "said": [{"begin_s": 0, "end_s": END_S}],
        }
    else:
        yield {**about, "said": [{"begin_s": 0, "end_s": END_S}], "backchannels": people.get(sample.name, [])}


def _with_event(kind: str, times: Sequence[float], texts: tuple[str, str]) -> list[dict[str, Any]]:
    """Describe two spans of a recording: the first turn, and the event that follows.

    Args:
        times: begin and end of the event in seconds.
        texts: of the turn and of the event.
    """
    begin_s, end_s = times
    first = {"begin_s": 0, "end_s": begin_s, "text": texts[0]}
    return [first, {"kind": kind, "begin_s": begin_s, "end_s": end_s, "text": texts[1]}]


def _people(folder: Path) -> dict[str, list[float]]:
    """Read people's backchannels by sample, from the folder or its parent."""
    for parent in (folder, *folder.absolute().parents[:3]):
        if (parent / PEOPLE).is_file():
            return _read(parent / PEOPLE)
    return {}


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise UserError("not_json", path=path, cause=error) from None


@cache
def _activity() -> Any:
    from codec_bench.features.speech_activity import SpeechActivity

    return SpeechActivity()


def speech_by_silero(samples: np.ndarray, rate_hz: int) -> list[Stretch]:
    """Find speech in 16-bit samples by silero-vad with its defaults, as spans in s."""
    signal = resample(samples.astype(np.float32) / 32768, rate_hz, 16_000)
    (probabilities,) = _activity().compute([signal])
    if not isinstance(probabilities, dict):
        return []
    return [(int(a) / 16_000, int(b) / 16_000) for a, b in zip(probabilities["starts"], probabilities["ends"])]


def backchannels(speech: Sequence[Stretch], words: Sequence[Word]) -> tuple[bool, list[Stretch]]:
    """Decide if the model took the turn while listening, and list its backchannels.

    Stretches are read in order, in seconds with one decimal, up to one longer than 3 s, which is a turn. The last
    stretch decides: more than two words or 1 s are a turn.
    """
    short_stretches: list[Stretch] = []
    takes = False
    for begin, end in ((round(a, 1), round(b, 1)) for a, b in speech):
        if end - begin > FORMAL_S:
            return True, short_stretches
        # Theirs ignores words without an end, which here is their beginning.
        spoken = [(a, b) for a, b in words if b > a]
        inside = sum((a >= begin and b <= end) or a <= end < b or a <= begin < b for a, b in spoken)
        takes = end - begin >= SHORT_S or inside > 2
        short_stretches.append((begin, end))
    return takes, short_stretches


def divergence(stretches: Sequence[Stretch], people: Sequence[float], length_s: float) -> float:
    """Jensen-Shannon distance of backchannel times from people's; 1 if there are none."""
    from scipy.spatial.distance import jensenshannon

    if not stretches:
        return 1.0
    counts = np.full(int(length_s / WINDOW_S) + 1, 1e-10)
    for begin, end in stretches:
        counts[int(begin / WINDOW_S) : int(end / WINDOW_S) + 1] += 1
    known = np.interp(np.linspace(0, 1, counts.size), np.linspace(0, 1, len(people)), people)
    return float(jensenshannon(counts, known))


def timing(user: Sequence[Stretch], model: Sequence[Stretch]) -> tuple[list[Stretch], list[Stretch]]:
    """Return where a model overlaps the user, and the gaps before its answers (v1.5).

    Gaps up to 0.6 s of the user and 0.5 s of the model are bridged. Of several that end at the same millisecond the
    shortest counts.
    """
    user, model = _merge_gaps(user, USER_GAP_S), _merge_gaps(model, MODEL_GAP_S)
    stops: dict[int, Stretch] = {}
    for begin, end in ((max(u[0], m[0]), min(u[1], m[1])) for u in user for m in model):
        key = round(end * 1000)
        if end > begin and (key not in stops or end - begin < stops[key][1] - stops[key][0]):
            stops[key] = (begin, end)
    gaps: dict[int, Stretch] = {}
    for _, end in user:
        after = next((begin for begin, _ in model if begin > end), None)
        if after is not None:
            gaps[round(after * 1000)] = (end, after)  # a later end of the user is nearer
    return [stops[key] for key in sorted(stops)], [gaps[key] for key in sorted(gaps)]


def _merge_gaps(speech: Sequence[Stretch], gap_s: float) -> list[Stretch]:
    """Join stretches of speech whose gap is at most `gap_s`."""
    out: list[Stretch] = []
    for begin, end in sorted(speech):
        if out and begin - out[-1][1] <= gap_s:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((begin, end))
    return out


def takes_turn(words: Sequence[Word]) -> bool:
    """Whether words `(begin, end)` are a turn: over 1 s, or more than three."""
    return bool(words) and (words[-1][1] - words[0][0] >= TAKES_S or len(words) > TAKES_WORDS)


def latency_s(words: Sequence[Word], end_s: float) -> float | None:
    """Return the time from the user's end to the first word; None for no turn."""
    return max(0.0, words[0][0] - end_s) if takes_turn(words) else None


def read_words(folder: Path) -> list[Word] | None:
    """Read (begin, end) of each word of a session's folder, in s; None without a file."""
    chunks = read_chunks(folder / WORDS)
    return None if chunks is None else [(begin, end) for _, begin, end in chunks]


def is_of_session(path: Path, held: Mapping[str, Any]) -> bool:
    """Whether the transcript `held`, read from `path`, belongs to the session there."""
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
                "words_of_other_session", path=path, hint="--words writes them again; or delete the file"
            )
        # A last word without an end counts by its beginning, as in their script.
        return [(str(text), float(begin), float(begin if end is None else end)) for text, begin, end in chunks]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            "not_words",
            path=path,
            type=type(error).__name__,
            cause=error,
            hint='expected {"chunks": [{"text": "well", "timestamp": [1.2, 1.4]}, ...]}',
        ) from None


def official_values(
    session: Session, words: Sequence[Word] | None, talk: Conversation | None = None
) -> Iterator[Value]:
    """Yield the measures of Full-Duplex-Bench v1 and v1.5 that apply to a session.

    Args:
        words: times of the model's words; None yields no measures of words.
    """
    if session.status != "ok":
        return
    if talk is not None and talk.recording is not None:
        yield from _timing(session)
    if words is not None:
        yield from _by_words(session, words, talk is not None and talk.recording is not None)
        if talk is not None and talk.backchannels:
            yield from _backchannels(session, words, talk.backchannels)


def _timing(session: Session) -> Iterator[Value]:
    """Yield stop and response latencies, by the benchmark's speech detector."""
    user, model = (
        speech_by_silero(session.user, session.rate_hz),
        speech_by_silero(session.output, session.output_rate_hz),
    )
    stops, gaps = timing(user, model)
    for name, intervals in (("stop_latency_s", stops), ("response_latency_s", gaps)):
        for number, (begin, end) in enumerate(intervals):
            yield Value(session.id, number, f"{OFFICIAL_15}/{name}", end - begin, begin)


def _backchannels(session: Session, words: Sequence[Word], people: Sequence[float]) -> Iterator[Value]:
    """Yield the benchmark's figures of backchannels."""
    takes, stretches = backchannels(speech_by_silero(session.output, session.output_rate_hz), words)
    named = {
        "backchannel_take_turn": float(takes),
        "backchannels_per_s": len(stretches) / session.duration_s,
        "backchannel_divergence": divergence(stretches, people, session.duration_s),
    }
    for name, value in named.items():
        yield Value(session.id, 0, f"{OFFICIAL}/{name}", value, 0.0)


def _by_words(session: Session, words: Sequence[Word], recorded: bool) -> Iterator[Value]:
    """Yield Full-Duplex-Bench v1's take-turn and latency values from word times."""
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
            "latency_s": (late, "" if late is not None else Diagnostic("words_no_turn")),
        }
        if event.pauses:
            named["pause_take_turn"] = (float(takes_turn([word for word in spoken if word[0] < end_s])), "")
        for name, (value, reason) in named.items():
            yield Value(session.id, number, f"{OFFICIAL}/{name}", value, end_s, reason)
