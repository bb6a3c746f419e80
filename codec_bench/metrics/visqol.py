"""ViSQOL: an opinion score from the similarity of spectrogram patches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from codec_bench.messages import Diagnostic
from codec_bench.messages.errors import MissingExtra
from codec_bench.metrics.base import Inputs, Metric, variant_name
from codec_bench.metrics.visqol_mapping import exponential, lattice, regression
from codec_bench.types import Score

WINDOW_S, OVERLAP = 0.08, 0.25
LOW_HZ = 50.0
RADIUS_PATCHES = 60
ALIKE_AT_LEAST = 0.15
AUDIO, LATTICE = "audio", "lattice"
SVR, NETWORK = "visqol-svr", "visqol-lattice"


@dataclass(frozen=True, slots=True)
class _Mode:
    """Settings of a mode.

    Args:
        speech: whether patches without speech are omitted.
        weights: of the mapping from similarities to the score; None for the exponential fit.
    """

    protocol: str
    rate_hz: int
    bands: int
    high_hz: float
    patch_frames: int
    speech: bool
    weights: str | None


@dataclass(frozen=True, slots=True)
class _Patch:
    """A reference patch and its most similar patch of the estimate.

    Args:
        similarity: the mean over all bands.
        means, spreads: mean and standard deviation of the similarity over the frames, by band.
        levels: the mean level of the match, in dB above the floor.
        reference_s: start and end of the reference patch in seconds.
        estimate_s: start and end of the match in seconds; None for a lost patch.
    """

    similarity: float
    means: np.ndarray
    spreads: np.ndarray
    levels: np.ndarray
    reference_s: tuple[float, float]
    estimate_s: tuple[float, float] | None


class Visqol(Metric):
    """ViSQOL's opinion score. Higher is better, 1 to 5 (`audio`: about 4.73).

    The estimate is aligned by its envelope and brought to the reference's level. Gammatone spectrograms (80 ms every 20
    ms) are compared in patches: each patch of the reference with its most similar part of the estimate, aligned to the
    sample. The similarity (NSIM) of the bands is mapped to the score.

    * None: speech mode, 16 kHz, 21 bands up to 8 kHz, patches of 0.4 s with speech; mapped by the exponential fit.
    * `lattice`: speech mode, mapped by the lattice network, the default of the authors' program. Its scores are lower,
    on noisy speech by up to 2.4 points.
    * `audio`: 48 kHz, 32 bands, patches of 0.6 s; mapped by a support vector regression.

    Undefined for a silent side, a signal shorter than a patch, or a reference without speech (speech mode).

    Examples:
        >>> import numpy as np
        >>> from codec_bench import Audio, load_metric
        >>> from codec_bench.data import open_source
        >>> clip = Audio.read(next(iter(open_source("embedded"))).audio)
        >>> coarse = Audio(np.round(clip.samples * 32) / 32, clip.sample_rate_hz)  # 6 bits a sample
        >>> round(load_metric("visqol")(reference=[clip], estimate=[coarse])[0]["visqol"].value, 1)
        3.7
    """

    name = "visqol"
    kind = "pair"
    rate_hz = 16_000
    range = (1.0, 5.0)
    unit = "MOS"
    paper = "Chinen et al.: ViSQOL v3: An Open Source Production Ready Speech and Audio Metric, QoMEX 2020"
    source = "visqol-python 3.8, to 1e-6; visqol without its lattice model, visqol[lattice] with it"
    variants: ClassVar[dict[str | None, _Mode]] = {
        None: _Mode("visqol-3/speech/exponential/16khz", 16_000, 21, 8_000.0, 20, True, None),
        LATTICE: _Mode("visqol-3/speech/lattice/16khz", 16_000, 21, 8_000.0, 20, True, NETWORK),
        AUDIO: _Mode("visqol-3/audio/svr/48khz", 48_000, 32, 24_000.0, 30, False, SVR),
    }

    def __init__(self, variant: str | None = None) -> None:
        from codec_bench.weights import find

        self.name = variant_name("visqol", variant, self.variants)
        self._mode = self.variants[variant]
        self.protocol, self.rate_hz = self._mode.protocol, self._mode.rate_hz
        self._weights = None if self._mode.weights is None else find(self._mode.weights).path
        if self._mode.weights == NETWORK and find_spec("ai_edge_litert") is None:
            raise MissingExtra(self.name, "ai-edge-litert", "visqol")

    def compute(self, batch: Sequence[Inputs]) -> list[Score]:
        """Return one score per item; `detail` has mean similarity and number of patches."""
        return [self._score(item) for item in batch]

    def _score(self, item: Inputs) -> Score:
        """Match the patches, and map their mean similarity to the score."""
        reference, estimate = item.pair
        if not reference.any() or not estimate.any():
            return Score.undefined(Diagnostic("one_side_silent"), self.protocol)
        try:
            patches = item.once(_patches, replace(self._mode, protocol="", weights=None))
        except _TooLittle as why:
            return Score.undefined(why.args[0], self.protocol)
        bands = np.mean([patch.means for patch in patches], axis=0)
        mean = float(bands.mean())
        value = self._mapped(patches, bands, mean)
        if mean < ALIKE_AT_LEAST:
            value = 1.0
        return Score.ok(value, self.protocol, detail={"similarity": mean, "patches": len(patches)})

    def _mapped(self, patches: Sequence[_Patch], bands: np.ndarray, mean: float) -> float:
        """Map similarities to a score by the mode's exponential, SVR or network.

        Args:
            bands: mean similarity by band.
            mean: their mean.
        """
        if self._weights is None:
            return exponential(mean)
        if self._mode.weights == SVR:
            return regression(self._weights).predict(bands)
        return lattice(self._weights, bands, *_lattice_inputs(patches, bands, self._mode))


class _TooLittle(Exception):
    """Too little audio to compare."""


def _lattice_inputs(
    patches: Sequence[_Patch], bands: np.ndarray, mode: _Mode
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the lattice network's inputs that describe the patches, by band.

    Args:
        bands: mean similarity by band.

    Returns:
        The mean of the lowest tenth of the patches, the standard deviation over all frames, and the level.
    """
    means = np.array([patch.means for patch in patches])
    lowest = np.sort(means, axis=0)[: max(1, int(len(patches) * 0.1))].mean(axis=0)
    frame_s = _steps(mode)[1] / mode.rate_hz
    # Some spans are a rounding error longer than their frames and count one frame more, as in the reference
    # implementation.
    frames = np.array([[math.ceil((end_s - start_s) / frame_s)] for start_s, end_s in (p.reference_s for p in patches)])
    spreads = np.array([patch.spreads for patch in patches])
    total = frames.sum()
    squares = ((frames - 1) * spreads**2 + frames * means**2).sum(axis=0)
    variance = (squares - bands**2 * total) / (total - 1)
    return lowest, np.sqrt(np.maximum(variance, 0.0)), np.mean([patch.levels for patch in patches], axis=0)


def _patches(item: Inputs, mode: _Mode) -> list[_Patch]:
    reference, estimate = item.pair
    return _match_patches(reference.astype(np.float64), estimate.astype(np.float64), mode)


def _match_patches(reference: np.ndarray, estimate: np.ndarray, mode: _Mode) -> list[_Patch]:
    """Find the most similar patch of the estimate for each patch of the reference.

    Args:
        reference, estimate: `(samples,)` at the mode's rate; they are aligned first.
    """
    from codec_bench.kernels.visqol.cpu import similarities
    from codec_bench.kernels.visqol.ref import best_path, levels

    window, hop = _steps(mode)
    estimate = shifted(reference, estimate)
    if min(reference.size, estimate.size) <= window or not estimate.any():
        raise _TooLittle(
            Diagnostic("signals_below_frame", reference=reference.size, estimate=estimate.size, frame=window)
        )
    estimate = estimate * np.sqrt(np.mean(reference**2) / np.mean(estimate**2))
    ours, theirs = levels(_spectrogram(reference, mode), _spectrogram(estimate, mode))
    places = (
        _speech_starts(reference, ours.shape[1], mode, hop) if mode.speech else _consecutive_starts(ours.shape[1], mode)
    )
    width = mode.patch_frames
    places = places[places - width // 2 <= theirs.shape[1]]
    if not places.size:
        raise _TooLittle(Diagnostic("no_patch_of_speech"))
    patches = np.stack([ours[:, start : start + width] for start in places])
    similarities_by_place = similarities(patches, theirs, places, RADIUS_PATCHES * width)
    padded = np.pad(theirs, ((0, 0), (0, width)))
    frame_s, matches = hop / mode.rate_hz, []
    for patch, start, (at, missing) in zip(
        patches, places, best_path(similarities_by_place, places, RADIUS_PATCHES * width), strict=True
    ):
        begin_s = start * frame_s
        span = (begin_s, begin_s + width * frame_s)
        there = None if missing else (at * frame_s, at * frame_s + width * frame_s)
        first = _compare_patches(patch, padded[:, at : at + width], span, there)
        if missing:
            matches.append(replace(first, similarity=0.0, means=np.zeros(len(patch))))
        else:
            matches.append(_realign_patch(first, reference, estimate, mode))
    return matches


def _steps(mode: _Mode) -> tuple[int, int]:
    window = round(mode.rate_hz * WINDOW_S)
    return window, int(window * OVERLAP)


def _spectrogram(signal: np.ndarray, mode: _Mode) -> np.ndarray:
    from codec_bench.kernels.visqol.cpu import spectrogram
    from codec_bench.kernels.visqol.ref import filters

    return spectrogram(signal, *_steps(mode), filters(mode.rate_hz, mode.bands, LOW_HZ, mode.high_hz))


def _compare_patches(
    reference: np.ndarray,
    estimate: np.ndarray,
    reference_s: tuple[float, float],
    estimate_s: tuple[float, float] | None,
) -> _Patch:
    """Compute the similarity (NSIM) of two spectrogram patches `(bands, frames)`.

    Args:
        reference_s, estimate_s: (start, end) of both in their signals.
    """
    from codec_bench.kernels.visqol.cpu import similarity

    band_similarities = similarity(reference, estimate)
    means, spreads = band_similarities.mean(axis=1), band_similarities.std(axis=1, ddof=1)
    return _Patch(float(means.mean()), means, spreads, estimate.mean(axis=1), reference_s, estimate_s)


def _realign_patch(patch: _Patch, reference: np.ndarray, estimate: np.ndarray, mode: _Mode) -> _Patch:
    """Align a matched patch in time to the sample, and compare again.

    Returns:
        The new patch, or the old one if it is more similar.
    """
    from codec_bench.kernels.visqol.ref import levels

    if patch.estimate_s is None or patch.estimate_s == (0.0, 0.0):
        return patch
    ours, theirs = (_cut_segment(reference, patch.reference_s, mode), _cut_segment(estimate, patch.estimate_s, mode))
    ours, theirs, late_s = _align_segments(ours, theirs, mode.rate_hz)
    if ours.size <= _steps(mode)[0]:
        return patch
    start_s = patch.reference_s[0] + max(late_s, 0.0)
    span_s = (start_s, start_s + ours.size / mode.rate_hz)
    again = _compare_patches(*levels(_spectrogram(ours, mode), _spectrogram(theirs, mode)), span_s, patch.estimate_s)
    return patch if again.similarity < patch.similarity else again


def _cut_segment(signal: np.ndarray, span_s: tuple[float, float], mode: _Mode) -> np.ndarray:
    """Cut a segment; samples missing after the signal's end become zeros at its start.

    This is how the reference implementation does it.
    """
    start, end = (int(at_s * mode.rate_hz) for at_s in span_s)
    lacking = int(max(0.0, span_s[1] * mode.rate_hz - signal.size))
    return np.concatenate([np.zeros(lacking), signal[start : min(signal.size - 1, end)]])


def _align_segments(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Align two segments by their envelopes, and cut them to one length.

    Returns:
        Both segments, and the seconds by which the estimate was early.
    """
    lag = best_lag(reference, estimate)
    moved = _moved(estimate, lag)
    if 0 < reference.size < moved.size and lag > 0:
        after = int(lag / rate_hz * rate_hz)
        reference, moved = reference[after:], moved[after:]
    size = min(reference.size, moved.size)
    return reference[:size], moved[:size], lag / rate_hz


def shifted(reference: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Align the estimate with the reference, by the lag of their envelopes."""
    return _moved(estimate, best_lag(reference, estimate))


def _moved(signal: np.ndarray, lag: int) -> np.ndarray:
    return signal[-lag:] if lag < 0 else np.concatenate([np.zeros(lag), signal])


def best_lag(reference: np.ndarray, estimate: np.ndarray) -> int:
    """Find the lag with the largest cross-correlation of both envelopes.

    Returns:
        Samples by which the estimate is early; 0 for a lag above half of the reference's length.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    longest = max(reference.size, estimate.size)
    points = next_fast_len(2 * longest - 1, real=True)
    spectra = [rfft(signal, points) for signal in envelopes(reference, estimate)]
    correlation = irfft(spectra[0] * spectra[1].conj(), points)
    lags = np.concatenate([correlation[points - longest + 1 :], correlation[:longest]])
    lag = int(np.argmax(lags)) - (longest - 1)
    return 0 if abs(lag) > reference.size / 2 else lag


def envelopes(*signals: np.ndarray) -> list[np.ndarray]:
    """Compute the signals' envelopes: the mean plus the analytic signal's magnitude."""
    transforms = {size: _hilbert(size) for size in {signal.size for signal in signals}}
    out = []
    for signal in signals:
        mean = signal.mean()
        rest = signal - mean
        out.append(np.hypot(rest, transforms[signal.size](rest)) + mean)
    return out


def _hilbert(size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes the Hilbert transform of signals of this length.

    Lengths with a large prime factor have slow Fourier transforms. There it convolves with the impulse response.
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


def _consecutive_starts(frames: int, mode: _Mode) -> np.ndarray:
    """Return the first frames of patches that follow each other without gaps."""
    width, first = mode.patch_frames, mode.patch_frames // 2
    if frames < width + first:
        return np.zeros(0, np.int64)
    return np.arange(first, max(frames - width, first + 1), width) - 1


def _speech_starts(reference: np.ndarray, frames: int, mode: _Mode, hop: int) -> np.ndarray:
    """Return the first frames of patches that are loud, or follow a loud one.

    Args:
        reference: `(samples,)`.
        frames: of its spectrogram.
        hop: samples between frames.
    """
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
