"""The level of a signal over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.features.base import Feature, Result, Unavailable, refuse_weights
from codec_bench.features.pitch import RATE_HZ, unusable

FRAME_SAMPLES, HOP_SAMPLES = 400, 160
FLOOR = 1e-10


class Level(Feature):
    """The level of a signal in dB of full scale, frame by frame, and its duration.

    The root mean square over 25 ms every 10 ms, each frame centred, with zeros beyond both ends; at least -200 dB. Not
    cached, because it is cheap.

    Result: `{"level_db": float32 (frames,), "hop_s": float, "duration_s": float}`.

    Reference implementation: `librosa.feature.rms` 0.11 with these frames, to 1e-5.

    Args:
        device: unused; it runs on the CPU. weights: must be None.

    Raises:
        UserError: weights were passed.
    """

    name = "level"
    protocol = "level/rms-25ms/10ms-16k"
    rate_hz = RATE_HZ
    where = "cpu"
    batch_s = 600.0
    cached = False

    def __init__(self, device: str = "cpu", weights: str | None = None) -> None:
        refuse_weights(self.name, weights)
        super().__init__(device, weights)

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Compute signals `(samples,)`, float32 at 16 kHz."""
        return [unusable(signal) or _levels(signal) for signal in signals]


def _levels(signal: np.ndarray) -> Result:
    """Compute the RMS level in dB of full scale of frames centred at each hop."""
    squares = np.pad(signal.astype(np.float64) ** 2, FRAME_SAMPLES // 2)
    # Sliding sums as differences of running sums; rounding leaves them at most 1e-12 below zero.
    running = np.concatenate([[0.0], np.cumsum(squares)])
    power = (running[FRAME_SAMPLES:] - running[:-FRAME_SAMPLES])[::HOP_SAMPLES] / FRAME_SAMPLES
    level = 20.0 * np.log10(np.maximum(np.sqrt(np.maximum(power, 0.0)), FLOOR))
    return {
        "level_db": level.astype(np.float32), "hop_s": HOP_SAMPLES / RATE_HZ, "duration_s": signal.size / RATE_HZ,
    }  # fmt: skip
