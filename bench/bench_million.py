"""A run over a million items that is killed ten times.

    python bench/bench_million.py [--samples 500000] [--kills 10]

The data are hard links to a few hundred clips of 0.3 s, in a manifest; two codecs, three metrics. The command is the
one that a user types. It is killed (SIGKILL) at moments that are drawn over the whole run, and started again each time.
Then it is started once more with nothing left to do, and `report`, `export` and `compare` read the record. All time and
memory that is stated includes the runs that were killed. The main process's time is stated in two parts: that of the
starts, and that of the items.

What is checked: every item is finished, no score failed, and all links to one clip have the same scores to the last
digit, whatever was killed in between.
"""

from __future__ import annotations

import json
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
from common import COMMAND, Cases, Options, bench, clips, figures, time_readers

from codec_bench.machine.environment import resident_bytes

SYSTEMS = ("g711-ulaw", "g711-alaw")
METRICS = ("si_sdr", "stft_distance", "bitrate")
CLIPS, CLIP_S, RATE_HZ, LINKS_IN_A_FOLDER = 300, 0.3, 8000, 1_000
SETTLED = 50_000
_TICKS_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Watched:
    """What was seen of processes.

    Args:
        memory: MiB of the last one by the number of finished items.
        cpu_s, starts_s: processor time, and how much of it the starts took, each up to its first new item.
        peak_mib: of all. first_s: how long the first waited for its first item.
    """

    memory: list[tuple[int, float]] = field(default_factory=list)
    cpu_s: float = 0.0
    starts_s: float = 0.0
    peak_mib: float = 0.0
    first_s: float | None = None


def make(folder: Path, samples: int) -> Path:
    """Clips of the embedded speech, links to them, and a manifest; gives the manifest."""
    speech = np.concatenate(clips(None, rate_hz=RATE_HZ)[1])
    loud = np.flatnonzero(np.abs(speech) > 0.05)
    rng, length = np.random.default_rng(0), int(CLIP_S * RATE_HZ)
    files = [folder / f"clip{number:03d}.wav" for number in range(min(CLIPS, samples))]
    for file in files:
        start = min(int(rng.choice(loud)), len(speech) - length)
        soundfile.write(file, speech[start : start + length], RATE_HZ)
    manifest = folder / "manifest.jsonl"
    with manifest.open("w", encoding="utf-8") as lines:
        for number in range(samples):
            link = folder / f"{number // LINKS_IN_A_FOLDER:04d}" / f"u{number:07d}.wav"
            if number % LINKS_IN_A_FOLDER == 0:
                link.parent.mkdir()
            os.link(files[number % len(files)], link)
            lines.write(json.dumps({"id": link.stem, "audio": f"{link.parent.name}/{link.name}"}) + "\n")
    return manifest


def finished(out: Path) -> int:
    """How many items the record holds."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{out / 'run.sqlite'}?mode=ro", uri=True)) as db:
        return int(db.execute("SELECT COUNT(*) FROM items").fetchone()[0])
    return 0


def watched(arguments: Sequence[str | Path], seen: Watched, out: Path, stop_at: int | None = None) -> float:
    """Runs a command and watches it; gives its seconds.

    Args:
        arguments: of `codec-bench`. seen: takes what is seen. out: the run's folder.
        stop_at: how many items must be finished before the command is killed; None lets it end.
    """
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
            cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_S
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
    assert process.stderr is not None
    output = process.stderr.read()
    process.stderr.close()
    if process.returncode not in (0, -signal.SIGKILL if stop_at is not None else 0):
        raise SystemExit(f"{arguments[0]} ended with {process.returncode}: {output[-2000:]}")
    return time.perf_counter() - start


def check(out: Path, samples: int) -> int:
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
        raise SystemExit(
            f"{items} items of {samples * len(SYSTEMS)}, {failed} failed; {rows} scores, {bad} failed; "
            f"{different} groups of equal clips with different scores"
        )
    return int(rows)


def grown(memory: Sequence[tuple[int, float]]) -> float | None:
    """The share by which one process's memory grew after 50,000 items, or None."""
    settled = [mib for done, mib in memory if memory[0][0] + SETTLED <= done < memory[-1][0]]
    tenth = max(1, len(settled) // 10)
    return float(np.median(settled[-tenth:]) / np.median(settled[:tenth]) - 1) if settled else None


def measured(folder: Path, samples: int, kills: int) -> dict[str, float]:
    """Runs everything in a folder; gives each figure by its name."""
    items = samples * len(SYSTEMS)
    manifest = make(folder, samples)
    out, seen, legs = folder / "run", Watched(), list[list[tuple[int, float]]]()
    arguments = ["eval", "--codec", ",".join(SYSTEMS), "--data", manifest, "--metrics", ",".join(METRICS), "--out", out]
    arguments += ["--no-cache", "--save-audio", "none", "--no-check"]
    readings: dict[str, float] = {"run, s": 0.0}
    for stop_at in [*sorted(np.random.default_rng(1).integers(1, items, kills).tolist()), None]:
        seen.memory = []
        readings["run, s"] += watched(arguments, seen, out, stop_at)
        legs.append(seen.memory)
    readings["scores"] = check(out, samples)
    if seen.first_s is not None:
        readings["planning, s"] = seen.first_s
    readings["main process, ms an item"] = 1000 * (seen.cpu_s - seen.starts_s) / items
    readings["starts, CPU s"] = seen.starts_s
    readings["memory, MiB"] = seen.peak_mib
    longest = max(legs, key=lambda leg: leg[-1][0] - leg[0][0] if leg else 0)
    if (grew := grown(longest)) is not None:
        readings["memory grown"] = grew
    readings["bytes an item"] = (out / "run.sqlite").stat().st_size / items
    readings["nothing left, s"] = watched(arguments, Watched(), out)
    for command, seconds, mib in time_readers(out, folder / "rows.csv", SYSTEMS):
        readings[f"{command}, s"], readings[f"{command}, MiB"] = seconds, mib
    return readings


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
