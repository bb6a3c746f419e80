"""Eight operating points in one run against eight runs of one each, as whole processes over the same files.

The reference side (decoding, resampling, speaker embeddings, what is heard in the reference) is computed once in a
sweep and eight times apart. Each run apart holds the row that everybody needs beside a codec's, the unprocessed audio.
No feature cache. The sweep runs between the fourth and the fifth of the runs apart, so that a drifting machine touches
both alike; CPU seconds stand beside the wall's, since other processes touch them less.

Floor: a run of the unprocessed row alone is all that a sweep can save, seven times. What is left when it is taken from
the eight runs are start and reference once and eight estimate sides. A sweep costs less than half only where an
estimate side costs less than three quarters of start and reference.

    python bench/bench_sweep.py [--data embedded] [--metrics ...] [--repeats 1]
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import COMMAND, Cases, Options, bench, ranked, worst

CODECS = ("opus-6k", "opus-12k", "opus-24k", "mp3-16k", "mp3-32k", "aac-32k", "amr-nb-12k", "g722")
BASE = "unprocessed"
METRICS = "sim[ge2e],dwer[pocketsphinx],dnsmos,stoi,mel_distance"


def evaluate(codecs: list[str], data: str, metrics: str, out: Path) -> tuple[dict[str, object], np.ndarray]:
    """One run in a process of its own: its summary's systems, and its seconds `(wall, CPU)`."""
    command = ["eval", "--codec", ",".join(codecs), "--data", data, "--metrics", metrics, "--out", str(out)]
    start = np.array([time.perf_counter(), sum(os.times()[2:4])])  # of processes that have ended, workers included
    done = subprocess.run(
        [*COMMAND, *command, "--no-cache", "--save-audio", "none", "--device", "cpu"], capture_output=True
    )
    taken = np.array([time.perf_counter(), sum(os.times()[2:4])]) - start
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr.decode())
    return json.loads((out / "summary.json").read_text("utf-8"))["systems"], taken


def measure(data: str, metrics: str) -> dict[str, np.ndarray]:
    """Seconds `(wall, CPU)` of the eight runs, of the sweep, and of what the sweep cannot go below."""
    apart, eight = {}, np.zeros(2)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for number, name in enumerate(CODECS):
            if number == len(CODECS) // 2:
                together, sweep = evaluate([BASE, *CODECS], data, metrics, folder / "sweep")
            systems, taken = evaluate([BASE, name], data, metrics, folder / name)
            apart[name], eight = systems[name], eight + taken
        _, saved = evaluate([BASE], data, metrics, folder / BASE)
    for name in CODECS:
        compare(name, together[name]["metrics"], apart[name]["metrics"])
    return {"eight runs": eight, "one sweep": sweep, "floor": eight - (len(CODECS) - 1) * saved}


def compare(name: str, together: dict[str, dict[str, Any]], apart: dict[str, dict[str, Any]]) -> None:
    """Stops where a codec has other values in the sweep than in a run of its own."""
    missing = {metric for metric, entry in apart.items() if entry["value"] is None}
    if together.keys() != apart.keys() or missing != {m for m, entry in together.items() if entry["value"] is None}:
        raise SystemExit(
            f"{name}: values of {sorted(together)} in the sweep and of {sorted(apart)} apart, none of {missing}"
        )
    pairs = [(entry["value"], together[metric]["value"]) for metric, entry in apart.items() if metric not in missing]
    worst(pairs, 1e-6, f"{name}, the sweep", relative=1e-6)


@bench("codec-bench", data="embedded", metrics=METRICS, repeats=1)
def main(options: Options) -> Cases:
    """All runs, as often as asked."""
    runs = [measure(options.data, options.metrics) for _ in range(options.repeats)]
    wall, cpu = ({name: np.array([run[name][k] for run in runs]) for name in runs[0]} for k in (0, 1))
    note = "CPU: " + ", ".join(f"{name} {np.median(seconds):.4g} s" for name, seconds in cpu.items())
    case = f"8 codecs, {options.data}, {options.metrics}"
    yield ranked(case, wall, n=len(CODECS), note=note, agreement={"one sweep": "same values"})
