"""Kaldi's log filter bank at 16 kHz, as torchaudio: 25 ms every 10 ms.

Reference implementation: torchaudio 2.11 `compliance.kaldi.fbank`, in the order of its operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

RATE_HZ = 16_000
WINDOW, HOP, SPECTRUM = 400, 160, 512
LOWEST_HZ = 20.0
PREEMPHASIS = 0.97
POVEY_POWER = 0.85
Count = TypeVar("Count", int, "Tensor")
Shape = Literal["hamming", "povey"]


def num_frames(samples: Count) -> Count:
    """Return the frames of a signal of `samples`, a number or a tensor."""
    return (1 + (samples - WINDOW) // HOP) * (samples >= WINDOW)


def samples_of(frames: int) -> int:
    """Return the fewest samples with this many frames."""
    return WINDOW + (frames - 1) * HOP


def analysis_window(shape: Shape) -> Tensor:
    """Return a frame's window `(400,)`: Hamming, or Povey's (Hann to the 0.85)."""
    import torch

    if shape == "povey":
        return torch.hann_window(WINDOW, periodic=False).pow(POVEY_POWER)
    return torch.hamming_window(WINDOW, periodic=False, alpha=0.54, beta=0.46)


def mel_bands(count: int) -> Tensor:
    """Return Kaldi's triangular bands from 20 Hz to 8 kHz, float32 `(257, count)`."""
    import torch
    from torchaudio.compliance.kaldi import get_mel_banks

    bands, _ = get_mel_banks(count, SPECTRUM, float(RATE_HZ), LOWEST_HZ, 0.0, 100.0, -500.0, 1.0)
    return torch.nn.functional.pad(bands, (0, 1)).T.contiguous()


def filter_bank(frames: Tensor, window: Tensor, bands: Tensor) -> Tensor:
    """Compute Kaldi's log mel filter bank of frames, float32 `(..., count)`.

    Args:
        frames: float32 `(..., 400)`. window: `(400,)`. bands: `(257, count)`.
    """
    import torch

    frames = frames - frames.mean(dim=-1, keepdim=True)
    before = torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
    frames = (frames - PREEMPHASIS * before) * window
    power = torch.fft.rfft(frames, n=SPECTRUM).abs().pow(2.0)
    return (power @ bands).clamp(min=torch.finfo(torch.float32).eps).log()
