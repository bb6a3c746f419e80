"""Whether a sound is silent, and whether an estimate holds what its reference says, judged by levels alone.

It is no measure of quality. It finds estimates of which a measure's value says nothing of a codec: half of the sound is
not there, or it is another utterance, or noise. Coded speech follows the levels of its reference at any bitrate.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from codec_bench.types import Audio

FRAME_S = 0.02
SILENT_DBFS = -70.0
"""A sound of which no frame is louder is silent: a codec that is given nothing gives back a few steps of 16 bits."""
LEAST_SHARE = 0.6
"""An estimate that was made elsewhere lacks speech if so little of it is loud, next to the share of its reference that
is.
"""
SPEECH_DB = 25.0
"""Frames of the reference are looked at for what is missing if they are so much below its loud frames, at most."""
MISSING_DB = 25.0
"""A frame is missing if the estimate lies so much below the reference, apart from one gain for the whole item."""
MISSING_SHARE = 0.25
"""An estimate in which a larger share of those frames is missing is not what the reference says."""
LEAST_CORRELATION = 0.6
"""An estimate whose levels correlate less with the reference's does not follow it."""
SAME_WAVEFORM = 0.25
"""An estimate whose waveform correlates with the reference's is that sound, however coarse: its pauses may be full of
noise.
"""
_FLOOR_DB = 50.0
_STEADY_DB = 5.0
_FEWEST = 8
_FEWEST_TO_FOLLOW = 15  # of 366 codings of clips of 0.16 to 0.3 s, 2 follow by less
_FEWEST_OF_SHARE = 50
_SHORTEST_S = 0.05
_SAME_SHORT_WAVEFORM = 0.8
_OTHER_BANDS, _SAME_BANDS = 0.75, 0.93
"""Band levels of an estimate below 0.3 s that correlate less belong to another sound, and those that correlate as much
to the same sound.
"""
_OTHER_BANDS_BELOW_1_S, _SAME_BANDS_BELOW_1_S = 0.55, 0.85
"""The same of one below a second whose levels follow; noise of 0 dB takes them to 0.57, and coding to 0.91."""
_SURE_WAVEFORM = 0.5
"""A waveform that correlates as much is that of the reference, however noisy, also below a second."""
_SIDE_DB, _FOLDED_BY_DB = -30.0, 20.0
"""Channels differ from this share of their power on, and are folded where an estimate has so much less of it."""
_BANDS_HZ = (200, 400, 700, 1000, 1500, 2000, 2800, 3600)
_BINS = 512
_FLAT_RUN, _LOUD_PEAK = 4, 0.5
_SURELY_LOUD = 1e-5
"""The variance (-50 dBFS) above which float32 sums show beyond doubt that a frame is not silent."""
MISSING, LACKING, NOT_FOLLOWING, INCONCLUSIVE = "partial", "lacking", "unlike", "inconclusive"
"""In which ways an estimate is not what its reference says; `store.rows.NO_SPEECH` says it in words."""


def is_folded(reference: np.ndarray, estimate: np.ndarray) -> bool:
    """Whether the channels of a reference differ, and those of an estimate do not: both `(channels, samples)`."""
    if len(reference) < 2 or len(estimate) < 2:
        return False
    before, after = (_side_db(signal) for signal in (reference, estimate))
    return before > _SIDE_DB and after < before - _FOLDED_BY_DB


def _side_db(signal: np.ndarray) -> float:
    """The power of what differs from the mean of the channels, relative to all."""
    power = float(np.square(signal, dtype=np.float64).sum())
    side_power = float(np.square(signal - signal.mean(axis=0), dtype=np.float64).sum())
    return 10 * float(np.log10(max(side_power, 1e-12 * power) / power)) if power else -np.inf


def flat_peak_share(samples: np.ndarray) -> float:
    """The share of samples in runs of at least four at the highest or lowest value of their channel.

    Clipped audio has such runs. They count only where that value is at least half of full scale.

    Args:
        samples: `(channels, samples)`.
    """
    flat = 0
    for one in samples:
        for peak in {float(one.max(initial=0)), float(one.min(initial=0))}:
            at_peak = one == peak
            if abs(peak) >= _LOUD_PEAK and int(np.count_nonzero(at_peak)) >= _FLAT_RUN:
                edges = np.flatnonzero(np.diff(at_peak, prepend=False, append=False))
                runs = edges[1::2] - edges[::2]
                flat += int(runs[runs >= _FLAT_RUN].sum())
    return flat / samples.size if samples.size else 0.0


def loudest_levels(audio: Audio) -> np.ndarray:
    """The level of each whole frame in the channel that is loudest there, in dB of full scale, float `(frames,)`.

    A constant part is omitted, and what lies beyond full scale is brought to it. A sound below a frame is one frame,
    and one without samples has none.
    """
    rate, shortest = audio.sample_rate_hz, round(FRAME_S * audio.sample_rate_hz)
    if not audio.samples.size:
        return np.zeros(0)
    tracks = []
    for one in audio.samples:
        peak = max(float(one.max()), -float(one.min()))
        if peak > 1.0:
            one = one / peak  # the squares of huge samples are no numbers
        turning = one - one.mean()
        tracks.append(levels_db(turning if one.size >= shortest else np.resize(turning, shortest), rate))
    return np.max(tracks, axis=0) if len(tracks) > 1 else tracks[0]


def is_silent(audio: Audio) -> bool:
    """Whether no frame of any channel is louder than `SILENT_DBFS`, without a constant part.

    A sound below a frame is one frame.
    """
    return not any(_has_loud_frame(one, audio.sample_rate_hz) for one in audio.samples) and all_silent(
        loudest_levels(audio)
    )


def _has_loud_frame(one: np.ndarray, rate_hz: int) -> bool:
    """Whether the whole frame with the highest sample varies far above `SILENT_DBFS`. Saves looking at all frames."""
    size = round(FRAME_S * rate_hz)
    start = int(one.argmax()) // size * size if one.size else 0
    frame = one[start : start + size]
    if frame.size < size or not abs(float(frame.max())) <= 1.0:
        return False
    mean = float(frame.sum()) / size
    return float(np.dot(frame, frame)) / size - mean * mean > _SURELY_LOUD


def all_silent(levels: np.ndarray) -> bool:
    """Whether a sound with such levels is silent, as `is_silent` says."""
    return not levels.size or float(levels.max()) <= SILENT_DBFS


class Levels(NamedTuple):
    """The levels of a signal's frames `(frames,)` in dB, and their 95th percentile (NaN without frames)."""

    frames: np.ndarray
    loud: float


def measure_levels(signal: np.ndarray, rate_hz: int) -> Levels:
    """Measure the levels that `find_mismatch` and `lacks_speech` compare."""
    frames = levels_db(signal, rate_hz)
    return Levels(frames, percentile(frames, 95) if frames.size else np.nan)


def lacks_speech(reference: Levels, estimate: Levels) -> str | None:
    """`LACKING` if much less of an estimate is loud than of its reference, wherever in it that is; else None.

    It does not ask that the estimate follows the reference, which may say another text. None also for what is shorter
    than a second.
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
    """In which way an estimate is not what its reference says, or None.

    What is shorter than 0.3 s has too few levels to be followed, and up to a second another sound may have the same
    course of levels. There the levels of bands are compared, in frames that overlap, and `INCONCLUSIVE` is given for
    what lies between another sound and the same one. What is shorter than 0.16 s is not looked at for missing speech.

    Args:
        reference, estimate: float32 `(samples,)`. What one is longer than the other is omitted.
        rate_hz: of both.
        levels: of both, if measured already. Those of signals of different lengths are measured again.
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
    # A steady sound has no levels to follow.
    follows = reference_track.std() < _STEADY_DB or _correlation(reference_track, estimate_track) >= LEAST_CORRELATION
    is_long = reference_track.size >= _FEWEST_OF_SHARE
    if is_long and follows:
        return None
    alike = abs(_correlation(reference, estimate))
    if is_long:
        return None if alike >= SAME_WAVEFORM else NOT_FOLLOWING
    if alike >= _SURE_WAVEFORM:
        return None
    same = _bands_alike(reference, estimate, rate_hz)
    if alike < SAME_WAVEFORM and (not follows or same < _OTHER_BANDS_BELOW_1_S):
        return NOT_FOLLOWING
    return None if same >= (_OTHER_BANDS if alike >= SAME_WAVEFORM else _SAME_BANDS_BELOW_1_S) else INCONCLUSIVE


def _find_short_mismatch(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> str | None:
    """`NOT_FOLLOWING`, `INCONCLUSIVE` or None, for what is shorter than 0.3 s.

    None also for a reference that does not vary.
    """
    if not reference.size or not reference.std():
        return None
    alike = abs(_correlation(reference, estimate))
    if reference.size < round(_SHORTEST_S * rate_hz) or rate_hz < 2 * _BANDS_HZ[2]:
        return None if alike >= _SAME_SHORT_WAVEFORM else INCONCLUSIVE
    same = _bands_alike(reference, estimate, rate_hz)
    waveform, bands = alike >= SAME_WAVEFORM, same >= _OTHER_BANDS
    if same >= _SAME_BANDS or (waveform and bands):
        return None
    return INCONCLUSIVE if waveform or bands else NOT_FOLLOWING


def _bands_alike(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float:
    """The correlation of the levels of bands; 1 at rates that hold too few bands."""
    if rate_hz < 2 * _BANDS_HZ[2]:
        return 1.0
    return _correlation(*(_bands_db(signal, rate_hz).ravel() for signal in (reference, estimate)))


def _bands_db(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """The levels `(frames, bands)` of the band of a telephone, at most `_FLOOR_DB` below the highest of them."""
    frame = round(FRAME_S * rate_hz)
    frames = np.lib.stride_tricks.sliding_window_view(signal, frame)[:: frame // 2] * np.hanning(frame)
    bins = max(_BINS, frame)
    power, of_bin = np.abs(np.fft.rfft(frames, bins)) ** 2, np.fft.rfftfreq(bins, 1 / rate_hz)
    pairs = [(low, high) for low, high in pairwise(_BANDS_HZ) if high <= rate_hz / 2]
    bands = np.stack([power[:, (of_bin >= low) & (of_bin < high)].mean(axis=1) for low, high in pairs], axis=1)
    levels = 10 * np.log10(np.maximum(bands, 1e-12))
    return np.maximum(levels, levels.max() - _FLOOR_DB)


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's, and 0 where one of them does not vary."""
    one, other = one - one.mean(), other - other.mean()
    spread = float(np.sqrt(float(np.dot(one, one)) * float(np.dot(other, other))))
    return float(np.dot(one, other)) / spread if spread else 0.0


def percentile(values: np.ndarray, share: float) -> float:
    """`numpy.percentile` of a few values, at a tenth of its cost."""
    position = (values.size - 1) * (share / 100)
    below = int(position)
    above = min(below + 1, values.size - 1)
    ordered = np.partition(values, (below, above))
    low, high, weight = float(ordered[below]), float(ordered[above]), position - below
    return high - (high - low) * (1 - weight) if weight >= 0.5 else low + (high - low) * weight


def levels_db(signal: np.ndarray, rate_hz: int) -> np.ndarray:
    """The level of each whole frame, without a constant part of the signal."""
    frame = round(FRAME_S * rate_hz)
    frames = signal[: signal.size // frame * frame].reshape(-1, frame)
    means = np.einsum("ij->i", frames) / frame  # three times as fast as `mean(axis=1)`; every file is looked at
    mean = float(means.mean()) if means.size else 0.0
    power = np.einsum("ij,ij->i", frames, frames) / frame - mean * (2 * means - mean)
    return 10 * np.log10(np.maximum(power, 1e-12))
