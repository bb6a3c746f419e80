"""What every bench shares: timing two things side by side, comparing their numbers, and the one writer of rows.

A row of `data/*.csv` is written by `append_rows` alone. It has the id of its run, when and where it was measured, the load
of the machine before the bench began, how many passes were made, the revision, and whether the tree was as committed. The
second half of a run's id is a digest of the run's rows, so `table.py` notices a row that was changed by hand.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import hashlib
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

    from codec_bench.networks.precision import Precision

FIELDS = (
    "bench", "case", "variant", "n", "unit", "p20", "p50", "p80", "ratio_to_baseline", "agreement", "note",
    "machine", "cores", "gpu", "python", "versions", "commit", "run", "date", "load", "repeats", "tree",
)  # fmt: skip
PEAK_MIB = "int(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1]) / 1024"
"""The text of an expression for programs that a bench starts: their own peak memory in MiB.

`resource.getrusage` would begin with the peak of the process that started the program.
"""
COMMAND = (sys.executable, "-P", "-c", "from codec_bench.cli import main; main()")
"""`codec-bench` in a process of its own."""
DATA = Path(__file__).resolve().parent / "data"
ROOT = DATA.parents[1]
sys.path.append(str(ROOT / "tests" / "golden"))
"""Where the stand-ins for checkpoints lie, which a bench imports by name inside the function that needs them."""


def interleaved(variants: dict[str, Callable[[], object]], repeats: int = 5, warmup: int = 1) -> dict[str, np.ndarray]:
    """Times each callable `repeats` times in turn (A B A B ...), so that a drifting machine touches all alike.

    Returns:
        Seconds per run, `(repeats,)`, by name.
    """
    for _ in range(warmup):
        for call in variants.values():
            call()
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(repeats):
        for name, call in variants.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: np.asarray(values) for name, values in seconds.items()}


def worst(pairs: Iterable[tuple[object, object]], tolerance: float, what: str, relative: float = 0.0) -> float:
    """The greatest distance of numbers (or arrays) that should be equal.

    Args:
        pairs: each of the reference's number and ours.
        tolerance: the greatest distance that is let pass, plus `relative` times the reference.
        what: names the numbers in the message.

    Raises:
        SystemExit: a distance is greater, or is no number, or shapes differ, or there was nothing to compare.
    """
    most, compared = 0.0, 0
    for expected, found in pairs:
        one, other = np.asarray(expected, np.float64), np.asarray(found, np.float64)
        if one.shape != other.shape:
            raise SystemExit(f"{what}: {other.shape} numbers where the reference has {one.shape}")
        if not one.size:
            continue
        distance = np.abs(one - other)
        # Written so that a distance which is not a number fails.
        if not (distance <= tolerance + relative * np.abs(one)).all():
            raise SystemExit(f"{what}: {distance.max():.2g} apart, at most {tolerance:.2g} is let pass")
        most, compared = max(most, float(distance.max())), compared + 1
    if not compared:
        raise SystemExit(f"{what}: nothing to compare")
    return most


def codes_and_waves(
    codes: Sequence[Sequence[np.ndarray]],
    waves: Sequence[np.ndarray],
    base: tuple[Sequence[Sequence[np.ndarray]], Sequence[np.ndarray]],
    fewer_samples: int = 0,
) -> str:
    """How far a codec's codes and waves are from those of the same items one by one.

    Args:
        codes: for each item its streams. waves: for each item its samples, `(channels, samples)`.
        base: codes and waves of one by one.
        fewer_samples: by how much a wave may be shorter than the base's.

    Raises:
        SystemExit: more than one frame in 10,000 (or, in short material, more than one) has another code, or the waves of an
            item with equal codes differ by more than 1e-4, or are no numbers, or no item has equal codes. Frames are counted,
            because a code that is as near as another changes what all later codebooks of its frame are given.
    """
    flips, total = frames_apart(codes, base[0])
    pairs = []
    for streams, wave, expected, reference in zip(codes, waves, *base, strict=True):
        if not frames_apart([streams], [expected])[0]:
            kept = wave.shape[1] if 0 <= reference.shape[1] - wave.shape[1] <= fewer_samples else reference.shape[1]
            pairs.append((reference[:, :kept], wave))
    if flips > max(1, 1e-4 * total):
        raise SystemExit(f"{flips} of {total} frames have another code")
    return f"{flips} of {total} frames have another code; waves within {worst(pairs, 1e-4, 'waves'):.1e}"


def frames_apart(codes: Sequence[Sequence[np.ndarray]], expected: Sequence[Sequence[np.ndarray]]) -> tuple[int, int]:
    """How many frames have another code than expected, and how many there are; for each item its streams.

    Raises:
        SystemExit: there are other shapes than expected.
    """
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


REVISION = "CODEC_BENCH_REVISION"
"""The variable in which a copy is told what `git describe --always --dirty --abbrev=10` said where it was copied from.

What a copy has of its repository, if anything, may be older than its files.
"""


def _start() -> dict[str, str]:
    """What a row says of the moment before its bench began. Rows that were just added, and texts, change no bench."""
    if told := os.environ.get(REVISION):
        commit: str | None = told.removesuffix("-dirty")
        changed = told if told.endswith("-dirty") else ""
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
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    try:
        gpu = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        gpu = "none"
    return {
        "machine": model, "cores": str(cores()), "gpu": gpu, "python": platform.python_version(),
    }  # fmt: skip


def digest(rows: Iterable[dict[str, str]]) -> str:
    """Ten hexadecimal digits that depend on every cell of the rows but the run's id."""
    cells = [[row[name] for name in FIELDS if name != "run"] for row in rows]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()[:10]


def read_rows(stem: str) -> list[dict[str, str]]:
    """The rows of data/<stem>.csv, oldest first."""
    with (DATA / f"{stem}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append_rows(stem: str, rows: list[dict[str, object]], packages: tuple[str, ...] = ()) -> Path:
    """Appends rows to data/<stem>.csv, filling in the run, the machine, the versions of `packages` and the revision."""
    versions = []
    for name in packages:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} missing")
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


def row(
    case: str,
    variant: str,
    seconds: np.ndarray,
    *,
    n: int,
    ratio: float | None = None,
    agreement: str = "",
    note: str = "",
) -> dict[str, object]:
    """One CSV row of a timing in seconds."""
    p20, p50, p80 = np.percentile(seconds, [20, 50, 80])
    return {
        "case": case, "variant": variant, "n": n, "unit": "s", "p20": f"{p20:.5g}", "p50": f"{p50:.5g}", "p80": f"{p80:.5g}",
        "ratio_to_baseline": "" if ratio is None else f"{ratio:.3g}", "agreement": agreement, "note": note,
        "repeats": len(seconds),
    }  # fmt: skip


def clips(
    recordings: str | None, count: int | None = None, rate_hz: int = 16_000, starting: tuple[str, ...] = ("",)
) -> tuple[str, list[np.ndarray]]:
    """The name of the material, and its clips at one rate: of a folder with a manifest.jsonl, or the embedded speech.

    Args:
        count: how many clips at the most, evenly chosen; None for all.
        starting: how the ids of recordings begin that are taken.
    """
    from codec_bench.audio.resample import prepare
    from codec_bench.data import open_source
    from codec_bench.types import Audio

    if recordings:
        lines = map(json.loads, (Path(recordings) / "manifest.jsonl").read_text("utf-8").splitlines())
        paths = [Path(recordings) / line["audio"] for line in lines if line["id"].startswith(starting)]
        name = "real recordings"
    else:
        paths, name = [sample.audio for sample in open_source("embedded")], "embedded speech"
    step = 1 if count is None else max(1, len(paths) // count)
    return name, [prepare(Audio.read(path), rate_hz) for path in paths[::step][:count]]


@contextmanager
def served(serve: Callable[..., None], *arguments: object) -> Iterator[Any]:
    """What a server in a process of its own puts into the queue that it is given first; the server ends with the block."""
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    server = context.Process(target=serve, args=(told, *arguments), daemon=True)
    server.start()
    yield told.get()
    server.terminate()


def product_rate(device: torch.device, precision: Precision = "float32") -> float:
    """Floating-point operations a second of a matrix product at a precision on this device."""
    import torch

    from codec_bench.networks.half import HALF
    from codec_bench.networks.precision import computing

    side = 8192 if device.type == "cuda" else 1024
    a, b = (torch.randn(side, side, device=device, dtype=HALF.get(precision, torch.float32)) for _ in range(2))
    with computing(str(device), precision):
        seconds = interleaved({"product": waited(lambda: a @ b, device)}, warmup=2)["product"]
    return float(2 * side**3 / seconds.min())


def waited(call: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """The call, and on a GPU the wait for its end."""
    import torch

    if device.type != "cuda":
        return call

    def both() -> object:
        result = call()
        torch.cuda.synchronize(device)
        return result

    return both


AS_IT_COMES = "transformers as it comes (TF32)"
"""The variant of a reference on a GPU with torch's own setting, by which convolutions are in TF32."""


def as_it_comes(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call with torch's own setting of convolutions, also where they are computed in true float32."""
    import torch

    convolutions: Any = torch.backends.cudnn.conv

    def inside() -> Any:
        before, convolutions.fp32_precision = convolutions.fp32_precision, "tf32"
        try:
            return call()
        finally:
            convolutions.fp32_precision = before

    return inside


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def asked(doc: str, **defaults: Any) -> argparse.Namespace:
    """The options of a bench, each with its default, which says its kind: `clips=12` is `--clips`, `full=False` a switch.

    A tuple takes several, and None a text. `recordings` is the folder in CODEC_BENCH_TEST_RECORDINGS unless it is given,
    and a number of `threads` is set for torch.
    """
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
    from codec_bench.memory import own_device

    own_device(getattr(options, "device", None) or "cpu")  # as the workers of a run do
    if isinstance(defaults.get("threads"), int):
        import torch

        torch.set_num_threads(options.threads)
    return options


def race(
    case: str,
    calls: dict[str, Callable[[], object]],
    *,
    n: int,
    repeats: int,
    warmup: int = 1,
    note: str = "",
    agreement: dict[str, str] | None = None,
) -> list[dict[str, object]]:
    """Times callables in turns and prints them; the rows, each with its ratio to the first one."""
    return ranked(case, interleaved(calls, repeats, warmup), n=n, note=note, agreement=agreement)


def ranked(
    case: str, seconds: dict[str, np.ndarray], *, n: int, note: str = "", agreement: dict[str, str] | None = None
) -> list[dict[str, object]]:
    """Prints times and makes rows of them, each with its ratio to the first one."""
    base = float(np.median(next(iter(seconds.values()))))
    rows = []
    for variant, times in seconds.items():
        ratio, said = base / float(np.median(times)), (agreement or {}).get(variant, "")
        rows.append(row(case, variant, times, n=n, ratio=ratio, agreement=said, note=note))
        sys.stdout.write(f"{case}: {variant:>28} {np.median(times):>9.4f} s {ratio:>7.2f}  {said}\n")
    sys.stdout.write(f"{case}: {note}\n")
    sys.stdout.flush()
    return rows
