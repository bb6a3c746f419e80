"""Frames that do not arrive: which are lost, and what stands in their place.

A frame is a packet, a column of latents, or for codes a frame of the slowest stream with all codes of that time. Codes
that are sent once per utterance always arrive.

Which are lost
    at random   a number of frames, each as likely as any other. At a higher rate those of a lower rate are lost too.
    in bursts   by the channel of Gilbert (Bell System Technical Journal, 1960) and Elliott (1963): in the good and in
                the bad state a frame is lost with one probability each, and the state changes with another each. Of
                many draws the one is taken whose share of lost frames is nearest to that of the channel, since a short
                recording holds few bursts.
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
        to_bad, to_good: how likely the state changes before a frame. in_bad, in_good: how likely a frame is lost in it.
    """

    to_bad: float
    to_good: float
    in_bad: float = 1.0
    in_good: float = 0.0

    @classmethod
    def of(cls, rate: float, burst_frames: float) -> GilbertElliott:
        """The channel with this loss rate and mean burst length."""
        return cls(rate / (1 - rate) / burst_frames, 1 / burst_frames)

    @property
    def bad(self) -> float:
        """The share of frames that meet the bad state."""
        return self.to_bad / (self.to_bad + self.to_good)

    @property
    def rate(self) -> float:
        """The share of frames that are lost."""
        return self.bad * self.in_bad + (1 - self.bad) * self.in_good

    def draw(self, frames: int, rng: np.random.Generator) -> np.ndarray:
        """Which of so many frames are lost, bools `(frames,)`."""
        chance, lots = rng.random(frames), rng.random(frames)
        mask = np.zeros(frames, bool)
        bad = bool(rng.random() < self.bad)
        for frame in range(frames):
            if frame:
                bad = chance[frame] >= self.to_good if bad else chance[frame] < self.to_bad
            mask[frame] = lots[frame] < (self.in_bad if bad else self.in_good)
        return mask

    def typical(self, frames: int, seed: int) -> np.ndarray:
        """Of many draws the one that loses a share nearest to that of the channel."""
        rng = np.random.default_rng(seed)
        return min(
            (self.draw(frames, rng) for _ in range(_DRAWS)), key=lambda mask: abs(float(mask.mean()) - self.rate)
        )


def at_random(frames: int, rate: float, seed: int) -> np.ndarray:
    """A random mask of lost frames, bools `(frames,)`, at least one."""
    mask = np.zeros(frames, bool)
    mask[np.random.default_rng(seed).permutation(frames)[: max(1, round(rate * frames))]] = True
    return mask


def frames_of(sent: Sent, declared_hz: float | None = None) -> tuple[int, float]:
    """How many frames there are that can be lost, and the seconds that each lasts.

    Args:
        sent: what the codec sent. declared_hz: its frame rate, which packets have if their number fits: a clip may have
            a few packets more than its length says.

    Raises:
        NotApplicable: there are too few to lose one of them and keep the rest.
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
    """What stands in the place of each frame: itself, or silence."""
    return np.where(mask, SILENT, np.arange(mask.size))


def repeat_last(mask: np.ndarray) -> np.ndarray:
    """Source frames where lost ones repeat the last that arrived, else silence."""
    return np.maximum.accumulate(np.where(mask, SILENT, np.arange(mask.size)))


def replace_frames(sent: Sent, silent: Sent, source: np.ndarray) -> Sent:
    """What is decoded in place of what was sent.

    Args:
        silent: what is sent for silence of the same length.
        source: for each frame, the frame of `sent` that is put there, or `SILENT` for that of `silent` in the same
            place.

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
    """The stream with the longest frames; None if there are no codes with a frame rate."""
    timed = [stream for stream in sent.streams if stream.frame_rate_hz > 0]
    return min(timed, key=lambda stream: stream.frame_rate_hz, default=None)


def _shapes(sent: Sent) -> list[tuple[int, ...]]:
    if isinstance(sent, Latents):
        return [np.shape(sent.values)]
    return [*(np.shape(stream.values) for stream in sent.streams), (len(sent.packets),)]


def _stream(one: CodeStream, other: CodeStream, slowest: CodeStream, source: np.ndarray) -> CodeStream:
    """A stream with the codes of other frames, each of them all codes in the time of a frame of the slowest stream."""
    places = np.arange(np.shape(one.values)[1])
    frame = np.minimum((places * (slowest.frame_rate_hz / one.frame_rate_hz) + 1e-9).astype(int), source.size - 1)
    return replace(one, values=_columns(np.asarray(one.values), np.asarray(other.values), frame, source))


def _columns(values: np.ndarray, silent: np.ndarray, frame: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Columns `(rows, places)` of other frames, given the frame that each place is in."""
    first = np.searchsorted(frame, np.arange(source.size))
    length = np.bincount(frame, minlength=source.size)
    origins = source[frame]
    within = np.minimum(np.arange(frame.size) - first[frame], np.maximum(length[origins], 1) - 1)
    return np.where(origins == SILENT, silent, values[:, np.clip(first[origins] + within, 0, frame.size - 1)])


def split(mask: np.ndarray, counts: Sequence[int]) -> list[np.ndarray]:
    """Which frames of each item are lost, of those of all items in a row."""
    return np.split(mask, np.cumsum(counts)[:-1])
