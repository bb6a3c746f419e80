"""A codec's stream against its input and against coding the whole signal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from codec_bench.codecs.adapt import recode
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.batching import WAVE_TOLERANCE
from codec_bench.codecs.checks.dropouts import WINDOW_S, find_dropped_windows
from codec_bench.machine.process_state import end_if_forked
from codec_bench.messages import Diagnostic, of_error
from codec_bench.messages.errors import UserError
from codec_bench.types import Audio, Sent

_LATEST_S = 1.0
_STEPS, _LEAST_S, _LONGEST_S = 110, 2.0, 6.0
"""Streamed steps, within these seconds."""
_STEP_SHARE = 0.01
"""Share of steps that may differ: other rounding flips a few codes."""


@dataclass(slots=True)
class Streamed:
    """The results of streaming one clip.

    Args:
        encode_s, decode_s: seconds of each step.
        missing_samples: how many the decoder still owes at the end of the clip.
        late_codes: the codes of the silence that follows the clip.
        owed: the output decoded from `late_codes`.
    """

    step_samples: int
    codes: list[Sent] = field(default_factory=list)
    waves: list[np.ndarray] = field(default_factory=list)
    encode_s: list[float] = field(default_factory=list)
    decode_s: list[float] = field(default_factory=list)
    missing_samples: int = 0
    late_codes: list[Sent] = field(default_factory=list)
    owed: np.ndarray = field(default_factory=lambda: np.zeros((1, 0), np.float32))


def open_stream(codec: Any) -> AbstractContextManager[Any] | Diagnostic:
    """Open a codec's stream (`codec.streaming()`), or return why it has none."""
    if not callable(getattr(codec, "streaming", None)):
        return Diagnostic("no_streaming")
    try:
        stream: AbstractContextManager[Any] = codec.streaming()
    except (UserError, NotImplementedError) as error:
        return of_error(error, with_type=False) if str(error) else Diagnostic("streaming_refused")
    return stream


def stream_clip(stream: AbstractContextManager[Any], clip: Audio) -> Streamed:
    """Encode and decode a clip step by step, with the seconds of each step.

    Silence of up to a second follows, to fetch output that the stream holds back.
    """
    process = os.getpid()
    with stream as running:
        streamed, process = Streamed(int(running.step_samples)), os.getpid()
        for start in range(0, clip.num_samples, streamed.step_samples):
            segment = Audio(clip.samples[:, start : start + streamed.step_samples], clip.sample_rate_hz)
            begin = perf_counter()
            sent = running.encode(segment)
            middle = perf_counter()
            out = running.decode(sent)
            end_if_forked(process)  # before the next step forks again
            streamed.encode_s.append(middle - begin)
            streamed.decode_s.append(perf_counter() - middle)
            end_if_forked(process)
            streamed.codes.append(sent)
            streamed.waves.append(out.samples)
        streamed.missing_samples = clip.num_samples - sum(wave.shape[1] for wave in streamed.waves)
        silence = Audio(np.zeros((clip.channels, streamed.step_samples)), clip.sample_rate_hz)
        late = [np.zeros((clip.channels, 0), np.float32)]
        for _ in range(-(-round(_LATEST_S * clip.sample_rate_hz) // streamed.step_samples)):
            if sum(wave.shape[1] for wave in late) >= streamed.missing_samples:
                break
            streamed.late_codes.append(running.encode(silence))
            late.append(running.decode(streamed.late_codes[-1]).samples)
            end_if_forked(process)
        streamed.owed = np.concatenate(late, axis=1)
    return streamed


def check_stream(codec: Any, clips: Sequence[Audio]) -> dict[str, Any]:
    """Stream 2 to 6 seconds of joined clips; compare with coding them in one call.

    One finding; `not applicable` if the codec has no stream.
    """
    stream = open_stream(codec)
    if isinstance(stream, Diagnostic):
        return finding("stream", "not applicable", stream)
    rate = clips[0].sample_rate_hz
    with stream as running:
        seconds = float(np.clip(_STEPS * int(running.step_samples) / rate, _LEAST_S, _LONGEST_S))
    speech = np.concatenate([clip.samples for clip in clips if clip.channels == clips[0].channels], axis=1)
    clip = Audio(np.take(speech, np.arange(round(seconds * rate)), axis=1, mode="wrap"), rate)
    decoded = recode(codec, [clip])[1][0].samples
    return compare_stream(clip, decoded, stream_clip(codec.streaming(), clip))


def compare_stream(clip: Audio, decoded: np.ndarray, streamed: Streamed) -> dict[str, Any]:
    """Compare a stream's output with the input and with coding the clip in one call.

    Args:
        clip: the input.
        decoded: the output for the whole clip in one call.
        streamed: the result of `stream_clip`.

    Returns:
        The finding: `suspect` if steps are silent, or if too many differ from `decoded`.
    """
    joined = np.concatenate([*streamed.waves, streamed.owed], axis=1)[:, : clip.num_samples]
    full = np.pad(joined, ((0, 0), (0, clip.num_samples - joined.shape[1])))
    starts = np.arange(0, clip.num_samples, streamed.step_samples)
    rate = clip.sample_rate_hz
    silent = (
        np.flatnonzero(find_dropped_windows(clip.samples, full, rate)[0]) * WINDOW_S * rate // streamed.step_samples
    )
    if len(silent_steps := np.unique(silent)):
        first_s = silent_steps[0] * streamed.step_samples / rate
        diagnostic = Diagnostic("steps_silent", steps=len(silent_steps), of=len(starts), first_s=first_s)
        return finding("stream", "suspect", diagnostic, float(len(silent_steps)))
    differs = np.maximum.reduceat(np.abs(full - decoded).max(axis=0), starts)
    steps, worst = int((differs > WAVE_TOLERANCE).sum()), float(differs.max())
    diagnostic = Diagnostic("stream", steps=steps, of=len(starts), wave=worst)
    return finding("stream", "suspect" if steps > _STEP_SHARE * len(starts) else "ok", diagnostic, worst)
