"""The specification of PESQ, wide-band (ITU-T P.862.2 at 16 kHz) and narrow-band (P.862 with P.862.1 at 8 kHz), in
plain NumPy.

Both signals are brought to one level in the speech band and pass what a listener hears through: wide-band headphones or
the receiver of a telephone. `delays` finds the utterances of the reference and the delay of each. Then frames of 32 ms
are compared: their spectra become densities of power on the Bark scale, a constant filter and slow changes of the level
are evened out, densities become loudness, and the difference of loudness that is not masked is the disturbance. What
was added to the reference disturbs more than what is missing from it. Long stretches of bad frames are compared once
more with a delay of their own.

Papers
    A. W. Rix, J. G. Beerends, M. P. Hollier, A. P. Hekstra, "Perceptual Evaluation of Speech Quality (PESQ)", ICASSP
    2001. ITU-T P.862 (2001), P.862.1 (2003) and P.862.2 (2007). The decisions of the ITU's code that these leave open
    follow descriptions in words and were checked against the answers of the package.
Reference implementation
    pesq 0.0.4. It computes in single precision, which this does in `section` and before it only, so scores agree
    closely but not to the last bit, and where two delays fit almost equally well the other one may be taken.
Units
    Positions are samples of a signal with its margins, frames begin every 16 ms, densities are powers of a signal whose
    level is 1e7.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable

import numpy as np

from . import delays
from .delays import MARGIN_WINDOWS, Utterance
from .tables import LEVEL, Curve, Mode

RAMP = 16
FULL_SCALE = np.float32(2**15)  # decides how faint a signal may be until its level underflows
TARGET_POWER = 1e7
LOST = 1.0 - 2.0**-25  # so much of the power the package's single precision loses on average, by its answers
SILENT_SUM = 500.0
LOUDNESS_SCALE = 0.1866055
ZWICKER_POWER = 0.23
BAD_FRAME = 30.0
WORST_FRAME = 45.0
SEARCH_FRAMES = 4
SYLLABLE = 20


@functools.lru_cache(maxsize=8)
def gain(curve: Curve, rate_hz: int, size: int) -> np.ndarray:
    """The gain that a curve has over its gain at 1000 Hz, for each bin of a transform of `size` points."""
    hz, gain_db = np.array(curve, dtype=np.float64).T
    bins_hz = np.append(np.arange(size // 2 + 1) * (rate_hz / size), 1000.0)
    of_bins = np.interp(bins_hz, hz, gain_db)
    return 10.0 ** ((of_bins[:-1] - of_bins[-1]) / 20.0)


def through(signal: np.ndarray, curve: Curve, mode: Mode) -> np.ndarray:
    """A signal `(samples,)` after the filter of a curve, in double precision, with what rings on in the padding."""
    length = signal.size + mode.padding
    size = 1 << (length - 1).bit_length()
    return np.fft.irfft(np.fft.rfft(signal.astype(np.float64), size) * gain(curve, mode.rate_hz, size), size)[:length]


def level(signal: np.ndarray, mode: Mode) -> np.float32:
    """The factor that gives a signal `(samples,)` a power of 1e7 between 350 and 3250 Hz.

    It is exact to the last bit of single precision in nine of ten signals, because the high-pass rounds otherwise for
    another factor. Not finite if the signal holds so little there that single precision takes it for nothing.
    """
    band = through(signal, LEVEL, mode)
    with np.errstate(divide="ignore"):
        return np.float32(np.sqrt(TARGET_POWER / np.float64(np.float32(np.dot(band, band) / band.size * LOST))))


def section(signal: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """A filter of second order in its second direct form and in single precision: three coefficients of the input, two
    of the output.

    In this form the rounding is a faint noise, and two places hear it. In a band in which the signal holds nothing, as
    above 4 kHz in a recording of 8 kHz, it reaches the threshold of hearing after the high-pass: the score is up to
    0.06 lower without it. And it is all that the filter for alignment leaves of a stretch of silence. The frames there
    have their say in a delay, since a frame counts by the eighth root of its height.
    """
    b0, b1, b2, a1, a2 = coefficients.astype(np.float32)
    out, before, earlier = np.empty_like(signal), np.float32(0), np.float32(0)
    for at, value in enumerate(signal):
        state = value - a1 * before - a2 * earlier
        out[at] = b0 * state + b1 * before + b2 * earlier
        before, earlier = state, before
    return out


def ramp_ends(signal: np.ndarray) -> None:
    """Fades a signal in and out over 16 samples, in place."""
    ramp = np.arange(1, RAMP + 1, dtype=np.float32) / RAMP
    signal[:RAMP] *= ramp
    signal[-RAMP:] *= ramp[::-1]


def heard(
    signal: np.ndarray, peak: float, mode: Mode, section: Callable[[np.ndarray, np.ndarray], np.ndarray] = section
) -> np.ndarray:
    """What is scored: a signal with its level after what it is heard through, with margins and padding.

    Args:
        signal: `(samples,)`.
        peak: the highest magnitude of both signals.
        mode: how is listened.
        section: the function of this name, or another implementation of it.
    """
    signal = (signal / peak).astype(np.float32) * FULL_SCALE
    with np.errstate(invalid="ignore"):  # of a level that is not finite
        signal *= level(signal, mode)
        if not isinstance(mode.listener, np.ndarray):
            return np.pad(through(signal, mode.listener, mode).astype(np.float32), mode.margin)
    ramp_ends(signal)
    return np.pad(section(signal, mode.listener), (mode.margin, mode.margin + mode.padding))


def without_offset(signal: np.ndarray, mode: Mode) -> np.ndarray:
    """A signal with margins and padding, less its mean, faded in and out over 4 ms, in single precision."""
    signal = signal.copy()
    inside = signal[mode.margin : -mode.margin - mode.padding]
    total = np.cumsum(inside)[-1]  # added up one by one, as the package does; `sum` would round otherwise
    inside -= total / np.float32(signal.size - mode.padding)
    ramp = (np.float32(0.5) + np.arange(mode.window, dtype=np.float32)) / np.float32(mode.window)
    inside[: mode.window] *= ramp
    inside[-mode.window :] *= ramp[::-1]
    return signal


def aligned(signal: np.ndarray, mode: Mode) -> np.ndarray:
    """What utterances and delays are found in: a signal with margins and padding, after the filter for alignment."""
    signal = without_offset(signal, mode)
    for coefficients in mode.alignment_filter:
        signal = section(signal, coefficients)
    return signal


def counted_frames(reference: np.ndarray, mode: Mode) -> tuple[int, int]:
    """The first and the last frame that count: silence at both ends is left out."""
    length = reference.size - 2 * mode.margin
    sums = np.convolve(np.abs(reference[mode.margin : mode.margin + length]), np.ones(5), mode="valid")
    loud = np.flatnonzero(sums >= SILENT_SUM)
    most = (reference.size - mode.padding) // 2
    before = int(loud[0]) if loud.size else most
    after = int(sums.size - 1 - loud[-1]) if loud.size else most
    return min(before, most) // mode.hop, (length - min(after, most)) // mode.hop - 1


def densities(signal: np.ndarray, starts: np.ndarray, mode: Mode) -> np.ndarray:
    """Power densities `(frames, bands)` of the frames that begin at `starts`; zero for frames beyond the signal."""
    inside = (starts > 0) & (starts + mode.frame < signal.size)
    frames = signal[np.where(inside, starts, 0)[:, None] + np.arange(mode.frame)] * delays.hann(mode.frame)
    power = np.abs(np.fft.rfft(frames)[:, : mode.frame // 2]) ** 2
    power[:, 0] = 0.0
    power[~inside] = 0.0
    return np.add.reduceat(power, np.cumsum(mode.bins) - mode.bins, axis=1) * mode.scale


def audible(density: np.ndarray, factor: float, mode: Mode) -> np.ndarray:
    """The power of each frame in bands above the threshold of hearing times a factor."""
    return np.where(density > factor * mode.threshold, density, 0.0)[:, 1:].sum(axis=1)


def response(reference: np.ndarray, estimate: np.ndarray, length: int, mode: Mode) -> np.ndarray:
    """How much louder each band of the estimate is on average, within 20 dB: what listeners get used to."""
    speech = audible(reference, 100.0, mode) >= 1e7
    count = length // mode.hop - 1

    def mean(density: np.ndarray) -> np.ndarray:
        return np.where(density > 100.0 * mode.threshold, density, 0.0)[speech].sum(axis=0) / count

    return np.clip((mean(estimate) + 1000.0) / (mean(reference) + 1000.0), 0.01, 100.0)


def gains(reference: np.ndarray, estimate: np.ndarray, mode: Mode, first: int = 0) -> np.ndarray:
    """The gain of the reference over the estimate in each frame, smoothed: short changes of the level count, slow ones
    do not.
    """
    ratio = (audible(reference, 1.0, mode) + 5e3) / (audible(estimate, 1.0, mode) + 5e3)
    smooth, last = np.empty(ratio.size), 1.0
    for frame, value in enumerate(ratio):
        last = value if frame + first == 0 else 0.2 * last + 0.8 * value
        smooth[frame] = last
    return np.clip(smooth, 3e-4, 5.0)


def exponents(mode: Mode) -> np.ndarray:
    """Zwicker's exponent for each band: higher below 4 Bark."""
    low = np.where(mode.centre_bark < 4.0, np.minimum(6.0 / (mode.centre_bark + 2.0), 2.0), 1.0)
    return ZWICKER_POWER * low**0.15


def loudness(density: np.ndarray, mode: Mode) -> np.ndarray:
    """Loudness by Zwicker's law; nothing below the threshold of hearing."""
    exponent, threshold = exponents(mode), mode.threshold
    above = (threshold / 0.5) ** exponent * ((0.5 + 0.5 * density / threshold) ** exponent - 1.0)
    return LOUDNESS_SCALE * np.where(density > threshold, above, 0.0)


def norm(values: np.ndarray, power: float, mode: Mode) -> np.ndarray:
    """The mean of each frame over the bands above the lowest, weighted by their widths."""
    width = mode.width_bark[1:]
    total = width.sum()
    return (((np.abs(values[:, 1:]) * width) ** power).sum(axis=1) / total) ** (1.0 / power) * total


def disturbances(reference: np.ndarray, estimate: np.ndarray, mode: Mode) -> tuple[np.ndarray, np.ndarray]:
    """What disturbs in each frame: all differences, and those that were added, by the densities of both signals."""
    x, y = loudness(reference, mode), loudness(estimate, mode)
    masked = 0.25 * np.minimum(x, y)
    difference = np.sign(y - x) * np.maximum(np.abs(y - x) - masked, 0.0)
    factor = np.minimum(((estimate + 50.0) / (reference + 50.0)) ** 1.2, 12.0)
    return norm(difference, 2.0, mode), norm(np.where(factor < 3.0, 0.0, factor) * difference, 1.0, mode)


def delay_at(found: list[Utterance], positions: np.ndarray, mode: Mode) -> np.ndarray:
    """The delay of the utterance that each position of the reference lies in."""
    which = np.full(positions.shape, -1)
    for n, utterance in enumerate(found):
        which[positions >= utterance.start * mode.window] = n
    return np.array([utterance.delay for utterance in found])[np.maximum(which, 0)]


def skipped(found: list[Utterance], frames: int, mode: Mode) -> np.ndarray:
    """Frames in which the estimate leaves out more than 16 ms; they do not count."""
    out = np.zeros(frames, dtype=bool)
    for before, after in itertools.pairwise(found):
        jump = after.delay - before.delay
        if jump < -mode.hop:
            begin = (after.start - MARGIN_WINDOWS) * mode.window
            end = (before.stop - MARGIN_WINDOWS) * mode.window + before.delay
            first = min(delays.toward_zero(begin + after.delay, mode.hop), delays.toward_zero(end, mode.hop))
            last = delays.toward_zero(begin + abs(jump), mode.hop) + 1
            out[max(0, first) : min(last + 1, frames - 1)] = True
    return out


def bad_intervals(disturbance: np.ndarray) -> np.ndarray:
    """Runs of at least five frames, of which bad ones are at most two apart; first and one past last."""
    bad = disturbance > BAD_FRAME
    bad[0] = False
    wide = np.zeros(bad.size, dtype=bool)
    for frame in range(2, bad.size - 3):
        wide[frame] = bad[frame - 2 : frame + 1].any() and bad[frame : frame + 3].any()
    found = delays.runs(wide)
    return found[found[:, 1] - found[:, 0] >= 5]


def envelope_delay(reference: np.ndarray, estimate: np.ndarray, search: int) -> int:
    """The delay of the estimate that correlates the magnitudes of both best, at most `search` samples; 0 if below 0.5."""
    x, y = np.abs(np.pad(reference, search)), np.abs(estimate)
    size = 1 << (2 * x.size - 1).bit_length()
    powers = np.square(x).sum() / size, np.square(y).sum() / size
    if min(powers) <= 1e-6:
        return 0
    correlation = np.abs(np.fft.irfft(np.fft.rfft(x, size).conj() * np.fft.rfft(y, size), size))
    near = np.concatenate([correlation[-search:], correlation[:search]]) / (size * math.sqrt(powers[0] * powers[1]))
    return int(near.argmax()) - search if near.max() >= 0.5 else 0


def shifted(estimate: np.ndarray, found: list[Utterance], mode: Mode) -> np.ndarray:
    """The estimate with every utterance's delay taken out."""
    inside = np.arange(mode.margin, estimate.size - mode.margin)
    out = np.zeros(estimate.size)
    out[inside] = estimate[np.clip(inside + delay_at(found, inside, mode), inside[0], inside[-1])]
    return out


def realigned(reference: np.ndarray, estimate: np.ndarray, intervals: np.ndarray, mode: Mode) -> np.ndarray:
    """The estimate with each bad interval shifted by a delay of its own."""
    out, search = estimate.copy(), SEARCH_FRAMES * mode.frame
    for first, last in intervals:
        start, stop = first * mode.hop + mode.margin, last * mode.hop + mode.frame + mode.margin
        around = np.clip(np.arange(start - search, stop + search), mode.margin, estimate.size - mode.margin - 1)
        delay = envelope_delay(reference[start:stop], estimate[around], search)
        out[start:stop] = estimate[np.clip(np.arange(start, stop) + delay, 0, estimate.size - mode.padding - 1)]
    return out


def over_time(values: np.ndarray, first: int, weight: np.ndarray) -> float:
    """One number for all frames: L6 within half-overlapping syllables of 20 frames, then L2 over them."""
    starts = np.arange(first, values.size, SYLLABLE // 2)
    syllables = np.array([(values[n : n + SYLLABLE] ** 6).sum() / SYLLABLE for n in starts]) ** (1 / 6)
    weights = weight[starts - first]
    if not weights.any():
        return float("nan")
    return float(np.sqrt(np.square(weights * syllables).sum() / np.square(weights).sum()))


def time_weight(frames: int, count: int) -> np.ndarray:
    """How much each of the frames counts, by how many there would be in the whole signal: the later the more, if more
    than 16 s.
    """
    if frames <= 1000:
        return np.ones(frames)
    share = min((count - 1000) / 5500, 0.5)
    return 1.0 - share + share * np.arange(frames) / count


def raw_score(
    reference: np.ndarray,
    estimate: np.ndarray,
    found: list[Utterance],
    mode: Mode,
    densities: Callable[..., np.ndarray] = densities,
    disturbances: Callable[..., tuple[np.ndarray, np.ndarray]] = disturbances,
) -> float:
    """PESQ before its mapping: 4.5 for a copy.

    Args:
        reference, estimate: what `heard` gives for both signals.
        found: the utterances of the reference, at least one.
        mode: how is listened.
        densities, disturbances: the functions of these names, or other implementations of them.
    """
    length = reference.size - 2 * mode.margin
    first, last = counted_frames(reference, mode)
    starts = mode.margin + mode.hop * np.arange(last + 1)
    x = densities(reference, starts, mode)
    y = densities(estimate, starts + delay_at(found, starts, mode), mode)
    x = x * response(x, y, length, mode)
    total, added = disturbances(x, y * gains(x, y, mode)[:, None], mode)
    repair = (total > BAD_FRAME).any()
    left_out = skipped(found, last + 1, mode)
    total[left_out] = added[left_out] = 0.0
    if repair:
        straight, intervals = shifted(estimate, found, mode), bad_intervals(total)
        again = realigned(reference, straight, intervals, mode)
        for begin, end in intervals:
            span = slice(begin, end)
            z = densities(again, starts[span], mode)
            new = disturbances(x[span], z * gains(x[span], z, mode, begin)[:, None], mode)
            total[span], added[span] = np.minimum(total[span], new[0]), np.minimum(added[span], new[1])
    loud = ((audible(x, 1.0, mode) + 1e5) / 1e7) ** 0.04
    weight = time_weight(last + 1, (length - mode.padding) // mode.hop - 1)
    parts = [over_time(np.minimum(values / loud, WORST_FRAME), first, weight) for values in (total, added)]
    return 4.5 - 0.1 * parts[0] - 0.0309 * parts[1]


def mapped(raw: float, mode: Mode) -> float:
    """The mean opinion score that P.862.1 or P.862.2 gives for a raw score."""
    return 0.999 + 4.0 / (1.0 + math.exp(mode.middle - mode.slope * raw))


def pesq(reference: np.ndarray, estimate: np.ndarray, mode: Mode) -> float | None:
    """PESQ of one pair.

    Args:
        reference, estimate: `(samples,)` each, of one length of at least 0.25 s, at the mode's rate, with sound in the
        speech band.
        mode: how is listened: `tables.WIDE` or `tables.NARROW`.

    Returns:
        From 1.0 to 4.64, or narrow-band to 4.55; higher is better. None if no utterance of 0.2 s was found in both
        signals.
    """
    peak = max(np.abs(reference).max(), np.abs(estimate).max())
    x, y = heard(reference, peak, mode), heard(estimate, peak, mode)
    found = delays.utterances(aligned(x, mode), aligned(y, mode), mode)
    return mapped(raw_score(x, y, found, mode), mode) if found else None
