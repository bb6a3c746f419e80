"""Look-ahead of a codec, by changing its input from a sample t on; streaming.

If the earliest output sample that changes is t - L, the codec needs L samples after that position. L varies within a
frame, so several positions are tried. All values are lower bounds; a negative one means that the output is late.
    algorithmic_samples   one frame, the look-ahead beyond it (without frames the largest L + 1), and the output delay.
    delay_samples         lateness of the output, by cross-correlation; 0 if the waveform is not preserved.
    lookahead_samples     the largest L; frames of F samples alone give F - 1. `beyond_frame_samples` is the smallest L.
A sample has changed if it differs by more than 1e-4 of the peak and four times the difference of two equal calls.
Changes are large (noise, half of full scale), since a small one may leave all codes as they are.

Streams a codec step by step: the cost of a step, and equality with whole-signal coding.
    first_output_ms        from the first sample in to the first out: audio of the steps, computing of the last one.
    real_time_factor       computing per second of audio. `largest_lag_ms` is the largest delay of a step that queues.
    encode_ms, decode_ms   computing of a step, p50 and p95 after a warm-up. `keeps_up`: the p95 sum is below `step_ms`.
    missing_samples        samples still owed at the end of the clip; silence follows for at most a second.
    wave_difference        largest difference from whole-signal decoding; up to 1e-4 counts as equal.
    codes_equal            share of codes equal to those of the whole signal; from 0.9999 on it counts as equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import recode
from codec_bench.codecs.base import CodecInfo
from codec_bench.codecs.checks import finding
from codec_bench.codecs.checks.alignment import align_waves
from codec_bench.codecs.checks.batching import latent_flips
from codec_bench.codecs.checks.material import ProfileClips
from codec_bench.codecs.checks.signals import CORRELATED
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.codecs.checks.streaming import compare_stream, open_stream, stream_clip
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Latents, Sent

_TOLERANCE = 1e-4
_PLACES = (0.45, 0.7)  # where the signal is changed, as shares of its length
_EARLY_SHARE = 0.05
_LONGEST_DELAY_S = 0.5
_LEAST_DELAY_SAMPLES = 1.0  # a low bitrate moves the peak of the correlation by less
_LOOKAHEAD_SLACK_S = 0.003  # for resampling inside a codec, which its label does not include
WAVE_TOLERANCE = 1e-4
CODE_SHARE = 0.9999
_WARM_STEPS = 3


def measure(codec: Any, material: ProfileClips, settings: Settings) -> dict[str, Any]:
    """Measure the look-ahead and delay of a codec, in samples and ms.

    Raises:
        NotApplicable: equal inputs give different outputs, or no change of the input changes the output.
    """
    rng = np.random.default_rng(settings.seed)
    clip = material.exactly(settings.latency_s)
    rate = clip.sample_rate_hz
    samples = 0.5 * clip.samples / max(1e-6, float(np.abs(clip.samples).max()))
    samples = (samples + 0.01 * rng.standard_normal(samples.shape)).astype(np.float32)
    noise_after = (0.2 * rng.standard_normal(samples.shape)).astype(np.float32)
    jump_after = np.where(samples > 0, samples - 0.5, samples + 0.5).astype(np.float32)

    def run(values: np.ndarray) -> np.ndarray:
        return recode(codec, [Audio(values, rate)])[1][0].samples

    plain = run(samples)
    noise = float(np.abs(run(samples) - plain).max())
    peak = float(np.abs(plain).max())
    tolerance = max(_TOLERANCE * peak, 4 * noise)
    if noise > 0.01 * peak:
        raise NotApplicable(Diagnostic("unsteady_output", by=noise))
    frame_hz = codec.info.frame_rate_hz
    hop = max(1, round(rate / frame_hz)) if frame_hz else None
    tried = []
    for change in _changes(samples.shape[1], hop):
        first = []
        for other in (noise_after, jump_after):
            changed = np.concatenate([samples[:, :change], other[:, change:]], axis=1)
            first += np.flatnonzero(np.abs(run(changed) - plain).max(axis=0) > tolerance)[:1].tolist()
        if first:
            tried.append((change, min(first)))
    if not tried:
        raise NotApplicable(Diagnostic("no_change_seen"))
    ahead = [change - earliest for change, earliest in tried]
    # A change of only the last sample of a frame may leave its codes as they are; the next frame is then the first to
    # change.
    of_place: dict[int, int] = {}
    for (change, _), samples_ahead in zip(tried, ahead):
        phase = change % (hop or 1)
        if phase < (hop or 1) - 1 or not phase:
            of_place[phase] = max(samples_ahead, of_place.get(phase, samples_ahead))
    beyond = min(of_place.values(), default=max(ahead))
    whole_signal = all(earliest < _EARLY_SHARE * samples.shape[1] for _, earliest in tried)
    delay = _delay(samples, plain, rate)
    algorithmic = (hop + max(0, beyond) if hop else max(0, max(ahead) + 1)) + delay
    return {
        "sample_rate_hz": rate,
        "algorithmic_samples": algorithmic,
        "algorithmic_ms": 1000 * algorithmic / rate,
        "delay_samples": delay,
        "lookahead_samples": max(ahead),
        "lookahead_ms": 1000 * max(ahead) / rate,
        "beyond_frame_samples": beyond,
        "beyond_frame_ms": 1000 * beyond / rate,
        "frame_samples": hop,
        "whole_signal": whole_signal,
        "signal_s": clip.duration_s,
        "tolerance": tolerance,
        "changes": [list(pair) for pair in tried],
    }


def _delay(samples: np.ndarray, decoded: np.ndarray, rate: int) -> float:
    alignment = align_waves(samples, decoded, rate, round(_LONGEST_DELAY_S * rate))
    clear = abs(alignment.correlation) >= CORRELATED and alignment.delay_samples >= _LEAST_DELAY_SAMPLES
    return round(alignment.delay_samples, 2) if clear else 0.0


def label(info: CodecInfo, latency: dict[str, Any]) -> dict[str, Any]:
    """Build the finding that compares declared and measured look-ahead."""
    beyond = latency["beyond_frame_samples"]
    if info.causal is None:
        return finding("causal label", "not applicable", Diagnostic("causality_not_declared"))
    allowed = round((info.lookahead_s or 0.0) * latency["sample_rate_hz"])
    diagnostic = Diagnostic("look_ahead", causal=info.causal, declared=allowed, beyond=beyond)
    if info.causal and beyond > allowed + _LOOKAHEAD_SLACK_S * latency["sample_rate_hz"]:
        return finding("causal label", "suspect", diagnostic, float(beyond))
    return finding("causal label", "ok", diagnostic, float(beyond))


def _changes(num_samples: int, hop: int | None) -> list[int]:
    """Choose samples where the input changes; `hop` is the samples of a frame, if any."""
    step = hop or num_samples // 41
    inside = sorted({0, step // 4, step // 2, 3 * step // 4, step - 1})
    first, second = (int(share * num_samples) // step * step for share in _PLACES)
    positions = {first + offset for offset in inside} | {second, second + step - 1}
    return sorted(min(num_samples - 1, change) for change in positions)


def measure_streaming(codec: Any, material: ProfileClips, settings: Settings) -> dict[str, Any]:
    """Stream one clip step by step: time, lag, and difference from offline coding.

    Raises:
        NotApplicable: the codec cannot stream.
    """
    stream = open_stream(codec)
    if isinstance(stream, str):
        raise NotApplicable(stream)
    clip = material.exactly(settings.stream_s)
    (offline_codes,), (offline,) = recode(codec, [clip])
    run = stream_clip(stream, clip)
    encode_s, decode_s, codes, waves = run.encode_s, run.decode_s, run.codes, run.waves
    step, missing, late, owed = run.step_samples, run.missing_samples, run.late_codes, run.owed
    streamed = np.concatenate([*waves, owed], axis=1)[:, : clip.num_samples]
    common = min(streamed.shape[1], offline.num_samples)
    difference = float(np.abs(streamed[:, :common] - offline.samples[:, :common]).max(initial=0.0))
    equal = _equal_codes(codes, late, offline_codes)
    shortfall = clip.num_samples - streamed.shape[1]
    step_ms = 1000 * step / clip.sample_rate_hz
    costs_ms = 1000 * (np.asarray(encode_s) + np.asarray(decode_s))
    first = next((k for k, wave in enumerate(waves) if wave.shape[1]), None)
    warm = slice(_WARM_STEPS if len(encode_s) > 2 * _WARM_STEPS else 0, None)
    encode_ms, decode_ms = 1000 * np.asarray(encode_s)[warm], 1000 * np.asarray(decode_s)[warm]
    both = np.percentile(encode_ms, 95) + np.percentile(decode_ms, 95)
    return {
        "step_samples": step,
        "step_ms": step_ms,
        "steps": len(encode_ms),
        "encode_ms": _percentiles(encode_ms),
        "decode_ms": _percentiles(decode_ms),
        "first_output_ms": None if first is None else (first + 1) * step_ms + float(costs_ms[first]),
        "real_time_factor": float(costs_ms.sum()) / 1000 / clip.duration_s,
        "largest_lag_ms": largest_lag_ms(costs_ms.tolist(), step_ms),
        "keeps_up": bool(both < step_ms),
        "wave_difference": difference,
        "missing_samples": missing,
        "codes_equal": equal,
        "findings": [compare_stream(clip, offline.samples, run)],
        "equals_offline": bool(
            difference <= WAVE_TOLERANCE and not shortfall and (equal is None or equal >= CODE_SHARE)
        ),
    }


def largest_lag_ms(costs_ms: Sequence[float], step_ms: float) -> float:
    """Return the largest delay of steps that arrive every `step_ms` and queue, in ms."""
    done = lag = 0.0
    for number, cost in enumerate(costs_ms):
        arrives = (number + 1) * step_ms
        done = max(arrives, done) + cost
        lag = max(lag, done - arrives)
    return lag


def _percentiles(values: np.ndarray) -> dict[str, float]:
    return {"p50": float(np.percentile(values, 50)), "p95": float(np.percentile(values, 95))}


def _equal_codes(streamed: list[Sent], late: list[Sent], offline: Sent) -> float | None:
    """Return the share of streamed codes equal to the offline ones; None without any.

    Codes in `late`, of silence after the clip, count as far as the whole signal has codes there.
    """
    if isinstance(offline, Latents):
        joined = np.concatenate([np.asarray(p.values) for p in (*streamed, *late) if isinstance(p, Latents)], axis=1)
        counted = sum(np.shape(p.values)[1] for p in streamed if isinstance(p, Latents))
        flips, frames = latent_flips(np.asarray(offline.values), joined[:, : max(counted, np.shape(offline.values)[1])])
        return 1 - flips / frames if frames else None
    if not offline.streams:
        return None
    same = total = 0
    for index, stream in enumerate(offline.streams):
        values = np.asarray(stream.values)
        joined = np.concatenate([np.asarray(p.streams[index].values) for p in (*streamed, *late)], axis=1)
        counted = sum(np.shape(p.streams[index].values)[1] for p in streamed)
        joined = joined[:, : max(counted, values.shape[1])]
        frames = min(values.shape[1], joined.shape[1])
        same += int((values[:, :frames] == joined[:, :frames]).sum())
        total += max(values.size, joined.size)
    return same / total if total else None
