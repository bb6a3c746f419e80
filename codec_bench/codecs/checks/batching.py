"""Batches against single clips: other clips, orders and batch sizes.

Codes must be equal in at least 99.99 % of the frames (latents within 1e-4 of the largest), and waveforms within 1e-4
where codes are equal. Clips are chosen to disagree (`mix_clips`): shortest with longest, silence with speech, and whole
frames plus and minus one sample, to detect one frame of leaking padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from codec_bench.codecs.adapt import recode
from codec_bench.types import Audio, Latents, Sent

WAVE_TOLERANCE = 1e-4
CODE_SHARE = 0.9999
LATENT_TOLERANCE = 1e-4
_FRAME_S = 0.02  # of a codec that declares none


@dataclass(slots=True)
class BatchingCheck:
    """Differences between clips coded in batches and the same clips coded alone.

    Args:
        flips: how many of these frames differ.
        wave: the largest difference of a sample; infinite if the shapes differ.
        differing: indices of clips beyond the tolerances.
        worst: index of the clip that differs most, or None.
        worst_batch: the indices of the clips in that clip's batch.
        worst_item: that clip's codes and output in the batch.
    """

    frames: int = 0
    flips: int = 0
    wave: float = 0.0
    differing: set[int] = field(default_factory=set)
    worst: int | None = None
    worst_batch: Sequence[int] = ()
    worst_item: tuple[Sent, Audio] | None = None
    _worst_by: float = 0.0

    def add(
        self, index: int, alone: tuple[Sent, Audio], together: tuple[Sent, Audio], batch: Sequence[int] = ()
    ) -> None:
        """Compare one clip of a batch with the same clip coded alone; update the totals.

        Args:
            index: of the clip among all clips.
            alone: its codes and output, coded alone.
            together: its codes and output in the batch.
            batch: the indices of all clips of the batch.
        """
        flips, frames = code_flips(alone[0], together[0])
        wave = 0.0
        if alone[1].samples.shape != together[1].samples.shape:
            wave = float("inf")
        elif not flips:
            wave = float(np.abs(alone[1].samples - together[1].samples).max(initial=0.0))
        self.frames, self.flips, self.wave = self.frames + frames, self.flips + flips, max(self.wave, wave)
        if flips or wave > WAVE_TOLERANCE:
            self.differing.add(index)
        if max(wave, float(flips)) > self._worst_by:
            self.worst, self.worst_batch, self.worst_item = index, batch, together
            self._worst_by = max(wave, float(flips))

    @property
    def exact(self) -> bool:
        """Whether all differences are within the tolerances."""
        return self.wave <= WAVE_TOLERANCE and (not self.flips or 1 - self.flips / self.frames >= CODE_SHARE)


def code_flips(codes: Sent, other: Sent) -> tuple[int, int]:
    """Count the frames in which two items' codes differ, and all frames.

    Each packet counts as a frame. Latents differ by more than `LATENT_TOLERANCE` of the largest magnitude.
    """
    if isinstance(codes, Latents) and isinstance(other, Latents):
        return latent_flips(np.asarray(codes.values), np.asarray(other.values))
    flips = frames = 0
    for a, b in zip(codes.streams, other.streams):
        left, right = np.asarray(a.values), np.asarray(b.values)
        frames += left.shape[1]
        flips += int((left != right).any(axis=0).sum()) if left.shape == right.shape else left.shape[1]
    if codes.packets or other.packets:
        frames += len(codes.packets)
        same = sum(a == b for a, b in zip(codes.packets, other.packets))
        flips += max(len(codes.packets), len(other.packets)) - same
    return flips, frames


def latent_flips(one: np.ndarray, other: np.ndarray) -> tuple[int, int]:
    """Count the frames `(differing, all)` of latents `(dimensions, frames)`."""
    if one.shape != other.shape:
        return one.shape[1], one.shape[1]
    allowed = LATENT_TOLERANCE * float(np.abs(one).max(initial=0.0))
    return int((np.abs(one - other) > allowed).any(axis=0).sum()), one.shape[1]


def mix_clips(clips: Sequence[Audio], frame_rate_hz: float | None) -> list[Audio]:
    """Cut clips to lengths that show errors of padding in a batch, and add silence.

    The lengths include one frame plus a sample, and whole frames with one sample more and less. Up to two whole clips
    follow.

    Args:
        clips: at one of the codec's rates; the first is the longest result.
        frame_rate_hz: of the codec; None if it declares none.
    """
    first, rate = clips[0], clips[0].sample_rate_hz
    frame = max(2, round(rate / frame_rate_hz) if frame_rate_hz else round(_FRAME_S * rate))
    aligned = max(1, min(clip.num_samples for clip in clips) // (2 * frame)) * frame
    lengths = [first.num_samples, frame + 1, aligned, aligned + 1, aligned - 1, max(1, round(0.37 * first.num_samples))]
    pieces = [Audio(clips[n % len(clips)].samples[:, : max(1, k)], rate) for n, k in enumerate(lengths)]
    quiet = Audio(np.zeros((first.channels, max(1, round(0.61 * first.num_samples)))), rate)
    return [*pieces, quiet, *clips[1:3]]


def batches_of(lengths: Sequence[int]) -> list[list[int]]:
    """Choose batches of clip indices that mix lengths and orders.

    Three of all clips (in order, reversed, shortest next to longest), then pairs of a short and a long clip.
    """
    count = len(lengths)
    order = sorted(range(count), key=lambda k: lengths[k])
    pairs = [[order[k], order[-1 - k]] for k in range(count // 2)]
    inside_out = [index for pair in pairs for index in pair] + order[count // 2 : count - count // 2]
    return [list(range(count)), list(reversed(range(count))), inside_out, *pairs]


def one_by_one(codec: Any, clips: Sequence[Audio]) -> list[tuple[Sent, Audio]]:
    """Encode and decode each clip alone; return its codes and output.

    Raises:
        CodecFault: the codec returned something else than one item of the same length.
        Exception: the codec raised it.
    """
    results = []
    for clip in clips:
        (codes,), (wave,) = recode(codec, [clip])
        results.append((codes, wave))
    return results


def is_repeated(codec: Any, clips: Sequence[Audio], index: int, item: tuple[Sent, Audio]) -> bool:
    """Whether coding a batch again gives one clip the same codes and output.

    Args:
        clips: the batch.
        index: position in the batch of the compared clip.
        item: the codes and output of this clip from the first time.
    """
    codes, waves = recode(codec, clips)
    again = BatchingCheck()
    again.add(index, item, (codes[index], waves[index]))
    return again.exact


def try_batches(
    codec: Any, clips: Sequence[Audio], alone: Sequence[tuple[Sent, Audio]], batches: Sequence[Sequence[int]]
) -> BatchingCheck:
    """Code each batch, and compare its clips with the same clips coded alone.

    Args:
        alone: codes and output of each clip, from `one_by_one`.
        batches: the indices of the clips of each batch.

    Raises:
        CodecFault: the codec returned another number of items, or items of other lengths.
        Exception: the codec raised it.
    """
    comparison = BatchingCheck()
    for batch in batches:
        for index, codes, wave in zip(batch, *recode(codec, [clips[k] for k in batch])):
            comparison.add(index, alone[index], (codes, wave), batch)
    return comparison
