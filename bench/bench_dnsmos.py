"""Times the DNSMOS feature against the package speechmos, and checks that the four scores are the same.

    python bench/bench_dnsmos.py [--recordings DIR] [--seconds 10 60] [--threads all 1] [--repeats 5]

Two races: both free to use every core (speechmos as it ships), and both on one thread. Over clips of each length, cut
from the recordings one after the other, and over all recordings as they are. Without recordings: the embedded speech.

The floor is what the network's multiply-accumulates, after Winograd's transform, would take at the rate at which this
machine multiplies matrices that stay in its first cache.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
from common import append_rows, asked, clips, cores, race, worst

from codec_bench.features import dnsmos, load_feature

RATE = 16_000
SCORES = ("sig", "bak", "ovrl", "p808")
TOLERANCE = 1e-4
WINOGRAD = 64 / 324
# Multiply-accumulates: a frame of the part that windows share, and a window of the rest; as they are, or by Winograd.
FRAME_PLAIN = 161 * 2 * 320 + 161 * 9 * 128
FRAME_TILED = 161 * 9 * (128 * 64 + 64 * 64 + 64 * 32) + 80 * 9 * 32 * 32 / 2 + 40 * 9 * 32 * 32 / 4
WINDOW_PLAIN = 900 * 120 * 9 * 32
WINDOW_TILED = 9 * (112 * 20 * 32 * 64 + 450 * 60 * 32 * 32 + 2 * 225 * 30 * 32 * 32 + 112 * 15 * 32 * 64)


def speechmos(threads: int | None) -> Callable[[list[np.ndarray]], list[dict[str, float]]]:
    """The package, with onnxruntime's own choice of threads or with a number of them."""
    import onnxruntime
    from speechmos import dnsmos as package

    folder = Path(package.__file__).parent / "dnsmos_models"
    model = package.DNSMOS(folder / "sig_bak_ovr.onnx", folder / "model_v8.onnx")
    if threads is not None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        model.onnx_sess = onnxruntime.InferenceSession(folder / "sig_bak_ovr.onnx", options)
        model.p808_onnx_sess = onnxruntime.InferenceSession(folder / "model_v8.onnx", options)
    return lambda signals: [{k: float(v) for k, v in model(x, RATE, False).items()} for x in signals]


def ours(threads: int | None) -> Callable[[list[np.ndarray]], list[dict[str, float]]]:
    """The feature, with its own choice of threads or with a number of them; compiled and loaded."""
    before = os.environ.pop("OMP_NUM_THREADS", None)
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    feature = load_feature("dnsmos")
    feature.compute([np.zeros(RATE, np.float32)])
    os.environ.pop("OMP_NUM_THREADS", None)
    if before is not None:
        os.environ["OMP_NUM_THREADS"] = before
    return feature.compute


@numba.njit(nogil=True)
def _multiply(left, right, out, count):
    for _ in range(count):
        np.dot(left, right, out)


def products_per_second() -> float:
    """What one core multiplies and adds in a second, on matrices that stay in its first cache."""
    operands = [np.ones((64, 64), np.float32) for _ in range(3)]
    _multiply(*operands, 10)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        _multiply(*operands, 5_000)
        seconds.append(time.perf_counter() - start)
    return 5_000 * 64**3 / min(seconds)


def floor_s(signals: list[np.ndarray], threads: int) -> float:
    """Seconds that the products of clips take at least."""
    total = 0.0
    for signal in signals:
        starts = dnsmos.window_starts(dnsmos.repeat(signal).size)
        frames = sum(800 + 100 * count for _, count in dnsmos.runs(starts, len(starts)))
        total += frames * (FRAME_PLAIN + WINOGRAD * FRAME_TILED)
        total += len(starts) * (WINDOW_PLAIN + WINOGRAD * WINDOW_TILED)
    return total / (products_per_second() * threads)


def main() -> None:
    """Runs the bench and appends its rows."""
    options = asked(__doc__, recordings=None, seconds=(10.0, 60.0), threads=("all", "1"), repeats=5)
    _, recordings = clips(options.recordings)
    speech = np.concatenate([signal for signal in recordings if signal.size > RATE])
    cases = {f"{seconds:g} s": [np.resize(speech, round(seconds * RATE))] for seconds in options.seconds}
    cases[f"{len(recordings)} recordings"] = recordings
    rows = []
    for threads in options.threads:
        used = cores() if threads == "all" else 1
        theirs, mine = (make(None if threads == "all" else 1) for make in (speechmos, ours))
        for case, signals in cases.items():
            expected, found = theirs(signals), mine(signals)
            pairs = zip(expected, found, strict=True)
            apart = worst(((e[f"{n}_mos"], f[n]) for e, f in pairs for n in SCORES), TOLERANCE, case)
            calls = {"speechmos": partial(theirs, signals), "codec-bench": partial(mine, signals)}
            calls = {f"{name}, {threads} threads": call for name, call in calls.items()}
            said = {f"codec-bench, {threads} threads": f"max abs diff {apart:.1e}"}
            note = f"{sum(f['windows'] for f in found)} windows, {used} threads; floor {floor_s(signals, used):.3g} s"
            rows += race(case, calls, n=len(signals), repeats=options.repeats, warmup=0, note=note, agreement=said)
    append_rows("dnsmos", rows, ("codec-bench", "speechmos", "onnxruntime", "librosa", "numba", "numpy"))


if __name__ == "__main__":
    main()
