"""Lost frames: which are lost, and what replaces them.

A frame is a packet, a column of latents, or the codes in the time of a frame of the slowest stream. Codes sent once per
utterance always arrive. Losses are at random (those of a lower rate are lost at a higher rate too), or in bursts by the
channel of Gilbert (Bell System Technical Journal, 1960) and Elliott (1963). Of many draws, the one whose share is
nearest to the channel's is used, since a short recording holds few bursts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic
from codec_bench.types import CodeStream, Latents, Sent

SILENT = -1  # in place of the number of a frame: the frame that silence has there
_DRAWS = 200
_FEWEST_FRAMES = 10
_MORE_PACKETS = 3.0


@dataclass(frozen=True, slots=True)
class GilbertElliott:
    """A channel with two states.

    Args:
        to_bad, to_good: probability of a change of state before a frame.
        in_bad, in_good: probability of loss in it.
    """

    to_bad: float
    to_good: float
    in_bad: float = 1.0
    in_good: float = 0.0

    @classmethod
    def of(cls, rate: float, burst_frames: float) -> GilbertElliott:
        """Build the channel with this loss rate and mean burst length."""
        return cls(rate / (1 - rate) / burst_frames, 1 / burst_frames)

    @property
    def bad(self) -> float:
        """The share of frames in the bad state."""
        return self.to_bad / (self.to_bad + self.to_good)

    @property
    def rate(self) -> float:
        """The share of frames that are lost."""
        return self.bad * self.in_bad + (1 - self.bad) * self.in_good

    def draw(self, frames: int, rng: np.random.Generator) -> np.ndarray:
        """Draw a mask of lost frames, bool `(frames,)`; True is lost."""
        chance, lots = rng.random(frames), rng.random(frames)
        mask = np.zeros(frames, bool)
        bad = bool(rng.random() < self.bad)
        for frame in range(frames):
            if frame:
                bad = chance[frame] >= self.to_good if bad else chance[frame] < self.to_bad
            mask[frame] = lots[frame] < (self.in_bad if bad else self.in_good)
        return mask

    def typical(self, frames: int, seed: int) -> np.ndarray:
        """Draw many masks, and return the one closest to the rate."""
        rng = np.random.default_rng(seed)
        return min(
            (self.draw(frames, rng) for _ in range(_DRAWS)), key=lambda mask: abs(float(mask.mean()) - self.rate)
        )


def at_random(frames: int, rate: float, seed: int) -> np.ndarray:
    """Draw a mask, bool `(frames,)`, with the share `rate` (at least one frame) lost."""
    mask = np.zeros(frames, bool)
    mask[np.random.default_rng(seed).permutation(frames)[: max(1, round(rate * frames))]] = True
    return mask


def frames_of(sent: Sent, declared_hz: float | None = None) -> tuple[int, float]:
    """Return the number of frames that can be lost, and the length of each in s.

    Args:
        declared_hz: the codec's frame rate, used for packets if their number fits: padding may add a few packets.

    Raises:
        NotApplicable: there are too few to lose one of them.
    """
    if isinstance(sent, Latents):
        count, frame_s = sent.values.shape[1], 1 / sent.frame_rate_hz
    elif slowest := _slowest(sent):
        count, frame_s = np.shape(slowest.values)[1], 1 / slowest.frame_rate_hz
    else:
        count = len(sent.packets)
        frame_s = sent.duration_s / max(1, count)
        if declared_hz and abs(count - sent.duration_s * declared_hz) <= _MORE_PACKETS:
            frame_s = 1 / declared_hz
    if count < _FEWEST_FRAMES:
        raise NotApplicable(Diagnostic("too_few_frames", seconds=sent.duration_s, frames=count, needed=_FEWEST_FRAMES))
    return count, frame_s


def mute_gaps(mask: np.ndarray) -> np.ndarray:
    """Return the source of each frame: itself, or silence for a lost one."""
    return np.where(mask, SILENT, np.arange(mask.size))


def repeat_last(mask: np.ndarray) -> np.ndarray:
    """Return each frame's source: the last that arrived, or silence."""
    return np.maximum.accumulate(np.where(mask, SILENT, np.arange(mask.size)))


def replace_frames(sent: Sent, silent: Sent, source: np.ndarray) -> Sent:
    """Replace lost frames of encoded audio by earlier frames or encoded silence.

    Args:
        silent: the codes of silence of the same length.
        source: for each frame, the frame of `sent` to use, or `SILENT` for that of `silent` in its place.

    Raises:
        NotApplicable: silence is sent in another number of frames.
    """
    if _shapes(sent) != _shapes(silent):
        raise NotApplicable(Diagnostic("other_silence"))
    if isinstance(sent, Latents) and isinstance(silent, Latents):
        return replace(sent, values=_columns(sent.values, silent.values, np.arange(source.size), source))
    assert not isinstance(sent, Latents) and not isinstance(silent, Latents)
    slowest = _slowest(sent)
    if slowest is None:
        packets = [silent.packets[k] if s == SILENT else sent.packets[s] for k, s in enumerate(source.tolist())]
        return replace(sent, packets=tuple(packets))
    streams = [
        _stream(one, other, slowest, source) if one.frame_rate_hz > 0 else one
        for one, other in zip(sent.streams, silent.streams)
    ]
    return replace(sent, streams=tuple(streams))


def _slowest(sent: Sent) -> CodeStream | None:
    """Return the stream with the longest frames; or None."""
    timed = [stream for stream in sent.streams if stream.frame_rate_hz > 0]
    return min(timed, key=lambda stream: stream.frame_rate_hz, default=None)


def _shapes(sent: Sent) -> list[tuple[int, ...]]:
    if isinstance(sent, Latents):
        return [np.shape(sent.values)]
    return [*(np.shape(stream.values) for stream in sent.streams), (len(sent.packets),)]


def _stream(one: CodeStream, other: CodeStream, slowest: CodeStream, source: np.ndarray) -> CodeStream:
    """Replace a stream's codes for lost frames; a frame may hold several of its codes.

    Args:
        one, other: the stream as encoded from the audio, and from silence.
        slowest: the stream with one code per frame.
        source: for each frame, the frame to use or `SILENT`.
    """
    places = np.arange(np.shape(one.values)[1])
    frame = np.minimum((places * (slowest.frame_rate_hz / one.frame_rate_hz) + 1e-9).astype(int), source.size - 1)
    return replace(one, values=_columns(np.asarray(one.values), np.asarray(other.values), frame, source))


def _columns(values: np.ndarray, silent: np.ndarray, frame: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Replace columns of `values` by those of the source frames, or by silence.

    Args:
        values, silent: `(rows, columns)` for the audio and for silence.
        frame: the frame of each column.
        source: for each frame, the frame to use or `SILENT`.
    """
    first = np.searchsorted(frame, np.arange(source.size))
    length = np.bincount(frame, minlength=source.size)
    origins = source[frame]
    within = np.minimum(np.arange(frame.size) - first[frame], np.maximum(length[origins], 1) - 1)
    return np.where(origins == SILENT, silent, values[:, np.clip(first[origins] + within, 0, frame.size - 1)])


def split(mask: np.ndarray, counts: Sequence[int]) -> list[np.ndarray]:
    """Split a mask over all items into one mask per item."""
    return np.split(mask, np.cumsum(counts)[:-1])
