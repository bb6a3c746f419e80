"""The steps of `make gpu` that no bench and no test holds: what works, and codecs, features and a run beside the CPU.

    python bench/gpu_steps.py look|compare|attention|engine [DEVICE] [--reduced]

Every line of standard output is one finding, printed as soon as it is known; findings of `look`, `compare` and `attention` are rows in
bench/data. `--reduced` tries the step itself on a CPU, and writes no rows. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import append_rows, row

PACKAGES = ("codec-bench", "torch", "triton", "transformers", "ctranslate2", "onnxruntime", "onnxruntime-gpu")
TROUBLE = Path(__file__).with_name("gpu_trouble.py")
SAME, NEAR = 1e-3, 1e-2
"""The greatest distances between devices: of waves and embeddings, and of the share of codes that differ."""
CODECS = (
    "dac-16khz", "encodec-24khz@6", "encodec-48khz@6", "mimi-8cb", "snac-24khz", "bigcodec", "speechtokenizer-2k",
    "wavtokenizer-large-speech-75token", "xcodec-hubert-librispeech", "xcodec2", "funcodec-zh-en-ds640@1",
    "spark-bicodec", "chattts-dvae",
)  # fmt: skip


def look(_: str, reduced: bool) -> bool:
    """What `doctor` finds of the GPUs, and the C compiler that Triton needs."""
    from codec_bench import doctor

    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    print(f"C compiler: {compiler or 'none'}", flush=True)
    parts = ("GPU", "torch", "Triton", "Whisper", "machine", "one onnxruntime")
    findings = [finding for finding in doctor() if finding.what.startswith(parts)]
    for finding in findings:
        print(f"{finding.what}: {finding.state}, {finding.found}", flush=True)
    rows = [{"case": f.what, "variant": f.state, "note": f.found[:300]} for f in findings]
    nothing = not any(
        finding.what.startswith("torch computes") for finding in findings
    )  # there is no GPU to say anything of
    _write("gpu_look", [{"case": "C compiler", "variant": compiler or "none"}, *rows], reduced or nothing)
    return all(finding.state != "wrong" for finding in findings)


def compare(device: str, reduced: bool) -> bool:
    """Codecs and features with networks of noise on the device and on the CPU."""
    from gpu_stages import STAGES

    right = True
    for name in CODECS[:3] if reduced else CODECS:
        right &= _compared(f"codec {name}", device, reduced, lambda place: _coded(name, place))  # noqa: B023 - called at once
    for name in ("sim", "utmos", "dnsmos"):
        right &= _compared(
            f"feature {name}",
            device,
            reduced,
            lambda place: _computed(STAGES[name](place, True)),  # noqa: B023
        )
    return right


def _compared(what: str, device: str, reduced: bool, run: Callable[[str], Iterator[tuple[str, Any, float]]]) -> bool:
    """One thing on the CPU and on the device: what it yields is compared; a line and a row for each part."""
    right = True
    try:
        here = {part: (value, took) for part, value, took in run("cpu")}
        for part, value, took in run(device):
            expected, on_cpu = here[part]
            distance = _distance(expected, value)
            # Not a number fails, too.
            good = distance <= (NEAR if part.startswith("codes") else SAME)
            right &= good
            said = f"{distance:.1e} apart" if good else f"WRONG: {distance:.1e} apart"
            print(f"{what}, {part}: {said}; {took:.4f} s, CPU {on_cpu:.4f} s", flush=True)
            found = {"case": what, "variant": f"{part}, {device.split(':')[0]}", "p50": f"{took:.5g}", "unit": "s"}
            _write("gpu_compare", [found | {"ratio_to_baseline": f"{on_cpu / took:.3g}", "agreement": said}], reduced)
    except Exception as error:  # the next one may work
        print(f"{what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
        return False
    return right


def _coded(name: str, place: str) -> Iterator[tuple[str, Any, float]]:
    """Codes and waves of a codec: what they are, the arrays, and the seconds of the second call."""
    from codec_bench.codecs import load_codec
    from codec_bench.types import Audio

    rng = np.random.default_rng(0)
    codec = load_codec(name, weights="random", device=place)
    rate_hz, channels = codec.info.sample_rates_hz[0], codec.info.channels[0]
    lengths = (rng.uniform(0.5, 1.0, 4) * rate_hz).astype(int)
    batch = [Audio((0.1 * rng.standard_normal((channels, n))).astype(np.float32), rate_hz) for n in lengths]
    codes, took = timed(lambda: codec.encode(batch))
    yield "codes", [stream.values for item in codes for stream in item.streams], took
    # Both devices decode the CPU's codes: those of the device may differ in a near tie.
    same = codes if place == "cpu" else load_codec(name, weights="random").encode(batch)
    waves, took = timed(lambda: codec.decode(same))
    yield "waves", [wave.samples for wave in waves], took


def _computed(stage: Any) -> Iterator[tuple[str, Any, float]]:
    """Values of a feature."""
    from gpu_stages import numbers

    values, took = timed(stage.batch)
    yield "values", numbers(values), took


def _distance(expected: list[np.ndarray], found: list[np.ndarray]) -> float:
    """Of whole numbers the share that differs, else the largest distance relative to the largest number."""
    pairs = list(zip(expected, found, strict=True))
    if not pairs or any(a.shape != b.shape for a, b in pairs):
        return float("nan")
    if np.issubdtype(pairs[0][0].dtype, np.integer):
        return sum(int((a != b).sum()) for a, b in pairs) / sum(a.size for a, _ in pairs)
    size = max(float(np.abs(a).max(initial=0.0)) for a, _ in pairs)
    return max(float(np.abs(a - b).max(initial=0.0)) for a, b in pairs) / max(size, 1e-12)


def attention(device: str, reduced: bool) -> bool:
    """Batches of shapes that were not seen before, and the same again: with torch's own attention, as in a run, and with cuDNN's."""
    import torch
    from reduced_scorers import FullSpeaker, ReducedSpeaker

    kind = ReducedSpeaker if reduced else FullSpeaker
    rng, count = np.random.default_rng(0), 3 if reduced else 24
    batches = [[rng.normal(0, 0.1, 6_000 + 400 * k).astype(np.float32)] * (2 + k % 5) for k in range(count)]
    embeddings: dict[str, list[np.ndarray]] = {}
    rows = []
    for name, by_cudnn in (("torch's own", False), ("cuDNN's", True)):
        torch.backends.cuda.enable_cudnn_sdp(by_cudnn)
        feature = kind(device, None, "float16")
        feature.compute(batches[0][:1])
        for times, passes in (("new shapes", 1), ("again", 1 if reduced else 3)):
            seconds = []
            for _ in range(passes):
                begun = time.perf_counter()
                results = [feature.compute(batch) for batch in batches]
                seconds.append((time.perf_counter() - begun) / count)
            print(f"attention {name}, {times}: {np.median(seconds):.4f} s a batch", flush=True)
            rows.append(row(f"{count} batches, {times}", name, np.array(seconds), n=1))
        embeddings[name] = [one["embedding"] for result in results for one in result]
    _write("gpu_attention", rows, reduced)
    distance = _distance(*embeddings.values())
    print(f"the two ways are {distance:.1e} apart", flush=True)
    return distance <= NEAR


def engine(device: str, reduced: bool) -> bool:
    """A run on the device that meets trouble, compared with the CPU's: memory that does not suffice, and a worker that is killed."""
    from codec_bench import evaluate

    scores: dict[str, dict[Any, Any]] = {}
    right = True
    with tempfile.TemporaryDirectory() as root:
        for place, trouble in (("cpu", False), (device, True)):
            folder = Path(root, "troubled" if trouble else "plain")
            folder.mkdir()
            begun = time.perf_counter()
            run = evaluate(
                codec=f"{TROUBLE}:Troubled", data="embedded", metrics="si_sdr" if reduced else "si_sdr,sim[ge2e]", device=place,
                options={f"{TROUBLE}:Troubled": {"marks": str(folder), "trouble": trouble}},
                out=folder / "run", limit=24, page=False, cache=False, check=False, save_audio="none",
            )  # fmt: skip
            scores[str(trouble)] = {(s.id, s.metric): s.value for s in run.scores()}
            marks = sorted(mark.name.split("-")[0] for mark in folder.glob("*-*"))
            met = f"memory was full {marks.count('full')} times, a worker was killed {marks.count('killed')} times"
            print(
                f"{len(scores[str(trouble)])} scores on {place} in {time.perf_counter() - begun:.1f} s; {met}",
                flush=True,
            )
            right &= not trouble or {"full", "killed"} <= set(marks)
    plain, troubled = scores["False"], scores["True"]
    if plain.keys() != troubled.keys() or None in plain.values() or None in troubled.values():
        lost = sum(troubled.get(key) is None for key in plain)
        print(f"{lost} scores were lost", flush=True)
        return False
    apart = max(abs(value - troubled[key]) for key, value in plain.items())
    print(f"scores differ by at most {apart:.2g}", flush=True)
    return right and apart <= 0.05


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call gives, and the seconds of a later one, which compiles nothing.

    What it launched is done, because it gives arrays.
    """
    for _ in range(2):
        call()
    begun = time.perf_counter()
    return call(), time.perf_counter() - begun


def _write(stem: str, rows: list[dict[str, object]], reduced: bool) -> None:
    if not reduced:
        append_rows(stem, rows, PACKAGES)


def main() -> int:
    """Runs one step."""
    words = [word for word in sys.argv[1:] if word != "--reduced"]
    step = {"look": look, "compare": compare, "attention": attention, "engine": engine}[words[0]]
    device = words[1] if len(words) > 1 else "cuda:0"
    if step in (compare, attention):
        from codec_bench.memory import own_device

        own_device(device)  # as the workers of a run do
    return 0 if step(device, "--reduced" in sys.argv) else 1


if __name__ == "__main__":
    sys.exit(main())
