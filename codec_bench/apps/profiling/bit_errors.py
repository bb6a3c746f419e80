"""Single bit errors in packets or codes (see `loss.py`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codec_bench.apps.profiling.loss import DEAF, WINDOW_S, windows_apart
from codec_bench.apps.profiling.settings import Settings
from codec_bench.apps.profiling.stability import snr_db
from codec_bench.codecs.adapt import decode, recode
from codec_bench.codecs.checks.material import Material
from codec_bench.codecs.checks.steps import NotApplicable
from codec_bench.messages import Diagnostic
from codec_bench.types import Audio, Codes, CodeStream, Latents


def measure(codec: Any, material: Material, settings: Settings) -> dict[str, Any]:
    """Flip single bits of a clip, and measure the damage; raises NotApplicable."""
    (clip,) = material.cut(1, settings.loss_s)
    (sent,), (undisturbed,) = recode(codec, [clip])
    if isinstance(sent, Latents):
        raise NotApplicable(sent.no_bits)
    rng = np.random.default_rng(settings.seed)
    outputs = [_decoded(codec, turned(sent, rng), clip) for _ in range(settings.bit_errors)]
    waves = [wave for wave in outputs if wave is not None]
    if len(waves) == len(outputs) > 0 and all(np.array_equal(wave.samples, undisturbed.samples) for wave in waves):
        raise NotApplicable(DEAF)
    apart = [
        windows_apart(undisturbed.samples, wave.samples, wave.sample_rate_hz, settings.recovery_db) for wave in waves
    ]
    spans = [1000 * WINDOW_S * (windows[-1] - windows[0] + 1) if windows.size else 0.0 for windows in apart]
    ratios = [ratio for wave in waves if (ratio := snr_db([undisturbed], [wave])) is not None]
    return {
        "trials": len(outputs),
        "refused": 1 - len(waves) / len(outputs),
        "disturbed_ms": _middle(spans),
        "longest_ms": max(spans, default=None),
        "wave_snr_db": _middle(ratios),
        "distance_db": settings.recovery_db,
    }


def turned(sent: Codes, rng: np.random.Generator) -> Codes:
    """Flip a random bit, redrawn if the code would not exist; raises NotApplicable."""
    sizes = [8 * len(packet) for packet in sent.packets] or [
        _bits(stream) * stream.values.size for stream in sent.streams
    ]
    if not sum(sizes):
        raise NotApplicable(Diagnostic("no_bits"))
    while True:
        bit = int(rng.integers(sum(sizes)))
        packet_number = int(np.searchsorted(np.cumsum(sizes), bit, side="right"))
        bit -= sum(sizes[:packet_number])
        if sent.packets:
            packet = bytearray(sent.packets[packet_number])
            packet[bit // 8] ^= 1 << bit % 8
            return replace(
                sent, packets=(*sent.packets[:packet_number], bytes(packet), *sent.packets[packet_number + 1 :])
            )
        stream = sent.streams[packet_number]
        values = np.array(stream.values)
        values.flat[bit // _bits(stream)] ^= 1 << bit % _bits(stream)
        if values.max() < stream.cardinality:
            changed = replace(stream, values=values)
            return replace(sent, streams=(*sent.streams[:packet_number], changed, *sent.streams[packet_number + 1 :]))


def _bits(stream: CodeStream) -> int:
    return max(1, math.ceil(math.log2(stream.cardinality)))


def _decoded(codec: Any, sent: Codes, clip: Audio) -> Audio | None:
    """Decode, or return None if the decoder refuses."""
    try:
        return decode(codec, [sent], [clip])[0]
    except Exception:  # a decoder may refuse what its encoder did not make in any way; it is counted
        return None


def _middle(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
