"""Merging the records of shards (target: a million items of two systems in under 60 s, in memory that does not grow with the items).

python bench/bench_merge.py [--samples 500000] [--parts 100] [--turns 3]

It also times what it costs that a record is whole or refused: opening it (target: under 1 s), and reading its scores with and
without the check of its content before the first one (target: at most 20 % more).

The records are written by the package's own writer, with made results: two systems, three metrics without details. The record
of one machine is written too, and the merged one must hold the same rows. The floor is copying the parts' files. Merging runs in
a process of its own, whose peak memory is read.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from common import PEAK_MIB, append_rows, row

from codec_bench.data import Shard, Source, part_of
from codec_bench.store.parts import mark_part
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.writer import RunWriter
from codec_bench.types import Sample, Score

SYSTEMS = ("first", "second")
METRICS = ("stoi", "si_sdr", "pesq_wb")
TABLES = ("samples", "items", "scores")
_AT_ONCE = 2_048
PROGRAM = f"""
import json, sys, time
from pathlib import Path
from codec_bench.store.merge import merge_records
start = time.perf_counter()
merge_records([Path(one) for one in json.loads(sys.argv[1])], Path(sys.argv[2]))
print(json.dumps([time.perf_counter() - start, {PEAK_MIB}]))
"""


def made(numbers: Sequence[int], metrics: int) -> np.ndarray:
    """Results that are no measurements: from 0 to 1, another one for each sample, system and metric.

    Args:
        numbers: of the samples. metrics: how many.

    Returns:
        (samples, systems, metrics), float64.
    """
    place = np.asarray(numbers, np.uint64)[:, None, None] * np.uint64(len(SYSTEMS))
    place = (place + np.arange(len(SYSTEMS), dtype=np.uint64)[:, None]) * np.uint64(metrics)
    place = place + np.arange(metrics, dtype=np.uint64)
    return (place * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(11)) / 2.0**53  # an odd factor: no two are equal


def write(folder: Path, source: Source, metrics: Sequence[str] = METRICS) -> None:
    """Writes the finished record of a data set or of one shard, with made results."""
    fingerprint = {"data": "made", **({"shard": str(source.shard)} if source.shard else {})}
    facts = {name: {"protocol": name, "kind": "pair", "unit": "", "higher_is_better": True} for name in metrics}
    with closing(RunWriter(folder, fingerprint)) as writer:
        writer.begin({key: {} for key in SYSTEMS}, facts, source, source.numbers, ())
        for start in range(0, len(source), _AT_ONCE):
            chosen = slice(start, start + _AT_ONCE)
            numbers = source.numbers[chosen]
            records: list[tuple[int, ItemRecord]] = []
            for number, values, sample in zip(
                numbers, made(numbers, len(metrics)), source.samples[chosen], strict=True
            ):
                for system, of_system in zip(SYSTEMS, values):
                    scores = {name: Score(float(value), "ok", None, name) for name, value in zip(metrics, of_system)}
                    item = ItemRecord(system, sample.id, "ok", None, scores, bits=12_000.0, duration_s=0.3, sample_rate_hz=16_000, channels=1)  # fmt: skip
                    records.append((number, item))
            writer.write(records)
        writer.set_meta(state="finished", config={}, data={"name": "made"})
    with closing(Run(folder)) as run:
        mark_part(run)


def compare(merged: Path, whole: Path) -> int:
    """Stops if the two records do not hold the same rows with the same checksums. Returns how many rows there are."""
    rows = 0
    with closing(sqlite3.connect(whole / "run.sqlite")) as db:
        db.execute("ATTACH ? AS merged", (str(merged / "run.sqlite"),))
        for table in TABLES:
            ((count,),) = db.execute(f"SELECT COUNT(*) FROM main.{table}")
            ((held,),) = db.execute(f"SELECT COUNT(*) FROM merged.{table}")
            other = db.execute(f"SELECT * FROM main.{table} EXCEPT SELECT * FROM merged.{table} LIMIT 1").fetchall()
            if count != held or other or not count:
                raise SystemExit(
                    f"{table}: {held} rows where one machine has {count}, of which these are missing: {other}"
                )
            rows += count
    return rows


def merge(parts: Sequence[Path], out: Path) -> tuple[float, float]:
    """Merges in a process of its own: seconds and peak MiB."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, json.dumps([str(part) for part in parts]), str(out)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, peak_mib = json.loads(done.stdout)
    return seconds, peak_mib


def copied(parts: Sequence[Path], out: Path) -> float:
    """Copies the parts' records, which is the least that merging must do: seconds."""
    start = time.perf_counter()
    out.mkdir()
    for number, part in enumerate(parts):
        shutil.copyfile(part / "run.sqlite", out / f"{number}.sqlite")
    return time.perf_counter() - start


def read(folder: Path, *, checked: bool) -> tuple[float, float, int]:
    """Opens a record and reads its scores: the seconds of opening, those of reading, and how many scores there are."""
    start = time.perf_counter()
    with closing(Run(folder)) as run:
        opened = time.perf_counter()
        if checked:
            run.check()
        else:
            run._checked = True
        count = sum(1 for _ in run.scores())
        return opened - start, time.perf_counter() - opened, count


def timed_reading(folder: Path, items: int) -> list[dict[str, object]]:
    """Rows of opening and reading a closed record, in turns with its check and without it.

    Raises:
        SystemExit: another number of scores was read than written.
    """
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(3):
        for checked, times in found.items():
            opening, reading, count = read(folder, checked=checked)
            times.append((opening, reading))
            if count != items * len(METRICS):
                raise SystemExit(f"{count} scores were read where {items * len(METRICS)} were written")
    plain_s, checked_s = (np.asarray([seconds for _, seconds in found[key]]) for key in (False, True))
    opening = np.asarray([seconds for times in found.values() for seconds, _ in times])
    case, more = f"record of {items} items", 100 * (np.median(checked_s) / np.median(plain_s) - 1)
    note = f"{(folder / 'run.sqlite').stat().st_size / 1e6:.0f} MB; the check adds {more:.1f} %"
    sys.stdout.write(f"{case}: opened in {np.median(opening):.2f} s, read in {np.median(checked_s):.1f} s; {note}\n")
    return [
        row(case, "open", opening, n=items),
        row(case, "read, content checked", checked_s, n=items, note=note),
        row(case, "read, content not checked", plain_s, n=items),
    ]


def main() -> None:
    """Writes the records, reads one, merges them, and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=500_000)
    parser.add_argument("--parts", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    asked = parser.parse_args()
    items = asked.samples * len(SYSTEMS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = Source("made", [Sample(f"u{number:08d}", f"{number}.wav") for number in range(asked.samples)])
        source.fingerprint = "made"
        write(folder / "whole", source)
        lines = timed_reading(folder / "whole", items)
        parts = [folder / f"part{k}" for k in range(1, asked.parts + 1)]
        for k, part in enumerate(parts, 1):
            write(part, part_of(source, Shard(k, asked.parts)))
        megabytes = sum((part / "run.sqlite").stat().st_size for part in parts) / 1e6
        found: list[tuple[float, float]] = []
        floors: list[float] = []
        for turn in range(asked.turns):
            found.append(merge(parts, folder / f"merged{turn}"))
            floors.append(copied(parts, folder / f"copied{turn}"))
            rows = compare(folder / f"merged{turn}", folder / "whole")
            shutil.rmtree(folder / f"copied{turn}")
        note = f"{rows} rows, {megabytes:.0f} MB; peak {max(peak for _, peak in found):.0f} MiB"
    seconds = np.asarray([one for one, _ in found])
    case = f"{items} items in {asked.parts} parts"
    sys.stdout.write(f"{case}: {np.median(seconds):.1f} s, copying {np.median(floors):.1f} s; {note}\n")
    lines += [
        row(case, "merge", seconds, n=items, agreement="every row as of one machine", note=note),
        row(case, "floor: copying the parts", np.asarray(floors), n=items, note=f"{megabytes:.0f} MB"),
    ]
    sys.stdout.write(f"rows appended to {append_rows('merge', lines)}\n")


if __name__ == "__main__":
    main()
