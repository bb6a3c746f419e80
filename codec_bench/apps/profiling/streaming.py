"""Streams a codec step by step: the cost of a step, and equality with whole-signal coding.

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
from codec_bench.codecs.checks.batching import latent_flips
from codec_bench.codecs.checks.material import Material
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.codecs.checks.streaming import compare_stream, open_stream, stream_clip
from codec_bench.types import Latents, Sent

WAVE_TOLERANCE = 1e-4
CODE_SHARE = 0.9999
_WARM_STEPS = 3


def measure(codec: Any, material: Material, settings: Settings) -> dict[str, Any]:
    """Stream one clip, and compare with coding it as a whole."""
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
    """Return the largest lag of queued steps that arrive every `step_ms`."""
    done = lag = 0.0
    for number, cost in enumerate(costs_ms):
        arrives = (number + 1) * step_ms
        done = max(arrives, done) + cost
        lag = max(lag, done - arrives)
    return lag


def _percentiles(values: np.ndarray) -> dict[str, float]:
    return {"p50": float(np.percentile(values, 50)), "p95": float(np.percentile(values, 95))}


def _equal_codes(streamed: list[Sent], late: list[Sent], offline: Sent) -> float | None:
    """Return the share of codes or latent frames equal to the whole signal's; or None.

    The codes of silence after the clip count as far as the whole signal has codes there.
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
