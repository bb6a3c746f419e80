"""What every bench shares: timing two things side by side, and a CSV row with the machine, versions and commit."""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

FIELDS = (
    "bench", "case", "variant", "n", "unit", "p20", "p50", "p80", "ratio_to_baseline", "agreement", "note",
    "machine", "cores", "gpu", "python", "versions", "commit",
)  # fmt: skip
DATA = Path(__file__).resolve().parent / "data"


def interleaved(
    variants: dict[str, Callable[[], object]],
    repeats: int = 5,
    warmup: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, np.ndarray]:
    """Times each callable `repeats` times in turn (A B A B ...), so that a drifting machine touches all alike.

    `clock` is the time that passes, or `time.process_time` for the time that the process computes.

    Returns:
        Seconds per run, `(repeats,)`, by name.
    """
    for _ in range(warmup):
        for call in variants.values():
            call()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats):
        for name, call in variants.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return {name: np.asarray(values) for name, values in seconds.items()}


def machine() -> dict[str, str]:
    """The machine, its cores and GPU, the Python version and the commit."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    gpu = ""
    try:
        gpu = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        gpu = "none"
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent
    ).stdout.strip()
    return {
        "machine": model, "cores": str(len(os.sched_getaffinity(0))), "gpu": gpu,
        "python": platform.python_version(), "commit": commit or "uncommitted",
    }  # fmt: skip


def append_rows(stem: str, rows: list[dict[str, object]], packages: tuple[str, ...] = ()) -> Path:
    """Appends rows to data/<stem>.csv, filling in the machine, the versions of `packages` and the commit."""
    versions = []
    for name in packages:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} missing")
    shared = {**machine(), "versions": "; ".join(versions), "bench": stem}
    path = DATA / f"{stem}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for row in rows:
            writer.writerow({key: {**shared, **row}.get(key, "") for key in FIELDS})
    return path


def row(
    case: str,
    variant: str,
    seconds: np.ndarray,
    *,
    n: int,
    ratio: float | None = None,
    agreement: str = "",
    note: str = "",
) -> dict[str, object]:
    """One CSV row of a timing in seconds."""
    p20, p50, p80 = np.percentile(seconds, [20, 50, 80])
    return {
        "case": case, "variant": variant, "n": n, "unit": "s", "p20": f"{p20:.5g}", "p50": f"{p50:.5g}", "p80": f"{p80:.5g}",
        "ratio_to_baseline": "" if ratio is None else f"{ratio:.3g}", "agreement": agreement, "note": note,
    }  # fmt: skip


def clips(recordings: str | None, count: int | None = None) -> tuple[str, list[np.ndarray]]:
    """The name of the material, and its clips at 16 kHz: of a folder with a manifest.jsonl, or the embedded speech.

    Args:
        count: how many clips at the most, evenly chosen; None for all.
    """
    from codec_bench.audio.resample import prepare
    from codec_bench.data import open_source
    from codec_bench.types import Audio

    if recordings:
        lines = (Path(recordings) / "manifest.jsonl").read_text("utf-8").splitlines()
        paths, name = [Path(recordings) / json.loads(line)["audio"] for line in lines], "real recordings"
    else:
        paths, name = [sample.audio for sample in open_source("embedded")], "embedded speech"
    step = 1 if count is None else max(1, len(paths) // count)
    return name, [prepare(Audio.read(path), 16_000) for path in paths[::step][:count]]


def product_rate(device: torch.device) -> float:
    """Floating-point operations a second of a float32 matrix product on this device."""
    import torch

    side = 8192 if device.type == "cuda" else 1024
    a = torch.randn(side, side, device=device)
    return 2 * side**3 / interleaved({"product": waited(lambda: a @ a, device)}, warmup=2)["product"].min()


def waited(call: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """The call, and on a GPU the wait for its end."""
    import torch

    if device.type != "cuda":
        return call

    def both() -> object:
        result = call()
        torch.cuda.synchronize(device)
        return result

    return both


def parsed(parser: argparse.ArgumentParser, *, repeats: int, threads: int, device: str = "cpu") -> argparse.Namespace:
    """Adds the options that benches of networks share, with these defaults; reads all; and sets torch's threads."""
    import torch

    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--device", default=device)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    return options
