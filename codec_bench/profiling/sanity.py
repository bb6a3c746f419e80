"""Checks for mistakes that have been seen in real leaderboards: delay, clipping, silence, wrong level, length or labels.

A finding is a dictionary: `check` (the name of the check), `state` (`ok`, `suspect`, `failed` or `not applicable`),
`found` (one sentence with the numbers), and `value` if there is one number. `suspect` says that somebody should look at
it; it may be intended.

Conventions
    Delays are in samples at the codec's rate, positive if the estimate is late. The delay is where the cross-correlation
    of the waveforms is largest. If a codec does not keep the waveform (the correlation is below `CORRELATED`), the
    envelopes are correlated instead, which is accurate to about 5 ms.
    A sample is clipped if its size is at least 0.999 and that of the reference is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codec_bench.codecs.base import CodecInfo
from codec_bench.engine.stage import describe
from codec_bench.profiling.material import Material, recode
from codec_bench.types import Audio

CORRELATED = 0.3
ENVELOPES_CORRELATED = 0.6  # higher, since the envelopes of any two clips of speech correlate somewhat
SHORT = (1, 7, 160, 801)  # samples
_FULL_SCALE = 0.999
_DELAY_SAMPLES = 2  # the smallest suspect delay; resampling inside a codec delays by a fraction of a sample
_ENVELOPE_DELAY_S = 0.01
_ENVELOPE_HZ = 1000
_LONGEST_DELAY_S = 0.5
_SILENT_DB = -60.0
_LEVEL_DB = 3.0
_CLIPPED_SHARE = 1e-4
_RATE_SHARE = 0.02
_WAVE_TOLERANCE = 1e-4
_LOOKAHEAD_SLACK_S = 0.003  # for resampling inside a codec, which its label does not include


def finding(check: str, state: str, found: str, value: float | None = None) -> dict[str, Any]:
    """One finding; its keys are explained at the top of this module."""
    return {"check": check, "state": state, "found": found, "value": value}


class SanityCounter:
    """Compares every estimate of a corpus with its reference, both at the codec's own rate."""

    def __init__(self) -> None:
        self._delays: list[tuple[int, float]] = []
        self._envelope_delays: list[tuple[float, float]] = []
        self._clipped = self._samples = self._beyond = 0
        self._silent: list[str] = []
        self._levels: list[float] = []
        self._worst_clip = ("", 0)

    def add(self, name: str, reference: Audio, estimate: Audio) -> None:
        """Compares one item."""
        a, b = reference.samples, estimate.samples
        self._samples += b.size
        clipped = int(((np.abs(b) >= _FULL_SCALE) & (np.abs(a) < _FULL_SCALE)).sum())
        self._clipped += clipped
        self._beyond += int((np.abs(b) > 1.0).sum())
        if clipped > self._worst_clip[1]:
            self._worst_clip = (name, clipped)
        level_a, level_b = _rms(a), _rms(b)
        if level_a < 1e-4:
            return
        level_db = 20 * np.log10(max(level_b, 1e-9) / level_a)
        if level_db < _SILENT_DB:
            self._silent.append(name)
            return
        self._levels.append(float(level_db))
        rate = reference.sample_rate_hz
        mono_a, mono_b = a.mean(axis=0), b.mean(axis=0)
        self._delays.append(delay_of(mono_a, mono_b, round(_LONGEST_DELAY_S * rate)))
        hop = max(1, rate // _ENVELOPE_HZ)
        lag, peak = delay_of(_envelope(mono_a, hop), _envelope(mono_b, hop), round(_LONGEST_DELAY_S * rate / hop))
        self._envelope_delays.append((lag * hop / rate, peak))

    def findings(self, sample_rate_hz: int) -> list[dict[str, Any]]:
        """The findings over the whole corpus: delay, clipping, silence and level."""
        return [self._delay(sample_rate_hz), self._clipping(), self._silence(), self._level()]

    def _delay(self, rate: int) -> dict[str, Any]:
        clear = [lag for lag, peak in self._delays if peak >= CORRELATED]
        if clear and len(clear) >= len(self._delays) / 2:
            lag = float(np.median(clear))
            text = f"{lag:+g} samples ({1000 * lag / rate:+.2f} ms), the median of {len(clear)} clips"
            state = "suspect" if abs(lag) >= _DELAY_SAMPLES else "ok"
            return finding("hidden delay", state, text, lag)
        clear_s = [lag for lag, peak in self._envelope_delays if peak >= ENVELOPES_CORRELATED]
        if clear_s and len(clear_s) >= len(self._envelope_delays) / 2:
            lag_s = float(np.median(clear_s))
            text = f"{1000 * lag_s:+.0f} ms by the envelopes of {len(clear_s)} clips; the waveform is not kept"
            state = "suspect" if abs(lag_s) >= _ENVELOPE_DELAY_S else "ok"
            return finding("hidden delay", state, text, lag_s * rate)
        return finding(
            "hidden delay",
            "not applicable",
            "neither the waveforms nor the envelopes of estimate and reference are similar enough",
        )

    def _clipping(self) -> dict[str, Any]:
        share = self._clipped / max(1, self._samples)
        text = f"{self._clipped} of {self._samples} samples reach full scale where the reference does not"
        if self._beyond:
            text += f"; {self._beyond} lie beyond full scale and would be cut in a file of integer samples"
        if self._clipped:
            text += f"; most in '{self._worst_clip[0]}'"
        return finding("clipping", "suspect" if share > _CLIPPED_SHARE else "ok", text, share)

    def _silence(self) -> dict[str, Any]:
        if not self._silent:
            return finding("silence", "ok", "no estimate of a clip with sound is silent", 0.0)
        count = len(self._silent)
        text = f"{count} estimate{'s are' if count > 1 else ' is'} silent where the reference is not, such as '{self._silent[0]}'"
        return finding("silence", "suspect", text, float(count))

    def _level(self) -> dict[str, Any]:
        if not self._levels:
            return finding("level", "not applicable", "no estimate has sound")
        level = float(np.median(self._levels))
        state = "suspect" if abs(level) > _LEVEL_DB else "ok"
        return finding(
            "level",
            state,
            f"the level of the estimates is {level:+.1f} dB from that of their references (median)",
            level,
        )


def delay_of(reference: np.ndarray, estimate: np.ndarray, longest: int) -> tuple[int, float]:
    """By how many samples `estimate` is late, and the size of the normalised cross-correlation at that delay (0 to 1).

    Args:
        reference, estimate: `(samples,)` of equal length.
        longest: the largest delay that is tried, in both directions.
    """
    from scipy.signal import correlate

    a, b = reference.astype(np.float64), estimate.astype(np.float64)
    a, b = a - a.mean(), b - b.mean()
    power = float(np.sqrt((a @ a) * (b @ b)))
    if power == 0.0:
        return 0, 0.0
    longest = min(longest, len(a) - 1)
    full = np.abs(correlate(b, a, mode="full", method="fft"))
    middle = len(a) - 1
    part = full[middle - longest : middle + longest + 1]
    best = int(part.argmax())
    return best - longest, float(part[best]) / power


def _envelope(samples: np.ndarray, hop: int) -> np.ndarray:
    frames = max(1, len(samples) // hop)
    power = np.square(samples[: frames * hop].astype(np.float64)).reshape(frames, -1).mean(axis=1)
    kernel = np.hanning(12)[1:-1]
    return np.convolve(np.sqrt(power), kernel / kernel.sum(), mode="same")


def _rms(samples: np.ndarray) -> float:
    return float(np.sqrt(np.square(samples, dtype=np.float64).mean())) if samples.size else 0.0


def probe(codec: Any, material: Material) -> list[dict[str, Any]]:
    """Findings for very short input, for silence, for the same input twice, and for a batch."""
    clip = material.cut(1, 2.0)[0]
    return [_short(codec, clip), _silent(codec, clip), _repeatable(codec, clip), _batch(codec, material)]


def _short(codec: Any, clip: Audio) -> dict[str, Any]:
    lengths = [n for n in SHORT if n <= clip.num_samples]
    for length in lengths:
        try:
            recode(codec, [Audio(clip.samples[:, :length], clip.sample_rate_hz)])
        except Exception as error:  # a codec of the caller's own may raise anything
            return finding("length", "failed", f"{length} sample{'s' if length > 1 else ''}: {describe(error)}")
    return finding(
        "length", "ok", f"output is as long as input, for {', '.join(map(str, lengths))} samples and every clip"
    )


def _silent(codec: Any, clip: Audio) -> dict[str, Any]:
    try:
        _, (out,) = recode(codec, [Audio(np.zeros_like(clip.samples), clip.sample_rate_hz)])
    except Exception as error:
        return finding("digital silence", "failed", describe(error))
    level = _rms(out.samples)
    db = 20 * np.log10(max(level, 1e-10))
    text = f"silence comes back at {db:.0f} dB of full scale" if level > 0 else "silence comes back as silence"
    return finding("digital silence", "suspect" if db > -50 else "ok", text, float(db))


def _repeatable(codec: Any, clip: Audio) -> dict[str, Any]:
    try:
        worst = float(np.abs(recode(codec, [clip])[1][0].samples - recode(codec, [clip])[1][0].samples).max())
    except Exception as error:
        return finding("repeatable", "failed", describe(error))
    text = "the same input gives the same output" if not worst else f"the same input twice differs by up to {worst:.2g}"
    return finding("repeatable", "suspect" if worst > _WAVE_TOLERANCE else "ok", text, worst)


def _batch(codec: Any, material: Material) -> dict[str, Any]:
    first = material.few[0]
    lengths = [max(1, int(first.num_samples * share)) for share in (1.0, 0.61, 0.37)]
    pieces = [Audio(first.samples[:, : min(n, 3 * first.sample_rate_hz)], first.sample_rate_hz) for n in lengths]
    try:
        together = recode(codec, pieces)[1]
        alone = [recode(codec, [piece])[1][0] for piece in pieces]
    except Exception as error:
        return finding("batch", "failed", describe(error))
    worst = max(float(np.abs(t.samples - a.samples).max(initial=0.0)) for t, a in zip(together, alone))
    text = f"a batch of three lengths differs from one by one by at most {worst:.2g} (allowed: {_WAVE_TOLERANCE:g})"
    return finding("batch", "suspect" if worst > _WAVE_TOLERANCE else "ok", text, worst)


def labels(info: CodecInfo, rate: dict[str, Any], latency: dict[str, Any]) -> list[dict[str, Any]]:
    """Compares the declared bitrate, frame rate and look-ahead of a codec with the measured ones.

    Args:
        info: what the codec declares. rate, latency: what was measured; `latency` may hold no numbers.
    """
    out = [_bitrate_label(info, rate)]
    frame = rate["streams"][0]["frame_rate_hz"] if rate["streams"] else None
    if frame and info.frame_rate_hz and abs(frame - info.frame_rate_hz) > 1e-3 * info.frame_rate_hz:
        out.append(finding("frame rate", "suspect", f"declared {info.frame_rate_hz:g} Hz, its codes have {frame:g} Hz"))
    if "lookahead_samples" in latency:
        out.append(_latency_label(info, latency))
    return out


def _bitrate_label(info: CodecInfo, rate: dict[str, Any]) -> dict[str, Any]:
    declared, nominal, measured = info.nominal_bitrate_bps, rate["nominal_bps"], rate["measured_bps"]
    kbps = [f"{v / 1000:.3g} kbit/s" for v in (nominal, measured)]
    if declared is None:
        text = f"it declares no bitrate; its codes take {kbps[0]} and were sent at {kbps[1]}"
        return finding("bitrate label", "not applicable", text)
    share = nominal / declared - 1
    text = f"declared {declared / 1000:.3g} kbit/s, its codes take {kbps[0]} ({100 * share:+.1f} %)"
    return finding("bitrate label", "suspect" if abs(share) > _RATE_SHARE else "ok", text, share)


def _latency_label(info: CodecInfo, latency: dict[str, Any]) -> dict[str, Any]:
    beyond = latency["beyond_frame_samples"]
    if info.causal is None:
        return finding("causal label", "not applicable", "it does not declare whether it is causal")
    allowed = round((info.lookahead_s or 0.0) * latency["sample_rate_hz"])
    if info.causal and beyond > allowed + _LOOKAHEAD_SLACK_S * latency["sample_rate_hz"]:
        text = f"declared causal with a look-ahead of {allowed} samples, but looks {beyond} samples beyond its frame"
        return finding("causal label", "suspect", text, float(beyond))
    said = "causal" if info.causal else "not causal"
    said += f" with a look-ahead of {allowed} samples" if allowed else ""
    return finding("causal label", "ok", f"declared {said}; looks {beyond} samples beyond its frame", float(beyond))
