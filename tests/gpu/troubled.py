"""A codec that meets what can go wrong on a GPU: batches that do not fit into its memory, and a worker that is killed.

It rounds samples to 8 bits on its device, so its results are the same on all of them. With `trouble`, a batch of more
than a few padded seconds asks for more memory than there is, and one worker kills itself in the middle of a batch. Both
leave marks in a folder, so that it can be seen that they have happened.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from codec_bench.codecs.base import Codec, CodecInfo, check_input
from codec_bench.types import Audio, Codes, CodeStream

_RATE_HZ, _LEVELS = 16_000, 256
_FITS_S = 8.0


class Troubled(Codec):
    """The codec.

    Args:
        device: `cpu` or `cuda:N`. marks: the folder of the marks. trouble: whether anything goes wrong.
    """

    info = CodecInfo("troubled", (_RATE_HZ,), frame_rate_hz=float(_RATE_HZ), causal=True)
    batch_s = 60.0

    def __init__(self, device: str = "cpu", marks: str = "", trouble: bool = False) -> None:
        self._device, self._marks, self._trouble = device, Path(marks), trouble

    def encode(self, batch: Sequence[Audio]) -> list[Codes]:
        """Samples as whole numbers from 0 to 255."""
        for audio in batch:
            check_input(audio, self.info)
        longest = max(audio.num_samples for audio in batch)
        if self._trouble:
            self._meet(longest / _RATE_HZ * len(batch))
        outputs = []
        for audio in batch:
            stream = CodeStream(self._rounded(audio.samples), _LEVELS, float(_RATE_HZ))
            outputs.append(Codes((stream,), audio.num_samples, audio.sample_rate_hz))
        return outputs

    def decode(self, codes: Sequence[Codes]) -> list[Audio]:
        """Samples of the numbers."""
        return [
            Audio(item.streams[0].values.astype(np.float32) / (0.5 * (_LEVELS - 1)) - 1, item.sample_rate_hz)
            for item in codes
        ]

    def _rounded(self, samples: np.ndarray) -> np.ndarray:
        if self._device == "cpu":
            return np.rint((np.clip(samples, -1, 1) + 1) * (0.5 * (_LEVELS - 1))).astype(np.int64)
        import torch

        there = torch.from_numpy(samples).to(self._device)
        return ((there.clamp(-1, 1) + 1) * (0.5 * (_LEVELS - 1))).round().long().cpu().numpy()

    def _meet(self, padded_s: float) -> None:
        if padded_s > _FITS_S:
            self._mark("full")
            self._all_memory()
        if not list(self._marks.glob("killed-*")):
            self._mark("killed")
            os.kill(os.getpid(), signal.SIGKILL)

    def _all_memory(self) -> None:
        """Asks for more than there is: on a GPU the device refuses, on a CPU this does."""
        if self._device == "cpu":
            raise MemoryError("a batch that does not fit")
        import torch

        torch.empty(2 * torch.cuda.mem_get_info(self._device)[1], dtype=torch.uint8, device=self._device)

    def _mark(self, kind: str) -> None:
        number = len(list(self._marks.glob(f"{kind}-*")))
        (self._marks / f"{kind}-{number}").touch()
