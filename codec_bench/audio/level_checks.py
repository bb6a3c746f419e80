"""Checks by levels alone for silence and for estimates without their content.

Coded speech follows the levels of its reference at any bitrate.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from codec_bench.audio.resample import mono
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

FRAME_S = 0.02
SILENT_DBFS = -70.0
"""The loudest frame of silence: a codec turns silence into a few steps of 16 bits."""
LEAST_SHARE = 0.6
"""The least loud share of an unaligned estimate, relative to its reference's."""
SPEECH_DB = 25.0
"""The range of reference levels below loud frames in which speech may be missing."""
MISSING_DB = 25.0
"""How far a missing frame is below the reference, apart from one gain per item."""
MISSING_SHARE = 0.25
"""The largest share of missing frames."""
LEAST_CORRELATION = 0.6
"""The least correlation of an estimate's levels with the reference's."""
SAME_WAVEFORM = 0.25
"""A waveform correlation that identifies the audio, even with noisy pauses."""
_FLOOR_DB = 50.0
_STEADY_DB = 5.0
_FEWEST = 8
_FEWEST_TO_FOLLOW = 15  # of 366 codings of clips of 0.16 to 0.3 s, 2 follow by less
_FEWEST_OF_SHARE = 50
_SHORTEST_S = 0.05
_SAME_SHORT_WAVEFORM = 0.8
_OTHER_BANDS, _SAME_BANDS = 0.75, 0.93
"""Band-level correlations below 0.3 s of other audio (below) and the same (from)."""
_OTHER_BANDS_BELOW_1_S, _SAME_BANDS_BELOW_1_S = 0.55, 0.85
"""The same below a second; noise of 0 dB reaches 0.57, coding 0.91."""
_SURE_WAVEFORM = 0.5
"""A waveform correlation that identifies noisy audio, also below a second."""
_SIDE_DB, _FOLDED_BY_DB = -30.0, 20.0
"""Least side level of a stereo reference, and its loss when folded, in dB."""
_CANCELLED_BY_DB = 20.0
"""Least loss of the channels' mean if they cancel out, beyond the loss with one loud channel."""
_BANDS_HZ = (200, 400, 700, 1000, 1500, 2000, 2800, 3600)
_BINS = 512
_FLAT_RUN, _LOUD_PEAK = 4, 0.5
_SURELY_LOUD = 1e-5
"""The variance (-50 dBFS) above which float32 sums surely show a loud frame."""
MISSING, LACKING, NOT_FOLLOWING, INCONCLUSIVE = "partial", "lacking", "unlike", "inconclusive"
"""Kinds of mismatch."""
SILENT = Diagnostic("silent")
"""Note of an item with a silent estimate (`is_silent`)."""
SILENT_ESTIMATE = Diagnostic("silent_estimate")
"""Flag of the scores of such an item."""
NO_SPEECH = {problem: Diagnostic(problem) for problem in (MISSING, LACKING, NOT_FOLLOWING)}
"""Notes of items whose estimates are no coded speech, and flags of their scores, by kind."""
SHORT_INCONCLUSIVE = Diagnostic("short_inconclusive")
"""Note of a short estimate that may be no coded speech, and flag of its scores; it counts as speech."""


def is_folded(reference: np.ndarray, estimate: np.ndarray) -> bool:
    """Whether a reference's channels differ, and an estimate's do not."""
    if len(reference) < 2 or len(estimate) < 2:
        return False
    before, after = (_side_db(signal) for signal in (reference, estimate))
    return before > _SIDE_DB and after < before - _FOLDED_BY_DB


def _side_db(signal: np.ndarray) -> float:
    """Return the power of deviations from the channels' mean, relative to all, in dB."""
    power = float(np.square(signal, dtype=np.float64).sum())
    side_power = float(np.square(signal - signal.mean(axis=0), dtype=np.float64).sum())
    return 10 * float(np.log10(max(side_power, 1e-12 * power) / power)) if power else -np.inf


class Cancellation(NamedTuple):
    """Channels that cancel out in their mean.

    Args:
        lower_db: how far the mean is below the loudest channel. is_silent: whether the mean is silent.
    """

    lower_db: float
    is_silent: bool


def find_cancellation(audio: Audio, levels: np.ndarray) -> Cancellation | None:
    """Return how channels of opposite sign cancel out in the mean that metrics read.

    Args:
        levels: by `loudest_levels`.

    Returns:
        None if they do not, are silent, or only one of them is loud.
    """
    if audio.channels < 2 or all_silent(levels):
        return None
    mean = mono(audio.samples)[None]
    of_mean = loudest_levels(Audio(mean, audio.sample_rate_hz), channel_peaks(mean))
    lower_db = float(levels.max() - of_mean.max())
    if lower_db < _CANCELLED_BY_DB + 20 * float(np.log10(audio.channels)):
        return None
    return Cancellation(lower_db, all_silent(of_mean))


def channel_peaks(samples: np.ndarray) -> list[tuple[float, float]]:
    """Return the lowest and the highest sample of each channel of `(channels, samples)`."""
    return [(float(one.min(initial=0)), float(one.max(initial=0))) for one in samples]


def flat_peak_share(samples: np.ndarray, peaks: Sequence[tuple[float, float]]) -> float:
    """Return the share of clipped samples: flat runs of 4 or more at a channel's peak.

    Runs count only where the peak is at least half of full scale.

    Args:
        samples: `(channels, samples)`. peaks: by `channel_peaks`.
    """
    flat = 0
    for one, extremes in zip(samples, peaks):
        for peak in extremes:
            if abs(peak) < _LOUD_PEAK:
                continue
            at_peak = one == peak
            if int(np.count_nonzero(at_peak)) >= _FLAT_RUN:
                edges = np.flatnonzero(np.diff(at_peak, prepend=False, append=False))
                runs = edges[1::2] - edges[::2]
                flat += int(runs[runs >= _FLAT_RUN].sum())
    return flat / samples.size if samples.size else 0.0


def loudest_levels(audio: Audio, peaks: Sequence[tuple[float, float]]) -> np.ndarray:
    """Return each frame's level in its loudest channel, in dBFS, `(frames,)`.

    DC is removed, and audio beyond full scale is scaled to it. Audio below a frame is one frame; empty audio has none.

    Args:
        peaks: by `channel_peaks`.
    """
    rate, shortest = audio.sample_rate_hz, round(FRAME_S * audio.sample_rate_hz)
    if not audio.samples.size:
        return np.zeros(0)
    tracks = []
    for one, (lowest, highest) in zip(audio.samples, peaks):
        if (peak := max(highest, -lowest)) > 1.0:
            one = one / peak  # avoids overflow of squares
        turning = one - one.mean()
        tracks.append(levels_db(turning if one.size >= shortest else np.resize(turning, shortest), rate))
    return np.max(tracks, axis=0) if len(tracks) > 1 else tracks[0]


def is_silent(audio: Audio) -> bool:
    """Whether no frame of any channel exceeds `SILENT_DBFS`, without DC.

    Channels that cancel out in their mean are silent too, because metrics read the mean.
    """
    if _has_loud_frame(mono(audio.samples), audio.sample_rate_hz):
        return False
    levels = loudest_levels(audio, channel_peaks(audio.samples))
    cancelled = find_cancellation(audio, levels)
    return all_silent(levels) if cancelled is None else cancelled.is_silent


def _has_loud_frame(one: np.ndarray, rate_hz: int) -> bool:
    """Whether the frame with the highest sample is loud, to skip the other frames."""
    size = round(FRAME_S * rate_hz)
    start = int(one.argmax()) // size * size if one.size else 0
    frame = one[start : start + size]
    if frame.size < size or not abs(float(frame.max())) <= 1.0:
        return False
    mean = float(frame.sum()) / size
    return float(np.dot(frame, frame)) / size - mean * mean > _SURELY_LOUD


def all_silent(levels: np.ndarray) -> bool:
    """Whether audio with such levels is silent, as in `is_silent`."""
    return not levels.size or float(levels.max()) <= SILENT_DBFS


class Levels(NamedTuple):
    """A signal's levels `(frames,)` in dB, and their 95th percentile (NaN if empty)."""

    frames: np.ndarray
    loud: float


def measure_levels(signal: np.ndarray, rate_hz: int) -> Levels:
    """Measure the levels for `find_mismatch` and `lacks_speech`."""
    return with_loud_level(levels_db(signal, rate_hz))


def with_loud_level(frames: np.ndarray) -> Levels:
    """Return levels `(frames,)` with their 95th percentile."""
    return Levels(frames, percentile(frames, 95) if frames.size else np.nan)


def lacks_speech(reference: Levels, estimate: Levels) -> str | None:
    """Return `LACKING` if far less of an estimate than of its reference is loud.

    It needs no alignment: the reference may say another text. None below a second.
    """
    sides = (reference, estimate)
    if min(one.frames.size for one in sides) < _FEWEST_OF_SHARE:
        return None
    reference_share, estimate_share = (
        np.count_nonzero(one.frames > one.loud - SPEECH_DB) / one.frames.size for one in sides
    )
    return LACKING if estimate_share < LEAST_SHARE * reference_share else None


def find_mismatch(
    reference: np.ndarray, estimate: np.ndarray, rate_hz: int, levels: tuple[Levels, Levels] | None = None
) -> str | None:
    """Return the kind of mismatch between an estimate and its reference, or None.

    Below 0.3 s there are too few levels to follow, and up to a second other audio may have the same levels. There,
    levels of bands are compared in overlapping frames, with `INCONCLUSIVE` between other and same audio. Missing speech
    is not checked below 0.16 s.

    Args:
        reference, estimate: float32 `(samples,)`; the longer one is cut. rate_hz: of both.
        levels: of both, if known; those of signals of different lengths are measured again.
    """
    if levels is None or reference.size != estimate.size:
        size = min(reference.size, estimate.size)
        reference, estimate = reference[:size], estimate[:size]
        levels = measure_levels(reference, rate_hz), measure_levels(estimate, rate_hz)
    (of_reference, loud), (of_estimate, estimate_loud) = levels
    if of_reference.size < _FEWEST:
        return _find_short_mismatch(reference, estimate, rate_hz)
    speech = of_reference > loud - SPEECH_DB
    change = (of_estimate - of_reference)[speech]
    missing = np.count_nonzero(change < min(percentile(change, 90), 0.0) - MISSING_DB)
    if missing > MISSING_SHARE * change.size:
        return MISSING
    if of_reference.size < _FEWEST_TO_FOLLOW:
        return _find_short_mismatch(reference, estimate, rate_hz)
    reference_track = np.maximum(of_reference, loud - _FLOOR_DB)
    estimate_track = np.maximum(of_estimate, estimate_loud - _FLOOR_DB)
    # Steady audio has no levels to follow.
    follows = reference_track.std() < _STEADY_DB or _correlation(reference_track, estimate_track) >= LEAST_CORRELATION
    is_long = reference_track.size >= _FEWEST_OF_SHARE
    if is_long and follows:
        return None
    correlation = abs(_correlation(reference, estimate))
    if is_long:
        return None if correlation >= SAME_WAVEFORM else NOT_FOLLOWING
    if correlation >= _SURE_WAVEFORM:
        return None
    same = _bands_alike(reference, estimate, rate_hz)
    if correlation < SAME_WAVEFORM and (not follows or same < _OTHER_BANDS_BELOW_1_S):
        return NOT_FOLLOWING
    return None if same >= (_OTHER_BANDS if correlation >= SAME_WAVEFORM else _SAME_BANDS_BELOW_1_S) else INCONCLUSIVE


def _find_short_mismatch(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> str | None:
    """Return `NOT_FOLLOWING`, `INCONCLUSIVE` or None, for audio below 0.3 s.

    None also for a constant reference.
    """
    if not reference.size or not reference.std():
        return None
    correlation = abs(_correlation(reference, estimate))
    if reference.size < round(_SHORTEST_S * rate_hz) or rate_hz < 2 * _BANDS_HZ[2]:
        return None if correlation >= _SAME_SHORT_WAVEFORM else INCONCLUSIVE
    same = _bands_alike(reference, estimate, rate_hz)
    waveform, bands = correlation >= SAME_WAVEFORM, same >= _OTHER_BANDS
    if same >= _SAME_BANDS or (waveform and bands):
        return None
    return INCONCLUSIVE if waveform or bands else NOT_FOLLOWING


def _bands_alike(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float:
    if rate_hz < 2 * _BANDS_HZ[2]:
        return 1.0
    return _correlation(*(_bands_db(signal, rate_hz).ravel() for signal in (reference, estimate)))


def _bands_db(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """Return floored levels `(frames, bands)` of the telephone band in dB."""
    frame = round(FRAME_S * rate_hz)
    frames = np.lib.stride_tricks.sliding_window_view(signal, frame)[:: frame // 2] * np.hanning(frame)
    bins = max(_BINS, frame)
    power, of_bin = np.abs(np.fft.rfft(frames, bins)) ** 2, np.fft.rfftfreq(bins, 1 / rate_hz)
    pairs = [(low, high) for low, high in pairwise(_BANDS_HZ) if high <= rate_hz / 2]
    bands = np.stack([power[:, (of_bin >= low) & (of_bin < high)].mean(axis=1) for low, high in pairs], axis=1)
    levels = 10 * np.log10(np.maximum(bands, 1e-12))
    return np.maximum(levels, levels.max() - _FLOOR_DB)


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one - one.mean(), other - other.mean()
    spread = float(np.sqrt(float(np.dot(one, one)) * float(np.dot(other, other))))
    return float(np.dot(one, other)) / spread if spread else 0.0


def percentile(values: np.ndarray, share: float) -> float:
    """Return `numpy.percentile` of a few values, at a tenth of its cost."""
    position = (values.size - 1) * (share / 100)
    below = int(position)
    above = min(below + 1, values.size - 1)
    ordered = np.partition(values, (below, above))
    low, high, weight = float(ordered[below]), float(ordered[above]), position - below
    return high - (high - low) * (1 - weight) if weight >= 0.5 else low + (high - low) * weight


def levels_db(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """Return the level of each whole frame in dB, without DC."""
    frame = round(FRAME_S * rate_hz)
    frames = signal[: signal.size // frame * frame].reshape(-1, frame)
    means = np.einsum("ij->i", frames) / frame  # three times as fast as `mean(axis=1)`
    mean = float(means.mean()) if means.size else 0.0
    power = np.einsum("ij,ij->i", frames, frames) / frame - mean * (2 * means - mean)
    return 10 * np.log10(np.maximum(power, 1e-12))
