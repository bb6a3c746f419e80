"""A run over a million items that is killed ten times.

    python bench/bench_million.py [--samples 500000] [--kills 10]

The data are hard links to 300 clips of 0.3 s; two codecs, three metrics. The command of a user is killed (SIGKILL) at
random moments and started again, and once more with nothing left to do. `report`, `export` and `compare` read the
record. Times and memory include the killed runs. The time of the main process is that of its starts and that of its
items. Every item must be finished, no score failed, and all links to one clip must have the same scores.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
from common import COMMAND, Cases, Options, bench, clips, figures, time_readers, write_manifest

from codec_bench.machine.environment import resident_bytes

SYSTEMS = ("g711-ulaw", "g711-alaw")
METRICS = ("si_sdr", "stft_distance", "bitrate")
CLIPS, CLIP_S, RATE_HZ, LINKS_IN_A_FOLDER = 300, 0.3, 8000, 1_000
SETTLED = 50_000


@dataclass
class Watched:
    """Measurements of processes.

    Args:
        memory: MiB of the last one by the number of finished items.
        starts_s: processor time up to the first new item of each. first_s: seconds up to the first item of all.
    """

    memory: list[tuple[int, float]] = field(default_factory=list)
    cpu_s: float = 0.0
    starts_s: float = 0.0
    peak_mib: float = 0.0
    first_s: float | None = None


def make(folder: Path, samples: int) -> Path:
    """Write clips of the embedded speech, links to them, and a manifest; return the manifest."""
    speech = np.concatenate(clips(None, rate_hz=RATE_HZ)[1])
    loud = np.flatnonzero(np.abs(speech) > 0.05)
    rng, length = np.random.default_rng(0), int(CLIP_S * RATE_HZ)
    files = [folder / f"clip{number:03d}.wav" for number in range(min(CLIPS, samples))]
    for file in files:
        start = min(int(rng.choice(loud)), len(speech) - length)
        soundfile.write(file, speech[start : start + length], RATE_HZ)
    links = [folder / f"{number // LINKS_IN_A_FOLDER:04d}" / f"u{number:07d}.wav" for number in range(samples)]
    for number, link in enumerate(links):
        link.parent.mkdir(exist_ok=True)
        os.link(files[number % len(files)], link)
    items = ({"id": link.stem, "audio": f"{link.parent.name}/{link.name}"} for link in links)
    return write_manifest(folder / "manifest.jsonl", items)


def finished(out: Path) -> int:
    """How many items the record holds."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{out / 'run.sqlite'}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT COUNT(*) FROM items").fetchone()[0])
    return 0


def watched(arguments: Sequence[str | Path], seen: Watched, out: Path, stop_at: int | None = None) -> float:
    """Run `codec-bench`, measure it, kill it after `stop_at` finished items; return its seconds."""
    start, before = time.perf_counter(), finished(out)
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True
    )  # fmt: skip
    cpu_s = looked = 0.0
    started_s: float | None = None
    while process.poll() is None:
        with suppress(OSError):  # it may have ended
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            mib = resident_bytes(process.pid) / 2**20
            seen.peak_mib = max(seen.peak_mib, mib)
            if time.perf_counter() - looked > (0.3 if started_s is None else 2.0):  # counting reads the whole record
                looked = time.perf_counter()
                done = finished(out)
                seen.memory.append((done, mib))
                if started_s is None and done > before:
                    started_s = cpu_s
                    seen.first_s = seen.first_s or time.perf_counter() - start
                if stop_at is not None and done >= stop_at:
                    os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.1)
    seen.cpu_s += cpu_s
    seen.starts_s += cpu_s if started_s is None else started_s
    output = process.communicate()[1]
    if process.returncode not in (0, -signal.SIGKILL if stop_at is not None else 0):
        raise SystemExit(f"{arguments[0]} ended with {process.returncode}: {output[-2000:]}")
    return time.perf_counter() - start


def check(out: Path, samples: int) -> None:
    """Stop at a missing item, a failed score, or unequal scores of one clip."""
    clips = min(CLIPS, samples)
    with closing(sqlite3.connect(out / "run.sqlite")) as db:
        items, failed = db.execute("SELECT COUNT(*), SUM(status != 'ok') FROM items").fetchone()
        rows, bad = db.execute("SELECT COUNT(*), SUM(status NOT IN ('ok', 'undefined')) FROM scores").fetchone()
        different = db.execute(
            "SELECT COUNT(*) FROM (SELECT 1 FROM scores GROUP BY system, metric, sample % ? "
            "HAVING COUNT(DISTINCT COALESCE(value, status)) > 1)", (clips,),
        ).fetchone()[0]  # fmt: skip
    if items != samples * len(SYSTEMS) or failed or bad or rows != items * len(METRICS) or different:
        counts = f"{items} items of {samples * len(SYSTEMS)}, {failed} failed; {rows} scores, {bad} failed"
        raise SystemExit(f"{counts}; {different} groups of equal clips with different scores")


def grown(memory: Sequence[tuple[int, float]]) -> float | None:
    """The share by which one process's memory grew after 50,000 items, or None."""
    settled = [mib for done, mib in memory if memory[0][0] + SETTLED <= done < memory[-1][0]]
    tenth = max(1, len(settled) // 10)
    return float(np.median(settled[-tenth:]) / np.median(settled[:tenth]) - 1) if settled else None


def measured(folder: Path, samples: int, kills: int) -> dict[str, float]:
    """Run everything in a folder; return each figure by its name."""
    items = samples * len(SYSTEMS)
    manifest = make(folder, samples)
    out, seen, legs = folder / "run", Watched(), list[list[tuple[int, float]]]()
    arguments = ["eval", "--codec", ",".join(SYSTEMS), "--data", manifest, "--metrics", ",".join(METRICS), "--out", out]
    arguments += ["--no-cache", "--save-audio", "none", "--no-check"]
    for stop_at in [*sorted(np.random.default_rng(1).integers(1, items, kills).tolist()), None]:
        seen.memory = []
        watched(arguments, seen, out, stop_at)
        legs.append(seen.memory)
    check(out, samples)
    longest = max(legs, key=lambda leg: leg[-1][0] - leg[0][0] if leg else 0)
    readings = {
        "planning, s": seen.first_s,
        "main process, ms an item": 1000 * (seen.cpu_s - seen.starts_s) / items,
        "starts, CPU s": seen.starts_s,
        "memory, MiB": seen.peak_mib,
        "memory grown": grown(longest),
        "bytes an item": (out / "run.sqlite").stat().st_size / items,
        "nothing left, s": watched(arguments, Watched(), out),
    }
    for command, seconds, mib in time_readers(out, folder / "rows.csv", SYSTEMS):
        readings |= {f"{command}, s": seconds, f"{command}, MiB": mib}
    return {name: value for name, value in readings.items() if value is not None}


@bench(samples=500_000, kills=10)
def main(options: Options) -> Cases:
    """Every figure of one run."""
    os.environ["CODEC_BENCH_CACHE"] = tempfile.mkdtemp()
    with tempfile.TemporaryDirectory() as scratch:
        readings = measured(Path(scratch), options.samples, options.kills)
    items = options.samples * len(SYSTEMS)
    case, agreement = f"{items} items, {options.kills} kills", "all links to a clip have equal scores"
    about = {"case": case, "n": items, "agreement": agreement}
    yield [r for name, v in readings.items() for r in figures({name.rpartition(", ")[2]: v}, **about, variant=name)]
