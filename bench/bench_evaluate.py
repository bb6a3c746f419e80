"""An evaluation against a plain script that scores one utterance at a time.

    python bench/bench_evaluate.py [--recordings DIR] [--repeats 3]

The script calls pesq, pystoi, speechmos and jiwer. Both are processes over the same files: references, reconstructions
and their transcripts (the script reads a file, ours its feature cache). Ours also computes intervals and writes its
record and its page. Floor: the workers' busy time over their number.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Cases, Options, Rows, bench, interleaved, ranked, worst, write_manifest

from codec_bench import Audio, open_run, score
from codec_bench.audio.encode import write_flac
from codec_bench.codecs import load_codec
from codec_bench.codecs.adapt import reconstruct
from codec_bench.data import open_source

PLAIN = """
import json, sys
import jiwer, numpy as np, soundfile, soxr
from pesq import pesq
from pystoi import stoi
from speechmos import dnsmos
from whisper_normalizer.english import EnglishTextNormalizer

def read(path):
    x, rate = soundfile.read(path, dtype="float32", always_2d=True)
    x = x.mean(1)
    return np.clip(x if rate == 16000 else soxr.resample(x, rate, 16000, quality="HQ"), -1, 1)

normalise = EnglishTextNormalizer()
rows, references, hypotheses = [], [], []
for item in map(json.loads, open(sys.argv[1])):
    x, y = read(item["audio"]), read(item["estimate"])
    y = np.pad(y, (0, max(0, len(x) - len(y))))[: len(x)]
    scores = {"id": item["id"], "dnsmos": dnsmos.run(y, 16000)}
    try:
        scores["pesq_wb"] = pesq(16000, x, y, "wb")
    except Exception as error:
        scores["pesq_wb"] = None
    scores["stoi"] = float(stoi(x, y, 16000))
    if item.get("hypothesis") is not None:
        references.append(normalise(item["text"]))
        hypotheses.append(normalise(item["hypothesis"]))
    rows.append(scores)
wer = jiwer.process_words(references, hypotheses).wer if references else None
json.dump({"rows": rows, "wer": wer}, open(sys.argv[2], "w"), default=float)
"""
OPUS = ["opus-12k"]
SAME = 1e-4  # the greatest difference of scores from the plain script's


def prepare(folder: Path, data: str, codecs: Sequence[str]) -> None:
    """Reconstructions, transcripts and the manifest that both sides read."""
    items = []
    for name in codecs:
        codec = load_codec(name)
        for sample in open_source(data):
            target = folder / "generated" / f"{sample.id}-{name}.flac"
            target.parent.mkdir(parents=True, exist_ok=True)
            write_flac(target, reconstruct(codec, [Audio.read(sample.audio)]).items[0].estimate)
            fields = {name: getattr(sample, name) for name in ("audio", "text", "speaker", "language")}
            items.append({"id": f"{sample.id}-{name}", **fields, "estimate": str(target)})
    write_manifest(folder / "manifest.jsonl", items)
    os.environ["CODEC_BENCH_CACHE"] = str(folder / "transcripts")
    run = score(
        generated=str(folder / "generated"), data=str(folder / "manifest.jsonl"), metrics="wer[pocketsphinx]",
        out=folder / "recognised", page=False,
    )  # fmt: skip
    transcripts = {s.id: s.detail.get("hypothesis") for s in run.scores() if s.status == "ok"}
    write_manifest(folder / "with_words.jsonl", ({**item, "hypothesis": transcripts.get(item["id"])} for item in items))


def ours(folder: Path) -> None:
    """Our command, with the transcripts in its cache and nothing else."""
    for previous in ("run", "cache"):
        shutil.rmtree(folder / previous, ignore_errors=True)
    shutil.copytree(folder / "transcripts", folder / "cache")
    command = ["codec-bench", "score", "--generated", folder / "generated", "--data", folder / "manifest.jsonl"]
    command += ["--metrics", "pesq_wb,stoi,dnsmos,wer[pocketsphinx]", "--out", folder / "run"]
    environment = {**os.environ, "CODEC_BENCH_CACHE": str(folder / "cache")}
    subprocess.run(command, env=environment, capture_output=True, check=True)


def compare(scores: dict[tuple[str, str], float | None], wer: float | None, plain: dict[str, Any]) -> str:
    """Distance of our scores from the script's; stops if it is too large."""
    pairs: list[tuple[float, float]] = []
    for theirs in plain["rows"]:
        values = {metric: theirs[metric] for metric in ("pesq_wb", "stoi")}
        values |= {f"dnsmos_{head}": theirs["dnsmos"][f"{head}_mos"] for head in ("sig", "bak", "ovrl", "p808")}
        for metric, value in values.items():
            ours = scores[theirs["id"], metric]
            # Short clips: we say why there is no number where pystoi gives 1e-5 and pesq raises.
            if (ours is None) != (value is None or (metric == "stoi" and value == 1e-5)):
                raise SystemExit(f"{theirs['id']}, {metric}: {ours}, and {value} by the plain script")
            if ours is not None:
                pairs.append((value, ours))
    if wer is None or plain["wer"] is None:
        raise SystemExit(f"error rates of {wer}, and {plain['wer']} by the plain script")
    worst([(plain["wer"], wer)], 1e-9, "word error rate")
    return f"max difference {worst(pairs, SAME, 'scores'):.1e}, WER equal"


def judge(name: str, folder: Path, seconds: dict[str, np.ndarray]) -> Rows:
    """Compare every number of both sides; return the rows."""
    run = open_run(folder / "run")
    scores = {(s.id, s.metric): s.value for s in run.scores()}
    summary = json.loads((folder / "run" / "summary.json").read_text())["systems"]["generated"]["metrics"]
    agreement = compare(scores, summary["wer[pocketsphinx]"]["value"], json.loads((folder / "plain.json").read_text()))
    timings = run.meta["timings"]
    floor = timings["worker_use"] * timings["wall_s"]
    note = f"{timings['audio_s']:.0f} s of audio; floor {floor:.2f} s; whole processes"
    return ranked(name, seconds, n=run.counts()["samples"], note=note, agreement={"codec-bench": agreement})


@bench("pesq", "pystoi", "speechmos", "jiwer", "onnxruntime", "numpy", recordings=None, repeats=3)
def main(options: Options) -> Cases:
    """The embedded speech, and the recordings by one codec and by three."""
    sets: dict[str, tuple[str, Sequence[str]]] = {"embedded": ("embedded", OPUS)}
    if options.recordings:
        manifest = str(Path(options.recordings) / "manifest.jsonl")
        sets |= {"recordings": (manifest, OPUS), "recordings, 3 codecs": (manifest, [*OPUS, "mp3-32k", "g722"])}
    for name, (data, codecs) in sets.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            prepare(folder, data, codecs)
            words = [sys.executable, "-c", PLAIN, folder / "with_words.jsonl", folder / "plain.json"]
            plain = partial(subprocess.run, words, capture_output=True, check=True)
            calls = {"plain script": plain, "codec-bench": partial(ours, folder)}
            # After the first set, everything that is read or compiled once has been.
            yield judge(name, folder, interleaved(calls, repeats=options.repeats, warmup=int(name == "embedded")))
