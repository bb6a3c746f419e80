"""Speed and memory of a codec, measured in a fresh process.

    load_s               seconds to load codec and libraries; depends on the file cache of the machine.
    real_time_factor     seconds of computing per second of audio, one clip at a time; median after a warm-up call.
    audio_hours_per_hour hours of audio through encoder and decoder in one hour, in batches of similar lengths.
    memory               largest resident size of the process, and of tensors on the GPU.
Timings compare only on one machine with one number of threads; both are recorded.
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from codec_bench.apps.profiling.settings import Settings
from codec_bench.codecs.adapt import decode, encode
from codec_bench.codecs.checks.material import Material

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """The peak memory of this process and its GPU tensors since creation."""

    def __init__(self, device: str) -> None:
        self._gpu = device if device.startswith("cuda") and "torch" in sys.modules else None
        self.since_start = True
        try:
            _CLEAR.write_text("5")  # forget the highest resident size so far
            self.since_start = False
        except OSError:
            pass  # then the peak is that since the start of the process
        if self._gpu:
            import torch

            torch.cuda.reset_peak_memory_stats(self._gpu)

    def result(self) -> dict[str, Any]:
        """Return peaks in bytes, and whether they cover the whole process."""
        out: dict[str, Any] = {"resident_bytes": _peak_resident(), "resident_since_start": self.since_start}
        if self._gpu:
            import torch

            out["gpu_bytes"] = int(torch.cuda.max_memory_allocated(self._gpu))
        return out


def _peak_resident() -> int:
    try:
        match = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        match = None
    if match:
        return int(match[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def threads() -> dict[str, Any]:
    """Return the threads of loaded libraries, and the cores of this process."""
    out: dict[str, Any] = {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    }
    if "torch" in sys.modules:
        import torch

        out["torch"] = torch.get_num_threads()
    if os.environ.get("OMP_NUM_THREADS"):
        out["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
    return out


def load(build: Callable[[], Any], device: str) -> tuple[Any, dict[str, Any]]:
    """Build a codec, and return it with the seconds and memory of loading."""
    memory = PeakMemory(device)
    start = perf_counter()
    codec = build()
    return codec, {"load_s": perf_counter() - start, "memory": memory.result()}


def single(codec: Any, material: Material, settings: Settings, device: str) -> dict[str, Any]:
    """Measure real-time factors of one clip at a time."""
    clip = material.exactly(settings.clip_s)
    decode(codec, encode(codec, [clip]), [clip])
    memory = PeakMemory(device)
    encode_s, decode_s = [], []
    for _ in range(max(1, settings.repeats)):
        start = perf_counter()
        codes = codec.encode([clip])
        middle = perf_counter()
        codec.decode(codes)
        encode_s.append(middle - start)
        decode_s.append(perf_counter() - middle)
    both = np.asarray(encode_s) + np.asarray(decode_s)
    return {
        "clip_s": clip.duration_s,
        "repeats": len(both),
        "encode_real_time_factor": float(np.median(encode_s)) / clip.duration_s,
        "decode_real_time_factor": float(np.median(decode_s)) / clip.duration_s,
        "real_time_factor": float(np.median(both)) / clip.duration_s,
        "fastest": float(both.min()) / clip.duration_s,
        "slowest": float(both.max()) / clip.duration_s,
        "memory": memory.result(),
    }


class BatchClock:
    """Sums the time and memory of batches of at most `batch_s` padded seconds."""

    def __init__(self, device: str, batch_s: float) -> None:
        self._device, self.batch_s = device, batch_s
        self._memory: PeakMemory | None = None
        self._peak: dict[str, Any] = {}
        self._encode_s = self._decode_s = self._audio_s = 0.0
        self._items = self._batches = 0

    def begin(self) -> None:
        """Start measuring the memory of a batch; `add` ends it."""
        self._memory = PeakMemory(self._device)

    def add(self, audio_s: float, items: int, encode_s: float, decode_s: float) -> None:
        """Count one batch."""
        self._audio_s += audio_s
        self._items += items
        self._batches += 1
        self._encode_s += encode_s
        self._decode_s += decode_s
        for key, value in (self._memory.result() if self._memory else {}).items():
            self._peak[key] = max(self._peak.get(key, 0), value)

    def result(self) -> dict[str, Any]:
        """Return hours of audio per hour, and the conditions."""
        wall_s = self._encode_s + self._decode_s
        per_hour = lambda seconds: self._audio_s / seconds if seconds > 0 else None  # noqa: E731
        return {
            "audio_hours_per_hour": per_hour(wall_s),
            "encode_hours_per_hour": per_hour(self._encode_s),
            "decode_hours_per_hour": per_hour(self._decode_s),
            "audio_s": self._audio_s,
            "items": self._items,
            "batches": self._batches,
            "batch_s": self.batch_s,
            "memory": self._peak,
        }
