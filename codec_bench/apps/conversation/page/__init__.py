"""The page of conversations: table, strips of values, and sessions to play.

Both tracks are channels of one audio, so they stay aligned.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from codec_bench.apps.conversation.distributions import rows, sentences
from codec_bench.apps.conversation.full_duplex import WORDS, Chunk, read_chunks
from codec_bench.apps.conversation.measures import MEASURES, Value, display_name, turns_of
from codec_bench.apps.conversation.session import Session
from codec_bench.apps.conversation.session_files import folder_of
from codec_bench.audio.resample import resample
from codec_bench.messages.errors import beginning
from codec_bench.report.page.markup import SHARED, PageFiles, render
from codec_bench.store.files import write_text

RATE_HZ = 16_000
WIDTH, HEIGHT, HALF = 1000, 190, 40
"""Of the picture of a session, and of half a waveform, in units of the picture."""
USER_Y, MODEL_Y = 62, 148
WORD_LINES, LETTER = 3, 6.5
"""Lines of words below the model's track, and the width of a letter."""
_COLUMNS = 500
_AUDIO_BYTES = 25e6
"""Limit of embedded audio; sessions beyond it are only drawn."""
_LAYOUT = PageFiles(
    (__package__, "conversation.html.j2"),
    ((SHARED, "style.css"), (SHARED, "tables.css"), (__package__, "conversation.css")),
    ((SHARED, "data.js"), (SHARED, "elements.js"), (SHARED, "frames.js"), (SHARED, "player.js"), (SHARED, "players.js"),
        (__package__, "conversation.js")),
)  # fmt: skip


def write_conversation_page(
    path: Path,
    run: Path,
    sessions: Mapping[str, Sequence[Session]],
    values: Mapping[str, Sequence[Value]],
    summary: Mapping[str, Any],
) -> None:
    """Write the page, atomically.

    Args:
        run: the folder of the run.
        sessions, values: by system.
        summary: the content of `summary.json`.
    """
    with tempfile.TemporaryDirectory() as folder:
        shown, files, left = [], list[Path](), _AUDIO_BYTES
        for system, held in sessions.items():
            for session in held:
                words = read_chunks(folder_of(run, system, session.id) / WORDS) or ()
                picture = _picture(session, [v for v in values[system] if v.session == session.id], words)
                file = Path(folder, f"{len(files)}.flac")
                soundfile.write(file, _both(session), RATE_HZ, format="FLAC")
                size = 4 * file.stat().st_size / 3
                fits = session.user.size > 0 and size <= left
                left -= size if fits else 0
                files += [file] if fits else []
                shown.append({**picture, "system": system, "sound": len(files) - 1 if fits else None})
        page = {
            "title": summary["title"], "protocol": summary["protocol"], "systems": list(summary["systems"]),
            "rows": rows(summary),
            "sentences": sentences(summary), "strips": _strips(values), "sessions": shown, "width": WIDTH,
            "height": HEIGHT, "folder": run.name,
        }  # fmt: skip
        write_text(path, render(_LAYOUT, page, {"clips": [], "saved": []}, files))


def _both(session: Session) -> np.ndarray:
    """Return user and model as two channels at `RATE_HZ`, float32 `(samples, 2)`."""
    tracks = [
        resample(track.astype(np.float32)[None] / 32768, rate_hz, RATE_HZ)[0] if track.size else np.zeros(1, np.float32)
        for track, rate_hz in ((session.user, session.rate_hz), (session.output, session.output_rate_hz))
    ]
    length = min(track.size for track in tracks)
    return np.stack([track[:length] for track in tracks], axis=1)


def _picture(session: Session, values: Sequence[Value], words: Sequence[Chunk]) -> dict[str, Any]:
    """Build the data of a session's drawing; x is in units of the picture."""
    scale = WIDTH / max(session.duration_s, 1e-3)
    turns, short = turns_of(session)
    user = [(stretch, event.kind) for event in session.events for stretch in event.speech]
    boxes = [
        {"x": round(begin * scale, 1), "w": round((end - begin) * scale, 1), "y": y - HALF, "h": 2 * HALF, "kind": kind}
        for spans, y in ((user, USER_Y), ([*((t, "answer") for t in turns), *((t, "sign") for t in short)], MODEL_Y))
        for (begin, end), kind in spans
    ]
    spans = [
        {"x": round(v.at_s * scale, 1), "w": round(v.value * scale, 1), "kind": v.measure,
            "text": f"{MEASURES[v.measure].description}: {1000 * v.value:.0f} ms", "label": f"{1000 * v.value:.0f} ms"}
        for v in values
        if v.measure in ("response_latency_s", "yield_latency_s") and v.value is not None and v.at_s is not None
    ]  # fmt: skip
    step = next((s for s in (1, 2, 5, 10, 30, 60) if session.duration_s / s <= 14), 300)
    return {
        "id": session.id, "status": session.status, "reason": session.reason, "boxes": boxes, "spans": spans,
        "words": list(_place_words(words, scale)),
        "waves": [_wave(session.user, USER_Y), _wave(session.output, MODEL_Y)],
        "ticks": [(round(s * scale, 1), s) for s in range(0, int(session.duration_s) + 1, step)],
        "duration": round(session.duration_s, 2), "text": beginning(session.text, 400),
        "values": [(display_name(v.measure), "–" if v.value is None else f"{v.value:.3f}", MEASURES[v.measure].unit,
            "–" if v.at_s is None else f"{v.at_s:.2f}", v.reason) for v in values],
    }  # fmt: skip


def _place_words(words: Sequence[Chunk], scale: float) -> Iterator[dict[str, Any]]:
    """Place words, each in the first line with room; a word without room is omitted."""
    ends = [0.0] * WORD_LINES
    for word, begin, _ in words:
        x = begin * scale
        line = next((number for number, end in enumerate(ends) if end <= x), None)
        if line is not None:
            ends[line] = x + LETTER * (len(word) + 1)
            yield {"x": round(x, 1), "line": line, "text": word}


def _wave(samples: np.ndarray, middle: int) -> str:
    """Return a waveform as an SVG path of peaks around the height `middle`."""
    if not samples.size:
        return ""
    size = -(-samples.size // _COLUMNS)
    columns = np.pad(np.abs(samples.astype(np.int32)), (0, -samples.size % size)).reshape(-1, size).max(axis=1)
    tall = np.sqrt(columns / 32768) * HALF
    xs = np.arange(tall.size) * WIDTH * size / samples.size
    upper = [f"{x:.1f},{middle - y:.1f}" for x, y in zip(xs, tall)]
    lower = [f"{x:.1f},{middle + y:.1f}" for x, y in zip(xs[::-1], tall[::-1])]
    return f"M{' L'.join([*upper, *lower])}Z"


def _strips(values: Mapping[str, Sequence[Value]]) -> list[dict[str, Any]]:
    """Build strip plots: all values of each measure by system, if they vary."""
    out = []
    for name, measure in MEASURES.items():
        by_system = {
            system: sorted(v.value for v in held if v.measure == name and v.value is not None)
            for system, held in values.items()
        }
        every = [value for held in by_system.values() for value in held]
        if len(set(every) - {0.0, 1.0}) < 2:
            continue
        low, high = min(0.0, *every), max(every)
        strip_rows = [
            (system, [round(20 + 960 * (v - low) / (high - low), 1) for v in held], len(held))
            for system, held in by_system.items()
        ]
        ends = [(20, f"{low:.2f} {measure.unit}"), (980, f"{high:.2f} {measure.unit}")]
        out.append({"name": display_name(name).replace("_", " "), "what": measure.description, "systems": strip_rows,
            "ends": ends})  # fmt: skip
    return out
