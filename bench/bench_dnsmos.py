"""Times the DNSMOS feature against the package speechmos, and checks that the four scores are the same.

    python bench/bench_dnsmos.py [--recordings DIR] [--seconds 10 15 30 60] [--repeats 5]

Two races: both free to use every core (speechmos as it ships), and both on one thread. Over clips of each length, cut
from the recordings one after the other, and over all recordings as they are. Without recordings: the embedded speech.
A third race sets the ways of computing the feature side by side (`@numba`, `@torch`, `@onnxruntime`), over all recordings
as one batch, torch on the GPU where there is one (four clips where there is none); `--only-ways` runs it alone.

The floor is what the same multiply-accumulates would take at the rate at which this machine multiplies matrices that
stay in its first cache: those of the network over every window (`direct`), over the shared picture (`shared`), and after
Winograd's transform (`floor`), which leaves 64 of 324.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
from common import append_rows, interleaved, row, worst

from codec_bench.audio.resample import prepare
from codec_bench.features import dnsmos, load_feature
from codec_bench.kernels.dnsmos import winograd
from codec_bench.types import Audio

RATE = 16_000
SCORES = ("sig", "bak", "ovrl", "p808")
TOLERANCE = 1e-4
WINOGRAD = 64 / 324
# Multiply-accumulates: a frame of the part that windows share, and a window of the rest; as they are, or by Winograd.
FRAME_PLAIN = 161 * 2 * 320 + 161 * 9 * 128
FRAME_TILED = 161 * 9 * (128 * 64 + 64 * 64 + 64 * 32) + 80 * 9 * 32 * 32 / 2 + 40 * 9 * 32 * 32 / 4
WINDOW_PLAIN = 900 * 120 * 9 * 32
WINDOW_TILED = 9 * (112 * 20 * 32 * 64 + 450 * 60 * 32 * 32 + 2 * 225 * 30 * 32 * 32 + 112 * 15 * 32 * 64)


def signals(folder: str | None) -> dict[str, np.ndarray]:
    """Mono signals at 16 kHz by name."""
    if folder is None:
        from codec_bench.data import open_source

        return {sample.id: prepare(Audio.read(sample.audio), RATE) for sample in open_source("embedded")}
    rows = [json.loads(line) for line in (Path(folder) / "manifest.jsonl").read_text("utf-8").splitlines()]
    return {r["id"]: prepare(Audio.read(Path(folder) / r["audio"]), RATE) for r in rows}


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
    return lambda clips: [{k: float(v) for k, v in model(clip, RATE, False).items()} for clip in clips]


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
        winograd.product(left.ctypes.data, 256, right.ctypes.data, out.ctypes.data, 12, 64, 64)


def products_per_second() -> float:
    """What one core multiplies and adds in a second, on matrices that stay in its first cache."""
    operands = [np.ones((64, 64), np.float32) for _ in range(3)]
    _multiply(*operands, 10)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        _multiply(*operands, 5_000)
        seconds.append(time.perf_counter() - start)
    return 5_000 * 12 * 64 * 64 / min(seconds)


def products(clips: list[np.ndarray]) -> tuple[float, float, float]:
    """Multiply-accumulates of clips: over every window, over what windows share, and the latter by Winograd."""
    direct = shared = tiled = 0.0
    for clip in clips:
        starts = dnsmos.window_starts(dnsmos.repeat(clip).size)
        frames = sum(800 + 100 * count for _, count in dnsmos.runs(starts, len(starts)))
        window = WINDOW_PLAIN + WINDOW_TILED
        direct += len(starts) * (900 * (FRAME_PLAIN + FRAME_TILED) + window)
        shared += frames * (FRAME_PLAIN + FRAME_TILED) + len(starts) * window
        tiled += frames * (FRAME_PLAIN + WINOGRAD * FRAME_TILED) + len(starts) * (
            WINDOW_PLAIN + WINOGRAD * WINDOW_TILED
        )
    return direct, shared, tiled


def ways(clips: list[np.ndarray]) -> list[dict[str, object]]:
    """Rows of the ways of computing, over one batch: the kernels and ONNX Runtime on the CPU, torch on the GPU.

    Without a GPU the batch is its first four clips: torch on a CPU is no way that anybody should choose.
    """
    import torch

    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    clips = clips if device != "cpu" else clips[:4]
    made = {way: load_feature(f"dnsmos@{way}") for way in ("onnxruntime", "numba")}
    made["torch"] = load_feature("dnsmos@torch", device=device)
    results = {way: feature.compute(clips) for way, feature in made.items()}
    windows = sum(result["windows"] for result in results["numba"])
    _, shared, _ = products(clips)
    floor = shared / _matrix_products_per_second(device)
    seconds = interleaved({way: partial(f.compute, clips) for way, f in made.items()}, repeats=3, warmup=0)
    rows = []
    for way, times in seconds.items():
        pairs = zip(results["onnxruntime"], results[way], strict=True)
        apart = worst(((e[n], f[n]) for e, f in pairs for n in SCORES), TOLERANCE, f"@{way} beside onnxruntime")
        place = device if way == "torch" else "cpu"
        note = f"{windows} windows in one batch, on {place}"
        note += f"; {shared / 1e9:.1f} G products: at least {floor:.3g} s" if way == "torch" else ""
        ratio = float(np.median(seconds["onnxruntime"]) / np.median(times))
        rows.append(row("ways", f"@{way} on {place}", times, n=len(clips), ratio=ratio,
                        agreement=f"max abs diff {apart:.1e}", note=note))  # fmt: skip
        sys.stdout.write(
            f"{'@' + way:>13} on {place}: {np.median(times):.3f} s, {apart:.1e} from onnxruntime; {note}\n"
        )
    if device == "cpu":
        sys.stdout.write("@torch on a GPU: not measured\n")
        rows.append({"case": "ways", "variant": "@torch on cuda:0", "n": len(clips), "note": "not measured: no GPU"})
    return rows


def _matrix_products_per_second(device: str) -> float:
    """What torch multiplies and adds in a second, in float32, on large matrices."""
    import torch

    from codec_bench.networks.precision import computing

    size = 8192 if device != "cpu" else 1024
    left = torch.ones(size, size, device=device)
    seconds = []
    with computing(device, "float32"):
        for _ in range(5):
            start = time.perf_counter()
            float((left @ left)[0, 0])  # reading a number waits for the device
            seconds.append(time.perf_counter() - start)
    return size**3 / min(seconds)


def main() -> None:
    """Runs the bench and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", default=os.environ.get("CODEC_BENCH_TEST_RECORDINGS"), metavar="DIR")
    parser.add_argument("--seconds", type=float, nargs="*", default=[10, 11, 15, 20, 30, 60])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", nargs="+", default=["all", "1"], choices=["all", "1"])
    parser.add_argument("--no-recordings", action="store_true", help="only the clips of given lengths")
    parser.add_argument("--only-ways", action="store_true", help="only the ways of computing, side by side")
    options = parser.parse_args()
    recordings = signals(options.recordings)
    packages = ("codec-bench", "speechmos", "onnxruntime", "librosa", "numba", "numpy", "torch")
    rows = ways(list(recordings.values()))
    if options.only_ways:
        sys.stdout.write(f"rows in {os.path.relpath(append_rows('dnsmos', rows, packages))}\n")
        return
    speech = np.concatenate([x for x in recordings.values() if x.size > RATE])
    cases = {f"{seconds:g} s": [np.resize(speech, round(seconds * RATE))] for seconds in options.seconds}
    if not options.no_recordings:
        cases[f"{len(recordings)} recordings"] = list(recordings.values())
    rate, cores = products_per_second(), len(os.sched_getaffinity(0))
    sys.stdout.write(f"one core: {rate / 1e9:.0f} G multiply-accumulates per second in its first cache\n")
    sys.stdout.write(
        f"{'case':>15} {'windows':>7} {'threads':>7} {'speechmos s':>11} {'ours s':>8} {'ratio':>6} {'apart':>8} "
        f"{'G direct':>8} {'G shared':>8} {'floor s':>8}\n"
    )
    for threads in options.threads:
        race = {"speechmos": speechmos, "codec-bench": ours}
        race = {name: make(None if threads == "all" else 1) for name, make in race.items()}
        used = cores if threads == "all" else 1
        for case, clips in cases.items():
            expected, found = (score(clips) for score in race.values())
            pairs = zip(expected, found, strict=True)
            apart = worst(((e[f"{n}_mos"], f[n]) for e, f in pairs for n in SCORES), TOLERANCE, case)
            seconds = interleaved(
                {name: partial(score, clips) for name, score in race.items()}, repeats=options.repeats, warmup=0
            )
            windows = sum(f["windows"] for f in found)
            direct, shared, tiled = products(clips)
            floor = tiled / (rate * used)
            for name, times in seconds.items():
                ratio = float(np.median(seconds["speechmos"]) / np.median(times))
                note = f"{windows} windows, {used} threads; products {direct / 1e9:.1f} G direct, {shared / 1e9:.1f} G shared"
                note += f", {tiled / 1e9:.1f} G by Winograd: at least {floor:.3g} s"
                rows.append(row(case, f"{name}, {threads} threads", times, n=len(clips), ratio=ratio,
                                agreement=f"max abs diff {apart:.1e}", note=note))  # fmt: skip
            sys.stdout.write(
                f"{case:>15} {windows:>7} {used:>7} {np.median(seconds['speechmos']):>11.3f} "
                f"{np.median(seconds['codec-bench']):>8.3f} {ratio:>6.2f} {apart:>8.1e} "
                f"{direct / 1e9:>8.1f} {shared / 1e9:>8.1f} {floor:>8.3f}\n"
            )
            sys.stdout.flush()
    path = append_rows("dnsmos", rows, packages)
    sys.stdout.write(f"rows in {os.path.relpath(path)}\n")


if __name__ == "__main__":
    main()
