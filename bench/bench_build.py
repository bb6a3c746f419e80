"""Building data sets: how near a spoken build comes to its slowest stage, how fast pairs are mixed, and whether memory stays flat.

    python bench/bench_build.py [--items 2000] [--pairs 10000]

The spoken build has a synthesiser that takes 50 ms for a text and speaks two at once, and a recogniser that takes 20 ms and also hears two at
once (target: at most 15 % over the slowest stage). What it says is a tone whose pitch is the number of the question, so that the
recogniser, and the check of the finished data set, find the question in the sound itself.

Mixing takes pairs of 5 s of noise (target: at least 200 times real time, where a pair counts as 5 s). Every hundredth mixture of
the data set is made again here, from its provenance alone, and must be the same. Each build runs in a process of its own, whose
peak memory is read; it may not grow by more than 48 MiB from a quarter of the pairs to all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import PEAK_MIB, append_rows, row

RATE_HZ, LOWEST_HZ = 16_000, 200
SPEAK_S, HEAR_S, SLOTS = 0.05, 0.02, 2
PAIR_S, SOUNDS = 5.0, 12
GROWTH_MIB = 48.0
DIGITS = "zero one two three four five six seven eight nine".split()
MODELS = f"""
import asyncio
import sys

from codec_bench.models.base import Model, ModelInfo
from codec_bench.types import Audio, Response

sys.path.insert(0, {str(Path(__file__).resolve().parent)!r})
from bench_build import HEAR_S, SLOTS, SPEAK_S, RATE_HZ, number_in, number_of, said, tone


class Speaker(Model):
    info, concurrency, identity = ModelInfo("speaker"), SLOTS, {{"speaker": 1}}

    async def ask(self, request):
        await asyncio.sleep(SPEAK_S)
        return Response(audio=Audio(tone(number_of(request.fields["text"]))[None], RATE_HZ))


class Listener(Model):
    info, concurrency, identity = ModelInfo("listener"), SLOTS, {{"listener": 1}}

    async def ask(self, request):
        await asyncio.sleep(HEAR_S)
        return Response(text=said(number_in(request.fields["audio"].read().samples[0])))
"""
PROGRAM = f"""
import json, sys, time
from codec_bench import build
start, cpu = time.perf_counter(), time.process_time()
build(sys.argv[1], out=sys.argv[2])
print(json.dumps({{"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu, "mib": {PEAK_MIB}}}))
"""


def said(number: int) -> str:
    """What is asked in the question of a number: its digits in words, with two options."""
    return f"Is it {' '.join(DIGITS[int(digit)] for digit in str(number))}? yes. no."


def number_of(text: str) -> int:
    """The number of the question that is asked in a text."""
    return int("".join(str(DIGITS.index(word)) for word in text.partition("?")[0].split()[2:]))


def tone(number: int) -> np.ndarray:
    """One second of sound whose pitch is a number."""
    return (0.1 * np.sin(2 * np.pi * (LOWEST_HZ + number) * np.arange(RATE_HZ) / RATE_HZ)).astype(np.float32)


def number_in(samples: np.ndarray) -> int:
    """The number whose tone a second of sound is."""
    return int(np.abs(np.fft.rfft(samples[:RATE_HZ])).argmax()) - LOWEST_HZ


def rows_of(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a data set, a few of which are in memory at a time."""
    import pyarrow.parquet as pq

    for file in sorted((folder / "data").glob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(batch_size=50):
            yield from batch.to_pylist()


def samples_of(held: dict[str, Any]) -> np.ndarray:
    """The sound of a row, read by soundfile alone."""
    import io

    import soundfile

    return np.asarray(soundfile.read(io.BytesIO(held["audio"]["bytes"]), dtype="float32")[0])


def check_spoken(rows: Iterable[dict[str, Any]], items: int) -> None:
    """Stops unless every question is there once, with its own sound."""
    count = 0
    for number, held in enumerate(rows):
        count += 1
        if number_of(held["said"]) != number or number_in(samples_of(held)) != number:
            raise SystemExit(
                f"question {number} has the sound of {number_in(samples_of(held))}, and says '{held['said']}'"
            )
    if count != items:
        raise SystemExit(f"{count} questions are in the data set; expected {items}")


def check_mixed(rows: Iterable[dict[str, Any]], folder: Path, pairs: int, every: int = 100) -> int:
    """Stops unless all pairs are there and every hundredth is what its provenance says. Returns how many were compared."""
    import soundfile

    count = compared = 0
    for held in rows:
        count += 1
        if (count - 1) % every:
            continue
        compared += 1
        made, offset = json.loads(held["provenance"]), round(held["offset_s"] * RATE_HZ)
        found = samples_of(held).astype(np.float64)
        expected = np.zeros_like(found)
        for begin, gain_db, part in zip(
            (max(0, -offset), max(0, offset)), made["gains_db"], made["excerpts"], strict=True
        ):
            signal = soundfile.read(folder / part["source"] / f"{part['id']}.flac")[0]
            cut = signal[part["start_samples"] :][: part["length_samples"]]
            expected[begin : begin + cut.size] += cut * 10 ** (gain_db / 20)
        apart = np.abs(found - expected).max()
        # Of 16-bit samples and gains that are written with three places.
        if not apart < 3e-4:
            raise SystemExit(f"'{held['id']}' is {apart:.2g} from what its provenance says")
    if count != pairs:
        raise SystemExit(f"{count} mixtures are in the data set; expected {pairs}")
    return compared


def built(folder: Path, recipe: dict[str, Any], name: str) -> dict[str, float]:
    """Builds a recipe in a process of its own: wall seconds, CPU seconds, kept items, and peak MiB."""
    import yaml

    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(recipe))
    variables = {**os.environ, "CODEC_BENCH_CACHE": str(folder / f"cache-{name}")}
    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM, str(path), str(folder / name)], capture_output=True, text=True, env=variables)  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def spoken(folder: Path, items: int) -> dict[str, float]:
    """Builds the spoken data set and checks it."""
    (folder / "models.py").write_text(MODELS)
    with (folder / "rows.jsonl").open("w") as rows:
        for number in range(items):
            question = said(number).partition(" yes")[0]
            rows.write(json.dumps({"question": question, "choices": ["yes", "no"], "answer": "A"}) + "\n")
    recipe = {
        "version": 1, "kind": "spoken", "title": "Tones", "summary": "Questions that are tones.", "language": "en", "retries": 0,
        "texts": {"data": "rows.jsonl", "licence": "MIT"}, "template": "{{ question }} {% for choice in choices %}{{ choice }}. {% endfor %}",
        "synthesiser": {"model": f"{folder / 'models.py'}:Speaker"}, "voices": [{"name": "tone"}],
        "checks": {"recognisers": [{"model": f"{folder / 'models.py'}:Listener"}]},
    }  # fmt: skip
    found = built(folder, recipe, "spoken")
    check_spoken(rows_of(folder / "spoken"), items)
    return found


def write_noise(folder: Path) -> None:
    """Two folders of noise of 5 s, at several levels."""
    import soundfile

    for place, name in enumerate(("first", "second")):
        (folder / name).mkdir()
        lines = []
        for number in range(SOUNDS):
            noise = np.random.default_rng([place, number]).normal(0, 0.02 * (1 + number % 4), round(PAIR_S * RATE_HZ))
            soundfile.write(folder / name / f"{name}_{number}.flac", noise.clip(-1, 1), RATE_HZ)
            lines.append(json.dumps({"id": f"{name}_{number}", "audio": f"{name}_{number}.flac"}) + "\n")
        (folder / name / "manifest.jsonl").write_text("".join(lines))


def mixed(folder: Path, pairs: int) -> tuple[dict[str, float], int]:
    """Mixes pairs and checks them."""
    recipe = {
        "version": 1, "kind": "mixture", "title": "Noises", "summary": "Two noises.", "language": "en", "count": pairs, "retries": 20,
        "first": {"data": "first", "is_what": "the one noise", "licences": "MIT"},
        "second": {"data": "second", "is_what": "the other noise", "licences": "MIT"},
        "excerpt": {"least_s": PAIR_S, "most_s": PAIR_S, "fade_s": 0}, "gap_db": {"uniform": [-15, 15]},
        "overlap": ["partial", "full"],
        "questions": {"louder": {"wordings": ["Which is louder?"], "least": 1.0}},
    }  # fmt: skip
    found = built(folder, recipe, f"mixed-{pairs}")
    return found, check_mixed(rows_of(folder / f"mixed-{pairs}"), folder, pairs)


def main() -> None:
    """Builds, checks, and appends the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--pairs", type=int, default=10_000)
    asked = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        folder, load = Path(name), os.getloadavg()[0]
        begun = time.perf_counter()
        speech = spoken(folder, asked.items)
        write_noise(folder)
        quarter, _ = mixed(folder, max(1, asked.pairs // 4))
        shutil.rmtree(folder / f"mixed-{max(1, asked.pairs // 4)}")
        whole, compared = mixed(folder, asked.pairs)
        took = time.perf_counter() - begun
    grown = whole["mib"] - quarter["mib"]
    if not grown <= GROWTH_MIB:
        raise SystemExit(
            f"{asked.pairs} pairs took {grown:.0f} MiB more memory than a quarter of them; at most {GROWTH_MIB:.0f} is let pass"
        )
    stages = {
        "synthesis": asked.items * SPEAK_S / SLOTS,
        "recognition": asked.items * HEAR_S / SLOTS,
        "computing": speech["cpu"] / cores,
    }
    slowest = max(stages, key=lambda stage: stages[stage])
    over = speech["seconds"] / stages[slowest]
    times = asked.pairs * PAIR_S / whole["seconds"]
    told = "; ".join(f"{stage} {seconds:.1f} s" for stage, seconds in stages.items())
    lines = [
        row(f"{asked.items} spoken items", "whole build", np.array([speech["seconds"]]), n=asked.items, ratio=over,
            agreement="every question has its own sound", note=f"{told}; {100 * (over - 1):.1f} % over {slowest}; peak {speech['mib']:.0f} MiB; load {load:.1f}"),
        row(f"{asked.pairs} pairs of {PAIR_S:g} s", "mixing", np.array([whole["seconds"]]), n=asked.pairs,
            agreement=f"{compared} mixtures made again from their provenance",
            note=f"{times:.0f} times real time on {cores} cores; peak {whole['mib']:.0f} MiB, {grown:+.0f} MiB from a quarter of the pairs; load {load:.1f}"),
    ]  # fmt: skip
    for line in lines:
        sys.stdout.write(f"{line['case']}, {line['variant']}: {line['p50']} s; {line['note']}\n")
    path = append_rows("build", lines, ("codec-bench", "numpy", "scipy", "soundfile"))
    sys.stdout.write(f"{took:.0f} s in all; rows appended to {path}\n")


if __name__ == "__main__":
    main()
