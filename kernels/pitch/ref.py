"""The pitch tracker's specification in NumPy and float64, at 16 kHz.

Boersma's autocorrelation method. A frame is three of the longest periods under a Hann window; its autocorrelation,
divided by the window's, is that of the voice. Maxima between the shortest and the longest period are the candidates,
their heights (1 for a perfect period) the strengths. The quieter a frame, the stronger its unvoiced candidate.
Viterbi's algorithm finds the path of greatest total strength, less costs of jumps between octaves and of changes of
voicing. Frame k is centred on the instant before sample 160 k. The signal is surrounded by zeros.

Paper: P. Boersma, "Accurate short-term analysis of the fundamental frequency and the harmonics-to-noise ratio of a
sampled sound", Proceedings of the Institute of Phonetic Sciences 17, 1993. Reference implementation: Praat 6.1
(parselmouth 0.4) "To Pitch (ac)" with its standard settings and this floor and ceiling. On clean speech, 99 % of the
frames have the same voicing, and 99 % of those voiced in both the same pitch to 0.2 %. Praat interpolates maxima by
sinc and Brent's method; here a parabola fits the autocorrelation at half-sample lags. Praat's candidates above the
ceiling, which count as unvoiced, are omitted.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

RATE_HZ = 16_000
HOP = 160
FLOOR_HZ = 60.0
CEILING_HZ = 600.0
LONGEST = int(RATE_HZ / FLOOR_HZ)
"""Samples of the longest period."""
HALF = int(3 * RATE_HZ / FLOOR_HZ) // 2 - 1
"""Samples on either side of a frame's centre: three of the longest periods in all."""
FFT = 1080
"""At least the frame and the longest period, so no lag wraps round; a product of small primes."""
FINER = 2
"""Lags per sample."""
LAGS = FINER * (LONGEST + 2) + 1
FIRST_LAG = int(FINER * RATE_HZ / CEILING_HZ)
CANDIDATES = 15
"""Per frame, the unvoiced one among them."""
SILENCE = 0.03
"""Peak of a frame, relative to the signal's, below which it tends to be unvoiced."""
VOICING = 0.45
"""Strength of the unvoiced candidate of a loud frame."""
OCTAVE_COST = 0.01
"""A candidate's cost per octave below: of a period and its double, the shorter one is right."""
JUMP_COST = 0.35
"""Per octave between neighbouring frames."""
VOICING_COST = 0.14
"""For every change between voiced and unvoiced."""
INAUDIBLE = 1e-7
"""A signal whose samples stay this near to their mean (-140 dB) is silent."""


def window() -> np.ndarray:
    """The Hann window `(2 HALF,)`. None of its samples is zero."""
    return 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(1, 2 * HALF + 1) / (2 * HALF + 1))


def num_frames(num_samples: int) -> int:
    """The frames of a signal: every 160 samples, the first at its beginning."""
    return -(-num_samples // HOP)


def autocorrelation(frames: np.ndarray) -> np.ndarray:
    """Half-sample autocorrelations `(..., LAGS)` of frames `(..., 2 HALF)`."""
    power = np.abs(np.fft.rfft(frames, FFT)) ** 2
    power[..., -1] /= 2.0  # the last bin here is an inner one of the longer spectrum, where it counts twice
    return np.fft.irfft(power, FINER * FFT)[..., :LAGS]


def frame(signal: np.ndarray, number: int) -> np.ndarray:
    """A windowed frame `(2 HALF,)`, less its mean around the centre."""
    padded = np.pad(signal.astype(np.float64), HALF + LONGEST)
    centre = number * HOP + HALF + LONGEST
    mean = padded[centre - LONGEST : centre + LONGEST].mean()
    return (padded[centre - HALF : centre + HALF] - mean) * window()


def candidates(correlation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pitch in Hz and strength of candidates of an autocorrelation `(LAGS,)`.

    There are at most 14: the strongest ones after the cost of their octave is subtracted.
    """
    pitches, strengths = [], []
    for lag in range(FIRST_LAG, LAGS - 1):
        if (
            correlation[lag] > 0.5 * VOICING
            and correlation[lag] > correlation[lag - 1]
            and correlation[lag] >= correlation[lag + 1]
        ):
            slope, curvature = (
                0.5 * (correlation[lag + 1] - correlation[lag - 1]),
                2.0 * correlation[lag] - correlation[lag - 1] - correlation[lag + 1],
            )
            pitch = FINER * RATE_HZ / (lag + slope / curvature)
            strength = correlation[lag] + 0.5 * slope**2 / curvature
            if FLOOR_HZ <= pitch <= CEILING_HZ:
                pitches.append(pitch)
                strengths.append(strength if strength <= 1.0 else 1.0 / strength)
    all_pitches, all_strengths = np.array(pitches), np.array(strengths)
    strongest = np.sort(np.argsort(-worth(all_pitches, all_strengths), kind="stable")[: CANDIDATES - 1])
    return all_pitches[strongest], all_strengths[strongest]


def worth(pitches: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """Subtract from strengths the cost of the octaves below the ceiling."""
    return strengths - OCTAVE_COST * np.log2(CEILING_HZ / pitches)


def unvoiced(intensity: float) -> float:
    """The unvoiced candidate's strength, by a frame's relative peak."""
    return VOICING + max(0.0, 2.0 - intensity * (1.0 + VOICING) / SILENCE)


def track(signal: np.ndarray) -> np.ndarray:
    """Track a signal `(samples,)`: pitch in Hz of every frame, 0 where it is unvoiced."""
    count = num_frames(signal.size)
    loudest = np.abs(signal - signal.mean(dtype=np.float64)).max() if signal.size else 0.0
    if loudest < INAUDIBLE:
        return np.zeros(count)
    of_window = autocorrelation(window())
    choices = []
    for number in range(count):
        samples = frame(signal, number)
        near = np.abs(samples[HALF - LONGEST // 2 - 1 : HALF + LONGEST // 2 + 1]).max()
        correlation = autocorrelation(samples)
        if correlation[0] > 0.0:
            pitches, strengths = candidates(correlation / correlation[0] / (of_window / of_window[0]))
        else:
            pitches, strengths = np.zeros(0), np.zeros(0)
        here = worth(pitches, strengths)
        choices.append((np.append(0.0, pitches), np.append(unvoiced(min(1.0, near / loudest)), here)))
    return best_path(choices)


def best_path(choices: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The strongest path's pitches, of all pitches (0: unvoiced) and strengths."""
    total, back = choices[0][1], []
    for (before, _), (pitches, strengths) in pairwise(choices):
        cost = np.array([[_transition(f, g) for f in before] for g in pitches])
        back.append(np.argmax(total - cost, axis=1))
        total = strengths + np.max(total - cost, axis=1)
    last = int(np.argmax(total))
    path = [last]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return np.array([pitches[p] for (pitches, _), p in zip(choices, reversed(path))])


def _transition(before: float, after: float) -> float:
    if before == 0.0 or after == 0.0:
        return 0.0 if before == after else VOICING_COST
    return JUMP_COST * abs(np.log2(before / after))
