"""Audio longer than a model takes: cut with what was cut reported, or heard in windows whose answers are joined.

Conventions
    Sounds are brought to one channel at the rate that the model's adapter sends. Voices to imitate (`prompt_audio`) are
    never cut or split.
    A window ends where the sound is quietest in its last fifth, so that few words are cut through; windows do not overlap.
    Only a request with one sound is split; where there are more, each is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.models.base import ModelInfo
from codec_bench.models.sound import joined
from codec_bench.types import Audio, Message, Request, Response

KEPT_WHOLE = "prompt_audio"
FRAME_S = 0.1
# Scripts that put no space between words: Thai, Lao, Khmer, Myanmar, kana, CJK and full-width forms.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF))


@dataclass(frozen=True, slots=True)
class Heard:
    """What of a request a model is given.

    Args:
        requests: one, or one a window; their sounds are in memory, one channel at the adapter's rate.
        cut_s: seconds of sound that none of them holds.
    """

    requests: tuple[Request, ...]
    cut_s: float = 0.0


def hear(request: Request, info: ModelInfo, rate_hz: int) -> Heard:
    """Reads the sounds of a request, and fits them to what the model takes.

    Args:
        rate_hz: rate that the adapter sends.

    Raises:
        AudioError: a sound cannot be read.
    """
    limit, cut = info.limit_s if info.limit_s is not None else info.window_s, 0.0
    split = info.window_s is not None and len(list(_cuttable(request))) == 1

    def fit(clip: Clip, whole: bool) -> Clip:
        nonlocal cut
        audio, seconds = clip.signal(rate_hz, None if whole or split else limit)
        cut += seconds
        return Clip(audio)

    ready = replace_sounds(request, fit)
    if not split:
        return Heard((ready,), cut)
    audio = next(_cuttable(ready)).read()
    if audio.duration_s <= limit:
        return Heard((ready,))
    pieces = [Clip(Audio(audio.samples[:, a:b], rate_hz)) for a, b in windows(audio, info.window_s)]
    return Heard(tuple(replace_sounds(ready, lambda clip, whole, p=p: clip if whole else p) for p in pieces))


def windows(audio: Audio, window_s: float) -> list[tuple[int, int]]:
    """Where to split one channel of sound: (first, last + 1) samples of windows that follow each other.

    Args:
        window_s: longest window; each but the last is at least four fifths of it.
    """
    rate, signal = audio.sample_rate_hz, audio.samples[0]
    longest, frame = max(1, int(window_s * rate)), max(1, round(FRAME_S * rate))
    out, start = [], 0
    while len(signal) - start > longest:
        first = start + int(longest * 0.8)
        last = signal[first : start + longest]
        frames = last[: len(last) // frame * frame].reshape(-1, frame)
        # Of equally quiet frames the last: silence throughout gives the longest windows.
        quiet = (
            len(frames) - 1 - int(np.argmin((frames[::-1].astype(np.float64) ** 2).sum(axis=1))) if len(frames) else 0
        )
        end = first + quiet * frame + frame // 2 if len(frames) else start + longest
        out.append((start, end))
        start = end
    return [*out, (start, len(signal))]


def join(answers: Sequence[Response], heard: Heard) -> Response:
    """One answer of those to each window; a window that failed fails the whole, and its reason says which.

    Texts are joined with a space, or with nothing between scripts that have none; sounds follow each other; usage and
    latency add up.

    Raises:
        AudioError: windows answered with sounds of different rates.
    """
    last, count = answers[-1], len(heard.requests)
    cut, notes = heard.cut_s, list(dict.fromkeys(note for answer in answers for note in answer.notes))
    if count == 1:
        return replace(last, cut_s=last.cut_s + cut)
    usage = {k: sum(a.usage.get(k, 0.0) for a in answers) for a in answers for k in a.usage}
    times = [a.latency_s for a in answers if a.latency_s is not None]
    shared = dict(usage=usage, latency_s=sum(times) if times else None, attempts=sum(a.attempts for a in answers))  # fmt: skip
    if last.status != "ok":
        reason = f"window {len(answers)} of {count}: {last.reason}"
        return replace(last, reason=reason, cut_s=cut, notes=tuple(notes), **shared)
    texts = [a.text for a in answers if a.text is not None]
    sounds = [a.audio for a in answers if a.audio is not None]
    finishes = [a.finish for a in answers if a.finish is not None]
    return replace(
        last,
        text=join_texts(texts) if texts else None,
        audio=joined(sounds) if sounds else None,
        first_s=answers[0].first_s,
        finish="length" if "length" in finishes else last.finish,
        cut_s=cut,
        notes=(f"heard in {count} windows", *notes),
        **shared,
    )


def join_texts(texts: Sequence[str]) -> str:
    """Texts one after the other, with a space where words have one."""
    out = ""
    for text in filter(None, (text.strip() for text in texts)):
        glue = "" if not out or (_is_unspaced(out[-1]) and _is_unspaced(text[0])) else " "
        out += glue + text
    return out


def replace_sounds(request: Request, change: Callable[[Clip, bool], Clip]) -> Request:
    """The request with other sounds; `change` is told whether a sound must stay whole."""
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
