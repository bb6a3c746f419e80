"""Quality, recovery and damage after lost frames and bit errors.

Frames are lost at random and in bursts (`frame_loss.py`). A lost frame is replaced by that of digital silence
(`silence`), by the decoder's method `conceal` (`own`), or without one by the last frame that arrived (`repeat`).
Quality is a mean over one pattern against the input, without an interval, next to the point without loss.
`recovery_ms` is from the end of one lost frame to the end of the last 5 ms window whose difference from the undisturbed
output exceeds `recovery_db`; loud frames are tried. For single flipped bits, `refused` is the share that does not
decode, `disturbed_ms` spans the first to the last such window, and `wave_snr_db` compares with the undisturbed output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from codec_bench.apps.profiling.frame_loss import (
    GilbertElliott,
    at_random,
    frames_of,
    mute_gaps,
    repeat_last,
    replace_frames,
    split,
)
from codec_bench.apps.profiling.scoring import SectionScorer
from codec_bench.apps.profiling.settings import Settings
from codec_bench.apps.profiling.stability import snr_db
from codec_bench.codecs.adapt import check_decoded, decode, encode, fault_of, recode
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Codes, CodeStream, Latents, Sent

UNREPAIRED = "silence"
REPAIRS = ("own", "repeat", UNREPAIRED)
WINDOW_S = 0.005
_LOUD_SHARE = 0.5
DEAF = Diagnostic("codes_unused")


class LossyLink:
    """A codec over a lossy channel, with a few clips; raises NotApplicable."""

    def __init__(self, codec: Any, clips: Sequence[Audio]) -> None:
        self._codec, self.clips = codec, list(clips)
        self.sent, self.undisturbed = recode(codec, self.clips)
        frame_counts = [frames_of(sent, codec.info.frame_rate_hz) for sent in self.sent]
        self.counts, self.frame_s = [count for count, _ in frame_counts], frame_counts[0][1]
        self._silent: list[Sent] | None = None

    @property
    def frames(self) -> int:
        """Frames of all clips."""
        return sum(self.counts)

    def repairs(self) -> dict[str, str | None]:
        """Why each repair does not work, or None if it does."""
        nothing = [np.arange(self.counts[0]) == self.counts[0] // 2]
        return {repair: _fault(partial(self.decode_with_losses, repair, [0], nothing)) for repair in REPAIRS}

    def decode_with_losses(self, repair: str, which: Sequence[int], masks: Sequence[np.ndarray]) -> list[Audio]:
        """Decode the clips at positions `which` with the frames in `masks` lost.

        Args:
            repair: `own` for the codec's concealment, `repeat` for the last frame, otherwise encoded silence.
        """
        pieces = [self.clips[k] for k in which]
        if repair == "own":
            if not callable(getattr(self._codec, "conceal", None)):
                raise NotApplicable(Diagnostic("no_concealment", codec=self._codec.info.name))
            out = self._codec.conceal([self.sent[k] for k in which], list(masks))
            check_decoded(self._codec.info.name, out, pieces)
            return out
        source = repeat_last if repair == "repeat" else mute_gaps
        items = [replace_frames(self.sent[k], self._silence(k), source(gone)) for k, gone in zip(which, masks)]
        return decode(self._codec, items, pieces)

    @property
    def ignores_losses(self) -> bool:
        """Whether losing all frames of the first clip changes nothing."""
        (out,) = self.decode_with_losses(UNREPAIRED, [0], [np.ones(self.counts[0], bool)])
        return bool(self.undisturbed[0].samples.any()) and np.array_equal(out.samples, self.undisturbed[0].samples)

    def _silence(self, index: int) -> Sent:
        if self._silent is None:
            quiet = [Audio(np.zeros_like(clip.samples), clip.sample_rate_hz) for clip in self.clips]
            self._silent = encode(self._codec, quiet)
        return self._silent[index]


def measure(codec: Any, material: ProfileClips, settings: Settings) -> dict[str, Any]:
    """Decode a few clips with lost frames, and measure quality and recovery time."""
    link = LossyLink(codec, material.cut(settings.loss_clips, settings.loss_s))
    scorer = SectionScorer(settings.robust_metrics)
    repairs = link.repairs()
    if repairs[UNREPAIRED] is None and link.ignores_losses:
        raise NotApplicable(DEAF)
    best = next((repair for repair in REPAIRS if repairs[repair] is None), None)
    tried = [repair for repair in dict.fromkeys((best, UNREPAIRED)) if repair is not None and repairs[repair] is None]
    conditions = [("random", rate) for rate in settings.loss_rates]
    conditions += [("bursts", rate) for rate in settings.loss_burst_rates]
    return {
        "clips": len(link.clips),
        "frames": link.frames,
        "frame_ms": 1000 * link.frame_s,
        "repairs": repairs,
        "repair": best,
        "metrics": scorer.facts,
        "undisturbed": scorer(link.clips, link.undisturbed),
        "points": [_point(link, scorer, tried, channel, rate, settings) for channel, rate in conditions],
        "recovery": _recovery(link, best, settings) if best else {"reason": repairs[UNREPAIRED]},
    }


def _point(
    link: LossyLink, scorer: SectionScorer, repairs: Sequence[str], channel: str, rate: float, settings: Settings
) -> dict[str, Any]:
    """Measure quality at one loss rate, for each repair of lost frames.

    Args:
        channel: `random`, or `bursts` of a Gilbert-Elliott channel.
    """
    condition: dict[str, Any] = {"channel": channel, "rate": rate}
    if channel == "bursts":
        model = GilbertElliott.of(rate, settings.loss_burst_frames)
        condition["parameters"] = {key: getattr(model, key) for key in ("to_bad", "to_good", "in_bad", "in_good")}
        mask = model.typical(link.frames, settings.seed)
    else:
        mask = at_random(link.frames, rate, settings.seed)
    gone = split(mask, link.counts)
    quality = {repair: _quality(link, scorer, repair, gone) for repair in repairs}
    return {**condition, "lost": int(mask.sum()), "quality": quality}


def _fault(attempt: Callable[[], Any]) -> Diagnostic | None:
    """Run a call, and return the reason if it fails; None otherwise."""
    try:
        attempt()
    except NotApplicable as reason:
        return reason.reason
    except Exception as error:  # a decoder may refuse any other code than its encoder's
        return fault_of(error)
    return None


def _quality(link: LossyLink, scorer: SectionScorer, repair: str, gone: Sequence[np.ndarray]) -> dict[str, Any]:
    """Score the output under losses with one repair, or give a reason."""
    try:
        return scorer(link.clips, link.decode_with_losses(repair, range(len(link.clips)), gone))
    except Exception as error:  # as above
        return {name: {"value": None, "n": 0, "reason": fault_of(error)} for name in scorer.metrics}


def _recovery(link: LossyLink, repair: str, settings: Settings) -> dict[str, Any]:
    """Lose single frames, and measure for how long the output differs, in ms."""
    trials = loud_frames(link, settings.recovery_frames)
    out = link.decode_with_losses(
        repair, [clip for clip, _ in trials], [np.arange(link.counts[c]) == k for c, k in trials]
    )
    times_ms, unrecovered = [], 0
    for (clip, frame), wave in zip(trials, out):
        rate_hz = wave.sample_rate_hz
        last = last_difference_s(link.undisturbed[clip].samples, wave.samples, rate_hz, settings.recovery_db)
        times_ms.append(max(0.0, 1000 * (last - (frame + 1) * link.frame_s)))
        unrecovered += last >= wave.duration_s - WINDOW_S
    return {
        "reason": None,
        "repair": repair,
        "trials": len(trials),
        "median_ms": float(np.median(times_ms)),
        "longest_ms": max(times_ms),
        "unrecovered": int(unrecovered),
        "distance_db": settings.recovery_db,
    }


def loud_frames(link: LossyLink, count: int) -> list[tuple[int, int]]:
    """Choose up to `count` (clip, frame) pairs of high power, early in the clips."""
    loud_places = []
    for clip, (wave, frames) in enumerate(zip(link.undisturbed, link.counts)):
        edges = np.minimum((np.arange(frames + 1) * link.frame_s * wave.sample_rate_hz).astype(int), wave.num_samples)
        power = [float(np.square(wave.samples[:, a:b]).sum()) for a, b in pairwise(edges)]
        loud = np.flatnonzero(np.asarray(power) >= np.median(power))
        loud_places += [(clip, int(frame)) for frame in loud if 0 < frame < _LOUD_SHARE * frames]
    step = (len(loud_places) - 1) / max(1, count - 1)
    return [loud_places[round(k * step)] for k in range(min(count, len(loud_places)))]


def last_difference_s(undisturbed: np.ndarray, other: np.ndarray, rate_hz: int, distance_db: float) -> float:
    """End of the last window that differs by more than `distance_db`, in s; or 0."""
    differing = differing_windows(undisturbed, other, rate_hz, distance_db)
    return float(differing[-1] + 1) * max(1, round(WINDOW_S * rate_hz)) / rate_hz if differing.size else 0.0


def differing_windows(undisturbed: np.ndarray, other: np.ndarray, rate_hz: int, distance_db: float) -> np.ndarray:
    """Return the indices of windows of `WINDOW_S` in which two outputs differ.

    Args:
        distance_db: least power of the difference, relative to the mean power of `undisturbed`.
    """
    step = max(1, round(WINDOW_S * rate_hz))
    difference = np.square(other.astype(np.float64) - undisturbed).mean(axis=0)
    padded = np.pad(difference, (0, -difference.size % step)).reshape(-1, step)
    least = 10 ** (distance_db / 10) * float(np.square(undisturbed, dtype=np.float64).mean())
    return np.flatnonzero(padded.mean(axis=1) > least)


def measure_bit_errors(codec: Any, material: ProfileClips, settings: Settings) -> dict[str, Any]:
    """Flip random bits, one at a time, and measure the damage; raises NotApplicable."""
    (clip,) = material.cut(1, settings.loss_s)
    (sent,), (undisturbed,) = recode(codec, [clip])
    if isinstance(sent, Latents):
        raise NotApplicable(sent.no_bits)
    rng = np.random.default_rng(settings.seed)
    outputs = [_decoded(codec, flip_random_bit(sent, rng), clip) for _ in range(settings.bit_errors)]
    waves = [wave for wave in outputs if wave is not None]
    if len(waves) == len(outputs) > 0 and all(np.array_equal(wave.samples, undisturbed.samples) for wave in waves):
        raise NotApplicable(DEAF)
    plain, least = undisturbed.samples, settings.recovery_db
    differing = [differing_windows(plain, wave.samples, wave.sample_rate_hz, least) for wave in waves]
    spans = [1000 * WINDOW_S * (windows[-1] - windows[0] + 1) if windows.size else 0.0 for windows in differing]
    ratios = [ratio for wave in waves if (ratio := snr_db([undisturbed], [wave])) is not None]
    return {
        "trials": len(outputs),
        "refused": 1 - len(waves) / len(outputs),
        "disturbed_ms": _middle(spans),
        "longest_ms": max(spans, default=None),
        "wave_snr_db": _middle(ratios),
        "distance_db": settings.recovery_db,
    }


def flip_random_bit(sent: Codes, rng: np.random.Generator) -> Codes:
    """Flip a random bit, so that codes stay valid; NotApplicable if there are no bits."""
    sizes = [8 * len(packet) for packet in sent.packets]
    sizes = sizes or [_bits(stream) * stream.values.size for stream in sent.streams]
    if not sum(sizes):
        raise NotApplicable(Diagnostic("no_bits"))
    while True:
        bit = int(rng.integers(sum(sizes)))
        packet_number = int(np.searchsorted(np.cumsum(sizes), bit, side="right"))
        bit -= sum(sizes[:packet_number])
        if sent.packets:
            packet = bytearray(sent.packets[packet_number])
            packet[bit // 8] ^= 1 << bit % 8
            before, after = sent.packets[:packet_number], sent.packets[packet_number + 1 :]
            return replace(sent, packets=(*before, bytes(packet), *after))
        stream = sent.streams[packet_number]
        values = np.array(stream.values)
        values.flat[bit // _bits(stream)] ^= 1 << bit % _bits(stream)
        if values.max() < stream.cardinality:
            changed = replace(stream, values=values)
            return replace(sent, streams=(*sent.streams[:packet_number], changed, *sent.streams[packet_number + 1 :]))


def _bits(stream: CodeStream) -> int:
    return max(1, math.ceil(math.log2(stream.cardinality)))


def _decoded(codec: Any, sent: Codes, clip: Audio) -> Audio | None:
    """Decode, or return None if the decoder refuses."""
    try:
        return decode(codec, [sent], [clip])[0]
    except Exception:  # a decoder may refuse any other code than its encoder's; it is counted
        return None


def _middle(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
