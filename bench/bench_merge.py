"""Merging the records of shards (target: a million items of two systems in under 60 s, in memory that does not grow with the items).

python bench/bench_merge.py [--samples 500000] [--parts 100] [--turns 3]

The records are written by the package's own writer, with made results: two systems, three metrics without details. The record
of one machine is written too, and the merged one must hold the same rows. The floor is copying the parts' files. Merging runs in
a process of its own, whose peak memory is read.
"""

from __future__ import annotations

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
from common import PEAK_MIB, append_rows, asked, ranked

from codec_bench.data import Shard, Source, part_of
from codec_bench.store.parts import mark_part
from codec_bench.store.record import Run
from codec_bench.store.rows import ItemRecord
from codec_bench.store.tables import checksum_of, identity_of, layout_of
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
    """Stops if the two records do not hold the same rows with the checksums of their runs. Returns how many rows there are."""
    rows = 0
    with closing(sqlite3.connect(whole / "run.sqlite")) as db:
        db.execute("ATTACH ? AS merged", (str(merged / "run.sqlite"),))
        identities = identity_of(db) ^ identity_of(db, "merged")
        for table in TABLES:
            columns = ", ".join(layout_of(db, table).columns)
            ((count,),) = db.execute(f"SELECT COUNT(*) FROM main.{table}")
            ((held,),) = db.execute(f"SELECT COUNT(*) FROM merged.{table}")
            other = db.execute(
                f"SELECT {columns}, checksum FROM main.{table} EXCEPT "
                f"SELECT {columns}, {checksum_of(identities)} FROM merged.{table} LIMIT 1"
            ).fetchall()
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


def main() -> None:
    """Writes the records, merges them, and compares."""
    options = asked(__doc__, samples=500_000, parts=100, turns=3)
    items = options.samples * len(SYSTEMS)
    found: list[tuple[float, float]] = []
    floors: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source = Source("made", [Sample(f"u{number:08d}", f"{number}.wav") for number in range(options.samples)])
        source.fingerprint = "made"
        write(folder / "whole", source)
        parts = [folder / f"part{k}" for k in range(1, options.parts + 1)]
        for k, part in enumerate(parts, 1):
            write(part, part_of(source, Shard(k, options.parts)))
        megabytes = sum((part / "run.sqlite").stat().st_size for part in parts) / 1e6
        for turn in range(options.turns):
            found.append(merge(parts, folder / f"merged{turn}"))
            floors.append(copied(parts, folder / "copied"))
            rows = compare(folder / f"merged{turn}", folder / "whole")
            shutil.rmtree(folder / "copied")
    note = f"{rows} rows, {megabytes:.0f} MB; peak {max(peak for _, peak in found):.0f} MiB"
    seconds = {"merge": np.asarray([one for one, _ in found]), "floor: copying the parts": np.asarray(floors)}
    said = {"merge": "every row as of one machine"}
    append_rows("merge", ranked(f"{items} items in {options.parts} parts", seconds, n=items, note=note, agreement=said))


if __name__ == "__main__":
    main()
