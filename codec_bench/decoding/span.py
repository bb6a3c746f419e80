"""A part of a file, `FILE#t=BEGIN,END` in seconds, such as `/d/a.wav#t=1.5,3.25`.

Without END the part goes to the end. `&channel=1` selects one channel, counted from 0. FILE may be a locator of a table
row or a tar member. Source: Media Fragments URI 1.0 (https://www.w3.org/TR/media-frags/), section 4.2.1.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from codec_bench.config.file_content import file_state
from codec_bench.decoding.decode import Decoded
from codec_bench.messages.errors import AudioError

MARK = "#t="
SLACK_S = 0.02
"""How far a part may exceed its file, because tables round times."""
CACHED_BYTES = 256 << 20
_SPAN = re.compile(
    r"(?P<file>.+)#t=(?P<begin>\d+(?:\.\d+)?)(?:,(?P<end>\d+(?:\.\d+)?))?(?:&channel=(?P<channel>\d+))?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a sound.

    Args:
        file: path or locator.
        end_s: None for the end of the sound.
        channel: the only channel, counted from 0; None for all.
    """

    file: str
    begin_s: float = 0.0
    end_s: float | None = None
    channel: int | None = None

    def __str__(self) -> str:
        end = "" if self.end_s is None else f",{_seconds(self.end_s)}"
        channel = "" if self.channel is None else f"&channel={self.channel}"
        return f"{self.file}{MARK}{_seconds(self.begin_s)}{end}{channel}"


def _seconds(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def find_span(path: str) -> Span | None:
    """Parse a part, or return None. An existing file of that name is a path."""
    match = _SPAN.fullmatch(path) if MARK in path else None
    if match is None or os.path.exists(path):
        return None
    end, channel = (None if match[name] is None else float(match[name]) for name in ("end", "channel"))
    return Span(match["file"], float(match["begin"]), end, None if channel is None else int(channel))


def cut_span(span: Span, sound: Decoded) -> Decoded:
    """Cut a part, with its ends rounded to the nearest samples.

    Raises:
        AudioError: the part is empty, begins or ends after the sound, or the sound has no such channel.
    """
    samples, rate_hz = sound
    length = samples.shape[1]
    begin, end = round(span.begin_s * rate_hz), length if span.end_s is None else round(span.end_s * rate_hz)
    if end > length + SLACK_S * rate_hz or begin >= length:
        raise AudioError("segment_beyond", span=span, begin_s=span.begin_s, end_s=span.end_s, length_s=length / rate_hz)
    if end <= begin:
        raise AudioError("segment_empty", span=span)
    if span.channel is not None:
        if span.channel >= len(samples):
            raise AudioError("segment_channel", span=span, channels=len(samples), channel=span.channel)
        samples = samples[span.channel : span.channel + 1]
    return Decoded(samples[:, begin : min(end, length)].copy(), rate_hz)


class _Latest:
    """A cache of decoded files, so that segments of a long recording decode it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sounds: OrderedDict[tuple[str, str], Decoded] = OrderedDict()

    def get(self, file: str, read: Callable[[str], Decoded]) -> Decoded:
        """Return a decoded file from the cache, or read it and drop the oldest ones."""
        state = file_state(file) if os.path.isfile(file) else None
        if state is None:
            return read(file)
        with self._lock:
            sound = self._sounds.pop((file, state), None) or read(file)
            self._sounds[file, state] = sound
            while len(self._sounds) > 1 and sum(one.samples.nbytes for one in self._sounds.values()) > CACHED_BYTES:
                self._sounds.popitem(last=False)
        return sound


_LATEST = _Latest()


def read_span(span: Span, read: Callable[[str], Decoded]) -> Decoded:
    """Decode a part of a sound; `read` decodes the complete sound."""
    return cut_span(span, _LATEST.get(span.file, read))
