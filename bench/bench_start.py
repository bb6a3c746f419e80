"""CPU seconds of a command and its processes on short clips, against a plain loop, and seconds of the demo.

    python bench/bench_start.py [--repeats 3]

The demo runs with and without compiled kernels.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import COMMAND, RATE_HZ, Cases, Options, Rows, bench, figures, worst

PLAIN = """
import sys
import numpy, soundfile
from pathlib import Path
out = []
for path in sorted(Path(sys.argv[1], "reference").iterdir()):
    x, y = soundfile.read(path)[0], soundfile.read(Path(sys.argv[1], "estimate", path.name))[0]
    a = (y @ x) / (x @ x) * x
    out.append(10 * numpy.log10((a @ a) / ((y - a) @ (y - a))))
print(numpy.mean(out))
"""


def used(command: list[str], **variables: str) -> tuple[float, float, str]:
    """CPU and wall seconds of a command with its processes, and its output."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | variables
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, time.perf_counter() - start, done.stdout.decode()


def write_clips(folder: Path, count: int) -> None:
    """Pairs of a second: a tone with noise, and the same with more noise."""
    import soundfile

    rng, seconds = np.random.default_rng(0), np.arange(RATE_HZ) / RATE_HZ
    for kind in ("reference", "estimate"):
        (folder / kind).mkdir(parents=True)
    for k in range(count):
        clip = 0.1 * np.sin(2 * np.pi * (150 + k % 100) * seconds) + 0.01 * rng.standard_normal(RATE_HZ)
        soundfile.write(folder / "reference" / f"{k:05d}.wav", clip, RATE_HZ)
        soundfile.write(folder / "estimate" / f"{k:05d}.wav", clip + 0.01 * rng.standard_normal(RATE_HZ), RATE_HZ)


def score(folder: Path, count: int, repeats: int) -> Rows:
    """`score` with si_sdr, and the loop."""
    write_clips(folder, count)
    command = [*COMMAND, "score", "--generated", str(folder / "estimate"), "--data", str(folder / "reference")]
    command += ["--metrics", "si_sdr", "--no-cache", "--out"]
    times: dict[str, list[float]] = {"plain loop": [], "codec-bench": []}
    values: list[float] = []
    for k in range(repeats):
        cpu_s, _, printed = used([sys.executable, "-P", "-c", PLAIN, str(folder)], OPENBLAS_NUM_THREADS="1")
        times["plain loop"].append(cpu_s)
        times["codec-bench"].append(used([*command, str(folder / f"run{k}")], OPENBLAS_NUM_THREADS="1")[0])
        values += [float(printed), mean_of(folder / f"run{k}")]
    worst([(values[0], value) for value in values], 1e-3, "si_sdr of the loop and of codec-bench")
    about = {"case": f"si_sdr of {count} clips of 1 s", "n": count, "repeats": repeats}
    rows = (figures({"CPU s": float(np.median(cpu_s))}, variant=name, **about) for name, cpu_s in times.items())
    return [row for (row,) in rows]


def mean_of(run: Path) -> float:
    """The mean of a run's SI-SDR."""
    (system,) = json.loads((run / "summary.json").read_text())["systems"].values()
    return float(system["metrics"]["si_sdr"]["value"])


def demo(folder: Path) -> Rows:
    """The demo with empty caches, after `doctor --compile`, and how long that takes."""
    rows: Rows = []
    for case in ("empty caches", "doctor --compile", "kernels compiled"):
        words = ["doctor", "--compile"] if case == "doctor --compile" else ["demo", "--out", str(folder / case)]
        kernels = folder / ("kernels-empty" if case == "empty caches" else "kernels")
        variables = {"NUMBA_CACHE_DIR": str(kernels), "CODEC_BENCH_CACHE": str(folder / f"features {case}")}
        rows += figures({"s": used([*COMMAND, *words], **variables)[1]}, case="demo", variant=case, n=1)
    return rows


@bench("codec-bench", "numba", "numpy", repeats=3)
def main(options: Options) -> Cases:
    """Short clips, then the demo."""
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, 200, 1000):
            yield score(Path(folder) / str(count), count, options.repeats)
        yield demo(Path(folder))
