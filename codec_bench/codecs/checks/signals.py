"""Output against input: polarity, delay, level, clipping and silence.

The delay maximises the size of the waveforms' cross-correlation (`alignment.py`), or, below `CORRELATED`, that of the
bands that the codec preserves. At least two clips must agree on a delay or sign. Without such bands, envelopes are
correlated, accurate to about 5 ms. The level is the median over bands by energy, so missing highs do not matter. A
sample is clipped at a magnitude of at least 0.999 where the reference's is below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.codecs.checks import State, finding
from codec_bench.codecs.checks.alignment import DelayEstimate, align_coherent, align_envelopes, align_waves, quick_size
from codec_bench.codecs.checks.dropouts import Dropouts, find_dropouts
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio

DELAY = "hidden delay"
CORRELATED = 0.3
TURNED_OVER = 0.5
COHERENT = 0.8
ENVELOPES_CORRELATED = 0.6  # higher, since the envelopes of any two clips of speech correlate somewhat
_FULL_SCALE = 0.999
_DELAY_SAMPLES = 1.0  # the smallest suspect delay of a well preserved waveform
_ROUGH_DELAY_S = 0.0005  # that of others: a quantiser of 600 bit/s moves the signal by up to half of this
_CLEAR_DELAY_SAMPLES = 0.25  # the smallest one that is suspect if all clips agree on it
_AGREEMENT_SAMPLES = 0.1
_AGREEING = 3
WELL_CORRELATED = 0.7
AGREE_SAMPLES = 1.0
_ENVELOPE_DELAY_S = 0.01
_ENVELOPE_HZ = 1000
_ENVELOPE_S = 1.0  # those of shorter clips are alike at many places
_ENVELOPES_AGREE_S = 0.02
_LONGEST_DELAY_S = 0.5
_SHORTEST_S = 0.2
_SILENT = 1e-4
_SILENT_DB = -60.0
_LEVEL_DB = 5.0  # Opus at 6 kbit/s loses 4 dB of speech, and an amplitude that is halved is 6 dB
_CLIPPED_SHARE = 1e-3  # speech coders at a low bitrate clip a few samples of loud music
_BANDS = 24
_FLAT, _FLAT_BELOW, _FLAT_NEAR, _FLAT_SAMPLES, _FLAT_SHARE = 0.9999, 0.97, 0.98, 6, 0.8
_CONSTANT = 0.005
_JUMP, _JUMP_RATIO, _JUMP_SAMPLES, _FOLLOWS = 1.0, 3.0, 65, 0.5


class SignalChecks:
    """Compares estimates with their references at the codec's own rate."""

    def __init__(self) -> None:
        self._waves: list[DelayEstimate] = []
        self._bands: list[DelayEstimate] = []
        self._envelopes: list[tuple[float, float]] = []
        self._dropout_list: list[tuple[str, Dropouts]] = []
        self._clipped = self._samples = self._over_full_scale = self._full = 0
        self._silent: list[str] = []
        self._levels: list[float] = []
        self._constants: list[float] = []
        self._cut = ("", 0.0)
        self._worst_clip = ("", 0)

    def add(self, name: str, reference: Audio, estimate: Audio) -> None:
        """Compare one clip, and keep the results for `findings`."""
        a, b = reference.samples, estimate.samples
        self._samples += b.size
        full = np.abs(a) >= _FULL_SCALE
        self._full += int(full.sum())
        clipped = int(((np.abs(b) >= _FULL_SCALE) & ~full).sum())
        self._clipped += clipped
        self._over_full_scale += int((np.abs(b) > 1.0).sum())
        if clipped > self._worst_clip[1]:
            self._worst_clip = (name, clipped)
        level_a, level_b = rms(a), rms(b)
        means = [float(np.abs(x.mean(axis=1, dtype=np.float64)).max()) if x.size else 0.0 for x in (a, b)]
        self._constants.append(means[1] - means[0] * level_b / max(level_a, _SILENT))
        if (top := flat_top(a, b)) > 0:
            self._cut = (name, top)
        if level_a < _SILENT:
            return
        if 20 * np.log10(max(level_b, 1e-9) / level_a) < _SILENT_DB:
            self._silent.append(name)
            return
        rate = reference.sample_rate_hz
        if (dropouts := find_dropouts(a, b, rate)) != Dropouts():
            self._dropout_list.append((name, dropouts))
        if reference.duration_s < _SHORTEST_S:
            return
        self._levels.append(level_db(a, b, rate))
        wave = align_waves(a, b, rate, round(_LONGEST_DELAY_S * rate))
        self._waves.append(wave)
        self._bands.append(align_coherent(a, b, rate, wave.delay_samples))
        if reference.duration_s < _ENVELOPE_S:
            return
        hop = max(1, rate // _ENVELOPE_HZ)
        before, after = (_envelope(signal.mean(axis=0), hop) for signal in (a, b))
        lag = align_envelopes(before, after, round(_LONGEST_DELAY_S * rate / hop))
        self._envelopes.append((lag.delay_samples * hop / rate, abs(lag.correlation)))

    def findings(self, sample_rate_hz: int) -> list[dict[str, Any]]:
        """Return the findings over all clips that were added."""
        all_findings = [self._polarity(), self._delay(sample_rate_hz), self._clipping(), self._silence(), self._level()]
        return [*all_findings, self._constant(), self._dropouts()]

    def _dropouts(self) -> dict[str, Any]:
        """Report audio lost at the start, inside or at the end of clips."""
        if not self._dropout_list:
            return finding("dropouts", "ok", Diagnostic("no_dropouts"), 0.0)
        seconds = sum(dropouts.start_s + dropouts.inside_s + dropouts.end_s for _, dropouts in self._dropout_list)
        name, dropouts = max(self._dropout_list, key=lambda one: one[1].start_s + one[1].inside_s + one[1].end_s)
        clips = len(self._dropout_list)
        diagnostic = Diagnostic("clips_lost", clips=clips, seconds=seconds, name=name, **dropout_parameters(dropouts))
        return finding("dropouts", "suspect", diagnostic, seconds)

    def _polarity(self) -> dict[str, Any]:
        """Report whether most clips are inverted."""
        clear = [wave for wave in self._waves if abs(wave.correlation) > TURNED_OVER]
        if not clear or len(clear) < len(self._waves) / 2:
            clear = [band for band in self._bands if abs(band.correlation) >= COHERENT]
        if not clear or len(clear) < len(self._waves) / 2:
            return finding("polarity", "not applicable", Diagnostic("sign_unknown"))
        turned = agreeing([one for one in clear if one.correlation < 0])
        median = float(np.median([one.correlation for one in clear]))
        if len(turned) > max(1, len(clear) / 2):
            diagnostic = Diagnostic("sign_turned", turned=len(turned), clips=len(clear), correlation=median)
            return finding("polarity", "suspect", diagnostic, median)
        if median < 0:
            return finding("polarity", "not applicable", Diagnostic("sign_varies"), median)
        return finding("polarity", "ok", Diagnostic("sign_kept", correlation=median), median)

    def _delay(self, rate: int) -> dict[str, Any]:
        """Report the clips' common delay: of waveforms, else of bands, else of envelopes."""
        waves = [wave for wave in self._waves if abs(wave.correlation) >= CORRELATED]
        bands = [band for band in self._bands if abs(band.correlation) >= COHERENT]
        for measured, basis in ((waves, "waves"), (bands, "bands")):
            agreed = agreeing(measured)
            if len(agreed) < 2 or 2 * len(agreed) < len(self._waves):
                continue
            lag = float(np.median([one.delay_samples for one in agreed]))
            diagnostic = Diagnostic("delay", samples=lag, ms=1000 * lag / rate, clips=len(agreed), by=basis)
            late = abs(lag) >= least_delay(agreed, rate, rough=measured is bands)
            return finding(DELAY, "suspect" if late else "ok", diagnostic, lag)
        if len(waves) == len(self._waves) == 1:
            return finding(DELAY, "not applicable", Diagnostic("delay_of_one_clip"))
        clear_s = [lag for lag, peak in self._envelopes if peak >= ENVELOPES_CORRELATED]
        if _agree(clear_s, len(self._envelopes), _ENVELOPES_AGREE_S):
            lag_s = float(np.median(clear_s))
            if abs(lag_s) >= _ENVELOPE_DELAY_S:
                diagnostic = Diagnostic("envelope_delay", ms=1000 * lag_s, clips=len(clear_s))
                return finding(DELAY, "suspect", diagnostic, lag_s * rate)
            return finding(DELAY, "not applicable", Diagnostic("delay_below", least_ms=1000 * _ENVELOPE_DELAY_S))
        return finding(DELAY, "not applicable", Diagnostic("delay_unknown"))

    def _clipping(self) -> dict[str, Any]:
        """Report samples beyond full scale, and outputs clipped at a lower level."""
        share = self._clipped / max(1, self._samples)
        diagnostic = Diagnostic(
            "clipped_samples", clipped=self._clipped, samples=self._samples, beyond=self._over_full_scale,
            name=self._worst_clip[0], cut_at=self._cut[1], cut_in=self._cut[0],
        )  # fmt: skip
        if self._cut[1]:
            return finding("clipping", "suspect", diagnostic, self._cut[1])
        # Next to the flat tops of clipped or limited sound every lossy codec overshoots, but it does not make more of
        # them.
        suspect = share > _CLIPPED_SHARE and self._clipped > self._full
        return finding("clipping", "suspect" if suspect else "ok", diagnostic, share)

    def _silence(self) -> dict[str, Any]:
        """Report clips whose output is silent."""
        if not self._silent:
            return finding("silence", "ok", Diagnostic("no_silent_estimate"), 0.0)
        count = len(self._silent)
        diagnostic = Diagnostic("silent_clips", count=count, name=self._silent[0])
        return finding("silence", "suspect", diagnostic, float(count))

    def _level(self) -> dict[str, Any]:
        """Report the median gain of the output in dB."""
        if not self._levels:
            return finding("level", "not applicable", Diagnostic("no_sound"))
        level = float(np.median(self._levels))
        state: State = "suspect" if abs(level) > _LEVEL_DB else "ok"
        return finding("level", state, Diagnostic("level", level_db=level), level)

    def _constant(self) -> dict[str, Any]:
        """Report the median constant (DC) offset of the output."""
        if not self._constants:
            return finding("constant", "not applicable", Diagnostic("nothing_decoded"))
        constant = float(np.median(self._constants))
        state: State = "suspect" if constant > _CONSTANT else "ok"
        return finding("constant", state, Diagnostic("mean", mean=constant), constant)


def _agree(lags: list[float], of: int, within: float) -> bool:
    """Whether enough clips have a delay, and half of these are close to their median.

    Args:
        lags: the known delays.
        of: the number of all clips.
        within: the largest median distance from the median.
    """
    enough = len(lags) >= max(_AGREEING, of / 2)
    return enough and bool(np.median(np.abs(np.array(lags) - np.median(lags))) <= within)


def agreeing(measured: Sequence[DelayEstimate]) -> list[DelayEstimate]:
    """Return the largest group of delays within `AGREE_SAMPLES` of one of them."""
    near = lambda lag: [one for one in measured if abs(one.delay_samples - lag) <= AGREE_SAMPLES]  # noqa: E731
    return max((near(middle.delay_samples) for middle in measured), key=len, default=[])


def least_delay(agreed: Sequence[DelayEstimate], rate_hz: int, *, rough: bool = False) -> float:
    """Return the smallest delay in samples that counts as a fault.

    It is larger for low correlations, since low bitrates shift bands a little.

    Args:
        agreed: delays from `agreeing`.
        rough: whether only some bands were compared.
    """
    lags = [one.delay_samples for one in agreed]
    if rough or np.median([abs(one.correlation) for one in agreed]) < WELL_CORRELATED:
        return max(_DELAY_SAMPLES, _ROUGH_DELAY_S * rate_hz)
    clear = len(lags) >= _AGREEING and max(lags) - min(lags) <= 2 * _AGREEMENT_SAMPLES
    return _CLEAR_DELAY_SAMPLES if clear else _DELAY_SAMPLES


def dropout_parameters(dropouts: Dropouts) -> dict[str, float]:
    """Losses of a clip as parameters of a diagnostic."""
    ms = {f"{name}_ms": 1000 * getattr(dropouts, f"{name}_s") for name in ("start", "inside", "end")}
    return {**ms, "at_s": dropouts.at_s}


def level_db(reference: np.ndarray, estimate: np.ndarray, rate_hz: int) -> float:
    """Compute the gain of `estimate` in dB: the median over bands, weighted by energy."""
    size = quick_size(reference.shape[1])
    spectra = (np.fft.rfft(signal.astype(np.float64), size) for signal in (reference, estimate))
    powers = [(np.abs(spectrum) ** 2).sum(axis=0) for spectrum in spectra]
    edges = np.geomspace(50.0, rate_hz / 2, _BANDS)
    places = np.unique((edges / rate_hz * size).astype(int))
    before, after = (np.add.reduceat(power, places) for power in powers)
    loud = before > 0
    change = 10 * np.log10(np.maximum(after[loud], 1e-12 * before[loud]) / before[loud])
    order = np.argsort(change)
    energy = np.cumsum(before[loud][order])
    return float(change[order][np.searchsorted(energy, energy[-1] / 2)])


def loudest(clip: Audio, seconds: float) -> Audio:
    """Cut the loudest segment of this length; shorter clips stay whole."""
    length = max(1, round(seconds * clip.sample_rate_hz))
    start = loudest_at(clip.samples, length)
    return Audio(clip.samples[:, start : start + length], clip.sample_rate_hz)


def loudest_at(samples: np.ndarray, length: int) -> int:
    """Return the start of the loudest segment, in steps of a quarter of its length.

    Args:
        length: of the segment, in samples.
    """
    sums = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64).sum(axis=0))])
    starts = np.arange(0, max(1, samples.shape[1] - length + 1), max(1, length // 4))
    return int(starts[(sums[np.minimum(starts + length, samples.shape[1])] - sums[starts]).argmax()])


def flat_top(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Return the level at which the estimate clips but the reference does not, or 0."""
    top, level = float(np.abs(estimate).max(initial=0.0)), np.abs(reference)
    at_top = np.abs(estimate) >= _FLAT * top
    cut = int((at_top & (level > _FLAT_NEAR * top)).sum())  # a coarse quantiser takes lower values to its top as well
    over_top = int((level > top).sum())
    is_cut = over_top >= _FLAT_SAMPLES and cut >= max(over_top / 2, _FLAT_SHARE * at_top.sum())
    return top if is_cut and top < _FLAT_BELOW * level.max(initial=0.0) else 0.0


def count_wraps(reference: np.ndarray, estimate: np.ndarray) -> int:
    """Count jumps of the estimate that look like integer overflow (wrap-around).

    It is 0 if the estimate does not follow the reference, since noise jumps too.
    """
    from scipy.ndimage import maximum_filter1d

    jumps, steps = (np.abs(np.diff(signal, axis=1)) for signal in (estimate, reference))
    if not (jumps > _JUMP).any():
        return 0
    follows = abs(float((estimate * reference).sum())) > _FOLLOWS * np.linalg.norm(estimate) * np.linalg.norm(reference)
    wraps = (jumps > _JUMP) & (jumps > _JUMP_RATIO * maximum_filter1d(steps, _JUMP_SAMPLES, axis=1))
    return int(wraps.sum()) if follows else 0  # noise jumps too


def _envelope(samples: np.ndarray, hop: int) -> np.ndarray:
    """Compute the RMS of every `hop` samples of `(samples,)`, smoothed over 10 values."""
    frames = max(1, len(samples) // hop)
    power = np.square(samples[: frames * hop].astype(np.float64)).reshape(frames, -1).mean(axis=1)
    kernel = np.hanning(12)[1:-1]
    return np.convolve(np.sqrt(power), kernel / kernel.sum(), mode="same")


def rms(samples: np.ndarray) -> float:
    """Compute the root mean square of samples; 0 if there are none."""
    return float(np.sqrt(np.square(samples, dtype=np.float64).mean())) if samples.size else 0.0
