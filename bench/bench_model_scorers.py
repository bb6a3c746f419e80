"""Model-based scorers over a corpus: the engine against one by one.

    python bench/bench_model_scorers.py [--full] [--utterances N] [--mean-s 7.42] [--loop N] [--device cuda:0]
        [--precision float32|float16|bfloat16] [--scorers wer,sim,utmos,dnsmos,pesq,stoi] [--backend ct2|torch]

The utterances are embedded speech with the lengths of LibriSpeech's test-clean, scaled to `--mean-s`. WER is by
Whisper-large-v3, the similarity by WavLM-large. Weights are random, DNSMOS's apart, in reduced architectures or, with
`--full`, in the published ones.

The loop has the same models, weights, precision and device. It reads and scores one utterance at a time with
faster-whisper, this project's networks, speechmos, pesq and pystoi. Its time on a part of the corpus (`--loop`) is
extrapolated by seconds of audio. All its scores are compared. `gpu_stages.py` measures each network and its floor.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import reduced_scorers
import soundfile
import torch
from common import MEAN_S, RATE_HZ, Cases, Options, bench, cores, ranked, utterances, worst, write_manifest
from whisper_folder import GREEDY, SIZES, TOKENS, write

from codec_bench import Audio, score
from codec_bench.audio.encode import write_flac
from codec_bench.data import open_source
from codec_bench.features.recognisers.cublas import load_cublas
from codec_bench.features.speakers.wavlm_sv import WavlmLargeSv
from codec_bench.features.utmos import Utmos
from codec_bench.metrics.sim import cosine_of
from codec_bench.text.rules import get_rule

SCORERS = ("wer", "sim", "utmos", "dnsmos")
TOLERANCE = {"wer": 0.0, "sim": 1e-5, "utmos": 2e-5, "dnsmos": 1e-4, "pesq": 1e-3, "stoi": 1e-4}
"""Greatest differences in float32; half precision has no reference, and only its times count."""
PARTS = ("sig", "bak", "ovrl", "p808")
Item = dict[str, str]
Step = Callable[[Item], list[float]]  # scores one utterance, as other toolkits do it


def corpus(folder: Path, count: int, mean_s: float) -> list[Item]:
    """Write references, noisy estimates and the manifest; return its rows."""
    texts = [sample.text or "" for sample in open_source("embedded")]
    rng, items = np.random.default_rng(1), []
    for role in ("reference", "generated"):
        (folder / role).mkdir()
    for n, wave in enumerate(utterances(count, mean_s=mean_s)):
        noisy = 0.9 * wave + rng.normal(0, 0.003, wave.size).astype(np.float32)
        audio, estimate = (folder / role / f"{n:05d}.flac" for role in ("reference", "generated"))
        write_flac(audio, Audio(wave, RATE_HZ))
        write_flac(estimate, Audio(np.clip(noisy, -1, 1), RATE_HZ))
        about = {"id": audio.stem, "language": "en", "text": texts[n % len(texts)]}
        items.append({**about, "audio": str(audio), "estimate": str(estimate)})
    write_manifest(folder / "manifest.jsonl", ({k: v for k, v in item.items() if k != "estimate"} for item in items))
    return items


def point(precision: str, backend: str = "ct2") -> str:
    """The suffix of the name of a network of that precision."""
    parts = [name for name in (precision, backend) if name not in ("float32", "ct2")]
    return f"@{'+'.join(parts)}" if parts else ""


def checkpoints(folder: Path, options: Options, scorers: list[str]) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Write stand-in checkpoints; return the loop's file and the networks' options."""
    files, held = {}, {}
    if "wer" in scorers:
        in_torch, dtype = options.backend == "torch", "float16" if options.full else "float32"
        size, words = SIZES["large-v3" if options.full else "reduced-v3"], None if options.full or in_torch else 1000
        checkpoint = write(folder / "whisper", size, tokens=TOKENS, dtype=dtype, words=words)
        files["wer"] = str(checkpoint)
        if in_torch:
            from ct2_whisper import write_transformers

            checkpoint = write_transformers(checkpoint, folder / "transformers")
        held[f"whisper-large-v3{point(options.precision, options.backend)}"] = {"weights": str(checkpoint)}
    if options.full and "sim" in scorers:
        files["sim"] = str(folder / "wavlm_large_finetune.pth")
        torch.save({"model": reduced_scorers.RandomSpeaker(full=True)._network().state_dict()}, files["sim"])
        held[f"wavlm-large-sv{point(options.precision)}"] = {"weights": files["sim"]}
    if options.full and "utmos" in scorers:
        files["utmos"] = str(folder / "utmos22_strong.pt")
        torch.save(reduced_scorers.RandomUtmos(full=True)._network().state_dict(), files["utmos"])
        held[f"utmos{point(options.precision)}"] = {"weights": files["utmos"]}
    return files, held


def metrics_of(options: Options) -> dict[str, list[str]]:
    """The metrics' names by scorer."""
    at = point(options.precision)
    return {
        "wer": [f"wer[whisper-large-v3{point(options.precision, options.backend)}]"],
        "sim": [f"sim{at}" if options.full else f"{reduced_scorers.__file__}:ReducedSim"],
        "utmos": [f"utmos{at}" if options.full else f"{reduced_scorers.__file__}:ReducedOpinion"],
        "dnsmos": [f"dnsmos_{head}" for head in PARTS],
        "pesq": ["pesq_wb"],
        "stoi": ["stoi"],
    }


def read(path: str) -> np.ndarray:
    """A file as every toolkit reads it, float32 at 16 kHz."""
    return soundfile.read(path, dtype="float32")[0]


def _wer(options: Options, file: str | None) -> Step:
    from faster_whisper import WhisperModel

    kind, _, index = options.device.partition(":")
    if kind != "cpu":
        load_cublas("whisper")
    whisper = WhisperModel(
        file, device=kind, device_index=int(index or 0), compute_type=options.precision, cpu_threads=options.threads,
        local_files_only=True,
    )  # fmt: skip
    rule = get_rule("by-language")

    def step(item: Item) -> list[float]:
        segments, _ = whisper.transcribe(read(item["estimate"]), language="en", **GREEDY)
        text = "".join(segment.text for segment in segments)
        (compared,) = rule.compare(reference=[item["text"]], estimate=[text], language=["en"], unit=None)
        return [compared.value]

    return step


def _loaded(options: Options, file: str | None, full: Any, reduced: Any) -> Any:
    """A feature with the weights of a file, or without one the reduced one."""
    point = None if options.precision == "float32" else options.precision
    feature = (full if file else reduced)(options.device, file, point)
    feature.load()
    return feature


def _sim(options: Options, file: str | None) -> Step:
    speaker = _loaded(options, file, WavlmLargeSv, reduced_scorers.RandomSpeaker)
    return lambda item: [
        cosine_of(*(speaker.compute([read(item[role])])[0]["embedding"] for role in ("audio", "estimate")))
    ]


def _utmos(options: Options, file: str | None) -> Step:
    opinion = _loaded(options, file, Utmos, reduced_scorers.RandomUtmos)
    return lambda item: [opinion.compute([read(item["estimate"])])[0]["utmos"]]


def _dnsmos(options: Options, file: str | None) -> Step:
    from speechmos import dnsmos

    def step(item: Item) -> list[float]:
        output = dnsmos.run(read(item["estimate"]), RATE_HZ)
        return [float(output[f"{head}_mos"]) for head in PARTS]

    return step


def _pesq(options: Options, file: str | None) -> Step:
    from pesq import pesq

    return lambda item: [pesq(RATE_HZ, read(item["audio"]), read(item["estimate"]), "wb")]


def _stoi(options: Options, file: str | None) -> Step:
    from pystoi import stoi

    return lambda item: [stoi(read(item["audio"]), read(item["estimate"]), RATE_HZ)]


STEPS = {"wer": _wer, "sim": _sim, "utmos": _utmos, "dnsmos": _dnsmos, "pesq": _pesq, "stoi": _stoi}


@contextmanager
def watched(device: str) -> Iterator[list[float]]:
    """Collect the GPU's utilisation in percent, twice a second."""
    readings: list[float] = []
    stop = threading.Event()
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]

    def watch() -> None:
        while device != "cpu" and not stop.wait(0.5):
            lines = subprocess.run(command, capture_output=True, text=True).stdout.split()
            readings.extend(float(line) for line in lines[int(device.partition(":")[2] or 0) :][:1])

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    yield readings
    stop.set()
    thread.join()


def compare(pairs: dict[str, list[tuple[float, float | None]]], exact: bool) -> dict[str, float]:
    """Distance of the engine's scores from the loop's; stops if it is too large."""
    return {name: worst(both, TOLERANCE[name] if exact else math.inf, name) for name, both in pairs.items()}


@bench(
    "codec-bench", "torch", "faster-whisper", "speechmos", "onnxruntime",
    full=False, utterances=20, loop=20, device="cpu", precision="float32", scorers=",".join(SCORERS), threads=cores(),
    mean_s=MEAN_S, backend="ct2",
)  # fmt: skip
def main(options: Options) -> Cases:
    """Run the engine and the loop, and compare their scores."""
    scorers = [scorer for scorer in STEPS if scorer in options.scorers.split(",")]
    metrics = metrics_of(options)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        items = corpus(folder, options.utterances, options.mean_s)
        files, held = checkpoints(folder, options, scorers)
        with watched(options.device) as use:
            start = time.perf_counter()
            run = score(
                generated=str(folder / "generated"), data=str(folder / "manifest.jsonl"),
                metrics=[name for scorer in scorers for name in metrics[scorer]], out=folder / "run", options=held,
                device=options.device, cache=False, page=False, save_audio="none",
            )  # fmt: skip
            engine_s = time.perf_counter() - start
        # The record may have another path of user code.
        scores = {(s.id, s.metric.rpartition(":")[2]): s.value for s in run.scores()}
        start = time.perf_counter()
        steps = {scorer: STEPS[scorer](options, files.get(scorer)) for scorer in scorers}
        load_s = time.perf_counter() - start
        chosen = items[:: max(1, len(items) // options.loop)][: options.loop]
        for step in steps.values():
            step(chosen[0])  # the first call compiles, allocates and chooses kernels: not counted
        start = time.perf_counter()
        timed = [(item["id"], {scorer: step(item) for scorer, step in steps.items()}) for item in chosen]
        loop_s = time.perf_counter() - start
        audio_s, chosen_s = (sum(read(item["estimate"]).size for item in of) / RATE_HZ for of in (items, chosen))
    pairs: dict[str, list[tuple[float, float | None]]] = {scorer: [] for scorer in scorers}
    for scorer in scorers:
        names = [name.rpartition(":")[2] for name in metrics[scorer]]
        for key, values in timed:
            pairs[scorer] += zip(values[scorer], (scores[key, name] for name in names), strict=True)
    apart = compare(pairs, exact=options.precision == "float32")
    size = "published sizes" if options.full else "reduced sizes (DNSMOS real)"
    case = f"{', '.join(scorers)}; {size}, {options.precision}, {options.device.partition(':')[0]}"
    case += ", Whisper in torch" if options.backend == "torch" else ""
    case += f", clips of {options.mean_s} s" if options.mean_s != MEAN_S else ""
    note = f"{audio_s:.0f} s of audio"
    note += "" if len(chosen) == options.utterances else f", the loop on {len(chosen)} and extrapolated"
    note += f"; workers busy {run.meta['timings']['worker_use']:.0%}; loading included, {load_s:.2f} s by the loop"
    note += "; random weights" + (f"; device busy {np.mean(use):.0f} %" if use else "")
    agreement = {"codec-bench": f"max difference: {', '.join(f'{scorer} {apart[scorer]:.1e}' for scorer in scorers)}"}
    estimated_s = load_s + loop_s * audio_s / chosen_s
    seconds = {"per-utterance loop": np.array([estimated_s]), "codec-bench": np.array([engine_s])}
    yield ranked(case, seconds, n=options.utterances, note=note, agreement=agreement)
