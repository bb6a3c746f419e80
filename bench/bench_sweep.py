"""Eight operating points in one run against eight runs of one each, as whole processes over the same files.

The reference side (decoding, resampling, speaker embeddings, what is heard in the reference) is computed once in a sweep and eight
times apart. Each run apart holds the row that everybody needs beside a codec's, the unprocessed audio (`--alone` leaves it
out). No feature cache. The sweep runs between the fourth and the fifth of the runs apart, so that a drifting machine touches both
alike; CPU seconds stand beside the wall's, since other processes touch them less.

Floor: a run of the unprocessed row alone is all that a sweep can save, seven times. What is left when it is taken from the eight
runs are start and reference once and eight estimate sides. A sweep costs less than half only where an estimate side costs less
than three quarters of start and reference.

    python bench/bench_sweep.py [--data embedded] [--metrics ...] [--alone] [--repeats 1]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import append_rows, row, worst

CODECS = ("opus-6k", "opus-12k", "opus-24k", "mp3-16k", "mp3-32k", "aac-32k", "amr-nb-12k", "g722")
BASE = "unprocessed"
METRICS = "sim[ge2e],dwer[pocketsphinx],dnsmos,stoi,mel_distance"
PROGRAM = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]


def evaluate(codecs: list[str], data: str, metrics: str, out: Path) -> tuple[dict[str, object], np.ndarray]:
    """One run in a process of its own: its summary's systems, and its seconds `(wall, CPU)`."""
    command = ["eval", "--codec", ",".join(codecs), "--data", data, "--metrics", metrics, "--out", str(out)]
    start = np.array([time.perf_counter(), cpu_s()])
    done = subprocess.run(
        [*PROGRAM, *command, "--no-cache", "--save-audio", "none", "--device", "cpu"], capture_output=True
    )
    taken = np.array([time.perf_counter(), cpu_s()]) - start
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr.decode())
    return json.loads((out / "summary.json").read_text("utf-8"))["systems"], taken


def cpu_s() -> float:
    """CPU seconds of the processes that have ended, workers included."""
    now = os.times()
    return now.children_user + now.children_system


def measure(data: str, metrics: str, alone: bool) -> dict[str, np.ndarray]:
    """Seconds `(wall, CPU)` of the sweep, of the eight runs, and of what the sweep cannot go below."""
    base = [] if alone else [BASE]
    folder = Path(tempfile.mkdtemp())
    together, sweep = {}, np.zeros(2)
    apart, eight = {}, np.zeros(2)
    for number, name in enumerate(CODECS):
        if number == len(CODECS) // 2:
            together, sweep = evaluate([*base, *CODECS], data, metrics, folder / "sweep")
        systems, taken = evaluate([*base, name], data, metrics, folder / name)
        apart[name], eight = systems[name], eight + taken
    seconds = {"eight runs": eight, "one sweep": sweep}
    if not alone:
        _, saved = evaluate(base, data, metrics, folder / BASE)
        seconds["floor"] = eight - (len(CODECS) - 1) * saved
    for name in CODECS:
        compare(name, together[name]["metrics"], apart[name]["metrics"])
    shutil.rmtree(folder)
    return seconds


def compare(name: str, together: dict[str, dict[str, Any]], apart: dict[str, dict[str, Any]]) -> None:
    """Stops where a codec has other values in the sweep than in a run of its own."""
    missing = {metric for metric, entry in apart.items() if entry["value"] is None}
    if together.keys() != apart.keys() or missing != {m for m, entry in together.items() if entry["value"] is None}:
        raise SystemExit(
            f"{name}: values of {sorted(together)} in the sweep and of {sorted(apart)} apart, none of {missing}"
        )
    pairs = [(entry["value"], together[metric]["value"]) for metric, entry in apart.items() if metric not in missing]
    worst(pairs, 1e-6, f"{name}, the sweep", relative=1e-6)


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="embedded")
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--alone", action="store_true", help="runs apart without the unprocessed row")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    runs = [measure(options.data, options.metrics, options.alone) for _ in range(options.repeats)]
    case = f"8 codecs, {options.data}, {options.metrics}" + (", no unprocessed row" if options.alone else "")
    rows = []
    wall, cpu = ({name: np.array([run[name][k] for run in runs]) for name in runs[0]} for k in (0, 1))
    for name in wall:
        ratio, of_cpu = (float(np.median(s["eight runs"]) / np.median(s[name])) for s in (wall, cpu))
        note = f"{np.median(cpu[name]):.4g} s of CPU, {of_cpu:.3g}x; {1 / ratio:.3f} of the wall, {1 / of_cpu:.3f} of the CPU"
        agreement = "" if name == "floor" else "same values"
        rows.append(row(case, name, wall[name], n=len(CODECS), ratio=ratio, agreement=agreement, note=note))
        sys.stdout.write(f"{name:12s} {np.median(wall[name]):8.1f} s  {ratio:5.2f}x  {note}\n")
    append_rows("sweep", rows, ("codec-bench",))


if __name__ == "__main__":
    main()
