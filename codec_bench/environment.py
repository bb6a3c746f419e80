"""The versions and the machine that a run used, found without importing large packages."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "codec-bench", "numpy", "scipy", "numba", "torch", "torchaudio", "transformers", "onnxruntime", "onnxruntime-gpu", "av",
    "soundfile", "soxr", "pesq", "pocketsphinx", "speechmos", "Resemblyzer", "whisper-normalizer", "ctranslate2", "faster-whisper", "funasr", "s3prl", "pyworld", "OpenCC", "wetext", "zhconv",
)  # fmt: skip

ONNXRUNTIMES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-directml",
    "onnxruntime-openvino",
    "onnxruntime-training",
)
"""Packages that all install the module `onnxruntime` and overwrite each other's files: only one may be installed."""


def package_version(name: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# Each answer costs half a millisecond, since a package's whole description is parsed for it, and every run asks for two
# dozen. That a package is missing is not kept: it may be installed later.
_first_seen = cache(version)


def versions() -> dict[str, str]:
    """The versions of Python and of every installed package that may change numbers, as they were when first asked for."""
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
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_started_at() -> float:
    """When this process started, by `time.perf_counter`; now, where the system does not say it."""
    with suppress(OSError, ValueError, AttributeError):
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.perf_counter() - age_s
    return time.perf_counter()


def own_threads() -> int:
    """How many threads a library of this process may use.

    In a worker process of a run it is the worker's share of the cores, which the pool gives as OMP_NUM_THREADS.
    Elsewhere it is what OMP_NUM_THREADS says, or every core.
    """
    value = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(value)) if value.isdecimal() else cpu_count()


def free_memory_bytes() -> int | None:
    """How much memory this process may still take, by the machine and by its container; None if that is unknown."""
    free: list[int] = []
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # there is no limit, or it is not written as a number
        free.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(free, default=None)


def resident_bytes(pid: int) -> int:
    """How much memory a process holds; 0 if that is unknown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _gpu_names() -> str:
    try:
        out = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return "; ".join(line.strip() for line in out.stdout.splitlines() if line.strip())
