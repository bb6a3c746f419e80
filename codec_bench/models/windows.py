"""Audio that is longer than a model takes: cut, or split into windows.

All audio becomes one channel at the adapter's rate. The voice prompt (`prompt_audio`) stays whole. A window ends at the
quietest point of its last fifth, to split few words. Windows overlap only on request (`types.Windows`). Requests with
several clips are cut, never split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

import numpy as np

from codec_bench.audio.clip import Clip
from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import UserError
from codec_bench.models.audio_payloads import clips_of, joined
from codec_bench.models.base import ModelInfo
from codec_bench.text.degenerate_answers import items_of
from codec_bench.types import Audio, Message, Request, Response, Windows

UNCUT_FIELD = "prompt_audio"
FRAME_S = 0.1
WORDS_PER_S = 8
"""A bound of words, or unspaced characters, per second, for overlap search."""
# Code points of scripts without spaces: Thai, Lao, Khmer, Myanmar, kana, CJK and full-width forms.
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF))


@dataclass(frozen=True, slots=True)
class WindowedRequest:
    """The requests in place of one long request.

    Args:
        requests: one request, or one per window, with audio in memory: one channel at the adapter's rate.
        cut_s: seconds of audio that were dropped.
        sound_s: seconds in all, those included.
        windows: how the answers to windows are joined.
    """

    requests: tuple[Request, ...]
    cut_s: float = 0.0
    sound_s: float | None = None
    windows: Windows = field(default_factory=Windows)


def split_windows(request: Request, info: ModelInfo, rate_hz: int) -> WindowedRequest:
    """Read the audio of a request, and cut or split it to the model's limit.

    Args:
        request: with audio of any length and rate. If it configures windows, a model without its own windows gets
            windows of the length that it takes.
        info: the facts of the model; `limit_s` and `window_s` are its limits.
        rate_hz: the sample rate that the adapter sends.

    Raises:
        AudioError: audio cannot be read.
    """
    if next(clips_of(request), None) is None:
        return WindowedRequest((request,))
    limit_s = info.limit_s if info.limit_s is not None else info.window_s
    options = request.windows or Windows()
    window_s = window_of(request.windows, info) if len(list(_cuttable(request))) == 1 else None
    if window_s is not None and options.length_s is not None:
        limit_s = min(window_s, options.length_s)
    cut = 0.0

    def fit(clip: Clip, uncut: bool) -> Clip:
        """Resample a recording, and cut it if the model has no windows."""
        nonlocal cut
        fitted, seconds = clip.fitted(rate_hz, limit_s if window_s is None and not uncut else None)
        cut += seconds
        return fitted

    ready = replace_sounds(request, fit)
    sounds = list(clips_of(ready))
    sound_s = cut + sum(clip.duration_s for clip in sounds) if sounds else None
    if window_s is None or limit_s is None:
        return WindowedRequest((ready,), cut, sound_s)
    whole_clip = next(_cuttable(ready))
    audio = whole_clip.read()
    if audio.duration_s <= limit_s:
        return WindowedRequest((ready,), 0.0, sound_s)
    places = windows(audio, window_s, options.overlap_s)
    pieces = [whole_clip.derive(Audio(audio.samples[:, a:b], rate_hz), ("window", a, b)) for a, b in places]

    def window(segment: Clip) -> Request:
        return replace_sounds(ready, lambda clip, uncut: clip if uncut else segment)

    return WindowedRequest(tuple(map(window, pieces)), 0.0, sound_s, options)


def window_of(options: Windows | None, info: ModelInfo) -> float | None:
    """Return the length in seconds of windows for long audio; None without windows.

    Args:
        options: the windows that a request configures, or None; the model's limits bound them.
    """
    longest = info.window_s if options is None or info.window_s is not None else info.limit_s
    if options is None:
        return longest
    window_s = min((s for s in (longest, options.length_s) if s is not None), default=None)
    if window_s is not None and not 0 <= options.overlap_s < window_s / 2:
        raise UserError("window_overlap", window_s=window_s, model=info.name, overlap_s=options.overlap_s)
    return window_s


def windows(audio: Audio, window_s: float, overlap_s: float = 0.0) -> list[tuple[int, int]]:
    """Return (first sample, last sample + 1) of each window of one channel.

    Args:
        audio: `(1, samples)`.
        window_s: the longest window. Every window except the last has at least four fifths of it.
        overlap_s: seconds shared with the window before; less than half of a window.
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
            # Of equally quiet frames the last, so silence gives the longest windows.
            quiet = len(frames) - 1 - int(np.argmin((frames[::-1].astype(np.float64) ** 2).sum(axis=1)))
            end = first + quiet * frame + frame // 2
        out.append((start, end))
        start = end - round(overlap_s * rate)
    return [*out, (start, len(signal))]


def join(answers: Sequence[Response], windowed: WindowedRequest) -> Response:
    """Join the answers to a request's windows; a failed window fails the answer.

    Texts are joined in order (with spaces where the script has them), by vote, or on lines. Audio is concatenated.
    Usage, latency and attempts are summed.

    Args:
        answers: one per window, in order, up to the first that is not ok.

    Raises:
        AudioError: the spoken answers differ in sample rate or channels.
    """
    last, count = answers[-1], len(windowed.requests)
    cut, notes = windowed.cut_s, list(dict.fromkeys(note for answer in answers for note in answer.notes))
    if count == 1:
        return replace(last, cut_s=last.cut_s + cut, sound_s=windowed.sound_s)
    usage = {k: sum(a.usage.get(k, 0.0) for a in answers) for a in answers for k in a.usage}
    if any("cost_usd" not in a.usage for a in answers if a.status == "ok"):
        usage = {k: value for k, value in usage.items() if k not in ("cost_usd", "cost_unsure_usd")}
    times = [a.latency_s for a in answers if a.latency_s is not None]
    latency_s, attempts = sum(times) if times else None, sum(a.attempts for a in answers)
    combined = replace(last, usage=usage, latency_s=latency_s, attempts=attempts, cut_s=cut, sound_s=windowed.sound_s)
    if last.status != "ok":
        reason = Diagnostic("in_window", window=len(answers), count=count, cause=last.reason)
        return replace(combined, reason=reason, notes=tuple(notes))
    texts = [a.text for a in answers if a.text is not None]
    sounds = [a.audio for a in answers if a.audio is not None]
    finishes = [a.finish for a in answers if a.finish is not None]
    return replace(
        combined,
        text=_join_answers(texts, windowed.windows) if texts else None,
        audio=joined(sounds) if sounds else None,
        first_s=answers[0].first_s,
        finish="length" if "length" in finishes else last.finish,
        notes=(Diagnostic("sent_in_windows", windows=count), *notes),
    )


def _join_answers(texts: Sequence[str], options: Windows) -> str:
    """Join the texts of windows: by lines, by vote, or by merging overlaps."""
    if options.join == "lines":
        return "\n".join(text.strip() for text in texts if text.strip())
    if options.join == "vote":
        votes = Counter(" ".join(items_of(text)) for text in texts if items_of(text))
        most = max(votes.values(), default=0)
        return next((text for text in texts if votes[" ".join(items_of(text))] == most), texts[0])
    if not options.overlap_s:
        return join_texts(texts)
    out = ""
    for text in texts:
        out = merge_texts(out, text, max(1, round(WORDS_PER_S * options.overlap_s)))
    return out


def merge_texts(before: str, after: str, most: int) -> str:
    """Join two texts whose end and beginning transcribe the same audio.

    The longest common run of words there appears once. A single word counts only at the very seam, because small words
    occur everywhere. Without a run the texts are joined as they are.

    Args:
        most: the most words, or unspaced characters, that both can share.
    """
    ours, theirs = _pieces(before), _pieces(after)
    tail, head = ours[-most:], theirs[:most]
    ending, again = ([" ".join(items_of(word)) for word in half] for half in (tail, head))
    match = SequenceMatcher(None, ending, again, autojunk=False).find_longest_match()
    shared = sum(map(bool, ending[match.a : match.a + match.size]))
    if not shared or (shared == 1 and (match.a + match.size < len(tail) or match.b)):
        return join_texts([before, after])
    end = len(ours) - len(tail) + match.a + match.size
    return join_texts(["".join(ours[:end]), "".join(theirs[match.b + match.size :])])


def _pieces(text: str) -> list[str]:
    """Split a text into words, each with its space before, or unspaced characters."""
    out: list[str] = []
    for character in text.strip():
        starts = character.isspace() and bool(out) and not out[-1].isspace()
        if not out or starts or _is_unspaced(character) or (not character.isspace() and _is_unspaced(out[-1][-1])):
            out.append(character)
        else:
            out[-1] += character
    return out


def join_texts(texts: Sequence[str]) -> str:
    """Join texts in order, with a space except between scripts without spaces."""
    out = ""
    for text in filter(None, (text.strip() for text in texts)):
        glue = "" if not out or (_is_unspaced(out[-1]) and _is_unspaced(text[0])) else " "
        out += glue + text
    return out


def replace_sounds(request: Request, change: Callable[[Clip, bool], Clip]) -> Request:
    """Return a request with every recording replaced by `change(clip, uncut)`.

    `uncut` is True for the field that must keep its full length.
    """
    turns = tuple(
        Message(m.role, tuple(change(c, False) if isinstance(c, Clip) else c for c in m.content))
        for m in request.messages
    )
    fields = {k: change(v, k == UNCUT_FIELD) if isinstance(v, Clip) else v for k, v in request.fields.items()}
    return replace(request, messages=turns, fields=fields)


def _cuttable(request: Request) -> Iterator[Clip]:
    for message in request.messages:
        yield from (item for item in message.content if isinstance(item, Clip))
    yield from (v for k, v in request.fields.items() if isinstance(v, Clip) and k != UNCUT_FIELD)


def _is_unspaced(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in _UNSPACED)
