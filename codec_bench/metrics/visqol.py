"""ViSQOL: the opinion score of the estimate against the reference, from how alike patches of their spectrograms are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from codec_bench.errors import WeightsError
from codec_bench.metrics.base import Inputs, Metric, variant_name
from codec_bench.types import Score

WINDOW_S, OVERLAP = 0.08, 0.25
LOW_HZ = 50.0
RADIUS_PATCHES = 60
ALIKE_AT_LEAST = 0.15
AUDIO = "audio"
SVR = "visqol-svr"


@dataclass(frozen=True, slots=True)
class _Mode:
    """What the two modes differ in.

    Args:
        protocol: of the measurement. rate_hz: of the signals. bands: of the spectrogram. high_hz: where they end.
        patch_frames: length of a patch. speech: whether patches without speech are left out.
    """

    protocol: str
    rate_hz: int
    bands: int
    high_hz: float
    patch_frames: int
    speech: bool


@dataclass(frozen=True, slots=True)
class _Patch:
    """How alike a patch of the reference and its match are: by band the mean and, in seconds, where they lie."""

    similarity: float
    means: np.ndarray
    reference_s: tuple[float, float]
    estimate_s: tuple[float, float] | None


class Visqol(Metric):
    """ViSQOL's opinion score of the estimate against the reference. Higher is better, 1 to 5 (`audio`: to about 4.73).

    The estimate is shifted as a whole to where its envelope follows the reference's, and brought to its level. Gammatone
    spectrograms of both, 80 ms every 20 ms, are compared in patches: each patch of the reference with the part of the estimate that it
    resembles most, which is then aligned to the sample. The similarity (NSIM) of bands is mapped to the score.

    * None: speech mode, 16 kHz, 21 bands up to 8 kHz, patches of 0.4 s that hold speech; mapped by the exponential fit.
    * `audio`: 48 kHz, 32 bands, patches of 0.6 s; mapped by a support vector regression.

    The newer mapping of speech mode, a lattice network, needs a runtime of its own and is not offered; its scores are lower by one to
    two points. Undefined where a side is silent or too short for a patch, or the reference holds no speech (speech mode).

    Paper: M. Chinen et al., "ViSQOL v3: An Open Source Production Ready Objective Speech and Audio Metric", QoMEX 2020. Reference
    implementation: visqol-python 3.8 with `use_lattice_model=False`, to 1e-6.

    Args:
        variant: None for speech mode, or `audio`.

    Raises:
        UserError: there is no such variant. WeightsError: the regression of audio mode is not on this machine.
    """

    name = "visqol"
    kind = "pair"
    rate_hz = 16_000
    range = (1.0, 5.0)
    unit = "MOS"
    paper = "Chinen, Lim, Skoglund, Gureev, O'Gorman, Hines: ViSQOL v3: An Open Source Production Ready Objective Speech and Audio Metric, QoMEX 2020"
    source = "visqol-python 3.8 without the lattice model, to 1e-6"
    variants: ClassVar[dict[str | None, _Mode]] = {
        None: _Mode("visqol-3/speech/exponential/16khz", 16_000, 21, 8_000.0, 20, True),
        AUDIO: _Mode("visqol-3/audio/svr/48khz", 48_000, 32, 24_000.0, 30, False),
    }

    def __init__(self, variant: str | None = None) -> None:
        from codec_bench.weights import find

        self.name = variant_name("visqol", variant, self.variants)
        self._mode = self.variants[variant]
        self.protocol, self.rate_hz = self._mode.protocol, self._mode.rate_hz
        self._svr = None if self._mode.speech else find(SVR).path

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """One score per item; `detail` holds the mean similarity and the number of patches."""
        return [self._score(*item.pair) for item in batch]

    def _score(self, reference: np.ndarray, estimate: np.ndarray) -> Score:
        if not reference.any() or not estimate.any():
            return Score.undefined("the reference or the estimate is silent", self.protocol)
        try:
            patches = _matched(reference.astype(np.float64), estimate.astype(np.float64), self._mode)
        except _TooLittle as why:
            return Score.undefined(str(why), self.protocol)
        bands = np.mean([patch.means for patch in patches], axis=0)
        mean = float(bands.mean())
        value = _exponential(mean) if self._svr is None else _regression(self._svr).predict(bands)
        if mean < ALIKE_AT_LEAST:
            value = 1.0
        return Score.ok(value, self.protocol, detail={"similarity": mean, "patches": len(patches)})


class _TooLittle(Exception):
    """There is not enough to compare."""


@dataclass(frozen=True, slots=True, eq=False)
class _Regression:
    """A support vector regression with Gaussian kernels.

    Args:
        vectors: float64 `(vectors, bands)`. weights: of each. gamma: of the kernel. offset: taken off.
    """

    vectors: np.ndarray
    weights: np.ndarray
    gamma: float
    offset: float

    def predict(self, bands: np.ndarray) -> float:
        """The score of similarities by band, cut to 1 to 5."""
        apart = ((self.vectors - bands) ** 2).sum(axis=1)
        return float(np.clip(self.weights @ np.exp(-self.gamma * apart) - self.offset, 1.0, 5.0))


@cache
def _regression(path: Path) -> _Regression:
    """Reads a regression of libsvm.

    Raises:
        WeightsError: the file is another one.
    """
    try:
        head, _, body = path.read_text("ascii").partition("\nSV\n")
        facts = dict(line.split(" ", 1) for line in head.splitlines())
        rows = [line.split() for line in body.splitlines()]
        vectors = np.array([[float(cell.partition(":")[2]) for cell in row[1:]] for row in rows])
        weights = np.array([float(row[0]) for row in rows])
        if (facts["svm_type"], facts["kernel_type"], vectors.shape[1]) != ("nu_svr", "rbf", 32):
            raise ValueError("it is no regression over 32 bands")
        return _Regression(vectors, weights, float(facts["gamma"]), float(facts["rho"]))
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise WeightsError(f"the regression in '{path}' cannot be read: {type(error).__name__}: {error}") from error


def _exponential(similarity: float) -> float:
    """The fit of ViSQOL's authors to TCD-VoIP, scaled so that a copy has 5."""
    return float(np.clip(1.245063 * (-262.847869 + np.exp(0.0154302525 * (similarity + 361.063949))), 1.0, 5.0))


def _matched(reference: np.ndarray, estimate: np.ndarray, mode: _Mode) -> list[_Patch]:
    """Every patch of the reference with its match.

    Raises:
        _TooLittle: there is none.
    """
    from codec_bench.kernels.visqol.cpu import similarities
    from codec_bench.kernels.visqol.ref import best_path, levels

    window, hop = _steps(mode)
    estimate = shifted(reference, estimate)
    if min(reference.size, estimate.size) <= window or not estimate.any():
        raise _TooLittle(
            f"the signals have {reference.size} and, aligned, {estimate.size} samples; a frame has {window}"
        )
    estimate = estimate * np.sqrt(np.mean(reference**2) / np.mean(estimate**2))
    ours, theirs = levels(_spectrogram(reference, mode), _spectrogram(estimate, mode))
    places = _speech_places(reference, ours.shape[1], mode, hop) if mode.speech else _even_places(ours.shape[1], mode)
    width = mode.patch_frames
    places = places[places - width // 2 <= theirs.shape[1]]
    if not places.size:
        raise _TooLittle("no patch of the reference holds speech, or the signals are too short for a patch")
    patches = np.stack([ours[:, place : place + width] for place in places])
    alike = similarities(patches, theirs, places, RADIUS_PATCHES * width)
    padded = np.pad(theirs, ((0, 0), (0, width)))
    frame_s, found = hop / mode.rate_hz, []
    for patch, place, (at, lost) in zip(patches, places, best_path(alike, places, RADIUS_PATCHES * width), strict=True):
        begin_s = place * frame_s
        span = (begin_s, begin_s + width * frame_s)
        if lost:
            found.append(_Patch(0.0, np.zeros(len(patch)), span, None))
            continue
        there = (at * frame_s, at * frame_s + width * frame_s)
        first = _compared(patch, padded[:, at : at + width], span, there)
        found.append(_realigned(first, reference, estimate, mode))
    return found


def _steps(mode: _Mode) -> tuple[int, int]:
    window = round(mode.rate_hz * WINDOW_S)
    return window, int(window * OVERLAP)


def _spectrogram(signal: np.ndarray, mode: _Mode) -> np.ndarray:
    from codec_bench.kernels.visqol.cpu import spectrogram
    from codec_bench.kernels.visqol.ref import filters

    return spectrogram(signal, *_steps(mode), filters(mode.rate_hz, mode.bands, LOW_HZ, mode.high_hz))


def _compared(
    reference: np.ndarray, estimate: np.ndarray, reference_s: tuple[float, float], estimate_s: tuple[float, float]
) -> _Patch:
    from codec_bench.kernels.visqol.cpu import similarity

    means = similarity(reference, estimate).mean(axis=1)
    return _Patch(float(means.mean()), means, reference_s, estimate_s)


def _realigned(patch: _Patch, reference: np.ndarray, estimate: np.ndarray, mode: _Mode) -> _Patch:
    """The patch again, its sound aligned to the sample and its spectrograms made anew, if it is then as alike."""
    from codec_bench.kernels.visqol.ref import levels

    if patch.estimate_s is None or patch.estimate_s == (0.0, 0.0):
        return patch
    ours, theirs = (_cut(reference, patch.reference_s, mode), _cut(estimate, patch.estimate_s, mode))
    ours, theirs = _aligned(ours, theirs, mode.rate_hz)
    if ours.size <= _steps(mode)[0]:
        return patch
    again = _compared(
        *levels(_spectrogram(ours, mode), _spectrogram(theirs, mode)), patch.reference_s, patch.estimate_s
    )
    return patch if again.similarity < patch.similarity else again


def _cut(signal: np.ndarray, span_s: tuple[float, float], mode: _Mode) -> np.ndarray:
    """A stretch of a signal. What it lacks at its end is silence at its beginning, as in the reference implementation."""
    start, end = (int(at_s * mode.rate_hz) for at_s in span_s)
    lacking = int(max(0.0, span_s[1] * mode.rate_hz - signal.size))
    return np.concatenate([np.zeros(lacking), signal[start : min(signal.size - 1, end)]])


def _aligned(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> tuple[np.ndarray, np.ndarray]:
    """Two stretches shifted against each other and cut to one length."""
    lag = best_lag(reference, estimate)
    moved = _moved(estimate, lag)
    if 0 < reference.size < moved.size and lag > 0:
        after = int(lag / rate_hz * rate_hz)
        reference, moved = reference[after:], moved[after:]
    size = min(reference.size, moved.size)
    return reference[:size], moved[:size]


def shifted(reference: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """The estimate, later or earlier by what its envelope is early or late."""
    return _moved(estimate, best_lag(reference, estimate))


def _moved(signal: np.ndarray, lag: int) -> np.ndarray:
    return signal[-lag:] if lag < 0 else np.concatenate([np.zeros(lag), signal])


def best_lag(reference: np.ndarray, estimate: np.ndarray) -> int:
    """By how many samples the estimate is early; 0 if that were more than half of the reference."""
    from scipy.fft import irfft, next_fast_len, rfft

    longest = max(reference.size, estimate.size)
    points = next_fast_len(2 * longest - 1, real=True)
    spectra = [rfft(side, points) for side in envelopes(reference, estimate)]
    correlation = irfft(spectra[0] * spectra[1].conj(), points)
    lags = np.concatenate([correlation[points - longest + 1 :], correlation[:longest]])
    lag = int(np.argmax(lags)) - (longest - 1)
    return 0 if abs(lag) > reference.size / 2 else lag


def envelopes(*signals: np.ndarray) -> list[np.ndarray]:
    """The upper envelope of each: the mean, and the magnitude of the analytic signal of the rest, as `scipy.signal.hilbert` has it."""
    transforms = {size: _hilbert(size) for size in {signal.size for signal in signals}}
    out = []
    for signal in signals:
        mean = signal.mean()
        rest = signal - mean
        out.append(np.hypot(rest, transforms[signal.size](rest)) + mean)
    return out


def _hilbert(size: int) -> Callable[[np.ndarray], np.ndarray]:
    """The Hilbert transform of signals of a length, taken as periodic.

    A Fourier transform of a length with a large prime factor is slow. For such a length the transform is a convolution with its
    impulse response instead, by Fourier transforms of a longer length.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    if next_fast_len(size, real=True) == size:
        turned = np.full(size // 2 + 1, -1j)
        turned[0] = 0
        if size % 2 == 0:
            turned[-1] = 0
        return lambda signal: irfft(turned * rfft(signal), size)
    points = next_fast_len(2 * size - 1, real=True)
    response = np.zeros(points)
    first = np.arange(1, (size + 1) // 2)  # the second half is the first one backwards with the other sign
    angle = first * (np.pi / size)
    if size % 2:
        response[first] = np.where(first % 2, 1 / np.tan(angle / 2), -np.tan(angle / 2)) / size
    else:
        response[first] = np.where(first % 2, 2 / size / np.tan(angle), 0)
    response[size - first] = -response[first]
    response[points - size + 1 :] = response[1:size]
    spectrum = rfft(response)
    return lambda signal: irfft(spectrum * rfft(signal, points), points)[:size]


def _even_places(frames: int, mode: _Mode) -> np.ndarray:
    """First frames of patches one after another."""
    width, first = mode.patch_frames, mode.patch_frames // 2
    if frames < width + first:
        return np.zeros(0, np.int64)
    return np.arange(first, max(frames - width, first + 1), width) - 1


def _speech_places(reference: np.ndarray, frames: int, mode: _Mode, hop: int) -> np.ndarray:
    """First frames of the patches that hold a loud frame, or one soon after a loud frame."""
    width, first = mode.patch_frames, mode.patch_frames // 2 - 1
    count = (frames - first) // width
    # The detector begins at the sample of the number of the first frame, as in the reference implementation.
    scaled = reference[first : first + count * width * hop] / max(float(reference.max()), np.finfo(np.float64).tiny)
    pcm = np.trunc(np.clip(scaled * 32_768, -32_768, 32_767))
    pcm = pcm[: pcm.size // hop * hop].reshape(-1, hop)
    loud = np.sqrt(np.mean(pcm**2, axis=1)) >= 5000
    near = loud.copy()
    near[:2] = True
    near[1:] |= loud[:-1]
    near[2:] |= loud[:-2]
    return np.array([first + k * width for k in range(count) if near[k * width : (k + 1) * width].any()], np.int64)
