"""The versions and the machine of a run, found without importing large packages."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = tuple(
    "codec-bench numpy scipy numba torch torchaudio transformers onnxruntime onnxruntime-gpu av soundfile soxr pesq "
    "pocketsphinx speechmos Resemblyzer whisper-normalizer ctranslate2 faster-whisper funasr s3prl pyworld OpenCC "
    "wetext zhconv".split()
)
ONNXRUNTIMES = ("onnxruntime", *(f"onnxruntime-{kind}" for kind in ("gpu", "directml", "openvino", "training")))
"""Packages that overwrite each other's module `onnxruntime`: only one may be installed."""


def package_version(name: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# A look-up takes half a millisecond. A missing package is not cached: it may be installed later.
_first_seen = cache(version)


def versions() -> dict[str, str]:
    """Versions of Python and of installed packages that may change numbers, cached."""
    versions_by_name = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            if seen := _first_seen(name):
                versions_by_name[name] = seen
    return versions_by_name


def machine() -> dict[str, str | int | float]:
    """The machine: system, processor, cores, memory in GiB, and GPUs."""
    facts: dict[str, str | int | float] = {"system": f"{platform.system()} {platform.machine()}", "cpu": _cpu_name()}
    facts["cores"] = cpu_count()
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory_gib"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    facts["gpu"] = _gpu_names() or "none"
    return facts


def cpu_count() -> int:
    """Number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_started_at() -> float:
    """When this process started, by `time.perf_counter`; now if unknown."""
    with suppress(OSError, ValueError, AttributeError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.perf_counter() - age_s
    return time.perf_counter()


def own_threads() -> int:
    """Number of threads for a library of this process.

    In a worker it is the worker's share of the cores (OMP_NUM_THREADS); elsewhere OMP_NUM_THREADS, or every core.
    """
    value = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(value)) if value.isdecimal() else cpu_count()


def free_memory_bytes() -> int | None:
    """Memory that this process may still use, by machine and container, or None."""
    free: list[int] = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # there is no limit, or it is not written as a number
        free.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(free, default=None)


def resident_bytes(pid: int) -> int:
    """Memory of a process; 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _cpu_name() -> str:
    """Return the processor's model name."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _gpu_names() -> str:
    """Return name, memory and driver of each GPU; empty without nvidia-smi."""
    try:
        out = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return "; ".join(line.strip() for line in out.stdout.splitlines() if line.strip())
