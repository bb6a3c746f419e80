"""What the engine itself costs: 1,000 and 10,000 short utterances, the time outside stages, and memory.

    python bench/bench_engine.py [--counts 1000 10000]

Every run is a process of its own. `outside` is the CPU time of the main process that is neither decoding nor resampling,
over all CPU time of the run. Peak memory is the sum over the main process and its workers of their peak private memory plus
the shared segments' peak, as seen by sampling.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import append_rows

CHILD = """
import json, math, sys, time
start = time.process_time()
from codec_bench import evaluate
run = evaluate(codec="g711-ulaw", data=sys.argv[1], metrics=sys.argv[2], out=sys.argv[3], cache=False, save_audio="none", page=False)
main_cpu_s = time.process_time() - start
scores = [score.value for score in run.scores()]
good = sum(value is not None and math.isfinite(value) for value in scores)
none = sum(value is None for value in scores)
json.dump({"timings": run.meta["timings"], "counts": run.counts(), "main_cpu_s": main_cpu_s, "good": good, "none": none, "scores": len(scores)}, sys.stdout)
"""
METRICS = "pesq_nb,stoi,estoi,si_sdr,mel_distance,bitrate"


def make(folder: Path, count: int) -> None:
    """Short utterances (0.5 to 1.5 s) cut from the embedded speech, as many as asked for."""
    import soundfile

    from codec_bench.data import open_source
    from codec_bench.types import Audio

    rng = np.random.default_rng(0)
    pool = [Audio.read(s.audio).samples[0] for s in open_source("embedded")]
    for k in range(count):
        x = pool[k % len(pool)]
        length = int(16000 * rng.uniform(0.5, 1.5))
        start = rng.integers(0, max(1, len(x) - length))
        soundfile.write(folder / f"{k:06d}.flac", x[start : start + length], 16000)


def tree(pid: int) -> list[int]:
    """A process and its children."""
    out = [pid]
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                out.append(int(entry.parent.name))
        except (OSError, ValueError):
            continue
    return out


def proportional_mib(pids: list[int]) -> float:
    """Memory of processes with shared pages counted once (PSS), in MiB."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total / 1024


def compare(result: dict[str, Any], count: int) -> None:
    """Stops where an item failed or is missing, a score is no number, or most scores have no value.

    Clips of half a second have no STOI and no ESTOI, and few have other scores without a value.
    """
    if result["counts"]["failed_items"] or result["counts"]["finished"] != count:
        raise SystemExit(f"{result['counts']} of {count} utterances")
    if result["good"] + result["none"] != result["scores"] or result["scores"] != count * len(METRICS.split(",")):
        raise SystemExit(
            f"{result['scores']} scores of {count} utterances: {result['good']} numbers, {result['none']} without a value"
        )
    if result["none"] > result["scores"] / 2:
        raise SystemExit(f"{result['none']} of {result['scores']} scores have no value")


def run(folder: Path, out: Path) -> dict[str, float]:
    """One evaluation as a process; returns its figures."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", CHILD, str(folder), METRICS, str(out)], stdout=subprocess.PIPE, text=True
    )
    peak = [0.0]

    def watch() -> None:
        while process.poll() is None:
            peak[0] = max(peak[0], proportional_mib(tree(process.pid)))
            time.sleep(0.25)

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    out_text, _ = process.communicate()
    thread.join()
    result = json.loads(out_text)
    timings = result["timings"]
    stages_cpu_s = sum(s["cpu_s"] for s in timings["stages"] if s["share"] is not None)
    outside_s = timings["main_cpu_s"]
    compare(result, len(list(folder.iterdir())))
    return {
        "wall_s": time.perf_counter() - start, "run_s": timings["wall_s"], "peak_mib": peak[0],
        "outside": outside_s / (timings["main_cpu_s"] + stages_cpu_s), "idle": 1 - timings["worker_use"],
        "items": result["counts"]["finished"], "main_ms": 1000 * outside_s / max(1, timings["items"]),
    }  # fmt: skip


def main() -> None:
    """Measures, prints, writes rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--counts", type=int, nargs="+", default=[1000, 10000])
    options = parser.parse_args()
    os.environ["CODEC_BENCH_CACHE"] = tempfile.mkdtemp()
    rows, first = [], None
    for count in options.counts:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "data"
            folder.mkdir()
            make(folder, count)
            got = run(folder, Path(temporary) / "run")
        first = first or got
        growth = got["peak_mib"] / first["peak_mib"] - 1
        sys.stdout.write(
            f"{count:6d} utterances: {got['run_s']:6.1f} s, outside decoding and stages {100 * got['outside']:.1f} % of CPU time "
            f"({got['main_ms']:.2f} ms an item), workers idle {100 * got['idle']:.1f} %, peak {got['peak_mib']:.0f} MiB ({100 * growth:+.1f} %)\n"
        )
        rows.append(
            {
                "case": f"{count} utterances",
                "variant": METRICS,
                "n": count,
                "unit": "s",
                "p50": f"{got['run_s']:.4g}",
                "agreement": "no item failed",
                "note": f"outside {100 * got['outside']:.2f} %; idle {100 * got['idle']:.2f} %; peak {got['peak_mib']:.0f} MiB; growth {100 * growth:.1f} %",
            }
        )
    path = append_rows("engine", rows, ("codec-bench", "numpy", "pesq"))
    sys.stdout.write(f"rows appended to {path}\n")


if __name__ == "__main__":
    main()
