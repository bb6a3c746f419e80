"""Time the DNSMOS feature against speechmos, with equal scores.

    python bench/bench_dnsmos.py [--recordings DIR] [--seconds 10 60] [--threads all 1] [--repeats 5]

Both use every core (speechmos by default), then both one thread: over a clip of each length and over all recordings,
or the embedded speech. `gpu_stages.py` measures the floor.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from common import RATE_HZ, Cases, Options, bench, clips, cores, race, worst

from codec_bench.features import load_feature

SCORES = ("sig", "bak", "ovrl", "p808")


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
    return lambda signals: [{k: float(v) for k, v in model(x, RATE_HZ, False).items()} for x in signals]


def ours(threads: int | None) -> Callable[[list[np.ndarray]], list[dict[str, float]]]:
    """The feature with its own choice of threads, or with so many; compiled."""
    with mock.patch.dict(os.environ):
        os.environ.pop("OMP_NUM_THREADS", None)
        if threads is not None:
            os.environ["OMP_NUM_THREADS"] = str(threads)
        feature = load_feature("dnsmos")
        feature.compute([np.zeros(RATE_HZ, np.float32)])
    return feature.compute


@bench(
    "codec-bench", "speechmos", "onnxruntime", "librosa", "numba", "numpy",
    recordings=None, seconds=(10.0, 60.0), threads=("all", "1"), repeats=5,
)  # fmt: skip
def main(options: Options) -> Cases:
    """Each length and all recordings, with each number of threads."""
    _, recordings = clips(options.recordings)
    speech = np.concatenate([signal for signal in recordings if signal.size > RATE_HZ])
    cases = {f"{seconds:g} s": [np.resize(speech, round(seconds * RATE_HZ))] for seconds in options.seconds}
    cases[f"{len(recordings)} recordings"] = recordings
    for threads in options.threads:
        used = cores() if threads == "all" else 1
        theirs, mine = (make(None if threads == "all" else 1) for make in (speechmos, ours))
        for case, signals in cases.items():
            expected, actual = theirs(signals), mine(signals)
            pairs = zip(expected, actual, strict=True)
            apart = worst(((e[f"{n}_mos"], f[n]) for e, f in pairs for n in SCORES), 1e-4, case)
            name = f"codec-bench, {threads} threads"
            calls = {f"speechmos, {threads} threads": partial(theirs, signals), name: partial(mine, signals)}
            agreement = {name: f"max abs diff {apart:.1e}"}
            note = f"{sum(f['windows'] for f in actual)} windows, {used} threads"
            yield race(case, calls, n=len(signals), repeats=options.repeats, warmup=0, note=note, agreement=agreement)
