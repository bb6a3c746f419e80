"""The two DNSMOS networks in torch, over many windows of many signals at once.

Windows a second apart share eight of nine seconds. So the P.835 network's four convolutions at full resolution, 97 % of
its work, run once over all runs of windows, joined along time. There a window's end rows have neighbours instead of
zeros; after four 3x3 convolutions this reaches four rows, which are computed again from the window's first and last
eight rows. The rest, and the P.808 network with its decibels relative to each window's maximum, run window by window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from torch.nn import functional

from codec_bench.kernels.dnsmos.ref import (
    FLOOR,
    FRAME_SAMPLES,
    FRAMES,
    HOP_SAMPLES,
    LN_10,
    MEL_FLOOR,
    MEL_SAMPLES,
    MIDDLE_DB,
    P808_MAXIMA,
    P835_MAXIMA,
    RANGE_DB,
    WINDOW_SAMPLES,
    DnsmosWeights,
    mel_filters,
)
from codec_bench.networks.batch_shapes import rows_of, rung_steps
from codec_bench.networks.precision import computing
from codec_bench.networks.transfer import fetched, place_signals, sent, uploaded

RATE_HZ = 16_000
HOP_FRAMES = RATE_HZ // HOP_SAMPLES
SHARED = P835_MAXIMA[0]
"""Convolutions before the first maxima, and so the rows to compute again at a window's ends."""
_FRAMES_AT_ONCE = {"cuda": 16_384, "cpu": 2_400}
"""Frames of the joined picture per pass. Each takes 124 kB at full resolution: 2 GB and 300 MB in all."""
_WINDOWS_AT_ONCE = {"cuda": 32, "cpu": 2}
"""Windows per pass from the first maxima on, and in the P.808 network. Each takes 40 MB."""

Run = tuple[np.ndarray, int]
"""Samples `(samples,)` of consecutive windows, a second apart, and their number."""


@dataclass(frozen=True, slots=True, eq=False)
class SentRuns:
    """Runs of one pass, on the device.

    Args:
        samples: of all runs, joined, `(samples,)`. starts: int64, the frame at which each window starts.
        counts: the windows of each run.
    """

    samples: torch.Tensor
    starts: torch.Tensor
    counts: list[int]


class Networks:
    """Both networks on one device in float32 (TensorFloat-32 errs by 1e-4).

    Args:
        reflect: whether the P.808 network's mel levels continue a window by its mirror image instead of zeros.

    Attributes:
        longest_run: the highest number of windows in a run, which bounds the memory.
    """

    def __init__(self, p835: DnsmosWeights, p808: DnsmosWeights, device: str, reflect: bool = False) -> None:
        self._device, self._reflect = device, reflect
        kind = device.split(":")[0]
        self._frames, self._windows = _FRAMES_AT_ONCE[kind], _WINDOWS_AT_ONCE[kind]
        self.longest_run = (self._frames - FRAMES) // HOP_FRAMES + 1
        assert p835.front is not None, "the P.835 network has a front end"
        self._front = self._put(np.concatenate(p835.front).T)
        self._p835, self._p808 = ([tuple(map(self._put, layer)) for layer in w.convolutions] for w in (p835, p808))
        self._dense835, self._dense808 = ([tuple(map(self._put, layer)) for layer in w.dense] for w in (p835, p808))
        n = np.arange(MEL_SAMPLES)
        phase = 2.0 * np.pi / MEL_SAMPLES * (n[:, None] * np.arange(MEL_SAMPLES // 2 + 1) % MEL_SAMPLES)
        window = (0.5 - 0.5 * np.cos(2.0 * np.pi * n / MEL_SAMPLES))[:, None]
        self._transform = self._put(np.concatenate([window * np.cos(phase), window * np.sin(phase)], axis=1))
        self._mel = self._put(mel_filters().T)

    def _put(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.array(values, np.float32, order="C")).to(self._device)

    def sent(self, runs: Sequence[Run]) -> list[SentRuns]:
        """Upload runs of windows, grouped into passes of the networks.

        Args:
            runs: each a signal and the number of its consecutive windows.
        """
        parts = self._parts(runs)
        ends = [0, *accumulate(len(signal) for signal, _ in runs)]
        samples = uploaded(place_signals([signal for signal, _ in runs], ends, ends[-1], self._device), self._device)
        split = samples.split([sum(len(signal) for signal, _ in batch) for batch in parts])
        starts = sent([_window_starts(batch) for batch in parts], self._device)
        return [
            SentRuns(batch_samples, batch_starts, [count for _, count in batch])
            for batch, batch_samples, batch_starts in zip(parts, split, starts, strict=True)
        ]

    def score(self, parts: Sequence[SentRuns]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Run both networks on uploaded runs of windows.

        Returns:
            For each run the raw outputs of P.835, `(windows, 3)`, and of P.808, `(windows,)`.
        """
        with computing(self._device, "float32"):
            outputs = fetched([self._passed(batch) for batch in parts])
        results: list[tuple[np.ndarray, np.ndarray]] = []
        for batch, scores in zip(parts, outputs, strict=True):
            ends = np.cumsum(batch.counts)[:-1]
            results += zip(np.split(scores[:, :3], ends), np.split(scores[:, 3], ends), strict=True)
        return results

    def _passed(self, batch: SentRuns) -> torch.Tensor:
        if self._device == "cpu":
            return self._score(batch.samples, batch.starts)
        return self._score(*self._padded(batch.samples, batch.starts))[: len(batch.starts)]

    @staticmethod
    def _padded(samples: torch.Tensor, starts: torch.Tensor) -> list[torch.Tensor]:
        """Pad a pass to one of a few sizes, so that few shapes occur.

        Zeros follow the samples, and the last window is repeated.
        """
        steps, more = rung_steps(len(samples), RATE_HZ), rows_of(len(starts), per_doubling=4) - len(starts)
        padded = functional.pad(samples, (0, steps - len(samples)))
        return [padded, torch.cat([starts, starts[-1:].expand(more)])]

    def _parts(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Group runs, in order, into passes that hold as many frames as fit."""
        parts: list[list[Run]] = []
        room = 0
        for run in runs:
            frames = len(run[0]) // HOP_SAMPLES
            if not parts or frames > room:
                parts.append([])
                room = self._frames
            parts[-1].append(run)
            room -= frames
        return parts

    def _score(self, samples: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """Compute raw outputs of P.835 and, in the last column, of P.808: `(windows, 4)`.

        Args:
            samples: all joined runs, `(samples,)`. starts: int64, the frame at which each window starts.
        """
        return torch.cat([self._score_p835(samples, starts), self._score_p808(samples, starts)], dim=1)

    def _score_p835(self, samples: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """Run the P.835 network on windows: raw outputs `(windows, 3)`.

        The first layers run once over the joined samples; only the edges of windows are computed again.

        Args:
            samples: of all runs, joined.
            starts: the frame at which each window starts.
        """
        # A frame of two runs, or with a neighbour of another run, belongs to no window.
        picture = self._log_power(samples)
        long = self._convolve(picture[None, None], 0, SHARED)[0]
        channel = torch.arange(long.shape[0], device=long.device)[None, :, None]
        within = torch.arange(FRAMES, device=starts.device)
        ends = 2 * SHARED
        features = []
        for some in starts.split(self._windows):
            frames = some[:, None] + within
            x = long[channel, frames[:, None]]
            heads, tails = picture[frames[:, :ends]][:, None], picture[frames[:, -ends:]][:, None]
            x[:, :, :SHARED] = self._convolve(heads, 0, SHARED)[:, :, :SHARED]
            x[:, :, -SHARED:] = self._convolve(tails, 0, SHARED)[:, :, -SHARED:]
            x = self._convolve(functional.max_pool2d(x, 2), SHARED, len(self._p835))
            features.append(x.amax((2, 3)))
        return _dense(torch.cat(features), self._dense835)

    def _log_power(self, samples: torch.Tensor) -> torch.Tensor:
        """Compute the log power `(frames, 161)` of samples."""
        bins = self._front.shape[1] // 2
        spectrum = samples.unfold(0, FRAME_SAMPLES, HOP_SAMPLES) @ self._front
        power = spectrum[:, :bins] ** 2 + spectrum[:, bins:] ** 2
        return power.clamp_min(FLOOR).log() / float(LN_10)

    def _convolve(self, x: torch.Tensor, first: int, stop: int) -> torch.Tensor:
        """Run layers `first` to `stop - 1` of P.835, with the maxima from `SHARED` on."""
        for number in range(first, stop):
            weights, bias = self._p835[number]
            x = functional.conv2d(x, weights, bias, padding=1).relu_()
            if number >= SHARED and number + 1 in P835_MAXIMA:
                x = functional.max_pool2d(x, 2)
        return x

    def _score_p808(self, samples: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
        """Run the P.808 network on the mel levels of windows; arguments as `_score_p835`."""
        windows = samples.unfold(0, WINDOW_SAMPLES, HOP_SAMPLES)[starts]
        features = []
        for some in windows.split(self._windows):
            x = self._mel_levels(some[:, :-HOP_SAMPLES])[:, None]
            for number, (weights, bias) in enumerate(self._p808, start=1):
                x = functional.conv2d(x, weights, bias, padding=1).relu_()
                x = functional.max_pool2d(x, 2) if number in P808_MAXIMA else x
            features.append(x.amax((2, 3)))
        return _dense(torch.cat(features), self._dense808)

    def _mel_levels(self, windows: torch.Tensor) -> torch.Tensor:
        """Compute mel levels `(windows, 900, 120)` relative to the loudest of each window."""
        half = MEL_SAMPLES // 2
        padded = functional.pad(windows[:, None], (half, half), mode="reflect" if self._reflect else "constant")[:, 0]
        spectrum = padded.unfold(1, MEL_SAMPLES, HOP_SAMPLES) @ self._transform
        power = spectrum[..., : half + 1] ** 2 + spectrum[..., half + 1 :] ** 2
        levels = 10.0 * (power @ self._mel).clamp_min(MEL_FLOOR).log10()
        levels -= levels.amax((1, 2), keepdim=True)
        return (levels.clamp_min(-RANGE_DB) + MIDDLE_DB) / MIDDLE_DB


def _window_starts(runs: Sequence[Run]) -> np.ndarray:
    """Return the frame, int64, at which each window of concatenated runs starts.

    Args:
        runs: each a signal and the number of its consecutive windows.
    """
    first, starts = 0, []
    for signal, count in runs:
        starts.append(first + HOP_FRAMES * np.arange(count))
        first += len(signal) // HOP_SAMPLES
    return np.concatenate(starts).astype(np.int64)


def _dense(x: torch.Tensor, layers: list[tuple[torch.Tensor, ...]]) -> torch.Tensor:
    for number, (weights, bias) in enumerate(layers):
        x = torch.addmm(bias, x, weights)
        x = x.relu_() if number < len(layers) - 1 else x
    return x
