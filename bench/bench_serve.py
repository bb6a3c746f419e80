"""The warm scorer: throughput, latency, CPU, memory, and killed workers.

    python bench/bench_serve.py [--only WORD] [--items 64] [--passes 2] [--flow 20000] [--kills 50]

`clients`: 64 at once against `codec-bench score` over the same files, whose time to load networks is not counted.
`one`: a lone item against a loaded metric. Scores are compared with those of `score`, or of each item alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from common import COMMAND, Cases, Options, bench, figures, worst, write_manifest

from codec_bench import Audio, Scorer, load_metric, open_run
from codec_bench.apps.serving.items import audio_bytes
from codec_bench.data import open_source

METRICS, CHEAP = "stoi,dnsmos,sim[ge2e],wer[pocketsphinx]", "stoi,si_sdr"
CONNECTIONS, WAIT_S, RATE_HZ, SAME = 4, 0.01, 16_000, 1e-5  # a connection is 16 clients
Item = dict[str, Any]
Scores = dict[tuple[str, str], float | None]  # by item and metric


def _cpu_ms(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return 1e3 * sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def _pss_kib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("Pss:")[2].split()[0])


def _children(pid: int) -> list[int]:
    return [int(one) for file in Path(f"/proc/{pid}/task").glob("*/children") for one in file.read_text().split()]


@contextmanager
def service(metrics: str) -> Iterator[tuple[str, int]]:
    """The address of a service and the id of its process."""
    command = [*COMMAND, "serve", "--metrics", metrics, "--device", "cpu", "--port", "0"]
    with tempfile.NamedTemporaryFile() as log, subprocess.Popen(command, stderr=log) as process:
        try:
            while "ready: " not in (text := Path(log.name).read_text()) and process.poll() is None:
                time.sleep(0.1)
            yield text.partition("ready: ")[2].split()[0], process.pid
        finally:
            process.terminate()


def speech(count: int, seed: int) -> Iterator[Item]:
    """Embedded utterances with noise."""
    rng, samples = np.random.default_rng(seed), list(open_source("embedded"))
    for number in range(count):
        sample = samples[number % len(samples)]
        clean = Audio.read(sample.audio)
        noisy = np.clip(clean.samples + rng.normal(0, 0.01, clean.samples.shape), -1, 1).astype(np.float32)
        texts = {"id": str(number), "text": sample.text, "language": sample.language}
        yield {**texts, "audio": Audio(noisy, clean.sample_rate_hz), "reference": clean}


def tones(first: int, count: int, length_s: float) -> list[Item]:
    """Tones, each with other first samples."""
    samples = (0.3 * np.sin(np.arange(round(RATE_HZ * length_s)) / 20)).astype(np.float32)
    ids = range(first, first + count)
    changed = (np.concatenate([0.1 * np.array(np.unravel_index(id, (10,) * 5)), samples[5:]]) for id in ids)
    both = ({"audio": Audio(one, RATE_HZ), "reference": Audio(samples, RATE_HZ)} for one in changed)
    return [{"id": str(id), **one} for id, one in zip(ids, both)]


def _values(results: Iterable[Any]) -> Scores:
    each = ((one.id, name, score.value) for one in results for name, score in one.scores.items())
    return {(id, name): value for id, name, value in each if value is not None}


def _compare(measured: Scores, expected: Scores) -> str:
    pairs = [(value, measured[key]) for key, value in expected.items()]
    return f"within {worst(pairs, SAME, 'scores', relative=SAME):.1e}"


def score_alone(metric: Any, item: Item) -> tuple[Scores, float]:
    """The values of an item by a loaded metric, and the seconds that it took."""
    start, texts = time.perf_counter(), {"text": [item["text"]], "language": item["language"]}
    (scores,) = metric(estimate=[item["audio"]], reference=[item["reference"]], **texts)
    return {(item["id"], n): score.value for n, score in scores.items()}, time.perf_counter() - start


def run_score(items: list[Item]) -> tuple[Scores, float]:
    """The scores of `codec-bench score`, and items a second after loading."""
    with tempfile.TemporaryDirectory() as folder_text:
        folder = Path(folder_text)
        (folder / "generated").mkdir()
        for item in items:
            for prefix, kind in (("generated/", "audio"), ("", "reference")):
                (folder / f"{prefix}{item['id']}.wav").write_bytes(audio_bytes(item[kind], kind))
        texts = [{name: item[name] for name in ("id", "text", "language")} for item in items]
        manifest = write_manifest(folder / "data.jsonl", ({**one, "audio": f"{one['id']}.wav"} for one in texts))
        words = f"score --generated {folder}/generated --data {manifest} --out {folder}/run --device cpu --no-cache"
        subprocess.run([*COMMAND, *words.split(), "--metrics", METRICS], check=True, capture_output=True)
        run = open_run(folder / "run")
        scores, timings = {(one.id, one.metric): one.value for one in run.scores()}, run.meta["timings"]
    loading_s = sum(stage.get("steps", {}).get("load", 0.0) for stage in timings["stages"]) / timings["workers"]
    return scores, len(items) / (timings["wall_s"] - loading_s)


def measure_clients(options: Options) -> Cases:
    """Items a second of `score` and of the service."""
    rates: dict[str, list[float]] = {"score": [], "serve": []}
    for seed in range(options.passes):
        items = list(speech(options.items, seed))
        expected, rate = run_score(items)
        with service(METRICS) as (url, _), ExitStack() as stack:
            remotes = [stack.enter_context(Scorer.connect(url)) for _ in range(CONNECTIONS)]
            start = time.perf_counter()
            futures = [remotes[k % CONNECTIONS].submit(item) for k, item in enumerate(items)]
            measured = _values(future.result() for future in futures)
            rates["serve"].append(len(items) / (time.perf_counter() - start))
        rates["score"].append(rate)
        about = {"agreement": _compare(measured, expected), "n": options.items, "repeats": options.passes}
    for variant, each in rates.items():
        about["ratio_to_baseline"] = f"{np.median(each) / np.median(rates['score']):.3g}"
        yield figures({"items a second": float(np.median(each))}, case="64 clients", variant=variant, **about)


def measure_one(options: Options) -> Cases:
    """Seconds of a lone item, without the wait for others."""
    metric, times, measured, expected = load_metric(METRICS, device="cpu"), [], Scores(), Scores()
    with service(METRICS) as (url, _), Scorer.connect(url) as remote:
        for item in speech(13, 100):
            start = time.perf_counter()
            measured |= _values(remote.score([item]))
            served_s = time.perf_counter() - start - WAIT_S
            alone, alone_s = score_alone(metric, item)
            times.append((alone_s, served_s))
            expected |= alone
    medians = np.median(times[1:], axis=0)
    about = {"case": "one item", "n": 1, "repeats": len(times) - 1, "agreement": _compare(measured, expected)}
    for variant, seconds in zip(("load_metric", "serve"), medians):
        yield figures({"s": seconds}, variant=variant, ratio_to_baseline=f"{seconds / medians[0]:.3g}", **about)


def measure_cpu(options: Options) -> Cases:
    """CPU of the main process per item of 5 s, and the server's share of it."""
    items, measured = tones(0, 600, 5.0), []
    with service("si_sdr") as (url, pid), Scorer.connect(url) as remote, Scorer("si_sdr", device="cpu") as scorer:
        for one, process in ((remote, pid), (scorer, os.getpid())):
            one.score(items[:100])
            before = _cpu_ms(process)
            for start in range(0, len(items), 16):
                one.score(items[start : start + 16])
            measured.append((_cpu_ms(process) - before) / len(items))
    spent = {"ms of CPU": measured[0], "ms of CPU beyond Scorer": measured[0] - measured[1]}
    yield figures(spent, case="5 s of audio", variant="serve", n=len(items))


def measure_memory(options: Options) -> Cases:
    """MiB of the service with its workers, after a tenth of the items and after all."""
    sizes, step = [], options.flow // 20
    with service("si_sdr") as (url, pid), Scorer.connect(url) as remote:
        for first in range(0, options.flow, step):
            remote.score(tones(first, step, 1.0))
            sizes.append(sum(map(_pss_kib, (pid, *_children(pid)))) / 1024)
    yield figures({"MiB early": sizes[1], "MiB late": sizes[-1]}, case="memory", variant="serve", n=options.flow)


def measure_kills(options: Options) -> Cases:
    """What becomes of items while workers are killed; one wrong score ends the bench."""
    items, metric = list(speech(16, 200)), load_metric(CHEAP, device="cpu")
    counts = Counter(right=0, refused=0, wrong=0)
    expected = [score_alone(metric, item)[0] for item in items]
    with service(CHEAP) as (url, pid), Scorer.connect(url) as remote:
        for _ in range(options.kills):
            futures = [remote.submit(item) for item in items]
            wait(futures, random.uniform(0, 0.5))
            os.kill(random.choice(_children(pid)), signal.SIGKILL)
            for future, right in zip(futures, expected):
                answer = {} if future.exception() else _values([future.result()])
                counts["right" if len(answer) == len(right) else "refused"] += 1
                _compare(answer, {key: right[key] for key in answer}) if answer else None
    yield figures(dict(counts), case=f"{options.kills} kills", variant="serve", n=counts.total())


@bench(only="", items=64, passes=2, flow=20_000, kills=50)
def main(options: Options) -> Cases:
    """A case after the other; `--only` those whose name holds a word."""
    for measure in (measure_clients, measure_one, measure_cpu, measure_memory, measure_kills):
        if options.only in measure.__name__:
            yield from measure(options)
