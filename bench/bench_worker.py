"""What it costs to ask a worker: 10 s of sound there and back (target 2 ms), and 10,000 times over without a leak.

    python bench/bench_worker.py [--trips 10000]

The worker code gives back the sound that it is given, in this Python, so what is timed is the way and not a model. `host` is
the worker alone; `model` is a whole request to `Isolated`, from the clip to the response. The floor is what cannot be
avoided: each direction copies the sound into shared memory and out of it, so four copies of its bytes, timed as copies
between arrays of that size that exist already.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import append_rows, row

from codec_bench.audio.clip import Clip
from codec_bench.models import isolated
from codec_bench.models.base import ModelInfo
from codec_bench.models.workers import wire
from codec_bench.models.workers.environment import Environment
from codec_bench.models.workers.host import WorkerHost, WorkerSettings
from codec_bench.types import Audio, Request

CODE = """
def load():
    return None


def answer(state, batch):
    return [{"audio": item["fields"]["audio"]} for item in batch]
"""
SECONDS, TIMED = 10, 500


def compare(what: str, found: bytes, samples: np.ndarray) -> None:
    """Stops where the sound that came back is not, bit for bit, the one that was sent."""
    if found != samples.tobytes():
        raise SystemExit(f"{what}: {len(found)} bytes came back, and not the {samples.nbytes} that were sent")


def copies(samples: np.ndarray) -> np.ndarray:
    """Seconds that four copies of an array take, measured often."""
    places = [np.empty_like(samples) for _ in range(4)]
    for place in places:
        place[...] = samples
    seconds = np.empty(TIMED)
    for k in range(TIMED):
        start = time.perf_counter()
        source = samples
        for place in places:
            np.copyto(place, source)
            source = place
        seconds[k] = time.perf_counter() - start
    return seconds


async def timed(ask, times: int) -> np.ndarray:
    """Seconds of each of so many questions, one after another, after a few that do not count."""
    for _ in range(20):
        await ask()
    seconds = np.empty(times)
    for k in range(times):
        start = time.perf_counter()
        await ask()
        seconds[k] = time.perf_counter() - start
    return seconds


def held(pid: int) -> tuple[float, int, int]:
    """Resident MiB, file descriptors, and memory files of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    return resident, len(links), sum("memfd" in link for link in links)


async def measure(code: Path, trips: int) -> list[dict[str, object]]:
    """Times the way at two rates, then goes it many times."""
    rng, rows = np.random.default_rng(0), []
    python = Path(sys.executable)
    for rate in (16_000, 24_000):
        samples = rng.uniform(-1, 1, (1, SECONDS * rate)).astype(np.float32)
        floor = copies(samples)
        packed = wire.pack({"id": "a", "fields": {"audio": {"samples": samples, "sample_rate_hz": rate}}})
        host = WorkerHost(WorkerSettings("echo", python, code))
        await host.start()
        (reply,) = await host.ask([packed])
        compare("host", bytes(reply["audio"]["samples"]), samples)
        alone = await timed(lambda host=host, packed=packed: host.ask([packed]), TIMED)
        await host.close()

        model = isolated.Isolated(ModelInfo("echo"), env="numpy-1", code=str(code), rate_hz=rate)
        await model.start()
        request = Request("a", fields={"audio": Clip(Audio(samples, rate))}, wants="audio")
        response = await model.ask(request)
        if response.status != "ok":
            raise SystemExit(f"model: {response.status}, {response.reason}")
        compare("model", response.audio.samples.tobytes(), samples)
        whole = await timed(lambda model=model, request=request: model.ask(request), TIMED)
        await model.close()

        gib_s = 4 * samples.nbytes / np.median(floor) / 2**30
        for variant, seconds in (("floor: four copies", floor), ("host", alone), ("model", whole)):
            p50, p95 = np.percentile(seconds, [50, 95]) * 1000
            sys.stdout.write(f"{SECONDS} s at {rate} Hz, {variant:18s} p50 {p50:.3f} ms  p95 {p95:.3f} ms\n")
            rows.append(
                row(
                    f"{SECONDS} s at {rate} Hz, there and back", variant, seconds, n=1, agreement="bit for bit",
                    ratio=float(np.median(seconds) / np.median(floor)),
                    note=f"p95 {p95 / 1000:.5g}; {samples.nbytes} bytes each way; copies at {gib_s:.2f} GiB/s; load {os.getloadavg()[0]:.1f}",
                )
            )  # fmt: skip

    host = WorkerHost(WorkerSettings("echo", python, code))
    await host.start()
    pids = {"host": os.getpid(), "guardian": host._process.pid}
    pids["worker"] = int(Path(f"/proc/{pids['guardian']}/task/{pids['guardian']}/children").read_text())
    sounds = [rng.uniform(-1, 1, (1, n)).astype(np.float32) for n in (8_000, 160_000, 480_000)]
    batches = [[wire.pack({"id": "a", "fields": {"audio": {"samples": x, "sample_rate_hz": 16_000}}})] for x in sounds]
    seen: dict[str, list[tuple[float, int, int]]] = {name: [] for name in pids}
    start = time.perf_counter()
    for k in range(trips):
        (reply,) = await host.ask(batches[k % 3])
        if len(reply["audio"]["samples"]) != sounds[k % 3].nbytes:
            raise SystemExit(f"trip {k}: {len(reply['audio']['samples'])} bytes for {sounds[k % 3].nbytes}")
        if k % (trips // 100) == 0:
            compare(f"trip {k}", bytes(reply["audio"]["samples"]), sounds[k % 3])
            for name, pid in pids.items():
                seen[name].append(held(pid))
    took = time.perf_counter() - start
    await host.close()
    notes = []
    for name, looks in seen.items():
        # Resident memory goes up and down with the allocator: the most of the first fifth against the most of the last.
        first, last = (max(rss for rss, _, _ in part) for part in (looks[1:21], looks[-20:]))
        (_, fds, files), (_, fds_after, files_after) = looks[1], looks[-1]
        if (fds, files) != (fds_after, files_after) or not last < 1.1 * first + 1:
            raise SystemExit(f"{name} keeps what it got: {looks[1]} at first, {looks[-1]} at last")
        notes.append(
            f"{name} {first:.1f} -> {last:.1f} MiB, {fds} descriptors, {files} of memory files before and after"
        )
    sys.stdout.write(f"{trips} trips in {took:.1f} s: {'; '.join(notes)}\n")
    rows.append(
        {
            "case": f"{trips} trips of 0.5 to 30 s", "variant": "host", "n": trips, "unit": "s", "p50": f"{took:.5g}",
            "agreement": "every length", "note": "; ".join(notes),
        }
    )  # fmt: skip
    return rows


def main() -> None:
    """Measures, prints, writes rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trips", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "echo.py"
        code.write_text(CODE)
        isolated.make_environment = lambda spec, tell: Environment(Path(sys.prefix), Path(sys.executable))
        rows = asyncio.run(measure(code, options.trips))
    path = append_rows("worker", rows, ("codec-bench", "numpy"))
    sys.stdout.write(f"rows appended to {path}\n")


if __name__ == "__main__":
    main()
