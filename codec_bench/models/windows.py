"""Audio that is longer than a model takes.

The audio is either cut, and the answer says how much was cut, or split into windows, and the answers to the windows are joined.

Conventions
    Every sound is converted to one channel at the rate that the model's adapter sends. The voice to imitate
    (`prompt_audio`) is never cut or split.
    A window ends at the quietest place in its last fifth, so that few words are split. Windows do not overlap.
    Only a request with one sound is split. If a request has several sounds, each of them is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.models.info import ModelInfo
from codec_bench.models.sound import joined
from codec_bench.types import Audio, Message, Request, Response

KEPT_WHOLE = "prompt_audio"
FRAME_S = 0.1
# Code points of scripts that put no space between words: Thai, Lao, Khmer, Myanmar, kana, CJK and full-width forms.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF))


@dataclass(frozen=True, slots=True)
class Heard:
    """The requests that a model is given in place of one request.

    Args:
        requests: one request, or one per window. Their sounds are in memory: one channel at the adapter's rate.
        cut_s: seconds of sound that were cut off and are in none of them.
    """

    requests: tuple[Request, ...]
    cut_s: float = 0.0


def hear(request: Request, info: ModelInfo, rate_hz: int) -> Heard:
    """Reads the sounds of a request, and cuts or splits them to the length that the model takes.

    Args:
        request: the request, with sounds of any length and rate.
        info: the facts of the model; `limit_s` and `window_s` say what it takes.
        rate_hz: the sample rate that the adapter sends.

    Raises:
        AudioError: a sound cannot be read.
    """
    limit_s = info.limit_s if info.limit_s is not None else info.window_s
    window_s = info.window_s if len(list(_cuttable(request))) == 1 else None  # None: nothing is split
    cut = 0.0

    def fit(clip: Clip, whole: bool) -> Clip:
        nonlocal cut
        audio, seconds = clip.signal(rate_hz, limit_s if window_s is None and not whole else None)
        cut += seconds
        return Clip(audio)

    ready = replace_sounds(request, fit)
    if window_s is None or limit_s is None:
        return Heard((ready,), cut)
    audio = next(_cuttable(ready)).read()
    if audio.duration_s <= limit_s:
        return Heard((ready,))
    pieces = [Clip(Audio(audio.samples[:, a:b], rate_hz)) for a, b in windows(audio, window_s)]

    def window(piece: Clip) -> Request:
        return replace_sounds(ready, lambda clip, whole: clip if whole else piece)

    return Heard(tuple(map(window, pieces)))


def windows(audio: Audio, window_s: float) -> list[tuple[int, int]]:
    """Where to split one channel of sound.

    Args:
        audio: the sound `(1, samples)`.
        window_s: length of the longest window. Every window except the last has at least four fifths of it.

    Returns:
        (first sample, last sample + 1) of each window. Each window begins where the one before it ends.
    """
    rate, signal = audio.sample_rate_hz, audio.samples[0]
    longest, frame = max(1, int(window_s * rate)), max(1, round(FRAME_S * rate))
    out, start = [], 0
    while len(signal) - start > longest:
        first = start + int(longest * 0.8)
        last = signal[first : start + longest]
        frames = last[: len(last) // frame * frame].reshape(-1, frame)
        end = start + longest
        if len(frames):
            # Of equally quiet frames the last one is taken, so that a silent recording gives the longest windows.
            quiet = len(frames) - 1 - int(np.argmin((frames[::-1].astype(np.float64) ** 2).sum(axis=1)))
            end = first + quiet * frame + frame // 2
        out.append((start, end))
        start = end
    return [*out, (start, len(signal))]


def join(answers: Sequence[Response], heard: Heard) -> Response:
    """Joins the answers to the windows of one request. If a window failed, the answer is failed and names the window.

    Texts are joined with a space, or without one in scripts that put no space between words. Sounds are joined end to
    end. Usage, latency and attempts are added.

    Args:
        answers: one answer per window, in order, up to the first that is not ok.
        heard: the windows.

    Raises:
        AudioError: the windows' spoken answers differ in sample rate or channels.
    """
    last, count = answers[-1], len(heard.requests)
    cut, notes = heard.cut_s, list(dict.fromkeys(note for answer in answers for note in answer.notes))
    if count == 1:
        return replace(last, cut_s=last.cut_s + cut)
    usage = {k: sum(a.usage.get(k, 0.0) for a in answers) for a in answers for k in a.usage}
    times = [a.latency_s for a in answers if a.latency_s is not None]
    latency_s, attempts = sum(times) if times else None, sum(a.attempts for a in answers)
    whole = replace(last, usage=usage, latency_s=latency_s, attempts=attempts, cut_s=cut)
    if last.status != "ok":
        reason = f"window {len(answers)} of {count}: {last.reason}"
        return replace(whole, reason=reason, notes=tuple(notes))
    texts = [a.text for a in answers if a.text is not None]
    sounds = [a.audio for a in answers if a.audio is not None]
    finishes = [a.finish for a in answers if a.finish is not None]
    return replace(
        whole,
        text=join_texts(texts) if texts else None,
        audio=joined(sounds) if sounds else None,
        first_s=answers[0].first_s,
        finish="length" if "length" in finishes else last.finish,
        notes=(f"heard in {count} windows", *notes),
    )


def join_texts(texts: Sequence[str]) -> str:
    """Joins texts in order, with a space between them unless both sides are in a script without spaces."""
    out = ""
    for text in filter(None, (text.strip() for text in texts)):
        glue = "" if not out or (_is_unspaced(out[-1]) and _is_unspaced(text[0])) else " "
        out += glue + text
    return out


def replace_sounds(request: Request, change: Callable[[Clip, bool], Clip]) -> Request:
    """The request with every sound replaced.

    Args:
        request: the request.
        change: gives the new sound from the old one and whether it must stay whole (the voice to imitate).
    """
    turns = tuple(
        Message(m.role, tuple(change(c, False) if isinstance(c, Clip) else c for c in m.content))
        for m in request.messages
    )
    fields = {k: change(v, k == KEPT_WHOLE) if isinstance(v, Clip) else v for k, v in request.fields.items()}
    return replace(request, messages=turns, fields=fields)


def _cuttable(request: Request) -> Iterator[Clip]:
    for message in request.messages:
        yield from (part for part in message.content if isinstance(part, Clip))
    yield from (v for k, v in request.fields.items() if isinstance(v, Clip) and k != KEPT_WHOLE)


def _is_unspaced(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in _UNSPACED)
