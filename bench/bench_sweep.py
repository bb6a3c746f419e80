"""Eight operating points in one run against eight runs of one each, as whole processes over the same files.

The reference side (decoding, resampling, speaker embeddings, what is heard in the reference) is computed once in a sweep and eight
times apart. Each run apart holds the row that everybody needs beside a codec's, the unprocessed audio (`--alone` leaves it
out). No feature cache, no page. Floor: the reference side once and eight estimate sides, by the busy time of the workers.

    python bench/bench_sweep.py [--data embedded] [--metrics ...] [--alone] [--repeats 1]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import append_rows, row

CODECS = ("opus-6k", "opus-12k", "opus-24k", "mp3-16k", "mp3-32k", "aac-32k", "amr-nb-12k", "g722")
METRICS = "sim[ge2e],dwer[pocketsphinx],dnsmos,stoi,mel_distance"
PROGRAM = [sys.executable, "-P", "-c", "from codec_bench.cli import main; main()"]


def evaluate(codecs: list[str], data: str, metrics: str, out: Path) -> dict[str, object]:
    """One run in a process of its own; returns its summary's systems."""
    command = ["eval", "--codec", ",".join(codecs), "--data", data, "--metrics", metrics, "--out", str(out)]
    done = subprocess.run(
        [*PROGRAM, *command, "--no-cache", "--save-audio", "none", "--device", "cpu"], capture_output=True
    )
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr.decode())
    return json.loads((out / "summary.json").read_text("utf-8"))["systems"]


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="embedded")
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--alone", action="store_true", help="runs apart without the unprocessed row")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    base = [] if options.alone else ["unprocessed"]
    seconds: dict[str, list[float]] = {"eight runs": [], "one sweep": []}
    for _ in range(options.repeats):
        folder = Path(tempfile.mkdtemp())
        start = time.perf_counter()
        together = evaluate([*base, *CODECS], options.data, options.metrics, folder / "sweep")
        seconds["one sweep"].append(time.perf_counter() - start)
        start = time.perf_counter()
        apart = {name: evaluate([*base, name], options.data, options.metrics, folder / name)[name] for name in CODECS}
        seconds["eight runs"].append(time.perf_counter() - start)
        for name in CODECS:
            for metric, entry in together[name]["metrics"].items():
                other = apart[name]["metrics"][metric]["value"]
                if entry["value"] is not None and abs(entry["value"] - other) > 1e-6 * max(1.0, abs(other)):
                    raise SystemExit(f"{name}, {metric}: {entry['value']} in the sweep, {other} apart")
        shutil.rmtree(folder)
    case = f"8 codecs, {options.data}, {options.metrics}" + (", no unprocessed row" if options.alone else "")
    best = {name: min(values) for name, values in seconds.items()}
    rows = [
        row(
            case,
            name,
            np.array(seconds[name]),
            n=len(CODECS),
            ratio=best["eight runs"] / best[name],
            agreement="same values",
        )
        for name in seconds
    ]
    for name, value in best.items():
        sys.stdout.write(f"{name:12s} {value:8.1f} s  {best['eight runs'] / value:5.2f}x\n")
    append_rows("sweep", rows, ("codec-bench",))


if __name__ == "__main__":
    main()
