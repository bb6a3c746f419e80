"""Whisper's input: log-mel spectrograms of many signals at once, on the device.

Signals are mono float32 `(samples,)` at 16 kHz. A frame is 25 ms every 10 ms, the first centred on the first sample.
The signals of a batch are placed one after the other, so none is padded to the length of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
import torch

from codec_bench.kernels.spectrum.ref import mel_filters
from codec_bench.networks.batch_shapes import rung_steps
from codec_bench.networks.transfer import place_signals, sent, uploaded

RATE_HZ = 16_000
WINDOW, HOP = 400, 160
FLOOR = 1e-10
DYNAMIC_RANGE = 8.0  # in powers of ten, which is 80 dB
FRAMES_AT_ONCE = {"cpu": 2_048, "cuda": 65_536}
"""Frames per spectral pass: few enough for the CPU's cache, 0.6 GB on a GPU."""


def log_mels(signals: Sequence[np.ndarray], n_mels: int, device: str = "cpu") -> list[torch.Tensor]:
    """Compute Whisper's log-mel spectrograms.

    Power spectra with a periodic Hann window, Slaney's mel bands up to 8 kHz, the decimal logarithm. Values more than 8
    below the maximum of the whole signal are raised to that level, and `(x + 4) / 4` is the result. The signal is
    mirrored at its beginning and followed by zeros. Because of the maximum, pass a long recording as a whole.

    Reference implementation: faster-whisper 1.2.1 `FeatureExtractor`, to 1e-6.

    Args:
        signals: float32 `(samples,)` each, one sample at least.
        n_mels: 80 bands, or 128 for large-v3 and models derived from it.

    Returns:
        float32 `(samples // 160 + 1, n_mels)` each, views of one tensor on the device. Half of the last frame lies
        beyond the signal, so Whisper reads all but this one.
    """
    return log_mels_of(laid_out(signals, device), n_mels)


@dataclass(frozen=True, slots=True, eq=False)
class LaidOut:
    """Joined signals on a device, the input of `log_mels_of`.

    Args:
        samples: float32; each signal has its mirrored beginning before it and zeros behind it. Padded on a GPU.
        starts: the frames at which the signals begin. counts: the frames of each.
    """

    samples: torch.Tensor
    starts: list[int]
    counts: list[int]


def laid_out(signals: Sequence[np.ndarray], device: str = "cpu") -> LaidOut:
    """Join signals, float32 `(samples,)`, on a device as input of `log_mels_of`."""
    counts = [signal.size // HOP + 1 for signal in signals]
    # A signal's last frame ends 400 samples after its start. Frames with samples of two signals are dropped.
    starts = [0, *accumulate(count + WINDOW // HOP for count in counts)]
    frames = starts[-1] if device == "cpu" else rung_steps(starts[-1], RATE_HZ / HOP)
    half = WINDOW // 2
    samples = place_signals(signals, [start * HOP + half for start in starts], frames * HOP + WINDOW, device)
    for start in starts[:-1]:
        around = samples[start * HOP : start * HOP + WINDOW + 1]
        around[:half] = around[half + 1 :].flip(0)
    return LaidOut(uploaded(samples, device), starts, counts)


def log_mels_of(laid: LaidOut, n_mels: int) -> list[torch.Tensor]:
    """Compute the signals' Whisper spectrograms `(frames, n_mels)`, as `log_mels`."""
    if not laid.counts:
        return []
    device = laid.samples.device
    frames = laid.samples.unfold(0, WINDOW, HOP)[:-1]
    window, bands = _analysis_on(device, n_mels)
    logs = torch.empty((frames.shape[0], n_mels), dtype=torch.float32, device=device)
    at_once = FRAMES_AT_ONCE[device.type]
    for first in range(0, frames.shape[0], at_once):
        # In float64: rounding in float32 would disturb bands 60 dB below the strongest band of their frame.
        spectra = torch.fft.rfft((frames[first : first + at_once] * window).double())
        power = (spectra.real.square() + spectra.imag.square()).float()
        torch.matmul(power, bands, out=logs[first : first + at_once])
    logs.clamp_(min=FLOOR).log10_()
    mels = [logs[start : start + count] for start, count in zip(laid.starts, laid.counts)]
    for mel in mels:
        torch.maximum(mel, mel.max() - DYNAMIC_RANGE, out=mel)
    logs.add_(4.0).div_(4.0)
    return mels


@cache
def _analysis_on(device: torch.device, n_mels: int) -> tuple[torch.Tensor, ...]:
    """`analysis` on a device, uploaded once."""
    return tuple(sent(analysis(n_mels), device))


@cache
def analysis(n_mels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Whisper's window (periodic Hann, `(400,)`) and mel bands `(201, n_mels)`."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    bands = mel_filters(RATE_HZ, WINDOW, n_mels)
    return window.astype(np.float32), np.ascontiguousarray(bands, np.float32)
