"""Named protocols that cut recordings for a recogniser that takes 30 s at a time.

Signals are mono float32 `(samples,)` at 16 kHz. Parts are slices of the signal or of its speech, in order. The
recogniser's front end normalises each part by its own maximum.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from codec_bench.messages.errors import UserError
from codec_bench.networks.on_device import concatenate

Windows = Literal["30s", "28s", "vad"]
WINDOWS: tuple[Windows, ...] = get_args(Windows)
RATE_HZ = 16_000
LONGEST_S = 30
CHUNK_S = 28
VAD: dict[str, float] = {
    "threshold": 0.5,
    "neg_threshold": 0.35,
    "min_speech_duration_ms": 0,
    "max_speech_duration_s": LONGEST_S,
    "min_silence_duration_ms": 160,
    "speech_pad_ms": 400,
}
"""The voice-activity options of faster-whisper's batched transcription."""
VAD_ASSET = "silero_vad_v6.onnx"
UNSPACED = ("zh", "yue", "ja", "th", "lo", "my")
"""Languages written without spaces between words."""


def window_id(windows: Windows) -> str:
    """Return the windows' part of a protocol id, with the activity network."""
    return "vad-silero-v6" if windows == "vad" else windows


def check_windows(windows: Windows) -> None:
    """Check that this machine can cut signals in this way (see `parts`).

    Raises:
        UserError: the installed faster-whisper contains another network for voice activity.
    """
    if windows != "vad":
        return
    spec = importlib.util.find_spec("faster_whisper")
    if spec is None or spec.origin is None or not (Path(spec.origin).parent / "assets" / VAD_ASSET).is_file():
        raise UserError("windows_network", file=VAD_ASSET, hint="pip install 'faster-whisper>=1.2,<1.3'")


def parts(signal: np.ndarray, windows: Windows) -> list[np.ndarray]:
    """Cut a signal into the parts that the recogniser reads, in order.

    `30s`: the whole signal. The recogniser takes its log-mel spectrogram in steps of exactly 30 s.
    `28s`: every 28 s of the signal, without overlap. The last part may be shorter.
    `vad`: the speech that the Silero network of faster-whisper 1.2 detects (512 samples at a time; speech from a
    probability of 0.5 on, silence under 0.35; silences of at least 160 ms removed; 0.4 s added on either side;
    segments of at most 30 s). Neighbouring segments are joined up to 30 s, without the silence between them. A signal
    without speech has no parts.
    """
    if windows == "30s":
        return [signal] if signal.size else []
    if windows == "28s":
        step = CHUNK_S * RATE_HZ
        return [signal[start : start + step] for start in range(0, signal.size, step)]
    return [
        concatenate([signal[start:end] for start, end in group])
        for group in grouped(speech(signal), LONGEST_S * RATE_HZ)
    ]


def speech(signal: np.ndarray) -> list[tuple[int, int]]:
    """Find the segments of speech, (start, end) in samples, each at most 30 s.

    Reference implementation: faster-whisper's `get_speech_timestamps` with the options `VAD`.
    """
    if not signal.size:
        return []
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    stretches = get_speech_timestamps(np.ascontiguousarray(signal, np.float32), VadOptions(**VAD))
    return [(int(stretch["start"]), int(stretch["end"])) for stretch in stretches]


def grouped(spans: Sequence[tuple[int, int]], longest: int) -> list[list[tuple[int, int]]]:
    """Join neighbouring spans (start, end) into groups of at most `longest` samples."""
    groups: list[list[tuple[int, int]]] = []
    length = 0
    for start, end in spans:
        if not groups or length + end - start > longest:
            groups.append([])
            length = 0
        groups[-1].append((start, end))
        length += end - start
    return groups


def joined(texts: Sequence[str], windows: Windows, language: str) -> str:
    """Join the texts of windows, in order.

    `28s`: stripped texts with one space between them, or none in languages that are written without spaces.
    `30s` and `vad`: the texts as they are, because Whisper begins each word with its space; the whole is stripped.
    """
    if windows != "28s":
        return "".join(texts).strip()
    stripped = [text.strip() for text in texts]
    return ("" if language in UNSPACED else " ").join(text for text in stripped if text)
