"""Code for all benches: options, rows, material, timing and comparisons."""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from codec_bench.machine import environment

QUIET_SHARE = 0.25  # the load of each core over one minute before a bench, up to which a machine is quiet
Row = dict[str, str]  # a row of `data/*.csv` as it is read
Options = argparse.Namespace
Rows = list[dict[str, object]]
Cases = Iterator[Rows]  # the rows of one case after the other
Calls = dict[str, Callable[[], Any]]
Codes = Sequence[Sequence[np.ndarray]]  # for each item its streams
FIELDS = (
    "bench", "case", "variant", "n", "unit", "p20", "p50", "p80", "ratio_to_baseline", "agreement", "note",
    "machine", "cores", "gpu", "python", "versions", "commit", "run", "date", "load", "repeats", "tree",
)  # fmt: skip
MAIN = "from codec_bench.cli import main; main()"
COMMAND = (sys.executable, "-P", "-c", MAIN)  # `codec-bench` in a separate process
cores = environment.cpu_count
RATE_HZ = 16_000
DATA = Path(__file__).resolve().parent / "data"
ROOT = DATA.parents[1]
sys.path.append(str(ROOT / "tests" / "golden"))  # stand-ins for checkpoints


def interleaved(variants: Calls, repeats: int = 5, warmup: int = 1) -> dict[str, np.ndarray]:
    """Seconds per run, `(repeats,)`, of each callable by name, in turn (A B A B ...) against drift."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(warmup + repeats):
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.asarray(values[warmup:]) for name, values in seconds.items()}


def worst(pairs: Iterable[tuple[object, object]], tolerance: float, label: str) -> float:
    """The greatest distance of numbers (or arrays), the reference's first; stops if it is above `tolerance` or NaN."""
    most, compared = 0.0, 0
    for expected, actual in pairs:
        one, other = np.asarray(expected, np.float64), np.asarray(actual, np.float64)
        if one.shape != other.shape:
            raise SystemExit(f"{label}: {other.shape} numbers where the reference has {one.shape}")
        distance = np.abs(one - other)
        # Written so that a distance which is not a number fails.
        if not (distance <= tolerance).all():
            raise SystemExit(f"{label}: {distance.max():.2g} apart, at most {tolerance:.2g} is let pass")
        most, compared = max(most, float(distance.max(initial=0.0))), compared + one.size
    if not compared:
        raise SystemExit(f"{label}: nothing to compare")
    return most


def codes_and_waves(
    codes: Codes, waves: Sequence[np.ndarray], base: tuple[Codes, Sequence[np.ndarray]], fewer_samples: int = 0
) -> str:
    """Compare codes and waves `(channels, samples)` with the base's; stops if waves of equal codes are 1e-4 apart."""
    agreement, pairs = same_codes(codes, base[0]), []
    for streams, wave, expected, reference in zip(codes, waves, *base, strict=True):
        if not frames_apart([streams], [expected])[0]:
            length = wave.shape[1] if 0 <= reference.shape[1] - wave.shape[1] <= fewer_samples else reference.shape[1]
            pairs.append((reference[:, :length], wave))
    return f"{agreement}; waves within {worst(pairs, 1e-4, 'waves'):.1e}"


def same_codes(codes: Codes, expected: Codes) -> str:
    """How many frames have another code; stops above one in 10,000, or one in short material."""
    flips, total = frames_apart(codes, expected)  # a near tie changes all later codebooks of its frame
    text = f"{flips} of {total} frames have another code"
    if flips > max(1, 1e-4 * total):
        raise SystemExit(text)
    return text


def frames_apart(codes: Codes, expected: Codes) -> tuple[int, int]:
    """The number of frames with other codes than expected, and of all frames."""
    flips = total = 0
    for streams, right in zip(codes, expected, strict=True):
        if [a.shape for a in streams] != [b.shape for b in right]:
            raise SystemExit(f"codes of shapes {[a.shape for a in streams]}, {[b.shape for b in right]} expected")
        flips += sum(int((a != b).any(axis=0).sum()) for a, b in zip(streams, right, strict=True))
        total += sum(b.shape[-1] for b in right)
    return flips, total


def git(*words: str) -> str | None:
    """What git says, or None where there is no git or no repository."""
    try:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=ROOT, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


REVISION = "CODEC_BENCH_REVISION"  # of a copy: by `git describe --always --dirty --abbrev=10` in the original


def _start() -> dict[str, str]:
    """The columns of a row about the start. Rows and texts change no tree."""
    if revision := os.environ.get(REVISION):
        commit: str | None = revision.removesuffix("-dirty")
        changed = revision if revision.endswith("-dirty") else ""
    else:
        commit = git("rev-parse", "--short=10", "HEAD")
        changed = git("status", "--porcelain", "--", ".", ":!bench/data", ":!docs", ":!README.md")
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "load": f"{os.getloadavg()[0]:.2f}",
        "tree": "unknown" if changed is None else "changed" if changed else "clean",
        "commit": commit or "unknown",
    }


START = _start()


def machine() -> dict[str, str]:
    """The machine, its cores and GPU, and the Python version."""
    facts = environment.machine()
    gpu = "; ".join(one.partition(",")[0] for one in str(facts["gpu"]).split("; "))
    return {"machine": facts["cpu"], "cores": str(facts["cores"]), "gpu": gpu, "python": platform.python_version()}


def digest(rows: Iterable[Row]) -> str:
    """Ten hexadecimal digits that depend on every cell of the rows but the run's id."""
    cells = [[row[name] for name in FIELDS if name != "run"] for row in rows]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:10]


@cache
def rows_of(stem: str) -> list[Row]:
    """The rows of data/<stem>.csv, oldest first; none where there is no file."""
    path = DATA / f"{stem}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append_rows(stem: str, rows: Rows, packages: tuple[str, ...] = ()) -> Path:
    """Append rows to data/<stem>.csv; the run's id ends in their digest, so `table.py` detects a changed row."""
    versions = [f"{name} {environment.package_version(name) or 'missing'}" for name in packages]
    shared = {"repeats": 1, **START, **machine(), "versions": "; ".join(versions), "bench": stem}
    new = [{key: str({**shared, **row}.get(key, "")) for key in FIELDS} for row in rows]
    run = f"{START['date'].replace('-', '').replace(':', '')}-{digest(new)}"
    path = DATA / f"{stem}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerows({**row, "run": run} for row in new)
    return path


def row(case: str, variant: str, seconds: np.ndarray, *, ratio: float | None = None, **about: Any) -> dict[str, object]:
    """One CSV row of a timing in seconds; `about` are more columns."""
    percentiles = zip(("p20", "p50", "p80"), np.percentile(seconds, [20, 50, 80]))
    timed = {"case": case, "variant": variant, "unit": "s", **{name: f"{value:.5g}" for name, value in percentiles}}
    base = {} if ratio is None else {"ratio_to_baseline": f"{ratio:.3g}"}
    return {**timed, "repeats": len(seconds), **base, **about}


def clips(recordings: str | None, count: int | None = None, rate_hz: int = RATE_HZ) -> tuple[str, list[np.ndarray]]:
    """Description of a folder with a manifest.jsonl or of the embedded speech, and `count` clips at one rate."""
    from codec_bench import Audio
    from codec_bench.audio.resample import prepare
    from codec_bench.data import open_source

    samples = open_source(f"{recordings}/manifest.jsonl" if recordings else "embedded").samples
    step = 1 if count is None else max(1, len(samples) // count)
    signals = [prepare(Audio.read(sample.audio), rate_hz) for sample in samples[::step][:count]]
    name = "real recordings" if recordings else "embedded speech"
    return f"{sum(map(len, signals)) / rate_hz:.1f} s of {name}", signals


def noisy_pairs(signals: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each signal, and the same with a little seeded noise."""
    rng = np.random.default_rng(0)
    return [(x, (x + 0.01 * rng.standard_normal(x.size)).astype(np.float32)) for x in signals]


SHORTEST_S, LONGEST_S, MEAN_S, MEDIAN_S = 1.285, 34.955, 7.42, 5.8
"""Of the 2620 utterances of LibriSpeech's test-clean (5.4 h)."""


def durations(count: int, mean_s: float = MEAN_S) -> np.ndarray:
    """Lengths in seconds as in test-clean, scaled to another mean."""
    sigma = math.sqrt(2 * math.log(MEAN_S / MEDIAN_S))
    quantiles = [NormalDist(math.log(MEDIAN_S), sigma).inv_cdf((n + 0.5) / count) for n in range(count)]
    lengths_s = np.random.default_rng(0).permutation(np.clip(np.exp(quantiles), SHORTEST_S, LONGEST_S))
    return lengths_s * (mean_s / MEAN_S)


def utterances(count: int, rate_hz: int = RATE_HZ, mean_s: float = MEAN_S) -> list[np.ndarray]:
    """Stretches of the embedded speech with the lengths of `durations`."""
    speech = np.concatenate(clips(None, rate_hz=rate_hz)[1])
    starts = np.random.default_rng(0).integers(0, speech.size, count)
    sizes = (round(length_s * rate_hz) for length_s in durations(count, mean_s))
    return [np.take(speech, start + np.arange(size), mode="wrap") for start, size in zip(starts, sizes)]


def batches(lengths_s: Sequence[float], budget_s: float) -> list[list[int]]:
    """Positions of items, shortest first, in batches of so many padded seconds."""
    out: list[list[int]] = []
    for index in sorted(range(len(lengths_s)), key=lambda k: lengths_s[k]):
        if out and (len(out[-1]) + 1) * lengths_s[index] <= budget_s:
            out[-1].append(index)
        else:
            out.append([index])
    return out


def in_own_process(program: str, *arguments: object) -> tuple[float, float]:
    """Run a program in a new process; return seconds and peak MiB (not inherited)."""
    text = f"""
import sys, time
start = time.perf_counter()
try:
    {program}
finally:
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
    print("\\ntook", time.perf_counter() - start, int(peak) / 1024, file=sys.stderr)
"""
    command = [sys.executable, "-P", "-c", text, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{arguments[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    seconds, peak_mib = done.stderr.rpartition("took ")[2].split()
    return float(seconds), float(peak_mib)


def time_readers(run: Path, table: Path, systems: Sequence[str]) -> Iterator[tuple[str, float, float]]:
    """Run `report`, `export` to `table`, and `compare`: name, seconds and MiB."""
    yield "report", *in_own_process(MAIN, "report", run, "--out", table.with_name("page.html"))
    yield "export", *in_own_process(MAIN, "export", run, "--out", table, "--format", table.suffix[1:])
    yield "compare", *in_own_process(MAIN, "compare", run, "--systems", ",".join(systems))


def write_manifest(path: Path, items: Iterable[dict[str, Any]]) -> Path:
    """Write a manifest of samples, a line each."""
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), "utf-8")
    return path


def product_rate(device: str, precision: Any = "float32") -> float:
    """Operations a second of a matrix product on this device, by precision."""
    import torch

    from codec_bench.networks.half_precision import HALF
    from codec_bench.networks.precision import computing

    size = 1024 if device == "cpu" else 8192
    a, b = (torch.randn(size, size, device=device, dtype=HALF.get(precision, torch.float32)) for _ in range(2))
    with computing(device, precision):
        seconds = interleaved({"product": waited(lambda: a @ b, device)}, warmup=2)["product"]
    return float(2 * size**3 / seconds.min())


def waited(call: Callable[[], object], device: str) -> Callable[[], object]:
    """The call, and on a GPU the wait for its end."""
    if device == "cpu":
        return call
    import torch

    def both() -> object:
        result = call()
        torch.cuda.synchronize(device)
        return result

    return both


def add_tf32(
    calls: Calls, agreement: dict[str, str], name: str, codes: Callable[[Any], Codes], expected: Codes
) -> None:
    """Add the reference `name` with TF32 convolutions, and its share of codes (of its output) that differ."""
    import torch

    convolutions: Any = torch.backends.cudnn.conv

    def as_it_comes() -> Any:
        before, convolutions.fp32_precision = convolutions.fp32_precision, "tf32"
        try:
            return calls[name]()
        finally:
            convolutions.fp32_precision = before

    variant = "transformers as it comes (TF32)"
    flips, total = frames_apart(codes(as_it_comes()), expected)
    calls[variant] = as_it_comes
    agreement[variant] = f"{flips} of {total} frames have other codes than in float32 ({flips / total:.2%})"


def parse_options(doc: str, **defaults: Any) -> Options:
    """Parse options by their defaults: `clips=12` is `--clips`, `full=False` a switch, and a tuple takes several."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in defaults.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
            continue
        if name == "recordings":
            default = os.environ.get("CODEC_BENCH_TEST_RECORDINGS")
        several = isinstance(default, tuple)
        kind = str if default is None else type(default[0] if several else default)
        parser.add_argument(flag, type=kind, default=default, nargs="+" if several else None)
    options = parser.parse_args()
    from codec_bench.machine.memory import own_device

    own_device(getattr(options, "device", None) or "cpu")  # as the workers of a run do
    if isinstance(defaults.get("threads"), int):
        import torch

        torch.set_num_threads(options.threads)
    return options


def bench(*packages: str, **defaults: Any) -> Callable[[Callable[[Options], Cases]], Callable[[], None]]:
    """Make the `main` of a bench, which parses its options and appends the rows of each case."""

    def run(measured: Callable[[Options], Cases]) -> Callable[[], None]:
        namespace = measured.__globals__

        def main() -> None:
            for rows in measured(parse_options(namespace["__doc__"], **defaults)):
                append_rows(Path(namespace["__file__"]).stem.removeprefix("bench_"), rows, packages)

        if namespace["__name__"] == "__main__":
            main()
        return main

    return run


def each(cases: Iterable[Any], measured: Callable[[Any], Rows]) -> Cases:
    """The rows of each case. After a wrong one the bench goes on, and fails last."""
    wrong = []
    for case in cases:
        try:
            yield measured(case)
        except SystemExit as error:
            wrong.append(f"{case}: {error}")
    if wrong:
        raise SystemExit("\n".join(wrong))


def race(case: str, calls: Calls, *, repeats: int, warmup: int = 1, device: str = "cpu", **about: Any) -> Rows:
    """Time callables on a device in turns; `about` and the rows are those of `ranked`."""
    calls = {variant: waited(call, device) for variant, call in calls.items()}
    return ranked(case, interleaved(calls, repeats, warmup), **about)


def figures(values: dict[str, float], **about: object) -> Rows:
    """Print a row for each figure by its unit; `about` are the other columns."""
    text = ", ".join(f"{value:.5g} {unit}" for unit, value in values.items())
    print(f"{about['case']}: {about['variant']}: {text}", flush=True)
    return [{**about, "unit": unit, "p50": f"{value:.5g}"} for unit, value in values.items()]


def ranked(
    case: str, seconds: dict[str, np.ndarray], *, note: str = "", agreement: dict[str, str] | None = None, **about: Any
) -> Rows:
    """Print times as rows with ratios to the first; `agreement` by variant."""
    base = float(np.median(next(iter(seconds.values()))))
    rows = []
    for variant, times in seconds.items():
        ratio, text = base / float(np.median(times)), (agreement or {}).get(variant, "")
        rows.append(row(case, variant, times, ratio=ratio, agreement=text, note=note, **about))
        print(f"{case}: {variant:>28} {np.median(times):>9.4f} s {ratio:>7.2f}  {text}")
    print(f"{case}: {note}", flush=True)
    return rows
