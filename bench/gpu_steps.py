"""The steps of `make gpu` that no bench and no test holds: what works, and codecs and a run beside the CPU.

    python bench/gpu_steps.py look|compare|engine [DEVICE]

Every line of standard output is one finding, printed as soon as it is known. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CODECS = (
    "dac-16khz", "encodec-24khz@6", "encodec-48khz@6", "mimi-8cb", "snac-24khz", "bigcodec", "speechtokenizer-2k",
    "wavtokenizer-large-speech-75token", "xcodec-hubert-librispeech", "xcodec2", "funcodec-zh-en-ds640@1",
    "spark-bicodec", "chattts-dvae",
)  # fmt: skip


def look(_: str) -> bool:
    """What `doctor` finds of the GPUs, and the C compiler that Triton needs."""
    from codec_bench.cli.check import diagnose

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    print(f"C compiler: {compiler or 'none'}", flush=True)
    parts = ("GPU", "torch", "Triton", "Whisper", "machine", "one onnxruntime")
    findings = [finding for finding in diagnose() if finding.what.startswith(parts)]
    for finding in findings:
        print(f"{finding.what}: {finding.state}, {finding.found}", flush=True)
    return all(finding.state != "wrong" for finding in findings)


def compare(device: str) -> bool:
    """Every codec with networks of noise on the GPU and on the CPU: codes that differ, waves, and times."""
    from codec_bench.codecs import load_codec
    from codec_bench.types import Audio

    right, rng = True, np.random.default_rng(0)
    for name in CODECS:
        try:
            here, there = (load_codec(name, weights="random", device=place) for place in ("cpu", device))
            rate_hz, channels = here.info.sample_rates_hz[0], here.info.channels[0]
            lengths = (rng.uniform(0.5, 2.0, 8) * rate_hz).astype(int)
            batch = [Audio((0.1 * rng.standard_normal((channels, n))).astype(np.float32), rate_hz) for n in lengths]
            expected, wanted = timed(lambda: here.encode(batch))  # noqa: B023 - called at once
            timed(lambda: there.encode(batch))  # noqa: B023 - the first call compiles
            codes, took = timed(lambda: there.encode(batch))  # noqa: B023
            pairs = [(a.values, b.values) for x, y in zip(codes, expected) for a, b in zip(x.streams, y.streams)]
            flips = sum(int((a != b).sum()) for a, b in pairs) / sum(a.size for a, _ in pairs)
            ours, theirs = here.decode(expected), there.decode(expected)
            apart = max(float(np.abs(a.samples - b.samples).max()) for a, b in zip(ours, theirs))
            print(
                f"{name}: {flips:.2%} of codes differ, waves by {apart:.1e}; {took:.3f} s, CPU {wanted:.3f} s",
                flush=True,
            )
            right &= flips <= 1e-2 and apart <= 1e-3
        except Exception as error:  # the next codec may work
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            right = False
    return right


def engine(device: str) -> bool:
    """A run on the GPU, compared with the same run on the CPU."""
    from codec_bench.api.evaluate import evaluate

    scores: dict[str, dict[Any, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place in ("cpu", device):
            begun = time.perf_counter()
            run = evaluate(
                codec="dac-16khz", data="embedded", metrics="si_sdr,sim[ge2e]", out=Path(folder, place[:4]), device=place,
                options={"dac-16khz": {"weights": "random"}}, limit=8, page=False, cache=False, save_audio="none",
            )  # fmt: skip
            scores[place] = {(s.id, s.metric): s.value for s in run.scores()}
            took = time.perf_counter() - begun
            print(f"{len(scores[place])} scores on {place} in {took:.1f} s", flush=True)
    apart = max(abs(value - scores[device][key]) for key, value in scores["cpu"].items() if value is not None)
    print(f"scores differ by at most {apart:.2g}", flush=True)
    return apart <= 0.05


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and its seconds; what it launched is done, because it gives arrays."""
    begun = time.perf_counter()
    return call(), time.perf_counter() - begun


if __name__ == "__main__":
    step = {"look": look, "compare": compare, "engine": engine}[sys.argv[1]]
    sys.exit(0 if step(sys.argv[2] if len(sys.argv) > 2 else "cuda:0") else 1)
