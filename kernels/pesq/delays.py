"""Which utterances P.862 finds in a reference, and the delay of the estimate that it gives to each of them.

Both signals are cut into windows of 4 ms. Windows with speech are found by a threshold that follows the noise. The
activity of both signals is correlated, which gives a delay to within a window. Then short frames of both signals are
correlated; the delays of their peaks are collected in a histogram, and its highest point is the delay to the sample. An
utterance whose two parts agree better with two delays than the whole does with one is split.

Positions and delays are in samples of the signals with their margins unless a name says windows. A positive delay means
that the estimate comes later.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .tables import Mode

MARGIN_WINDOWS = 75
FRAME_WINDOWS = 16
HOP_WINDOWS = FRAME_WINDOWS // 4
SHORTEST_WINDOWS = 50
SPLITTABLE_WINDOWS = 200
MOST_UTTERANCES = 50
CANDIDATES = 40
NEAR_PEAK = 0.99
PEAK_EXPONENT = 0.125
RANGE = 1e-4
PASSES = 12


@dataclass(frozen=True)
class Utterance:
    """One stretch of the reference with one delay; `start` and `stop` in windows, the rest in samples."""

    start: int
    stop: int
    rough_delay: int
    delay: int
    confidence: float


@dataclass(frozen=True)
class Aligned:
    """What is aligned: both filtered signals, float `(samples,)`, without the padding behind them, and the logarithms
    of their activity `(windows,)`.

    `window` is how many samples a window has. `prefixes` is the function of this name, or another implementation of it.
    """

    reference: np.ndarray
    estimate: np.ndarray
    reference_activity: np.ndarray
    estimate_activity: np.ndarray
    window: int
    prefixes: Callable[..., list[tuple[int, float]]]

    @property
    def samples(self) -> int:
        """The length of a signal with both margins."""
        return self.reference.size

    @property
    def margin(self) -> int:
        """The samples of a margin."""
        return MARGIN_WINDOWS * self.window

    @property
    def frame(self) -> int:
        """The samples of a frame that is correlated."""
        return FRAME_WINDOWS * self.window

    @property
    def hop(self) -> int:
        """From one frame to the next."""
        return HOP_WINDOWS * self.window


def toward_zero(value: int, by: int) -> int:
    """Division of whole numbers that drops the fraction."""
    return int(value / by) if value < 0 else value // by


def runs(mask: np.ndarray) -> np.ndarray:
    """First and one-past-last index of each run of true values, int64 `(runs, 2)`."""
    turns = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    return np.stack([np.flatnonzero(turns == 1), np.flatnonzero(turns == -1)], axis=1)


def threshold(energy: np.ndarray, limit: float) -> float:
    """The energy that separates noise from speech: 1.001 times mean plus two deviations of what lies below, twelve
    times.
    """
    for _ in range(PASSES):
        noise = energy[energy <= limit]
        limit = 1.001 * (noise.mean() + 2.0 * noise.std())
    return float(limit)


def speech_runs(energy: np.ndarray, limit: float) -> np.ndarray:
    """Runs of speech before pauses are closed: longer than 16 ms and, where noise is 30 dB below, loud enough."""
    speech = energy > limit
    level = energy[speech].mean() if speech.any() else 0.0
    noise = energy[~speech].mean() if not speech.all() else 1.0
    if not speech.any():
        limit = -1.0
    speech[[0, -1]] = False
    found = runs(speech)
    found = found[found[:, 1] - found[:, 0] > 4]
    if level >= 1000.0 * noise:
        loud = [energy[first:last].sum() >= 3.0 * limit * (last - first) for first, last in found]
        found = found[np.array(loud, dtype=bool)]
    return found


def soften(energy: np.ndarray) -> None:
    """Lets speech begin and end over two windows; what is not speech is zero or negative, and what is speech positive."""
    at = 3
    while at < energy.size - 2:
        if energy[at] > 0 and energy[at - 2] <= 0:
            energy[at - 2], energy[at - 1] = 0.1 * energy[at], 0.3 * energy[at]
            at += 1
        if energy[at] <= 0 and energy[at - 1] > 0:
            energy[at], energy[at + 1] = 0.3 * energy[at - 1], 0.1 * energy[at - 1]
            at += 3
        at += 1


def activity(signal: np.ndarray, window: int, soften: Callable[[np.ndarray], None]) -> tuple[np.ndarray, np.ndarray]:
    """Where a filtered signal holds speech.

    Args:
        signal: `(samples,)` with its margins, without its padding.
        window: how many samples a window has.
        soften: the function of this name, or another implementation of it.

    Returns:
        Energy of each window, zero where there is no speech; and its logarithm above the threshold. `(windows,)` each.
    """
    num_windows = signal.size // window
    energy = np.square(signal[: num_windows * window].reshape(num_windows, window)).mean(axis=1)
    limit = energy.mean()
    least = energy.max() * RANGE if energy.max() > 0 else 1.0
    energy = np.maximum(energy, least)
    limit = threshold(energy, limit)
    found = speech_runs(energy, limit)
    if not (energy > limit).any():
        limit = least
    speech = np.zeros(num_windows, dtype=bool)
    for first, last in found:
        speech[first:last] = True
    signed = np.where(speech, energy, -energy)
    for (_, before), (after, _) in itertools.pairwise(found):
        if after - before <= SHORTEST_WINDOWS:
            signed[before:after] = least
    if not len(found):
        signed = energy
    signed[[0, -1]] = -least
    soften(signed)
    energy = np.maximum(signed, 0.0)
    return energy, np.log(np.where(energy > limit, energy, limit) / limit)


def lag_windows(reference: np.ndarray, estimate: np.ndarray) -> int:
    """The lag with the highest correlation of two activities, in windows; zero where nothing correlates."""
    if min(reference.size, estimate.size) < 2:
        return 0
    size = 2 << (max(reference.size, estimate.size) - 1).bit_length()
    product = np.fft.rfft(reference[::-1], size) * np.fft.rfft(estimate, size)
    correlation = np.fft.irfft(product, size)[: reference.size + estimate.size - 1]
    best = int(correlation.argmax())
    return best - reference.size + 1 if correlation[best] > 0 else 0


def rough_delay(pair: Aligned, start: int, stop: int, seed: int) -> int:
    """The delay of windows `start` to `stop` to within a window, sought around `seed`."""
    shifted = start + toward_zero(seed, pair.window)
    if shifted < 0:
        start, shifted = -toward_zero(seed, pair.window), 0
    length = max(0, stop - start)
    reference = pair.reference_activity[start : start + length]
    return seed + pair.window * lag_windows(reference, pair.estimate_activity[shifted : shifted + length])


def hann(size: int) -> np.ndarray:
    """The window of frames of `size` samples."""
    return 0.5 * (1.0 - np.cos(2.0 * np.pi * np.arange(size) / size))


def peaks(pair: Aligned, starts: np.ndarray, delay: int) -> tuple[np.ndarray, np.ndarray]:
    """Where frames of both signals correlate best.

    Args:
        starts: first samples of the frames in the reference, int64 `(frames,)`.
        delay: how far behind them the frames of the estimate begin.

    Returns:
        Whether a lag lies near a frame's peak, and the weight of the frame: bool `(frames, lags)`, float `(frames,)`.
    """
    inside = starts[:, None] + np.arange(pair.frame)
    first = np.fft.rfft(pair.reference[inside] * hann(pair.frame))
    second = np.fft.rfft(pair.estimate[inside + delay] * hann(pair.frame))
    height = np.abs(np.fft.irfft(first.conj() * second, pair.frame))
    top = NEAR_PEAK * height.max(axis=1)
    return height > top[:, None], top**PEAK_EXPONENT


def spread(histogram: np.ndarray) -> np.ndarray:
    """A histogram of lags, smoothed around the circle by a triangle: a 64th of it falls to zero."""
    width = histogram.size // 64
    return np.sum([(1.0 - abs(k) / width) * np.roll(histogram, k) for k in range(1 - width, width)], axis=0)


def prefixes(pair: Aligned, starts: np.ndarray, delay: int, counts: list[int]) -> list[tuple[int, float]]:
    """The delay and its confidence by the first so many frames, for each count."""
    near, weight = peaks(pair, starts, delay)
    found = []
    for count in counts:
        histogram = (near[:count] * weight[:count, None]).sum(axis=0)
        total = histogram.sum()
        smooth = spread(histogram)
        lag = int(smooth.argmax()) if total > 0 else 0
        confidence = float(smooth[lag] / total) if total > 0 else 0.0
        found.append((delay + (lag - pair.frame if lag >= pair.frame // 2 else lag), confidence))
    return found


def forward_starts(pair: Aligned, start: int, stop: int, delay: int) -> np.ndarray:
    """First samples of the frames between two windows whose counterparts lie in the estimate."""
    first = start * pair.window if start * pair.window + delay >= 0 else -delay
    last = min(stop * pair.window, pair.samples - delay) - pair.frame
    return np.arange(first, last + 1, pair.hop)


def backward_starts(pair: Aligned, start: int, stop: int, delay: int) -> np.ndarray:
    """The same from the end on."""
    first = min(stop * pair.window, pair.samples - delay) - pair.frame
    last = max(start * pair.window, -delay)
    return np.arange(first, last - 1, -pair.hop)


def qualifying_runs(pair: Aligned, energy: np.ndarray, delay: int) -> list[tuple[int, int]]:
    """Runs of speech of 0.2 s that overlap with the estimate."""
    earliest = SHORTEST_WINDOWS - toward_zero(delay, pair.window)
    latest = toward_zero(pair.samples - delay, pair.window) - SHORTEST_WINDOWS
    found = [(int(first), min(int(last), energy.size - 1)) for first, last in runs(energy > 0)]
    return [
        (first, last)
        for first, last in found
        if last - first >= SHORTEST_WINDOWS and first < latest and last > earliest
    ]


def fitted(pair: Aligned, first: int, last: int, delay: int) -> Utterance:
    """One run of speech as an utterance with its delay."""
    start = max(first - MARGIN_WINDOWS, 0)
    stop = min(last + MARGIN_WINDOWS, pair.reference_activity.size - 1)
    rough = rough_delay(pair, start, stop, delay)
    starts = forward_starts(pair, start, stop, rough)
    ((fine, confidence),) = pair.prefixes(pair, starts, rough, [len(starts)])
    return Utterance(first, last, rough, fine, confidence)


def joined(pair: Aligned, found: list[Utterance]) -> list[Utterance]:
    """The utterances with the pauses between them shared out, and within what both signals hold."""
    found = found[:]
    found[0] = replace(found[0], start=MARGIN_WINDOWS)
    found[-1] = replace(found[-1], stop=pair.reference_activity.size - MARGIN_WINDOWS)
    for n in range(1, len(found)):
        middle = (found[n].start + found[n - 1].stop) // 2
        found[n - 1], found[n] = replace(found[n - 1], stop=middle), replace(found[n], start=middle)
    found[0] = replace(found[0], start=within_start(pair, found[0]))
    found[-1] = replace(found[-1], stop=within_stop(pair, found[-1]))
    for n in range(1, len(found)):
        before, after = found[n - 1], found[n]
        begins, ends = after.start * pair.window + after.delay, before.stop * pair.window + before.delay
        if begins < ends:
            middle = toward_zero(begins + ends, 2)
            found[n] = replace(after, start=toward_zero(pair.window - 1 + middle - after.delay, pair.window))
            found[n - 1] = replace(before, stop=toward_zero(middle - before.delay, pair.window))
    return found


def within_start(pair: Aligned, utterance: Utterance) -> int:
    """The start of an utterance, moved to where the estimate begins if it lies before."""
    if utterance.start * pair.window + utterance.delay < pair.margin:
        return MARGIN_WINDOWS + toward_zero(pair.window - 1 - utterance.delay, pair.window)
    return utterance.start


def within_stop(pair: Aligned, utterance: Utterance) -> int:
    """The stop of an utterance, moved to where the estimate ends if it lies behind."""
    if utterance.stop * pair.window + utterance.delay > pair.samples - pair.margin:
        return toward_zero(pair.samples - utterance.delay, pair.window) - MARGIN_WINDOWS
    return utterance.stop


def candidates(utterance: Utterance, energy: np.ndarray) -> list[int]:
    """The windows at which an utterance may be split; none if it holds less than 0.8 s of speech."""
    start, stop = utterance.start, utterance.stop
    while start < stop and energy[start] <= 0:
        start += 1
    while stop > utterance.start and energy[stop] <= 0:
        stop -= 1
    stop += 1
    if stop - start < SPLITTABLE_WINDOWS:
        return []
    grid = CANDIDATES * HOP_WINDOWS
    step = int((0.801 * (stop - start) + grid - 1) / grid) * HOP_WINDOWS
    edge = max((stop - start) // 10, MARGIN_WINDOWS)
    found = range(start + edge, max(stop - edge, start + edge) + 1, step)
    return list(found)[:CANDIDATES]


def side(
    pair: Aligned, starts_of: Callable[..., np.ndarray], spans: list[tuple[int, int]], delays: list[int]
) -> list[tuple[int, float]]:
    """Delay and confidence of each span; spans whose frames begin with one delay are prefixes of the longest."""
    found: dict[int, tuple[int, float]] = {}
    for delay in dict.fromkeys(delays):
        same = [n for n, other in enumerate(delays) if other == delay]
        starts = [starts_of(pair, *spans[n], delay) for n in same]
        values = pair.prefixes(pair, max(starts, key=len), delay, [len(one) for one in starts])
        found.update(zip(same, values, strict=True))
    return [found[n] for n in range(len(delays))]


def best_split(pair: Aligned, whole: Utterance, energy: np.ndarray) -> tuple[Utterance, Utterance] | None:
    """The two parts of an utterance if each agrees with a delay of its own better than the whole with one."""
    at = candidates(whole, energy)
    seed = whole.rough_delay
    left = [rough_delay(pair, whole.start, point, seed) for point in at]
    right = [rough_delay(pair, point, whole.stop, seed) for point in at]
    before = side(pair, forward_starts, [(whole.start, point) for point in at], left)
    better = [n for n, (_, confidence) in enumerate(before) if confidence > whole.confidence]
    after = side(pair, backward_starts, [(at[n], whole.stop) for n in better], [right[n] for n in better])
    best, most = None, 0.0
    for n, (late, late_confidence) in zip(better, after, strict=True):
        early, early_confidence = before[n]
        apart = abs(late - early) >= pair.window and late_confidence > whole.confidence
        if apart and early_confidence + late_confidence > most:
            most = early_confidence + late_confidence
            overlap = max(0, late - early) // (2 * pair.window)
            best = (
                Utterance(whole.start, at[n] + overlap, left[n], early, early_confidence),
                Utterance(at[n] - overlap, whole.stop, right[n], late, late_confidence),
            )
    if best is None:
        return None
    return (
        replace(best[0], start=within_start(pair, best[0])),
        replace(best[1], stop=within_stop(pair, best[1])),
    )


def utterances(
    reference: np.ndarray,
    estimate: np.ndarray,
    mode: Mode,
    prefixes: Callable[..., list[tuple[int, float]]] = prefixes,
    soften: Callable[[np.ndarray], None] = soften,
) -> list[Utterance]:
    """All utterances in order.

    Args:
        reference, estimate: both signals after the filter for alignment, `(samples,)` with margins and padding.
        mode: what they were filtered for.
        prefixes, soften: the functions of these names, or other implementations of them.

    Returns:
        None of them if no utterance of 0.2 s was found in both.
    """
    first, second = reference[: -mode.padding], estimate[: -mode.padding]
    energy, log_energy = activity(first, mode.window, soften)
    pair = Aligned(first, second, log_energy, activity(second, mode.window, soften)[1], mode.window, prefixes)
    overall = rough_delay(pair, 0, energy.size, 0)
    spans = qualifying_runs(pair, energy, overall)
    if not spans:
        return []
    found = joined(pair, [fitted(pair, *span, overall) for span in spans])
    at = 0
    while at < len(found):
        parts = best_split(pair, found[at], energy) if len(found) < MOST_UTTERANCES else None
        if parts is None:
            at += 1
        else:
            found[at : at + 1] = parts
    return found
