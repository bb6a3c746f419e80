"""The model-based scorers over a corpus, by the engine and by the per-utterance flow of other toolkits.

    python bench/bench_model_scorers.py [--full] [--utterances N] [--mean-s 7.42] [--loop N] [--device cuda:0]
        [--precision float32|float16|bfloat16] [--scorers wer,sim,utmos,dnsmos,pesq,stoi] [--backend ct2|torch]

Scored are WER by Whisper-large-v3, speaker similarity by WavLM-large, UTMOS and DNSMOS, of utterances with the length
distribution of LibriSpeech's test-clean, or shorter or longer ones by `--mean-s` (Seed-TTS's English set has 1,088 of 4.7 s), made
from the embedded speech. The checkpoints have random weights: with
`--full` those of the published architectures; otherwise reduced ones (`reduced_scorers.py`, a
Whisper of two layers), except DNSMOS, whose networks are the real ones. The random Whisper ends every window after 26
tokens, as many as LibriSpeech's utterances have on average.

The per-utterance flow has the same models with the same weights and precision resident on the same device, takes one
utterance at a time and reads its files anew for every scorer: faster-whisper's `transcribe`, this project's networks
with one signal for the similarity (both sides) and UTMOS, and the package speechmos. It may be timed on a part of
the corpus (`--loop`), evenly drawn, and its time is then extrapolated by seconds of audio; all its scores are compared
with the engine's.

PESQ and STOI can be asked for too; the loop calls the packages pesq and pystoi. Both run on the CPU. How far each network is
from its floor is measured alone, by `gpu_stages.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import reduced_scorers
import torch
from common import append_rows, cores, ranked, worst
from common import asked as options_of
from whisper_folder import SIZES, Size, write

from codec_bench import score
from codec_bench.audio.encode import write_flac
from codec_bench.audio.resample import prepare
from codec_bench.data import open_source
from codec_bench.features.speakers.wavlm_sv import WavlmLargeSv
from codec_bench.features.utmos import Utmos
from codec_bench.networks.speech_config import WAV2VEC2_BASE, WAVLM_LARGE
from codec_bench.networks.utmos import UtmosNet
from codec_bench.text.rules import get_rule
from codec_bench.types import Audio

RATE_HZ = 16_000
SHORTEST_S, LONGEST_S, MEAN_S, MEDIAN_S = 1.285, 34.955, 7.42, 5.8
"""Of LibriSpeech test-clean's 2620 utterances (5.4 h)."""
TOKENS, PROMPT = 26, 4
"""Tokens of a transcript, as many as test-clean's 20 words take on average, and those that the decoder is given."""
REDUCED = Path(reduced_scorers.__file__)
WHISPER = {False: Size(64, 2, 2, 2, 128, "v3", "whisper-large-v3"), True: SIZES["large-v3"]}
WORDS = {False: 1000, True: 50257}
SCORERS = ("wer", "sim", "utmos", "dnsmos")
SIGNAL = {"pesq": "pesq_wb", "stoi": "stoi"}
TOLERANCE = {"wer": 0.0, "sim": 1e-5, "utmos": 2e-5, "dnsmos": 1e-4, "pesq": 1e-3, "stoi": 1e-4}
"""Greatest differences in float32; in half precision a loop of one is no reference, and only the times count."""


def durations(count: int, mean_s: float = MEAN_S) -> np.ndarray:
    """Lengths in seconds: quantiles of a log-normal distribution with test-clean's median and mean, within its extremes.

    Another mean makes all of them shorter or longer.
    """
    sigma = math.sqrt(2 * math.log(MEAN_S / MEDIAN_S))
    quantiles = [NormalDist(math.log(MEDIAN_S), sigma).inv_cdf((n + 0.5) / count) for n in range(count)]
    lengths_s = np.random.default_rng(0).permutation(np.clip(np.exp(quantiles), SHORTEST_S, LONGEST_S))
    return lengths_s * (mean_s / MEAN_S)


def corpus(folder: Path, count: int, mean_s: float) -> tuple[list[dict[str, str]], float]:
    """Writes references, estimates (with noise) and the manifest; gives its rows and the seconds of audio per side."""
    pieces = [(sample, prepare(Audio.read(sample.audio), RATE_HZ)) for sample in open_source("embedded")]
    by_speaker: dict[str, list[Any]] = defaultdict(list)
    for sample, signal in pieces:
        by_speaker[sample.speaker or "one"].append((sample, signal))
    (folder / "reference").mkdir()
    (folder / "generated").mkdir()
    rng = np.random.default_rng(1)
    rows = []
    lengths = durations(count, mean_s)
    for n, seconds in enumerate(lengths):
        speaker = sorted(by_speaker)[n % len(by_speaker)]
        order = rng.permutation(len(by_speaker[speaker]))
        said = [by_speaker[speaker][k] for k in order]
        wave = np.resize(np.concatenate([signal for _, signal in said]), round(seconds * RATE_HZ))
        noisy = 0.9 * wave + rng.normal(0, 0.003, wave.size).astype(np.float32)
        name = f"{n:05d}"
        for side, signal in (("reference", wave), ("generated", noisy)):
            write_flac(folder / side / f"{name}.flac", Audio(np.clip(signal, -1, 1), RATE_HZ))
        about = {
            "id": name,
            "speaker": speaker,
            "language": "en",
            "text": " ".join(sample.text or "" for sample, _ in said),
        }
        paths = {"audio": f"{folder}/reference/{name}.flac", "estimate": f"{folder}/generated/{name}.flac"}
        rows.append({**about, **paths})
    lines = [json.dumps({k: v for k, v in item.items() if k != "estimate"}) for item in rows]
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return rows, float(lengths.sum())


def checkpoints(folder: Path, full: bool, scorers: list[str], backend: str) -> dict[str, dict[str, str]]:
    """Writes the stand-in checkpoints; gives the options of each network, without its precision."""
    options: dict[str, dict[str, str]] = {}
    torch.manual_seed(0)
    if "wer" in scorers:
        dtype = "float16" if full else "float32"
        place = write(
            folder / "whisper", WHISPER[full], tokens=TOKENS, dtype=dtype, words=WORDS[full or backend == "torch"]
        )
        options["whisper-large-v3"] = {"weights": str(place)}
        if backend == "torch":
            from ct2_whisper import write_transformers

            options["whisper-large-v3@torch"] = {"weights": str(write_transformers(place, folder / "transformers"))}
    if full and "sim" in scorers:
        from codec_bench.networks.ecapa import SpeakerNet

        torch.save({"model": SpeakerNet(WAVLM_LARGE).state_dict()}, folder / "wavlm_large_finetune.pth")
        options["wavlm-large-sv"] = {"weights": str(folder / "wavlm_large_finetune.pth")}
    if full and "utmos" in scorers:
        net = UtmosNet(WAV2VEC2_BASE).eval()
        for constant in (net.domain_emb, net.judge_emb):
            torch.nn.init.normal_(constant)
        torch.save(net.state_dict(), folder / "utmos22_strong.pt")
        options["utmos"] = {"weights": str(folder / "utmos22_strong.pt")}
    return options


def asked(full: bool, precision: str, scorers: list[str], backend: str) -> dict[str, list[str]]:
    """The metrics' names by scorer."""
    at = point(precision)
    found = {
        "wer": [f"wer[whisper-large-v3{point(precision, *(['torch'] if backend == 'torch' else []))}]"],
        "sim": [f"sim{at}" if full else f"{REDUCED}:ReducedSim"],
        "utmos": [f"utmos{at}" if full else f"{REDUCED}:ReducedOpinion"],
        "dnsmos": [f"dnsmos_{part}" for part in ("sig", "bak", "ovrl", "p808")],
        **{scorer: [metric] for scorer, metric in SIGNAL.items()},
    }
    return {scorer: found[scorer] for scorer in scorers}


def point(precision: str, *more: str) -> str:
    """What stands behind the name of a network of that precision."""
    parts = [*([] if precision == "float32" else [precision]), *more]
    return f"@{'+'.join(parts)}" if parts else ""


class PerUtterance:
    """The flow of other toolkits: for every utterance, every scorer reads its files and scores them.

    Args:
        options: the checkpoints. full, device, precision, scorers: as of the bench.
    """

    def __init__(self, options: dict[str, Any], full: bool, device: str, precision: str, scorers: list[str]) -> None:
        point = None if precision == "float32" else precision
        self._steps: dict[str, Callable[[dict[str, str]], dict[str, float]]] = {}
        if "wer" in scorers:
            from faster_whisper import WhisperModel

            kind, _, index = device.partition(":")
            self._whisper = WhisperModel(
                options["whisper-large-v3"]["weights"], device=kind, device_index=int(index or 0), compute_type=precision,
                cpu_threads=torch.get_num_threads(), local_files_only=True,
            )  # fmt: skip
            self._rule = get_rule("by-language")
            self._steps["wer"] = self._wer
        if "sim" in scorers:
            weights = options.get("wavlm-large-sv", {}).get("weights")
            self._speaker = (
                WavlmLargeSv(device, weights, point) if full else reduced_scorers.ReducedSpeaker(device, None, point)
            )
            self._speaker.load()
            self._steps["sim"] = self._sim
        if "utmos" in scorers:
            weights = options.get("utmos", {}).get("weights")
            self._opinion = Utmos(device, weights, point) if full else reduced_scorers.ReducedUtmos(device, None, point)
            self._opinion.load()
            self._steps["utmos"] = lambda item: {"utmos": self._opinion.compute([read(item["estimate"])])[0]["utmos"]}
        if "dnsmos" in scorers:
            from speechmos import dnsmos

            self._dnsmos = dnsmos
            self._steps["dnsmos"] = self._quality
        if "pesq" in scorers:
            from pesq import pesq

            self._steps["pesq"] = lambda item: {
                "pesq": pesq(RATE_HZ, read(item["audio"]), read(item["estimate"]), "wb")
            }
        if "stoi" in scorers:
            from pystoi import stoi

            self._steps["stoi"] = lambda item: {"stoi": stoi(read(item["audio"]), read(item["estimate"]), RATE_HZ)}
        self.seconds: dict[str, float] = defaultdict(float)
        self.tokens = 0

    def __call__(self, item: dict[str, str]) -> dict[str, float]:
        """Every score of one utterance."""
        found: dict[str, float] = {}
        for scorer, step in self._steps.items():
            start = time.perf_counter()
            found |= step(item)
            self.seconds[scorer] += time.perf_counter() - start
        return found

    def _wer(self, item: dict[str, str]) -> dict[str, float]:
        segments, _ = self._whisper.transcribe(
            read(item["estimate"]), language="en", beam_size=1, temperature=0, without_timestamps=True,
            condition_on_previous_text=False, compression_ratio_threshold=None, log_prob_threshold=None,
            no_speech_threshold=None,
        )  # fmt: skip
        segments = list(segments)
        self.tokens += sum(len(segment.tokens) for segment in segments)
        text = "".join(segment.text for segment in segments)
        (compared,) = self._rule.compare(reference=[item["text"]], estimate=[text], language=["en"], unit=None)
        return {"wer": compared.value}

    def _sim(self, item: dict[str, str]) -> dict[str, float]:
        one, other = (
            np.asarray(self._speaker.compute([read(item[side])])[0]["embedding"], np.float64)
            for side in ("audio", "estimate")
        )
        return {"sim": float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))}

    def _quality(self, item: dict[str, str]) -> dict[str, float]:
        found = self._dnsmos.run(read(item["estimate"]), RATE_HZ)
        parts = {"sig": "sig_mos", "bak": "bak_mos", "ovrl": "ovrl_mos", "p808": "p808_mos"}
        return {f"dnsmos_{part}": float(found[key]) for part, key in parts.items()}


def read(path: str) -> np.ndarray:
    """A file as every toolkit reads it, float32 at 16 kHz."""
    import soundfile

    return soundfile.read(path, dtype="float32")[0]


@contextmanager
def watched(device: str) -> Iterator[list[float]]:
    """Collects the device's utilisation in percent, twice a second, while it runs; nothing on a CPU."""
    found: list[float] = []
    stop = threading.Event()
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]

    def watch() -> None:
        while not stop.wait(0.5):
            lines = subprocess.run(command, capture_output=True, text=True).stdout.split()
            found.extend(float(line) for line in lines[int(device.partition(":")[2] or 0) :][:1])

    thread = threading.Thread(target=watch, daemon=True)
    if device.startswith("cuda"):
        thread.start()
    yield found
    stop.set()
    if thread.is_alive():
        thread.join()


def main() -> None:
    """Builds corpus and checkpoints, runs both sides, compares every score of the loop, writes the rows."""
    options = options_of(
        __doc__,
        full=False,
        utterances=20,
        loop=20,
        device="cpu",
        precision="float32",
        scorers=",".join(SCORERS),
        threads=cores(),
        mean_s=MEAN_S,
        backend="ct2",
    )
    scorers = [scorer for scorer in (*SCORERS, *SIGNAL) if scorer in options.scorers.split(",")]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        items, audio_s = corpus(folder, options.utterances, options.mean_s)
        weights = checkpoints(folder, options.full, scorers, options.backend)
        metrics = asked(options.full, options.precision, scorers, options.backend)
        held = {
            name + point(options.precision, *more): value
            for key, value in weights.items()
            for name, *more in [key.split("@")]
            if more or f"{name}@{options.backend}" not in weights  # faster-whisper's are for the loop then
        }
        with watched(options.device) as use:
            start = time.perf_counter()
            run = score(
                generated=str(folder / "generated"), data=str(folder / "manifest.jsonl"),
                metrics=[name for names in metrics.values() for name in names], out=folder / "run",
                options=held,
                device=options.device, cache=False, page=False, save_audio="none",
            )  # fmt: skip
            engine_s = time.perf_counter() - start
        scores = {(s.id, s.metric): s for s in run.scores()}
        start = time.perf_counter()
        loop = PerUtterance(weights, options.full, options.device, options.precision, scorers)
        load_s = time.perf_counter() - start
        part = items[:: max(1, len(items) // options.loop)][: options.loop]
        loop(part[0])  # the first call compiles, allocates and chooses kernels: not counted
        loop.seconds.clear()
        loop.tokens = 0
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        heard_s = sum(read(item["estimate"]).size for item in part) / RATE_HZ
        for item in part:
            for name, value in loop(item).items():
                scorer = name.partition("_")[0]
                metric = name if scorer == "dnsmos" else metrics[scorer][0]
                ours = next(s for (i, m), s in scores.items() if i == item["id"] and metric_of(m) == metric_of(metric))
                if ours.value is None:
                    raise SystemExit(f"the engine has no {metric} of {item['id']}: {ours.reason}")
                pairs[scorer].append((value, ours.value))
        apart = compare(pairs, exact=options.precision == "float32")
        report(options, scorers, run.meta["timings"], engine_s, load_s, loop, heard_s, audio_s, part, apart, use)


def compare(pairs: dict[str, list[tuple[float, float]]], exact: bool) -> dict[str, float]:
    """How far the engine's scores are from the loop's by scorer; stops where that is too far, or a score is no number."""
    return {name: worst(both, TOLERANCE[name] if exact else math.inf, name) for name, both in pairs.items()}


def metric_of(name: str) -> str:
    """A metric's name as the record has it: code of one's own is recorded by the name of its class."""
    return {"ReducedSim": "sim[reduced]", "ReducedOpinion": "utmos[reduced]"}.get(name.rpartition(":")[2], name)


def report(
    options: argparse.Namespace,
    scorers: list[str],
    timings: dict[str, Any],
    engine_s: float,
    load_s: float,
    loop: PerUtterance,
    heard_s: float,
    audio_s: float,
    part: list[dict[str, str]],
    apart: dict[str, float],
    use: list[float],
) -> None:
    """Prints the table and appends the rows."""
    loop_s = load_s + sum(loop.seconds.values()) * audio_s / heard_s
    loading_s = sum(stage.get("steps", {}).get("load", 0.0) for stage in timings["stages"]) / timings["workers"]
    for scorer in scorers:
        one_s = loop.seconds[scorer] * audio_s / heard_s
        sys.stdout.write(f"{scorer:>10}: loop {one_s:.2f} s, {apart[scorer]:.1e} apart\n")
    size = "published sizes" if options.full else "reduced sizes (DNSMOS real)"
    for stage in timings["stages"]:
        steps = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in stage.get("steps", {}).items())
        sys.stdout.write(f"{stage['stage']:>24}: {stage['busy_s']:.2f} s; {steps}\n")
    case = f"{', '.join(scorers)}; {size}, {options.precision}, {options.device.split(':')[0]}"
    case += ", Whisper in torch" if options.backend == "torch" else ""
    case += f", clips of {options.mean_s} s" if options.mean_s != MEAN_S else ""
    part_of = "" if len(part) == options.utterances else f", the loop on {len(part)} and extrapolated"
    note = (
        f"{audio_s:.0f} s of audio, {loop.tokens / heard_s:.1f} tokens/s{part_of}; "
        f"workers busy {timings['worker_use']:.0%}; loading included, {loading_s:.2f} s and {load_s:.2f} s by the loop; random weights"
    )
    note += f"; device busy {np.mean(use):.0f} %" if use else ""
    said = {"codec-bench": f"max difference: {', '.join(f'{scorer} {apart[scorer]:.1e}' for scorer in scorers)}"}
    seconds = {"per-utterance loop": np.array([loop_s]), "codec-bench": np.array([engine_s])}
    rows = ranked(case, seconds, n=options.utterances, note=note, agreement=said)
    append_rows("model_scorers", rows, ("codec-bench", "torch", "faster-whisper", "speechmos", "onnxruntime"))


if __name__ == "__main__":
    main()
