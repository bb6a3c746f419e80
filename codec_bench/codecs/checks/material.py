"""The clips of measurements, at the codec's rate and channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from codec_bench.audio.resample import fit_length
from codec_bench.codecs.adapt import ready
from codec_bench.messages.errors import AudioError, UserError
from codec_bench.types import Audio

_LOOK_AHEAD = 64  # clips that are read before they are sorted into batches of similar lengths


class ProfileClips:
    """Clips for the checks of one codec, read when needed.

    Args:
        files: (id, path) of every clip.
        limit: how many clips `first_clips` holds in memory at most.

    Attributes:
        unreadable: the error message of each clip that could not be read, by id.
    """

    def __init__(self, files: Sequence[tuple[str, str]], codec: Any, limit: int = 8) -> None:
        self.files, self._codec, self._limit = list(files), codec, limit
        self.unreadable: dict[str, str] = {}

    def ready(self, audio: Audio) -> list[Audio]:
        """Convert a clip to the codec's inputs, as in the engine: one, or one per channel."""
        return ready(audio, self._codec.info)

    def read(self) -> Iterator[tuple[str, Audio]]:
        """Yield every readable clip with its id, and add the others to `unreadable`."""
        for name, path in self.files:
            try:
                audio = Audio.read(path)
            except AudioError as error:
                self.unreadable[name] = error.message
                continue
            yield name, audio

    def batches(self, batch_s: float) -> Iterator[list[tuple[str, Audio]]]:
        """Yield batches of (id, audio) of similar length, up to `batch_s` padded seconds."""
        window: list[tuple[str, Audio]] = []
        for entry in self.read():
            window.append(entry)
            if len(window) == _LOOK_AHEAD:
                yield from _fill(window, batch_s)
                window = []
        yield from _fill(window, batch_s)

    @cached_property
    def first_clips(self) -> list[Audio]:
        """The first readable clips as inputs of the codec, at most `limit`.

        Of a clip that must be split by channel, only the first channel is used.

        Raises:
            UserError: no clip can be read.
        """
        out: list[Audio] = []
        for _, audio in self.read():
            out.append(self.ready(audio)[0])
            if len(out) == self._limit:
                break
        if not out:
            reason = next(iter(self.unreadable.values()), "there are none")
            raise UserError("no_clip_readable", clips=len(self.files), reason=reason)
        return out

    @property
    def ids(self) -> list[str]:
        """The ids of `first_clips`."""
        return [name for name, _ in self.files if name not in self.unreadable][: len(self.first_clips)]

    def cut(self, count: int, seconds: float) -> list[Audio]:
        """Cut the first `count` inputs to at most this many seconds."""
        clips = self.first_clips[:count]
        return [Audio(c.samples[:, : max(1, round(seconds * c.sample_rate_hz))], c.sample_rate_hz) for c in clips]

    def exactly(self, seconds: float) -> Audio:
        """Join and repeat the first clips to an input of exactly this length.

        Only clips with the first one's rate and channels are joined.
        """
        first = self.first_clips[0]
        kind = first.sample_rate_hz, first.channels
        fitting = [c.samples for c in self.first_clips if (c.sample_rate_hz, c.channels) == kind]
        samples = np.concatenate(fitting, axis=1)
        length = max(1, round(seconds * first.sample_rate_hz))
        samples = np.tile(samples, (1, -(-length // samples.shape[1])))
        return Audio(fit_length(samples, length), first.sample_rate_hz)


def _fill(window: list[tuple[str, Audio]], batch_s: float) -> Iterator[list[tuple[str, Audio]]]:
    """Group clips, longest first, into batches of at most `batch_s` padded seconds.

    Each clip is (id, audio).
    """
    batch: list[tuple[str, Audio]] = []
    for entry in sorted(window, key=lambda e: -e[1].duration_s):
        if batch and batch[0][1].duration_s * (len(batch) + 1) > batch_s:
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch
